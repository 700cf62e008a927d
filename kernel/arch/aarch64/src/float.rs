//! The floating-point and vector registers, which the kernel itself never uses.
//!
//! They are switched lazily: access traps until the kernel core has given the unit to a thread.

use core::arch::asm;
use core::mem::offset_of;

use tench_kernel::thread::FloatState;

/// Bits of `CPACR_EL1`: neither user mode nor the kernel traps.
const ACCESSIBLE: u64 = 3 << 20;

/// Lets user mode use the unit, or makes its next use trap. Takes effect on entry to user mode.
#[inline(always)]
pub fn enable(enable: bool) {
    // SAFETY: compiled code of the kernel does not use the unit (soft-float target), so only user mode notices.
    unsafe {
        if enable {
            asm!("msr cpacr_el1, {}", in(reg) ACCESSIBLE, options(nomem, nostack, preserves_flags));
        } else {
            asm!("msr cpacr_el1, xzr", options(nomem, nostack, preserves_flags));
        }
    }
}

/// Expands to one instruction for each four registers, and leaves the address of what follows them in `state`.
macro_rules! all_registers {
    ($operation:literal) => {
        concat!(
            $operation,
            " {{v0.2d, v1.2d, v2.2d, v3.2d}}, [{state}], #64\n",
            $operation,
            " {{v4.2d, v5.2d, v6.2d, v7.2d}}, [{state}], #64\n",
            $operation,
            " {{v8.2d, v9.2d, v10.2d, v11.2d}}, [{state}], #64\n",
            $operation,
            " {{v12.2d, v13.2d, v14.2d, v15.2d}}, [{state}], #64\n",
            $operation,
            " {{v16.2d, v17.2d, v18.2d, v19.2d}}, [{state}], #64\n",
            $operation,
            " {{v20.2d, v21.2d, v22.2d, v23.2d}}, [{state}], #64\n",
            $operation,
            " {{v24.2d, v25.2d, v26.2d, v27.2d}}, [{state}], #64\n",
            $operation,
            " {{v28.2d, v29.2d, v30.2d, v31.2d}}, [{state}], #64\n",
        )
    };
}

/// Expands to the instructions that save the registers at `state`.
macro_rules! save_all {
    () => {
        concat!(
            all_registers!("st1"),
            "mrs {status}, s3_3_c4_c4_1\nmrs {control}, s3_3_c4_c4_0\nstp {status}, {control}, [{state}]"
        )
    };
}

/// Expands to the instructions that load the registers from `state`.
macro_rules! restore_all {
    () => {
        concat!(
            all_registers!("ld1"),
            "ldp {status}, {control}, [{state}]\nmsr s3_3_c4_c4_1, {status}\nmsr s3_3_c4_c4_0, {control}"
        )
    };
}

/// Saves the unit's registers. The unit has been switched on.
#[inline(always)]
pub fn save(state: &mut FloatState) {
    // SAFETY: writes all fields, which follow each other. The `isb` makes what switched the unit on effective. Reading
    // registers changes nothing.
    unsafe {
        asm!(".arch_extension fp", ".arch_extension simd", "isb", save_all!(), state = inout(reg) &raw mut *state => _,
            status = out(reg) _, control = out(reg) _, options(nostack, preserves_flags));
    };
}

/// Loads the unit's registers. The unit has been switched on.
#[inline(always)]
pub fn restore(state: &FloatState) {
    // SAFETY: reads all fields; compiled code does not use the unit, so only the values of the unit's last owner are
    // lost, which the caller has saved. The `isb` is as in `save`.
    unsafe {
        asm!(".arch_extension fp", ".arch_extension simd", "isb", restore_all!(), state = inout(reg) &raw const *state => _,
            status = out(reg) _, control = out(reg) _, options(nostack, preserves_flags, readonly));
    };
}

/// Saves the unit's registers in one place, and loads them from another. The unit has been on since before the trap.
#[inline(always)]
pub fn exchange(from: &mut FloatState, to: &FloatState) {
    // SAFETY: as in `save` and `restore`; nothing has switched the unit on since user mode.
    unsafe {
        asm!(".arch_extension fp", ".arch_extension simd", save_all!(), state = inout(reg) &raw mut *from => _,
            status = out(reg) _, control = out(reg) _, options(nostack, preserves_flags));
        asm!(".arch_extension fp", ".arch_extension simd", restore_all!(), state = inout(reg) &raw const *to => _,
            status = out(reg) _, control = out(reg) _, options(nostack, preserves_flags, readonly));
    };
}

const _: () = assert!(offset_of!(FloatState, status) == 512 && offset_of!(FloatState, control) == 520);
