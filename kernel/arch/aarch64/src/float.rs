//! The floating-point and vector registers, which the kernel itself never uses.
//!
//! They are switched lazily: access traps until the kernel core has given the unit to a thread.

use core::arch::asm;

use tench_kernel::thread::FloatState;

/// Bits of `CPACR_EL1`: neither user mode nor the kernel traps.
const ACCESSIBLE: u64 = 3 << 20;

/// Lets user mode use the unit, or makes its next use trap. Takes effect on entry to user mode.
#[inline]
pub fn enable(enable: bool) {
    // SAFETY: compiled code of the kernel does not use the unit (soft-float target), so only user mode notices.
    unsafe {
        asm!("msr cpacr_el1, {}", in(reg) if enable { ACCESSIBLE } else { 0 }, options(nomem, nostack, preserves_flags))
    };
}

/// Expands to one instruction for each pair of registers.
macro_rules! pairs {
    ($operation:literal) => {
        concat!(
            ".arch_extension fp\n.arch_extension simd\n",
            $operation,
            " q0, q1, [{state}]\n",
            $operation,
            " q2, q3, [{state}, #32]\n",
            $operation,
            " q4, q5, [{state}, #64]\n",
            $operation,
            " q6, q7, [{state}, #96]\n",
            $operation,
            " q8, q9, [{state}, #128]\n",
            $operation,
            " q10, q11, [{state}, #160]\n",
            $operation,
            " q12, q13, [{state}, #192]\n",
            $operation,
            " q14, q15, [{state}, #224]\n",
            $operation,
            " q16, q17, [{state}, #256]\n",
            $operation,
            " q18, q19, [{state}, #288]\n",
            $operation,
            " q20, q21, [{state}, #320]\n",
            $operation,
            " q22, q23, [{state}, #352]\n",
            $operation,
            " q24, q25, [{state}, #384]\n",
            $operation,
            " q26, q27, [{state}, #416]\n",
            $operation,
            " q28, q29, [{state}, #448]\n",
            $operation,
            " q30, q31, [{state}, #480]\n",
        )
    };
}

/// Saves the unit's registers. The unit has been switched on.
#[inline(never)]
pub fn save(state: &mut FloatState) {
    // SAFETY: writes `registers`, the first field, which has room for all 32. The `isb` makes what switched the unit on
    // effective. Reading registers changes nothing.
    unsafe {
        asm!("isb", pairs!("stp"), state = in(reg) &raw mut state.registers, options(nostack, preserves_flags));
    };
    // SAFETY: reads two registers of the unit.
    unsafe {
        asm!("mrs {}, s3_3_c4_c4_1", "mrs {}, s3_3_c4_c4_0", out(reg) state.status, out(reg) state.control,
            options(nomem, nostack, preserves_flags))
    };
}

/// Loads the unit's registers. The unit has been switched on.
#[inline(never)]
pub fn restore(state: &FloatState) {
    // SAFETY: reads `registers`; compiled code does not use the unit, so only the values of the unit's last owner are
    // lost, which the caller has saved. The `isb` is as in `save`.
    unsafe {
        asm!("isb", pairs!("ldp"), state = in(reg) &raw const state.registers,
            options(nostack, preserves_flags, readonly));
    };
    // SAFETY: as above.
    unsafe {
        asm!("msr s3_3_c4_c4_1, {}", "msr s3_3_c4_c4_0, {}", in(reg) state.status, in(reg) state.control,
            options(nomem, nostack, preserves_flags))
    };
}
