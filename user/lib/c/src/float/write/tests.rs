//! The host's own `snprintf` says what is right, and so do a few texts that anybody can check.

use core::ffi::{c_char, c_int};
use std::ffi::CString;

use proptest::prelude::*;

use super::*;
use crate::float::read::read;
use crate::format::{Values, format};

unsafe extern "C" {
    fn snprintf(to: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
}

/// Returns what the host's C library writes.
fn on_host(text: &str, value: f64) -> String {
    let text = CString::new(text).unwrap();
    let mut buffer = vec![0_u8; 4096];
    // SAFETY: the buffer has that size, and the format takes one value.
    let length = unsafe { snprintf(buffer.as_mut_ptr().cast(), buffer.len(), text.as_ptr(), value) };
    buffer.truncate(usize::try_from(length).unwrap());
    String::from_utf8(buffer).unwrap()
}

/// One value.
struct One(f64);

impl Values for One {
    fn word(&mut self) -> u64 {
        panic!("there is no integer")
    }

    fn string(&mut self, _: usize) -> &[u8] {
        panic!("there is no string")
    }

    fn write_float(&mut self, letter: u8, how: &Conversion, out: &mut dyn FnMut(&[u8])) -> bool {
        write(letter, how, self.0, out);
        true
    }
}

fn here(text: &str, value: f64) -> String {
    let mut bytes = Vec::new();
    format(text.as_bytes(), &mut One(value), &mut |part| bytes.extend_from_slice(part));
    String::from_utf8(bytes).unwrap()
}

/// Values at which something changes: the form, the number of digits, the direction of rounding.
const SPECIAL: [f64; 32] = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    0.125,
    0.375,
    9.5,
    0.095,
    0.000_099_999_5,
    0.000_1,
    0.000_012_345,
    999_999.5,
    999_999.4,
    99_999.95,
    1e15,
    1e16,
    123_456_789.0,
    -1.0,
    1.0,
    10.0,
    100.0,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    2.225_073_858_507_201e-308,
    1.797e308,
    1e23,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::EPSILON,
];

#[test]
fn texts_that_anybody_can_check() {
    let cases = [
        ("%f", 3.5, "3.500000"),
        ("%.0f", 0.5, "0"),
        ("%.0f", 1.5, "2"),
        ("%.1f", 0.25, "0.2"),
        ("%#.0f", 3.0, "3."),
        ("%+.2f", 1.0, "+1.00"),
        ("%08.2f|", -3.25, "-0003.25|"),
        ("%-8.2f|", 3.25, "3.25    |"),
        ("%8f|", f64::INFINITY, "     inf|"),
        ("%08F|", f64::NEG_INFINITY, "    -INF|"),
        ("%e", 12_345.678, "1.234568e+04"),
        ("%.2E", 1e-100, "1.00E-100"),
        ("%g", 100_000.0, "100000"),
        ("%g", 1_000_000.0, "1e+06"),
        ("%g", 0.0001, "0.0001"),
        ("%g", 0.00001, "1e-05"),
        ("%#g", 1.0, "1.00000"),
        ("%.3g", 1234.0, "1.23e+03"),
        ("%G", 1e-10, "1E-10"),
        ("%a", 1.0, "0x1p+0"),
        ("%a", 0.1, "0x1.999999999999ap-4"),
        ("%.1a", 1.97, "0x2.0p+0"),
        ("%A", 10.5, "0X1.5P+3"),
        ("%.40f", 0.1, "0.1000000000000000055511151231257827021182"),
    ];
    for (text, value, expected) in cases {
        assert_eq!(here(text, value), expected, "{text} of {value:e}");
    }
}

#[test]
fn special_values_in_every_form_as_the_host_writes_them() {
    for value in SPECIAL {
        for letter in "aefgAEFG".chars() {
            for flags in ["", "#", "0", "+", " ", "-", "-0#", "+0#"] {
                for width in ["", "3", "30"] {
                    for precision in ["", ".", ".1", ".3", ".5", ".6", ".12", ".17", ".30", ".800", ".1200"] {
                        let text = format!("%{flags}{width}{precision}{letter}|");
                        // A fault of glibc: it drops the zeros, which the flag keeps, if rounding adds the exponent.
                        if text.contains('#')
                            && letter.eq_ignore_ascii_case(&'g')
                            && [99_999.95, 999_999.5].contains(&value)
                        {
                            continue;
                        }
                        assert_eq!(here(&text, value), on_host(&text, value), "{text} of {value:e}");
                    }
                }
            }
        }
    }
}

#[test]
fn more_digits_than_any_value_has_are_zeros() {
    for (text, length) in [("%.3000f", 3002), ("%.3000e", 3006), ("%#.3000g", 3001), ("%.3000a", 3007)] {
        let written = here(text, 1.0);
        assert_eq!(written.len(), length, "{text}");
        assert_eq!(written, on_host(text, 1.0), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_value_as_the_host_writes_it(bits: u64, letter in "[aefgAEFG]", width in 0..40, precision in 0..60) {
        let value = f64::from_bits(bits);
        for text in [format!("%{width}.{precision}{letter}"), format!("%{letter}"), format!("%#.{precision}{letter}")] {
            prop_assert_eq!(here(&text, value), on_host(&text, value), "{}", text);
        }
    }

    #[test]
    fn what_people_write_as_the_host_writes_it(
        thousandths in -100_000_000_i64..100_000_000,
        letter in "[aefg]",
        precision in 0..8,
    ) {
        let value = thousandths as f64 / 1000.0;
        let text = format!("%.{precision}{letter}");
        prop_assert_eq!(here(&text, value), on_host(&text, value), "{}", text);
    }

    #[test]
    fn seventeen_digits_or_hexadecimal_ones_are_read_as_the_same_value(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        for text in ["%.17g", "%.16e", "%a"] {
            let written = here(text, value);
            let number = read::<f64>(written.as_bytes());
            prop_assert_eq!(number.value.to_bits(), bits, "{}", &written);
            prop_assert_eq!(number.length, written.len());
        }
    }
}
