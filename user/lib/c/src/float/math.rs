//! The functions of `<math.h>` that C calls: one instruction where the processor has one, otherwise a function of the
//! crate `libm`, which computes with integers.
//!
//! The functions do not set `errno`, and those of `libm` round to nearest whatever mode the processor is in.

use core::ffi::{c_int, c_long};

/// Defines a function that is nothing but instructions, and returns.
macro_rules! instructions {
    ($($symbol:literal: $($instruction:literal),+;)*) => {$(
        const _: () = {
            #[unsafe(naked)]
            #[unsafe(export_name = concat!("tench_float_", $symbol))]
            extern "C" fn entry() {
                core::arch::naked_asm!(".arch_extension fp", $($instruction,)+ "ret")
            }
        };
    )*};
}

instructions! {
    "fabs": "fabs d0, d0";
    "fabsf": "fabs s0, s0";
    "sqrt": "fsqrt d0, d0";
    "sqrtf": "fsqrt s0, s0";
    "ceil": "frintp d0, d0";
    "ceilf": "frintp s0, s0";
    "floor": "frintm d0, d0";
    "floorf": "frintm s0, s0";
    "trunc": "frintz d0, d0";
    "truncf": "frintz s0, s0";
    "round": "frinta d0, d0";
    "roundf": "frinta s0, s0";
    "rint": "frintx d0, d0";
    "rintf": "frintx s0, s0";
    "nearbyint": "frinti d0, d0";
    "nearbyintf": "frinti s0, s0";
    "lrint": "frintx d0, d0", "fcvtzs x0, d0";
    "lrintf": "frintx s0, s0", "fcvtzs x0, s0";
    "lround": "fcvtas x0, d0";
    "lroundf": "fcvtas x0, s0";
    "fma": "fmadd d0, d0, d1, d2";
    "fmaf": "fmadd s0, s0, s1, s2";
    "fmax": "fmaxnm d0, d0, d1";
    "fmaxf": "fmaxnm s0, s0, s1";
    "fmin": "fminnm d0, d0, d1";
    "fminf": "fminnm s0, s0, s1";
}

/// Defines a function for C that moves arguments, calls a function in Rust, and moves its result.
macro_rules! moved {
    ($name:ident, $with:path, [$($before:literal),*], [$($after:literal),*]) => {
        #[unsafe(naked)]
        #[unsafe(export_name = concat!("tench_float_", stringify!($name)))]
        extern "C" fn entry() {
            core::arch::naked_asm!(
                ".arch_extension fp",
                "stp x29, x30, [sp, #-16]!",
                "mov x29, sp",
                $($before,)*
                "bl {with}",
                $($after,)*
                "ldp x29, x30, [sp], #16",
                "ret",
                with = sym $with,
            )
        }
    };
}

/// Defines a function for `double` and one for `float`, by their arguments: `x` and `y` are values, `n` is an integer.
macro_rules! computed {
    ($(($($argument:ident)+) $double:ident $single:ident $from:ident;)*) => {$(
        const _: () = {
            computed!(@ f64 $($argument)+, $double, $from);
        };
        const _: () = {
            computed!(@ f32 $($argument)+, $single, $from);
        };
    )*};
    (@ $type:ident x, $name:ident, $from:ident) => {
        extern "C" fn computed(x: $type) -> $type {
            $from::$name(x)
        }
        computed!(@@ $type $name, ["fmov x0, d0"], ["fmov w0, s0"]);
    };
    (@ $type:ident x y, $name:ident, $from:ident) => {
        extern "C" fn computed(x: $type, y: $type) -> $type {
            $from::$name(x, y)
        }
        computed!(@@ $type $name, ["fmov x0, d0", "fmov x1, d1"], ["fmov w0, s0", "fmov w1, s1"]);
    };
    (@ $type:ident x n, $name:ident, $from:ident) => {
        extern "C" fn computed(x: $type, n: c_int) -> $type {
            $from::$name(x, n)
        }
        computed!(@@ $type $name, ["mov x1, x0", "fmov x0, d0"], ["mov x1, x0", "fmov w0, s0"]);
    };
    (@@ f64 $name:ident, [$($before:literal),*], $other:tt) => {
        moved!($name, computed, [$($before),*], ["fmov d0, x0"]);
    };
    (@@ f32 $name:ident, $other:tt, [$($before:literal),*]) => {
        moved!($name, computed, [$($before),*], ["fmov s0, w0"]);
    };
}

computed! {
    (x) acos acosf libm;
    (x) acosh acoshf libm;
    (x) asin asinf libm;
    (x) asinh asinhf libm;
    (x) atan atanf libm;
    (x) atanh atanhf libm;
    (x) cbrt cbrtf libm;
    (x) cos cosf libm;
    (x) cosh coshf libm;
    (x) erf erff libm;
    (x) erfc erfcf libm;
    (x) exp expf libm;
    (x) exp2 exp2f libm;
    (x) expm1 expm1f libm;
    (x) lgamma lgammaf libm;
    (x) log logf libm;
    (x) log10 log10f libm;
    (x) log1p log1pf libm;
    (x) log2 log2f libm;
    (x) logb logbf more;
    (x) sin sinf libm;
    (x) sinh sinhf libm;
    (x) tan tanf libm;
    (x) tanh tanhf libm;
    (x) tgamma tgammaf libm;
    (x y) atan2 atan2f libm;
    (x y) copysign copysignf libm;
    (x y) fdim fdimf libm;
    (x y) fmod fmodf libm;
    (x y) hypot hypotf libm;
    (x y) nextafter nextafterf libm;
    (x y) pow powf libm;
    (x y) remainder remainderf libm;
    (x n) ldexp ldexpf libm;
    (x n) scalbn scalbnf libm;
}

/// The functions that `libm` lacks.
mod more {
    /// Defines `logb`: the exponent of a value as a value.
    macro_rules! logb {
        ($name:ident, $type:ident, $ilogb:path) => {
            pub fn $name(x: $type) -> $type {
                match x {
                    0.0 => $type::NEG_INFINITY,
                    _ if x.is_finite() => $ilogb(x) as $type,
                    // Infinity has no sign here, and what is no number stays so.
                    _ => x * x,
                }
            }
        };
    }

    logb!(logb, f64, libm::ilogb);
    logb!(logbf, f32, libm::ilogbf);
}

/// Defines the functions that have arguments or a result of other kinds, of `double` or `float`.
macro_rules! others {
    ($type:ident, [$x:literal, $y:literal, $result:literal],
        $frexp:ident $ilogb:ident $modf:ident $remquo:ident $scalbln:ident $scalbn:ident) => {
        const _: () = {
            /// # Safety
            /// At `to` there must be memory for an integer.
            unsafe extern "C" fn frexp(x: $type, to: *mut c_int) -> $type {
                let (fraction, exponent) = libm::$frexp(x);
                // SAFETY: the caller guarantees it.
                unsafe { to.write(exponent) };
                fraction
            }
            moved!($frexp, frexp, ["mov x1, x0", $x], [$result]);
        };
        const _: () = {
            extern "C" fn ilogb(x: $type) -> c_int {
                libm::$ilogb(x)
            }
            moved!($ilogb, ilogb, [$x], []);
        };
        const _: () = {
            /// # Safety
            /// At `to` there must be memory for a value.
            unsafe extern "C" fn modf(x: $type, to: *mut $type) -> $type {
                let (fraction, whole) = libm::$modf(x);
                // SAFETY: the caller guarantees it.
                unsafe { to.write(whole) };
                fraction
            }
            moved!($modf, modf, ["mov x1, x0", $x], [$result]);
        };
        const _: () = {
            /// # Safety
            /// At `to` there must be memory for an integer.
            unsafe extern "C" fn remquo(x: $type, y: $type, to: *mut c_int) -> $type {
                let (rest, quotient) = libm::$remquo(x, y);
                // SAFETY: the caller guarantees it.
                unsafe { to.write(quotient) };
                rest
            }
            moved!($remquo, remquo, ["mov x2, x0", $x, $y], [$result]);
        };
        const _: () = {
            extern "C" fn scalbln(x: $type, n: c_long) -> $type {
                libm::$scalbn(x, n.clamp(c_int::MIN.into(), c_int::MAX.into()) as c_int)
            }
            moved!($scalbln, scalbln, ["mov x1, x0", $x], [$result]);
        };
    };
}

others!(f64, ["fmov x0, d0", "fmov x1, d1", "fmov d0, x0"], frexp ilogb modf remquo scalbln scalbn);
others!(f32, ["fmov w0, s0", "fmov w1, s1", "fmov s0, w0"], frexpf ilogbf modff remquof scalblnf scalbnf);
