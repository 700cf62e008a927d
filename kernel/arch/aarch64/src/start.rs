//! The kernel's image in memory, and the end of the bootstrap, whose part of the image becomes free.

use tench_abi::memory::{PAGE_BITS, PAGE_SIZE, TABLE_ENTRIES};

use crate::layout::{Region, physical};
use crate::trap;

unsafe extern "C" {
    /// The kernel's page tables of levels 1 to 3; the last maps the 2 MiB with the image in pages.
    pub static mut tench_kernel_tables: [[u64; 512]; 3];
    static tench_image_start: u8;
    static tench_resident_start: u8;
    static tench_resident_text_end: u8;
    static tench_resident_end: u8;
    static tench_image_end: u8;
    static tench_empty_table: u8;
    static tench_boot_guard: [u8; PAGE_SIZE];
    static tench_boot_stack_top: u8;
}

/// Descriptor bits of a page of normal memory: accessed, inner shareable, never executed.
const NORMAL_PAGE: u64 = 0x0060_0000_0000_0703;

/// Returns the physical range of the part of the image that stays, with its zeroed memory.
pub fn resident() -> Region {
    between(&raw const tench_resident_start, &raw const tench_resident_end)
}

/// Returns the physical ranges of the parts of the image that are free once the bootstrap is left.
pub fn bootstrap() -> [Region; 2] {
    let [start, end] = [&raw const tench_image_start, &raw const tench_image_end];
    [between(start, &raw const tench_resident_start), between(&raw const tench_resident_end, end)]
}

fn between(start: *const u8, end: *const u8) -> Region {
    Region { start: physical(start.addr()), end: physical(end.addr()) }
}

/// Returns the physical address of a root table in which nothing is mapped.
pub fn empty_table() -> u64 {
    let table = &raw const tench_empty_table;
    physical(table.addr())
}

/// Returns the entry of the kernel's tables for a page of the 2 MiB with the image.
fn entry(page: u64) -> *mut u64 {
    let tables = &raw mut tench_kernel_tables;
    let index = (page >> PAGE_BITS) as usize % TABLE_ENTRIES;
    tables.cast::<u64>().wrapping_add(2 * TABLE_ENTRIES + index)
}

/// Leaves the bootstrap for good and continues with a thread. What belongs to the bootstrap alone is mapped as any
/// other memory: it is in the first process's hands.
///
/// # Safety
/// `thread` came from the scheduler. Nothing on this stack is needed any more.
pub unsafe fn leave_bootstrap(thread: usize) -> ! {
    for part in bootstrap() {
        for page in (part.start..part.end).step_by(PAGE_SIZE) {
            // SAFETY: an entry of the live tables, for a page to which no reference exists. Its address stays, so the
            // old entry need not be invalidated before.
            unsafe { entry(page).write_volatile(page | NORMAL_PAGE) };
        }
    }
    // SAFETY: barriers; the pages are no longer executed, and no longer read-only, once this has been done. The boot
    // stack stays mapped.
    unsafe {
        core::arch::asm!("dsb nshst", "tlbi vmalle1", "dsb nsh", "isb", options(nostack, preserves_flags));
    }
    // SAFETY: the caller's contract is the same.
    unsafe { trap::tench_resume(thread) }
}

/// Returns whether an address is one of the kernel's instructions, but for the first; those of the bootstrap count.
pub fn is_in_text(address: usize) -> bool {
    let (first, end) = (&raw const tench_image_start, &raw const tench_resident_text_end);
    first.addr() < address && address < end.addr()
}

/// Returns the end of the stack on which the kernel boots, if an address lies on it.
pub fn boot_stack_end(address: usize) -> Option<usize> {
    let (guard, end) = (&raw const tench_boot_guard, &raw const tench_boot_stack_top);
    (guard.addr()..end.addr()).contains(&address).then_some(end.addr())
}

/// Returns whether an address of the kernel lies in the page below the stack on which it boots. Nothing is mapped there
/// until the bootstrap is left, so a stack that is too small ends in a fault, and not in the tables below.
pub fn is_below_boot_stack(address: u64) -> bool {
    let guard = &raw const tench_boot_guard;
    let is_there = (guard.addr()..guard.addr() + PAGE_SIZE).contains(&(address as usize));
    // SAFETY: reads an entry of the live tables.
    is_there && unsafe { entry(physical(guard.addr())).read_volatile() } == 0
}
