//! The host's own `strtod` says what is right.

use core::ffi::c_char;
use std::ffi::CString;

use proptest::prelude::*;

use super::*;

unsafe extern "C" {
    fn strtod(text: *const c_char, end: *mut *const c_char) -> f64;
    fn strtof(text: *const c_char, end: *mut *const c_char) -> f32;
}

/// Compares a number with the host's, for `double` and `float`.
fn compare(text: &str) -> Result<(), TestCaseError> {
    let terminated = CString::new(text).unwrap();
    let start = terminated.as_ptr();
    let mut end = start;
    // SAFETY: it is a string, and there is a place for its end.
    let expected = unsafe { strtod(start, &raw mut end) };
    let number = read::<f64>(text.as_bytes());
    prop_assert_eq!(number.length, end.addr() - start.addr(), "length of {}", text);
    prop_assert!(is_same(number.value, expected), "{}: {:e} is not {:e}", text, number.value, expected);
    // SAFETY: as above.
    let expected = unsafe { strtof(start, &raw mut end) };
    let number = read::<f32>(text.as_bytes());
    prop_assert_eq!(number.length, end.addr() - start.addr(), "length of {} as float", text);
    prop_assert!(
        is_same(number.value.into(), expected.into()),
        "{}: {:e} is not {:e}, as float",
        text,
        number.value,
        expected
    );
    Ok(())
}

fn is_same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan())
}

#[test]
fn texts_of_every_form_as_the_host_reads_them() {
    let texts = [
        "",
        " ",
        "+",
        "-",
        ".",
        "-.",
        "e5",
        ".e5",
        "x",
        "0x",
        "0x.",
        "0x.p1",
        "0xg",
        "i",
        "in",
        "na",
        "--1",
        "+-1",
        "1",
        "-1",
        "+1",
        " \t\n\u{b}\u{c}\r7",
        "1.",
        ".5",
        "-.5e1x",
        "1e",
        "1e+",
        "1e-",
        "1e5",
        "1E+5",
        "1e-5z",
        "1.5.5",
        "00012",
        "inf",
        "-INF",
        "infinity",
        "Infinit",
        "infinityx",
        "nan",
        "-NaN",
        "nan(",
        "nan()",
        "nan(abc_1)",
        "nan(a-b)",
        "0x1",
        "0X1P3",
        "0x1p",
        "0x1p+",
        "0x.8",
        "0x8.",
        "0x1.8p1",
        "-0x1p-1074",
        "0x1p-1075",
        "0x1.8p-1075",
        "0x1.00000000000008p0",
        "0x1.000000000000080000000000000000001p0",
        "0x1.00000000000018p0",
        "0x1.fffffffffffff8p1023",
        "0x1.fffffffffffff7p1023",
        "0x1p1024",
        "0x1p99999999999999999999",
        "0x1p-99999999999999999999",
        "0x0p99999999999999999999",
        "0x123456789abcdef0123456789",
        "0x0.000000000000000000000000000001",
        "0x1.000001p0",
        "0x1.000003p0",
        "0x1p-149",
        "0x1p-150",
        "0x1.8p-150",
        "0x1.fffffefp127",
        "0x1.ffffffp127",
        "0x0.8p-1022",
        "0x0.fffffffffffff8p-1022",
        "0x1.5p+ 1",
        "1e308",
        "1e309",
        "-1e309",
        "1e-323",
        "1e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "4.9e-324",
        "2.2250738585072011e-308",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "9007199254740993",
        "9007199254740993.0001",
        "1,5",
        "1 5",
        "0.1",
        "123456789012345678901234567890",
        "1e23",
        "3.4028236e38",
        "3.4028235e38",
        "1e-45",
        "7e-46",
    ];
    for text in texts {
        compare(text).unwrap();
    }
}

#[test]
fn numbers_out_of_range_are_reported() {
    let range = |text: &str| read::<f64>(text.as_bytes()).is_out_of_range;
    for text in ["1e309", "-1e309", "1e-400", "1e-310", "0x1p1024", "0x1p-1100"] {
        assert!(range(text), "{text}");
    }
    for text in ["0", "-0e999", "0x0p9999", "inf", "nan", "x", "1e308", "2.2250738585072014e-308"] {
        assert!(!range(text), "{text}");
    }
    assert!(read::<f32>(b"1e39").is_out_of_range);
    assert!(!read::<f32>(b"1e38").is_out_of_range);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_number_as_the_host_reads_it(text in "[ ]?[-+]?(0x[0-9a-f]{0,20}\\.?[0-9a-f]{0,20}(p[-+]?[0-9]{0,4})?|[0-9]{0,25}\\.?[0-9]{0,25}([eE][-+]?[0-9]{0,3})?)[a-z]?") {
        compare(&text)?;
    }

    #[test]
    fn any_text_of_such_letters_as_the_host_reads_it(text in "[-+.0-9a-fpxinty() ]{0,12}") {
        compare(&text)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn values_halfway_between_two_are_read_as_the_host_reads_them(bits: u64, more in "[01]?") {
        let value = f64::from_bits(bits & !(1 << 63));
        prop_assume!(value.is_finite());
        let next = f64::from_bits(value.to_bits() + 1);
        prop_assume!(next.is_finite());
        // Both have the same number of digits after the point, and so their mean has one more.
        let exact = format!("{value:.1080}");
        compare(&exact)?;
        compare(&format!("{exact}{more}"))?;
    }
}
