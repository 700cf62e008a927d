//! `printf` and its relatives with a variable number of arguments, which hand them on as a list.
//!
//! A function in C saves the floating-point registers when it begins, in case arguments are in them, and so makes a
//! user of the floating-point unit of every thread that prints. These leave the registers alone. Nothing here changes
//! them on the way to the formatter, which takes a value from its register when it wants one ([`arguments`]).
//!
//! ```text
//! x29, sp ──▶ ┌──────────────┐
//!             │ frame record │
//!         +16 ├──────────────┤
//!             │ va_list      │
//!         +48 ├──────────────┤
//!             │ x0 to x7     │
//!        +112 ├──────────────┤
//!             │ arguments on the caller's stack
//! ```
//! [`arguments`]: crate::arguments

use core::ffi::{c_char, c_int};

use crate::output::{vprintf, vsnprintf};
use crate::stdio::{File, vfprintf};

/// Defines a function that puts its arguments after the first few into a list, for another function: the register in
/// which that takes the list, and the negated size of the registers from there to `x7`.
macro_rules! variadic {
    ($(#[$attribute:meta])* $name:ident($($fixed:ident: $type:ty),*), $list:literal, $offset:literal, $with:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($fixed: $type),*) -> c_int {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-112]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #48]",
                "stp x2, x3, [sp, #64]",
                "stp x4, x5, [sp, #80]",
                "stp x6, x7, [sp, #96]",
                "add x9, sp, #112",
                "stp x9, x9, [sp, #16]",
                // No address, which says that floating-point values are still in the registers.
                concat!("mov w10, #", $offset),
                "mov w11, #-128",
                "str xzr, [sp, #32]",
                "stp w10, w11, [sp, #40]",
                concat!("add ", $list, ", sp, #16"),
                "bl {with}",
                "ldp x29, x30, [sp], #112",
                "ret",
                with = sym $with,
            )
        }
    };
}

variadic!(
    /// Writes formatted text.
    ///
    /// # Safety
    /// `text` must be a string, and the other arguments are those that it takes.
    printf(text: *const c_char), "x1", "-56", vprintf
);

variadic!(
    /// Writes formatted text into a file.
    ///
    /// # Safety
    /// As for `vfprintf`, with arguments in place of the list.
    fprintf(file: *mut File, text: *const c_char), "x2", "-48", vfprintf
);

variadic!(
    /// Writes formatted text into a buffer.
    ///
    /// # Safety
    /// As for `vsnprintf`, with arguments in place of the list.
    snprintf(buffer: *mut c_char, size: usize, text: *const c_char), "x3", "-40", vsnprintf
);
