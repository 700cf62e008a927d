//! `setjmp` and `longjmp`.
//!
//! A jump restores the registers that a function must preserve for its caller: `x19` to `x30`, the stack pointer, and
//! the lower halves of `v8` to `v15`. The header's `jmp_buf` has a word for each, with the stack pointer at index 12.

use core::ffi::c_int;

/// Number of words of a `jmp_buf`.
const WORDS: usize = 21;

/// Saves the place of the call, and returns 0. When `longjmp` jumps there, it returns again, with another value.
///
/// # Safety
/// There must be room for the words.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn setjmp(place: *mut [u64; WORDS]) -> c_int {
    core::arch::naked_asm!(
        ".arch_extension fp",
        "mov x9, sp",
        "stp x19, x20, [x0]",
        "stp x21, x22, [x0, #16]",
        "stp x23, x24, [x0, #32]",
        "stp x25, x26, [x0, #48]",
        "stp x27, x28, [x0, #64]",
        "stp x29, x30, [x0, #80]",
        "str x9, [x0, #96]",
        "stp d8, d9, [x0, #104]",
        "stp d10, d11, [x0, #120]",
        "stp d12, d13, [x0, #136]",
        "stp d14, d15, [x0, #152]",
        "mov w0, #0",
        "ret",
    )
}

/// Returns from `setjmp` again, with `value`, or with 1 if that is 0.
///
/// # Safety
/// The running thread has saved the place, in a function that has not returned since.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn longjmp(place: *const [u64; WORDS], value: c_int) -> ! {
    core::arch::naked_asm!(
        ".arch_extension fp",
        "ldp x19, x20, [x0]",
        "ldp x21, x22, [x0, #16]",
        "ldp x23, x24, [x0, #32]",
        "ldp x25, x26, [x0, #48]",
        "ldp x27, x28, [x0, #64]",
        "ldp x29, x30, [x0, #80]",
        "ldr x9, [x0, #96]",
        "ldp d8, d9, [x0, #104]",
        "ldp d10, d11, [x0, #120]",
        "ldp d12, d13, [x0, #136]",
        "ldp d14, d15, [x0, #152]",
        "mov sp, x9",
        "cmp w1, #0",
        "csinc w0, w1, wzr, ne",
        "ret",
    )
}
