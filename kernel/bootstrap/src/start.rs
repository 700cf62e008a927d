//! From the boot loader to Rust.
//!
//! ```text
//!  upper half                                    lower half
//!  BASE + 0        first GiB: device registers   nothing, until a thread runs
//!  BASE + n GiB    the GiB with the kernel, in 2 MiB blocks; the kernel's own 2 MiB in pages: text, constants, data
//!  …               further memory, in 1 GiB blocks, mapped once the device tree is read
//! ```
//! The kernel runs at its address in the upper half, so a kernel virtual address is a physical one plus `BASE`. The
//! first core's kernel lies where it was linked. Every other core has its own copy of the image, which relocates itself
//! before it does anything else.

use tench_arch_aarch64::layout::{BASE, RAM_END};
use tench_arch_aarch64::start::{resident, tench_kernel_tables};

core::arch::global_asm!(include_str!("start.S"));

/// Descriptor bits of a block of normal memory: accessed, inner shareable, never executed.
const NORMAL_BLOCK: u64 = 0x0060_0000_0000_0701;

/// Index of the entry of the kernel's first table that maps physical address 0.
const FIRST_ENTRY: usize = BASE >> 30 & 511;

/// Maps the GiBs of the upper half that hold memory of `[start, end)`, beyond the two that the assembly mapped. Mapping
/// a GiB twice does no harm.
///
/// # Safety
/// Called before any trap, with a range of existing memory.
pub unsafe fn map_memory(start: u64, end: u64) {
    let own = resident().start >> 30;
    for gib in (start >> 30)..end.div_ceil(1 << 30).min(RAM_END >> 30) {
        if gib != 0 && gib != own {
            // SAFETY: the tables are live, and this entry was unused or had this value.
            unsafe {
                (&raw mut tench_kernel_tables[0][FIRST_ENTRY + gib as usize]).write_volatile(gib << 30 | NORMAL_BLOCK)
            };
        }
    }
    // SAFETY: barriers; entries became valid, so nothing has to be invalidated.
    unsafe { core::arch::asm!("dsb ishst", "isb", options(nostack, preserves_flags)) };
}
