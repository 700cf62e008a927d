//! Single steps: the processor's software steps, of debug exceptions.

use core::arch::asm;

/// Bit of `MDSCR_EL1` that enables steps in user mode. The kernel runs with debug exceptions masked.
const ENABLED: u64 = 1;

/// Bit of `MDSCR_EL1` that keeps programs from the channel to an external debugger, which all of a core would share.
const NO_CHANNEL: u64 = 1 << 12;

/// Bit of `SPSR_EL1`: one instruction is executed before the exception. Without it, none is.
pub const FLAG: u64 = 1 << 21;

/// Takes debug exceptions into use, which are locked after a reset, with steps off.
pub fn init() {
    // SAFETY: nothing else is enabled of the debug unit: breakpoints and watchpoints are off after a reset.
    unsafe {
        asm!("msr mdscr_el1, {}", "msr oslar_el1, xzr", "isb", in(reg) NO_CHANNEL,
            options(nomem, nostack, preserves_flags));
    }
}

/// Switches steps on or off. Takes effect on entry to user mode.
pub fn enable(enable: bool) {
    let value = if enable { NO_CHANNEL | ENABLED } else { NO_CHANNEL };
    // SAFETY: what runs in user mode raises exceptions, which the kernel handles; returning there synchronises.
    unsafe { asm!("msr mdscr_el1, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
}
