//! The retired-instruction counter: event counter 0 of the performance monitors, started by the kernel's first
//! instructions and never stopped, in user mode and in the kernel alike.
//!
//! Programs may read it, so that measurements need no system call. It has 32 bits on many processors and then wraps;
//! differences of 32 bits are right for stretches of up to 2³² instructions. QEMU counts only with `-icount`; without,
//! it reads 0.

use core::arch::asm;

/// Retired instructions since the kernel's first one.
#[inline(always)]
pub fn instructions() -> u64 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("isb", "mrs {}, pmevcntr0_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}
