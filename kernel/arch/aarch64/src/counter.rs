//! The retired-instruction counter: event counter 0 of the performance monitors. The kernel's first instructions start
//! it, and it never stops, in user mode nor in the kernel.
//!
//! Programs may read neither it nor the cycle counter unless the holder of a power allows it, since it counts the
//! instructions of all programs. Once allowed, measurements need no system call. The counter has 32 bits on many
//! processors and wraps; 32-bit differences are right for intervals of up to 2³² instructions. QEMU counts only with
//! `-icount`; without, the counter reads 0.

use core::arch::asm;

/// Bits of `PMUSERENR_EL0`: user mode may read the event counters and the cycle counter.
const READABLE: u64 = 0xc;

/// Lets programs read the counters, or makes each attempt an exception.
pub fn let_count(readable: bool) {
    let access = if readable { READABLE } else { 0 };
    // SAFETY: sets what user mode may read; returning to user mode synchronises.
    unsafe { asm!("msr pmuserenr_el0, {}", in(reg) access, options(nomem, nostack, preserves_flags)) };
}

/// Returns the number of instructions retired since the kernel's first one.
#[inline(always)]
pub fn instructions() -> u64 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("isb", "mrs {}, pmevcntr0_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}
