//! Strings.

use core::ffi::{c_char, c_int, c_long};

/// Returns the bytes of a string, without its zero byte, at most `limit`.
///
/// # Safety
/// `text` must point to bytes of which one of the first `limit` is zero, or to at least `limit` bytes.
pub const unsafe fn bytes<'a>(text: *const c_char, limit: usize) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: all bytes up to and including the zero byte exist, unless the limit comes first.
    while length < limit && unsafe { text.wrapping_add(length).read() } != 0 {
        length += 1;
    }
    // SAFETY: these were just read.
    unsafe { core::slice::from_raw_parts(text.cast(), length) }
}

/// Compares two strings.
///
/// # Safety
/// Both must be strings.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn strcmp(one: *const c_char, other: *const c_char) -> c_int {
    // SAFETY: the caller guarantees that both are strings.
    unsafe { strncmp(one, other, usize::MAX) }
}

/// Compares the first `size` bytes of two strings.
///
/// # Safety
/// Both must be strings, or have `size` bytes.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn strncmp(one: *const c_char, other: *const c_char, size: usize) -> c_int {
    // SAFETY: the caller guarantees that it is a string or long enough.
    let one = unsafe { bytes(one, size) };
    // SAFETY: as above.
    let other = unsafe { bytes(other, size) };
    one.cmp(other) as c_int
}

/// Copies a string.
///
/// # Safety
/// `from` must be a string, and `to` must have room for it and its zero byte.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn strcpy(to: *mut c_char, from: *const c_char) -> *mut c_char {
    // SAFETY: the caller guarantees that it is a string.
    let length = unsafe { bytes(from, usize::MAX) }.len();
    // SAFETY: the caller guarantees that there is room.
    unsafe { core::ptr::copy_nonoverlapping(from, to, length + 1) };
    to
}

/// Returns the first occurrence of a character in a string, or null. The terminating zero byte counts.
///
/// # Safety
/// `text` must be a string.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn strchr(text: *const c_char, character: c_int) -> *const c_char {
    // SAFETY: the caller guarantees that it is a string.
    let bytes = unsafe { bytes(text, usize::MAX) };
    let wanted = character as u8;
    match bytes.iter().position(|byte| *byte == wanted) {
        Some(index) => text.wrapping_add(index),
        None if wanted == 0 => text.wrapping_add(bytes.len()),
        None => core::ptr::null(),
    }
}

/// Returns the number at the beginning of a string, and stores its end. A number out of range becomes the nearest one
/// in range.
///
/// # Safety
/// `text` must be a string, and `end` must be null or point to memory for a pointer.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn strtol(text: *const c_char, end: *mut *const c_char, base: c_int) -> c_long {
    // SAFETY: the caller guarantees that it is a string.
    let (value, length) = number(unsafe { bytes(text, usize::MAX) }, base);
    if !end.is_null() {
        // SAFETY: the caller guarantees that there is memory for a pointer.
        unsafe { end.write(text.wrapping_add(length)) };
    }
    value as c_long
}

/// Returns the decimal number at the beginning of a string, or 0.
///
/// # Safety
/// `text` must be a string.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn atoi(text: *const c_char) -> c_int {
    // SAFETY: the caller guarantees that it is a string.
    number(unsafe { bytes(text, usize::MAX) }, 10).0 as c_int
}

/// Returns a number and its length in bytes, 0 if there is none.
fn number(text: &[u8], base: c_int) -> (i64, usize) {
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
    let mut at = blanks;
    let negative = text.get(at) == Some(&b'-');
    at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
    let digit = |at: usize, base: u32| text.get(at).and_then(|byte| char::from(*byte).to_digit(base));
    let hexadecimal = text.get(at) == Some(&b'0') && matches!(text.get(at + 1), Some(b'x' | b'X'));
    let base = match base {
        0 | 16 if hexadecimal && digit(at + 2, 16).is_some() => {
            at += 2;
            16
        }
        0 if text.get(at) == Some(&b'0') => 8,
        0 => 10,
        2..=36 => base as u32,
        _ => return (0, 0),
    };
    let start = at;
    let mut value: i64 = 0;
    while let Some(digit) = digit(at, base) {
        let digit = i64::from(digit);
        let more = value.saturating_mul(i64::from(base));
        value = if negative { more.saturating_sub(digit) } else { more.saturating_add(digit) };
        at += 1;
    }
    if at == start { (0, 0) } else { (value, at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_standard_c_reads_them() {
        let cases: [(&[u8], c_int, (i64, usize)); 14] = [
            (b"42", 10, (42, 2)),
            (b"  -42abc", 10, (-42, 5)),
            (b"+7", 10, (7, 2)),
            (b"0x1f", 16, (31, 4)),
            (b"0x1f", 0, (31, 4)),
            (b"017", 0, (15, 3)),
            (b"0", 0, (0, 1)),
            (b"0xg", 0, (0, 1)),
            (b"zz", 36, (35 * 36 + 35, 2)),
            (b"9223372036854775808", 10, (i64::MAX, 19)),
            (b"-9223372036854775809", 10, (i64::MIN, 20)),
            (b"", 10, (0, 0)),
            (b"abc", 10, (0, 0)),
            (b"1", 99, (0, 0)),
        ];
        for (text, base, expected) in cases {
            assert_eq!(number(text, base), expected, "{text:?} in base {base}");
        }
    }

    #[test]
    fn strings_are_compared_copied_and_searched() {
        let (one, other) = (c"abc".as_ptr(), c"abd".as_ptr());
        // SAFETY: both are strings, here and below.
        assert_eq!(unsafe { strcmp(one, one) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { strcmp(one, other) }, -1);
        // SAFETY: as above.
        assert_eq!(unsafe { strncmp(one, other, 2) }, 0);
        let mut buffer = [1 as c_char; 8];
        // SAFETY: as above, and the buffer has room.
        unsafe { strcpy(buffer.as_mut_ptr(), one) };
        assert_eq!(&buffer[..5], [97, 98, 99, 0, 1]);
        for (character, expected) in [(98, one.wrapping_add(1)), (0, one.wrapping_add(3)), (120, core::ptr::null())] {
            // SAFETY: as above.
            assert_eq!(unsafe { strchr(one, character) }, expected);
        }
    }
}
