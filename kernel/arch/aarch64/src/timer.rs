//! The system counter and the virtual timer: one deadline, one interrupt.
//!
//! The timer stays enabled; "no deadline" is a deadline that is never reached. So setting and clearing are the same
//! single write. The interrupt is level-triggered: it ends when the deadline moves into the future.

use core::arch::asm;

pub use crate::layout::TIMER_LINE as LINE;

/// Returns the counter, in ticks.
#[inline(always)]
pub fn now() -> u64 {
    let ticks;
    // SAFETY: reads a counter. The barrier keeps the read from being executed before what precedes it in the program.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

/// Returns the counter's frequency in ticks per second, as the firmware reports it.
pub fn frequency() -> u64 {
    let frequency;
    // SAFETY: reads a constant.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack, preserves_flags)) };
    frequency
}

/// Enables the timer, without a deadline, and lets programs read the counter.
pub fn init() {
    set(None);
    // SAFETY: bit 1 of CNTKCTL_EL1 lets user mode read the virtual counter and nothing else; bit 0 of CNTV_CTL_EL0
    // enables the timer, whose interrupt the interrupt controller still masks.
    unsafe {
        asm!(
            "msr cntkctl_el1, {counter}",
            "msr cntv_ctl_el0, {on}",
            "isb",
            counter = in(reg) 2_u64,
            on = in(reg) 1_u64,
            options(nomem, nostack, preserves_flags)
        )
    };
}

/// Sets or clears the deadline of the timer interrupt.
#[inline(always)]
pub fn set(deadline: Option<u64>) {
    // SAFETY: writes the deadline. The barrier makes a passed deadline's interrupt end before it is ended at the
    // controller, so that it is not taken a second time.
    unsafe {
        asm!("msr cntv_cval_el0, {}", "isb", in(reg) deadline.unwrap_or(u64::MAX),
            options(nomem, nostack, preserves_flags))
    };
}
