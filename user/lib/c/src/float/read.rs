//! Floating-point values as `strtod` reads them: the nearest value to what is written. Decimal digits are read by
//! Rust's own parser, which rounds correctly; hexadecimal ones are read here.

/// A type of floating-point values.
pub trait Real: Copy + PartialEq + core::str::FromStr + core::ops::Neg<Output = Self> {
    /// The value 0.
    const ZERO: Self;
    /// More than all others.
    const INFINITY: Self;
    /// Not a number.
    const NAN: Self;
    /// The smallest value that has all bits of the significand.
    const LEAST_NORMAL: Self;
    /// Number of bits of the significand after the point.
    const FRACTION: u32;
    /// Exponent of the last bit of the smallest value.
    const LEAST: i64;

    /// The bits of infinity, which follow those of the largest value.
    const INFINITY_BITS: u64;

    /// Returns the value with these bits.
    fn from_bits(bits: u64) -> Self;

    /// Returns whether the value is smaller than another one.
    fn is_below(self, other: Self) -> bool;
}

macro_rules! real {
    ($type:ty, $bits:ty) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const INFINITY: Self = <$type>::INFINITY;
            const NAN: Self = <$type>::NAN;
            const LEAST_NORMAL: Self = <$type>::MIN_POSITIVE;
            const FRACTION: u32 = <$type>::MANTISSA_DIGITS - 1;
            const INFINITY_BITS: u64 = <$type>::INFINITY.to_bits() as u64;
            const LEAST: i64 = (<$type>::MIN_EXP - <$type>::MANTISSA_DIGITS as i32) as i64;

            fn from_bits(bits: u64) -> Self {
                <$type>::from_bits(bits as $bits)
            }

            fn is_below(self, other: Self) -> bool {
                self < other
            }
        }
    };
}

real!(f64, u64);
real!(f32, u32);

/// A number that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number<T> {
    pub value: T,
    /// Number of bytes read, 0 if there is no number.
    pub length: usize,
    /// The number is not zero, and too large or too small to be represented with all bits of a significand.
    pub is_out_of_range: bool,
}

/// Text, and how much of it was read.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads this text, in small or capital letters. Returns whether it is there.
    fn take(&mut self, expected: &[u8]) -> bool {
        let found = self.text.get(self.at..self.at + expected.len());
        let is_there = found.is_some_and(|found| found.eq_ignore_ascii_case(expected));
        self.at += if is_there { expected.len() } else { 0 };
        is_there
    }

    /// Reads as many of these bytes as there are.
    fn take_all(&mut self, allowed: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let count = rest.iter().take_while(|byte| allowed(**byte)).count();
        self.at += count;
        &rest[..count]
    }

    /// Reads the digits of a number with or without a point. Returns what is before and after it, or `None` if there
    /// is no digit, and then reads nothing.
    fn digits(&mut self, allowed: impl Fn(u8) -> bool) -> Option<(&'a [u8], &'a [u8])> {
        let start = self.at;
        let whole = self.take_all(&allowed);
        let fraction: &[u8] = if self.take(b".") { self.take_all(&allowed) } else { b"" };
        if whole.is_empty() && fraction.is_empty() {
            self.at = start;
            return None;
        }
        Some((whole, fraction))
    }

    /// Reads an exponent after this letter, if there is one. One that no number reaches is cut.
    fn exponent(&mut self, letter: u8) -> i64 {
        let start = self.at;
        if !self.take(&[letter]) {
            return 0;
        }
        let is_negative = self.take(b"-");
        if !is_negative {
            self.take(b"+");
        }
        let digits = self.take_all(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            self.at = start;
            return 0;
        }
        let add = |sum: i64, digit: &u8| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
        let exponent = digits.iter().fold(0, add);
        if is_negative { -exponent } else { exponent }
    }
}

/// Reads the number at the beginning of a text.
pub fn read<T: Real>(text: &[u8]) -> Number<T> {
    let mut reader = Reader { text, at: 0 };
    reader.take_all(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
    let is_negative = reader.take(b"-");
    if !is_negative {
        reader.take(b"+");
    }
    let Some((magnitude, is_zero)) = magnitude::<T>(&mut reader) else {
        return Number { value: T::ZERO, length: 0, is_out_of_range: false };
    };
    let is_out_of_range = !is_zero && (magnitude == T::INFINITY || magnitude.is_below(T::LEAST_NORMAL));
    Number { value: if is_negative { -magnitude } else { magnitude }, length: reader.at, is_out_of_range }
}

/// Reads a number without a sign. Returns it, and whether it is exactly what was written whatever that is: zero, or one
/// of the words.
fn magnitude<T: Real>(reader: &mut Reader) -> Option<(T, bool)> {
    if reader.take(b"inf") {
        reader.take(b"inity");
        return Some((T::INFINITY, true));
    }
    if reader.take(b"nan") {
        let end = reader.at;
        let is_closed = reader.take(b"(") && {
            reader.take_all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            reader.take(b")")
        };
        if !is_closed {
            reader.at = end;
        }
        return Some((T::NAN, true));
    }
    let start = reader.at;
    if reader.take(b"0x") {
        if let Some(digits) = reader.digits(|byte| byte.is_ascii_hexdigit()) {
            return Some(hexadecimal(digits, reader.exponent(b'p')));
        }
        // The zero alone is a number.
        reader.at = start;
    }
    let (whole, fraction) = reader.digits(|byte| byte.is_ascii_digit())?;
    reader.exponent(b'e');
    let is_zero = whole.iter().chain(fraction).all(|digit| *digit == b'0');
    let written = core::str::from_utf8(&reader.text[start..reader.at]).ok()?;
    Some((written.parse().ok()?, is_zero))
}

/// Returns the value of hexadecimal digits with a binary exponent, and whether it is zero.
fn hexadecimal<T: Real>((whole, fraction): (&[u8], &[u8]), exponent: i64) -> (T, bool) {
    // The first bits, and whether one after them is set.
    let (mut bits, mut is_more) = (0_u64, false);
    let mut exponent = exponent.saturating_sub(4 * fraction.len() as i64);
    for digit in whole.iter().chain(fraction) {
        let digit = u64::from(char::from(*digit).to_digit(16).unwrap_or(0));
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
        } else {
            is_more |= digit != 0;
            exponent = exponent.saturating_add(4);
        }
    }
    if bits == 0 {
        return (T::ZERO, true);
    }
    (nearest(bits, is_more, exponent), false)
}

/// Returns the value next to `bits`, and a little more, times a power of two.
fn nearest<T: Real>(bits: u64, is_more: bool, exponent: i64) -> T {
    let shift = bits.leading_zeros();
    let (bits, exponent) = (bits << shift, exponent.saturating_sub(shift.into()));
    // Of the 64 bits as many are dropped as the type has too few of, or as lie below the smallest value's.
    let dropped = i64::from(63 - T::FRACTION).max(T::LEAST.saturating_sub(exponent)).min(66);
    let (wide, half) = (u128::from(bits), 1_u128 << (dropped - 1));
    let rest = wide & (2 * half - 1);
    let mut kept = (wide >> dropped) as u64;
    kept += u64::from(rest > half || (rest == half && (is_more || kept & 1 == 1)));
    // The significand's first bit, if it is set, adds 1 to the exponent in the bits of the value.
    let steps = exponent.saturating_add(dropped).saturating_sub(T::LEAST).clamp(0, 1 << 11) as u64;
    T::from_bits((steps << T::FRACTION).saturating_add(kept).min(T::INFINITY_BITS))
}

#[cfg(test)]
mod tests;
