//! Floating-point values as `printf` writes them: the digits of the exact value, correctly rounded, which come from
//! Rust's own formatting.

use core::fmt::{self, Write};

use crate::format::{Conversion, repeat, sign};

/// Number of digits after the point from which on all are zero: the smallest value is 2⁻¹⁰⁷⁴.
const MAX_FRACTION: usize = 1074;
/// Number of significant digits from which on all are zero: those of the largest value below 2⁻¹⁰²².
const MAX_SIGNIFICANT: usize = 767;
/// Number of digits before the point.
const MAX_WHOLE: usize = 309;
/// Number of bits of the significand after the point.
const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;

/// Text of limited length.
struct Text<const SIZE: usize> {
    bytes: [u8; SIZE],
    length: usize,
}

impl<const SIZE: usize> Text<SIZE> {
    const fn new() -> Text<SIZE> {
        Text { bytes: [0; SIZE], length: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Appends what fits. All does: the longest text has the sum of the numbers above.
    fn push(&mut self, bytes: &[u8]) {
        let rest = &mut self.bytes[self.length..];
        let count = bytes.len().min(rest.len());
        rest[..count].copy_from_slice(&bytes[..count]);
        self.length += count;
    }
}

impl<const SIZE: usize> fmt::Write for Text<SIZE> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Room for the digits of any value, and the point.
type Digits = Text<{ MAX_WHOLE + 1 + MAX_FRACTION }>;
/// Room for a sign and `0x`, or for an exponent.
type Short = Text<8>;

/// Text of a value, in the order in which it is written.
struct Parts {
    /// Sign and `0x`, after which zeros fill the width.
    prefix: Short,
    digits: Digits,
    /// Number of zeros that follow the digits.
    zeros: usize,
    exponent: Short,
}

impl Parts {
    fn new(prefix: &[u8]) -> Parts {
        let mut parts = Parts { prefix: Short::new(), digits: Digits::new(), zeros: 0, exponent: Short::new() };
        parts.prefix.push(prefix);
        parts
    }

    fn put(&self, how: &Conversion, out: &mut dyn FnMut(&[u8])) {
        let length = self.prefix.length + self.digits.length + self.zeros + self.exponent.length;
        let fill = how.width.saturating_sub(length);
        let zeros = how.zeros && !how.left;
        if !how.left && !zeros {
            repeat(b' ', fill, out);
        }
        out(self.prefix.bytes());
        if zeros {
            repeat(b'0', fill, out);
        }
        out(self.digits.bytes());
        repeat(b'0', self.zeros, out);
        out(self.exponent.bytes());
        if how.left {
            repeat(b' ', fill, out);
        }
    }
}

/// Writes a value as a conversion with this letter (`aefgAEFG`) wants it.
pub fn write(letter: u8, how: &Conversion, value: f64, out: &mut dyn FnMut(&[u8])) {
    let mut parts = Parts::new(sign(value.is_sign_negative(), how));
    let mut how = *how;
    let magnitude = value.abs();
    match letter.to_ascii_lowercase() {
        _ if !value.is_finite() => {
            how.zeros = false;
            parts.digits.push(if value.is_nan() { b"nan" } else { b"inf" });
        }
        b'f' => fixed(&mut parts, &how, magnitude),
        b'e' => scientific(&mut parts, &how, magnitude),
        b'g' => general(&mut parts, &how, magnitude),
        _ => hexadecimal(&mut parts, &how, magnitude),
    }
    if letter.is_ascii_uppercase() {
        let Parts { prefix, digits, exponent, .. } = &mut parts;
        prefix.bytes.make_ascii_uppercase();
        digits.bytes.make_ascii_uppercase();
        exponent.bytes.make_ascii_uppercase();
    }
    parts.put(&how, out);
}

/// Writes without an exponent.
fn fixed(parts: &mut Parts, how: &Conversion, magnitude: f64) {
    let wanted = how.precision.unwrap_or(6);
    let digits = wanted.min(MAX_FRACTION);
    _ = write!(parts.digits, "{magnitude:.digits$}");
    if wanted == 0 && how.alternate {
        parts.digits.push(b".");
    }
    parts.zeros = wanted - digits;
}

/// Writes one digit before the point, and a decimal exponent.
fn scientific(parts: &mut Parts, how: &Conversion, magnitude: f64) {
    let wanted = how.precision.unwrap_or(6);
    let after = wanted.min(MAX_SIGNIFICANT - 1);
    let (digits, exponent) = significant(magnitude, after);
    point(&mut parts.digits, digits.bytes(), 1, how.alternate);
    parts.zeros = wanted - after;
    decimal_exponent(&mut parts.exponent, exponent);
}

/// Writes a number of significant digits, in the shorter of both forms, without zeros at the end.
fn general(parts: &mut Parts, how: &Conversion, magnitude: f64) {
    let wanted = how.precision.unwrap_or(6).max(1);
    let (text, exponent) = significant(magnitude, wanted.min(MAX_SIGNIFICANT) - 1);
    let mut digits = text.bytes();
    if how.alternate {
        parts.zeros = wanted - digits.len();
    } else {
        while let [rest @ .., b'0'] = digits {
            digits = rest;
        }
    }
    match usize::try_from(exponent) {
        Ok(exponent) if exponent < wanted => {
            point(&mut parts.digits, digits, exponent + 1, how.alternate);
        }
        Err(_) if exponent >= -4 => {
            parts.digits.push(b"0.");
            repeat(b'0', exponent.unsigned_abs() as usize - 1, &mut |zeros| parts.digits.push(zeros));
            parts.digits.push(digits);
        }
        _ => {
            point(&mut parts.digits, digits, 1, how.alternate);
            decimal_exponent(&mut parts.exponent, exponent);
        }
    }
}

/// Writes the significand in hexadecimal, and a binary exponent.
fn hexadecimal(parts: &mut Parts, how: &Conversion, magnitude: f64) {
    let mut significand = magnitude.to_bits() & ((1 << FRACTION) - 1);
    let biased = (magnitude.to_bits() >> FRACTION) as i32;
    if biased > 0 {
        significand |= 1 << FRACTION;
    }
    let exponent = if magnitude == 0.0 { 0 } else { biased.max(1) - (f64::MAX_EXP - 1) };
    // The number of digits after the point that hold all bits.
    let all = (FRACTION / 4) as usize;
    let kept = how.precision.unwrap_or(all).min(all);
    let dropped = 4 * (all - kept) as u32;
    let half = (1_u64 << dropped) >> 1;
    let rest = significand & ((1 << dropped) - 1);
    significand >>= dropped;
    significand += u64::from(rest > half || (rest == half && half > 0 && significand & 1 == 1));
    let mut text = Digits::new();
    _ = write!(text, "{significand:0width$x}", width = kept + 1);
    let mut digits = text.bytes();
    if how.precision.is_none() {
        while let [rest @ .., b'0'] = digits
            && !rest.is_empty()
        {
            digits = rest;
        }
    }
    parts.prefix.push(b"0x");
    point(&mut parts.digits, digits, 1, how.alternate);
    parts.zeros = how.precision.unwrap_or(0).saturating_sub(all);
    _ = write!(parts.exponent, "p{exponent:+}");
}

/// Returns digits of a value, the first and so many after it, and the decimal exponent of the first.
fn significant(magnitude: f64, after: usize) -> (Digits, i32) {
    let mut text = Digits::new();
    _ = write!(text, "{magnitude:.after$e}");
    let (mut digits, mut exponent, mut is_negative, mut is_exponent) = (Digits::new(), 0, false, false);
    for byte in text.bytes() {
        match byte {
            b'e' => is_exponent = true,
            b'-' => is_negative = true,
            b'0'..=b'9' if is_exponent => exponent = 10 * exponent + i32::from(byte - b'0'),
            b'0'..=b'9' => digits.push(&[*byte]),
            _ => {}
        }
    }
    (digits, if is_negative { -exponent } else { exponent })
}

/// Writes digits with a point after the first few, or as many zeros as are missing before it.
fn point(to: &mut Digits, digits: &[u8], before: usize, always: bool) {
    let (whole, fraction) = digits.split_at(before.min(digits.len()));
    to.push(whole);
    repeat(b'0', before - whole.len(), &mut |zeros| to.push(zeros));
    if always || !fraction.is_empty() {
        to.push(b".");
    }
    to.push(fraction);
}

/// Writes a decimal exponent, which has at least two digits.
fn decimal_exponent(to: &mut Short, exponent: i32) {
    _ = write!(to, "e{exponent:+03}");
}

#[cfg(test)]
mod tests;
