//! Page-table entries for user mappings, and TLB maintenance.
//!
//! Page tables belong to one core, so the TLB is invalidated on this core alone, and barriers reach no further.

use tench_abi::memory::{MapFlags, entry_bits};

/// Descriptor type of a page of level 3, or of a table of levels 0 to 2.
const PAGE_OR_TABLE: u64 = 0b11;
/// Descriptor type of a block of level 1 or 2.
const BLOCK: u64 = 0b01;
/// Memory types, as indices into `MAIR_EL1`; see start.S.
const NORMAL: u64 = 0 << 2;
const DEVICE: u64 = 1 << 2;
const UNCACHED: u64 = 2 << 2;
/// Attribute: user mode may access.
const USER: u64 = 1 << 6;
const READ_ONLY: u64 = 1 << 7;
const INNER_SHAREABLE: u64 = 3 << 8;
const ACCESSED: u64 = 1 << 10;
/// Attribute: belongs to one address-space identifier.
const NOT_GLOBAL: u64 = 1 << 11;
const KERNEL_NEVER_EXECUTES: u64 = 1 << 53;
const USER_NEVER_EXECUTES: u64 = 1 << 54;

/// Number of entries in one invalidation beyond which the whole address space is invalidated.
const MANY: usize = 32;

/// Returns an entry that maps memory in a table of level 1 to 3.
#[inline(always)]
pub fn page(physical: u64, level: u32, flags: MapFlags) -> u64 {
    let mut entry = physical | USER | ACCESSED | NOT_GLOBAL | INNER_SHAREABLE | KERNEL_NEVER_EXECUTES;
    entry |= if level == 3 { PAGE_OR_TABLE } else { BLOCK };
    entry |= if flags.contains(MapFlags::DEVICE) {
        DEVICE
    } else if flags.contains(MapFlags::UNCACHED) {
        UNCACHED
    } else {
        NORMAL
    };
    if !flags.contains(MapFlags::WRITE) {
        entry |= READ_ONLY;
    }
    if !flags.contains(MapFlags::EXECUTE) {
        entry |= USER_NEVER_EXECUTES;
    }
    entry
}

/// Returns a page's entry without the rights to write and execute that are not in `mask`.
#[inline(always)]
pub fn restrict(entry: u64, mask: MapFlags) -> u64 {
    let read_only = if mask.contains(MapFlags::WRITE) { 0 } else { READ_ONLY };
    let never_executes = if mask.contains(MapFlags::EXECUTE) { 0 } else { USER_NEVER_EXECUTES };
    entry | read_only | never_executes
}

/// Returns an entry for a table of the next level.
#[inline(always)]
pub fn table(physical: u64) -> u64 {
    physical | PAGE_OR_TABLE
}

/// Makes written entries visible to the page-table walk.
#[inline(always)]
pub fn publish() {
    // SAFETY: a barrier: stores to tables before, walks after.
    unsafe { core::arch::asm!("dsb nshst", "isb", options(nostack, preserves_flags)) };
}

/// Invalidates TLB entries for `count` entries of `level` from `address` on.
pub fn invalidate(asid: u16, address: u64, level: u32, count: usize) {
    if count > MANY {
        invalidate_space(asid);
        return;
    }
    // SAFETY: a barrier: the cleared entries are visible to walks before the TLB is invalidated.
    unsafe { core::arch::asm!("dsb nshst", options(nostack, preserves_flags)) };
    let mut operand = u64::from(asid) << 48 | address >> 12;
    for _ in 0..count {
        // SAFETY: translations are walked again.
        unsafe { core::arch::asm!("tlbi vae1, {}", in(reg) operand, options(nostack, preserves_flags)) };
        operand += 1 << (entry_bits(level) - 12);
    }
    // SAFETY: the invalidation has finished when this returns.
    unsafe { core::arch::asm!("dsb nsh", "isb", options(nostack, preserves_flags)) };
}

/// Invalidates all TLB entries of an address space.
pub fn invalidate_space(asid: u16) {
    // SAFETY: translations are walked again; barriers as above.
    unsafe {
        core::arch::asm!("dsb nshst", "tlbi aside1, {}", "dsb nsh", "isb", in(reg) u64::from(asid) << 48,
            options(nostack, preserves_flags))
    };
}

/// Makes a root table current for user mode. The kernel runs in the other half, so returning from the exception
/// synchronises enough.
#[inline(always)]
pub fn load(register: u64) {
    // SAFETY: the value came from `register` or the empty table; user memory is not accessed by the kernel.
    unsafe { core::arch::asm!("msr ttbr0_el1, {}", in(reg) register, options(nostack, preserves_flags)) };
}

/// Returns the value last given to `load`.
pub fn loaded() -> u64 {
    let register;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mrs {}, ttbr0_el1", out(reg) register, options(nomem, nostack, preserves_flags)) };
    register
}

/// Returns the value of the register for a root table and its identifier.
pub fn register(physical: u64, asid: u16) -> u64 {
    physical | u64::from(asid) << 48
}
