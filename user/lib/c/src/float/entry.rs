//! The functions of `<stdlib.h>` that C calls.
//!
//! The symbols begin with `tench_float_`, as the headers say. So the functions cannot be taken for those of the same
//! name that Rust's compiler may call, and the host tool knows a program with floating point by them.

use core::ffi::c_char;

use super::read::{Number, Real, read};
use crate::errno::{self, ERANGE};
use crate::text::bytes;

/// Reads the number at the beginning of a text, stores its end, and sets `errno` if it is out of range.
///
/// # Safety
/// `text` must be a string, and `end` must be null or point to memory for a pointer.
unsafe fn number<T: Real>(text: *const c_char, end: *mut *const c_char) -> T {
    // SAFETY: the caller guarantees that it is a string.
    let Number { value, length, is_out_of_range } = read(unsafe { bytes(text, usize::MAX) });
    if !end.is_null() {
        // SAFETY: the caller guarantees that there is memory for a pointer.
        unsafe { end.write(text.wrapping_add(length)) };
    }
    if is_out_of_range {
        errno::set(ERANGE);
    }
    value
}

/// Reads a `double`, for C.
///
/// # Safety
/// As for `number`.
unsafe extern "C" fn double(text: *const c_char, end: *mut *const c_char) -> f64 {
    // SAFETY: the caller guarantees it.
    unsafe { number(text, end) }
}

/// Reads a `float`, for C.
///
/// # Safety
/// As for `number`.
unsafe extern "C" fn single(text: *const c_char, end: *mut *const c_char) -> f32 {
    // SAFETY: the caller guarantees it.
    unsafe { number(text, end) }
}

/// Defines a function that returns a value in a floating-point register.
macro_rules! reads {
    ($(#[$attribute:meta])* $symbol:literal, $before:literal, $with:path, $after:literal) => {
        const _: () = {
            $(#[$attribute])*
            #[unsafe(naked)]
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn entry() {
                core::arch::naked_asm!(
                    ".arch_extension fp",
                    "stp x29, x30, [sp, #-16]!",
                    "mov x29, sp",
                    $before,
                    "bl {with}",
                    $after,
                    "ldp x29, x30, [sp], #16",
                    "ret",
                    with = sym $with,
                )
            }
        };
    };
}

reads!("tench_float_strtod", "", double, "fmov d0, x0");
reads!("tench_float_strtof", "", single, "fmov s0, w0");
reads!("tench_float_atof", "mov x1, xzr", double, "fmov d0, x0");
