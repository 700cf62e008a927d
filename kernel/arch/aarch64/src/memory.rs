//! Zeroing, copying and cache maintenance.

use core::sync::atomic::{AtomicUsize, Ordering};

use tench_abi::fault::Registers;

/// Bytes that `dc zva` zeroes at once; 0 until read.
static ZERO_BLOCK: AtomicUsize = AtomicUsize::new(0);
/// Data cache line size in bytes for maintenance by address: the smallest that is assumed.
const LINE: usize = 16;

/// Returns the bytes that `dc zva` zeroes at once, or 0 if it must not be used.
fn zero_block() -> usize {
    let id: usize;
    // SAFETY: reads an identification register.
    unsafe { core::arch::asm!("mrs {}, dczid_el0", out(reg) id, options(nomem, nostack, preserves_flags)) };
    if id & 16 != 0 { usize::MAX } else { 4 << (id & 15) }
}

/// Fills memory with zeros. Address and length are multiples of 16.
///
/// # Safety
/// The range is mapped normal memory that holds no live object.
#[inline(always)]
pub unsafe fn zero(address: usize, length: usize) {
    let mut block = ZERO_BLOCK.load(Ordering::Relaxed);
    if block == 0 {
        block = zero_block();
        ZERO_BLOCK.store(block, Ordering::Relaxed);
    }
    let end = address + length;
    let mut at = address;
    if (address | length) & block.wrapping_mul(8).wrapping_sub(1) == 0 && length != 0 {
        while at != end {
            // SAFETY: eight aligned blocks inside the range (caller).
            unsafe {
                core::arch::asm!(
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    "dc zva, {0}", "add {0}, {0}, {1}",
                    inout(reg) at, in(reg) block, options(nostack, preserves_flags))
            };
        }
        return;
    }
    while at < end {
        // SAFETY: sixteen bytes inside the range (caller).
        unsafe { core::arch::asm!("stp xzr, xzr, [{}]", in(reg) at, options(nostack, preserves_flags)) };
        at += 16;
    }
}

/// Copies words between two ranges that are identical or disjoint.
///
/// # Safety
/// Both are mapped normal memory, aligned to 8, to which no reference exists.
#[inline(always)]
pub unsafe fn copy(from: usize, to: usize, words: usize) {
    // SAFETY: reads and writes `words` words (caller). Without vector registers, four pairs at a time are fastest.
    unsafe {
        core::arch::asm!(
            "subs {words}, {words}, #8",
            "b.lo 3f",
            "2:",
            "ldp {a}, {b}, [{from}]",
            "ldp {c}, {d}, [{from}, #16]",
            "stp {a}, {b}, [{to}]",
            "stp {c}, {d}, [{to}, #16]",
            "ldp {a}, {b}, [{from}, #32]",
            "ldp {c}, {d}, [{from}, #48]",
            "stp {a}, {b}, [{to}, #32]",
            "stp {c}, {d}, [{to}, #48]",
            "add {from}, {from}, #64",
            "add {to}, {to}, #64",
            "subs {words}, {words}, #8",
            "b.hs 2b",
            // The bits of the rest, 0 to 7, are those of the negative number.
            "3:",
            "tbz {words}, #2, 4f",
            "ldp {a}, {b}, [{from}], #16",
            "ldp {c}, {d}, [{from}], #16",
            "stp {a}, {b}, [{to}], #16",
            "stp {c}, {d}, [{to}], #16",
            "4:",
            "tbz {words}, #1, 5f",
            "ldp {a}, {b}, [{from}], #16",
            "stp {a}, {b}, [{to}], #16",
            "5:",
            "tbz {words}, #0, 6f",
            "ldr {a}, [{from}]",
            "str {a}, [{to}]",
            "6:",
            words = inout(reg) words => _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
            options(nostack)
        );
    }
}

/// Copies a thread's registers as [`copy`] would, without a loop.
///
/// # Safety
/// As for [`copy`].
#[inline(always)]
pub unsafe fn copy_registers(from: usize, to: usize) {
    const _: () = assert!(size_of::<Registers>() == 8 * 32 + 24);
    // SAFETY: reads and writes exactly the registers, for which the caller vouches.
    unsafe {
        core::arch::asm!(
            ".irp at, 0, 32, 64, 96, 128, 160, 192, 224",
            "ldp {a}, {b}, [{from}, #\\at]",
            "ldp {c}, {d}, [{from}, #\\at + 16]",
            "stp {a}, {b}, [{to}, #\\at]",
            "stp {c}, {d}, [{to}, #\\at + 16]",
            ".endr",
            "ldp {a}, {b}, [{from}, #256]",
            "ldr {c}, [{from}, #272]",
            "stp {a}, {b}, [{to}, #256]",
            "str {c}, [{to}, #272]",
            from = in(reg) from,
            to = in(reg) to,
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// Makes instructions that were written through the kernel's or another mapping visible to instruction fetches.
pub fn synchronise_instructions(address: usize, length: usize) {
    for at in (address..address + length).step_by(LINE * 4) {
        // SAFETY: cleans a line of mapped memory; its contents stay.
        unsafe { core::arch::asm!("dc cvau, {}", in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers and invalidation of cached instructions, which are fetched again.
    unsafe { core::arch::asm!("dsb ish", "ic iallu", "dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Cleans and invalidates the data caches for a range.
pub fn clean(address: usize, length: usize) {
    for at in (address..address + length).step_by(LINE * 4) {
        // SAFETY: cleans and invalidates a line of mapped memory; its contents stay.
        unsafe { core::arch::asm!("dc civac, {}", in(reg) at, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { core::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
}
