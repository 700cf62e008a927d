//! The retired-instruction counter: event counter 0 of the performance monitors, started by the kernel's first
//! instructions and never stopped, in user mode and in the kernel alike.
//!
//! Programs may not read it, nor the counter of cycles, unless somebody with the power to decide that says so: what is
//! counted is what everybody does, to the instruction. Then measurements need no system call. It has 32 bits on many
//! processors and then wraps; differences of 32 bits are right for stretches of up to 2³² instructions. QEMU counts
//! only with `-icount`; without, it reads 0.

use core::arch::asm;

/// In `PMUSERENR_EL0`: user mode reads event counters, and that of cycles.
const READABLE: u64 = 0xc;

/// Lets programs read the counters, or makes each attempt an exception.
pub fn let_count(readable: bool) {
    let access = if readable { READABLE } else { 0 };
    // SAFETY: says what user mode may read; returning there synchronises.
    unsafe { asm!("msr pmuserenr_el0, {}", in(reg) access, options(nomem, nostack, preserves_flags)) };
}

/// Retired instructions since the kernel's first one.
#[inline(always)]
pub fn instructions() -> u64 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("isb", "mrs {}, pmevcntr0_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}
