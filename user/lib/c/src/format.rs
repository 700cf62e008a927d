//! The format language of `printf`. Floating-point values are written by [`float`](crate::float).

/// Source of the values to be formatted.
pub trait Values {
    /// Returns the next value as 64 bits; narrower ones have undefined upper bits.
    fn word(&mut self) -> u64;

    /// Returns the next value as a string of at most `limit` bytes.
    fn string(&mut self, limit: usize) -> &[u8];

    /// Writes the next value, a floating-point one, as a conversion with this letter (`aefgAEFG`) wants it. Returns
    /// whether there are such values.
    fn write_float(&mut self, letter: u8, how: &Conversion, out: &mut dyn FnMut(&[u8])) -> bool;
}

/// Format of one value.
#[derive(Clone, Copy, Default)]
pub struct Conversion {
    pub left: bool,
    pub zeros: bool,
    pub plus: bool,
    pub space: bool,
    pub alternate: bool,
    pub width: usize,
    pub precision: Option<usize>,
    /// Size of an integer in bytes.
    size: u32,
}

/// Number of digits of the longest number: 64 bits in octal.
const MAX_DIGITS: usize = 22;

/// Writes `format` with its values inserted.
pub fn format(format: &[u8], values: &mut impl Values, out: &mut impl FnMut(&[u8])) {
    let mut rest = format;
    while let Some(percent) = rest.iter().position(|byte| *byte == b'%') {
        out(&rest[..percent]);
        let (conversion, length) = parse(&rest[percent + 1..], values);
        let Some(&letter) = rest.get(percent + 1 + length) else {
            // An incomplete conversion at the end of the format is text.
            return out(&rest[percent..]);
        };
        let end = percent + 2 + length;
        if !convert(letter, conversion, values, out) {
            out(&rest[percent..end]);
        }
        rest = &rest[end..];
    }
    out(rest);
}

/// Parses everything between the percent sign and the letter. Returns its length.
fn parse(text: &[u8], values: &mut impl Values) -> (Conversion, usize) {
    let mut conversion = Conversion { size: 4, ..Conversion::default() };
    let mut at = 0;
    loop {
        match text.get(at) {
            Some(b'-') => conversion.left = true,
            Some(b'0') => conversion.zeros = true,
            Some(b'+') => conversion.plus = true,
            Some(b' ') => conversion.space = true,
            Some(b'#') => conversion.alternate = true,
            _ => break,
        }
        at += 1;
    }
    let width = number(text, &mut at, values).unwrap_or(0);
    conversion.left |= width < 0;
    conversion.width = width.unsigned_abs() as usize;
    if text.get(at) == Some(&b'.') {
        at += 1;
        // A negative precision means none.
        conversion.precision = usize::try_from(number(text, &mut at, values).unwrap_or(0)).ok();
    }
    loop {
        conversion.size = match text.get(at) {
            Some(b'h') if conversion.size == 2 => 1,
            Some(b'h') => 2,
            // A `long double` is a `double`.
            Some(b'l' | b'j' | b'z' | b't' | b'L') => 8,
            _ => break,
        };
        at += 1;
    }
    (conversion, at)
}

/// Returns a number in the format, or a value for a star.
fn number(text: &[u8], at: &mut usize, values: &mut impl Values) -> Option<i32> {
    if text.get(*at) == Some(&b'*') {
        *at += 1;
        return Some(values.word() as i32);
    }
    let mut number = None;
    while let Some(digit @ b'0'..=b'9') = text.get(*at) {
        let so_far: i32 = number.unwrap_or(0);
        number = Some(so_far.saturating_mul(10).saturating_add(i32::from(digit - b'0')));
        *at += 1;
    }
    number
}

/// Writes one value. Returns whether the letter is known.
fn convert(letter: u8, mut how: Conversion, values: &mut impl Values, out: &mut impl FnMut(&[u8])) -> bool {
    match letter {
        b'%' => out(b"%"),
        b'c' => pad(how, b"", &[values.word() as u8], out),
        b's' => {
            let text = values.string(how.precision.unwrap_or(usize::MAX));
            how.zeros = false;
            pad(how, b"", text, out);
        }
        b'd' | b'i' => {
            let value = signed(values.word(), how.size);
            integer(how, sign(value < 0, &how), value.unsigned_abs(), 10, false, out);
        }
        b'u' => integer(how, b"", unsigned(values.word(), how.size), 10, false, out),
        b'o' => integer(how, b"", unsigned(values.word(), how.size), 8, false, out),
        b'x' | b'X' => {
            let value = unsigned(values.word(), how.size);
            let prefix: &[u8] = match (how.alternate && value != 0, letter) {
                (true, b'x') => b"0x",
                (true, _) => b"0X",
                _ => b"",
            };
            integer(how, prefix, value, 16, letter == b'X', out);
        }
        b'p' => integer(how, b"0x", values.word(), 16, false, out),
        b'a' | b'e'..=b'g' | b'A' | b'E'..=b'G' => return values.write_float(letter, &how, out),
        _ => return false,
    }
    true
}

/// Returns what is written before a number without its sign.
pub const fn sign(is_negative: bool, how: &Conversion) -> &'static [u8] {
    match (is_negative, how.plus, how.space) {
        (true, ..) => b"-",
        (_, true, _) => b"+",
        (_, _, true) => b" ",
        _ => b"",
    }
}

fn unsigned(word: u64, size: u32) -> u64 {
    let unused = 64 - 8 * size;
    word << unused >> unused
}

fn signed(word: u64, size: u32) -> i64 {
    let unused = 64 - 8 * size;
    (word << unused) as i64 >> unused
}

/// Writes an integer after its prefix.
fn integer(mut how: Conversion, prefix: &[u8], mut value: u64, base: u64, capital: bool, out: &mut impl FnMut(&[u8])) {
    let mut digits = [b'0'; MAX_DIGITS];
    let mut start = MAX_DIGITS;
    while value != 0 {
        let digit = (value % base) as u8;
        start -= 1;
        digits[start] = match (digit, capital) {
            (0..=9, _) => b'0' + digit,
            (_, false) => b'a' + digit - 10,
            (_, true) => b'A' + digit - 10,
        };
        value /= base;
    }
    let least = how.precision.unwrap_or(1);
    let mut zeros = least.saturating_sub(MAX_DIGITS - start);
    if how.precision.is_some() {
        how.zeros = false;
    } else if how.zeros && !how.left {
        zeros = zeros.max(how.width.saturating_sub(prefix.len() + MAX_DIGITS - start));
    }
    let length = prefix.len() + zeros + MAX_DIGITS - start;
    let blanks = how.width.saturating_sub(length);
    if !how.left {
        repeat(b' ', blanks, out);
    }
    out(prefix);
    repeat(b'0', zeros, out);
    out(&digits[start..]);
    if how.left {
        repeat(b' ', blanks, out);
    }
}

/// Writes text, padded to the width.
fn pad(how: Conversion, prefix: &[u8], text: &[u8], out: &mut impl FnMut(&[u8])) {
    let blanks = how.width.saturating_sub(prefix.len() + text.len());
    if !how.left {
        repeat(b' ', blanks, out);
    }
    out(prefix);
    out(text);
    if how.left {
        repeat(b' ', blanks, out);
    }
}

/// Writes a byte several times.
pub fn repeat(byte: u8, mut count: usize, out: &mut (impl FnMut(&[u8]) + ?Sized)) {
    let some = [byte; 16];
    while count > 0 {
        let now = count.min(some.len());
        out(&some[..now]);
        count -= now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::write::write;

    enum Value {
        Word(u64),
        Float(f64),
        Text(&'static [u8]),
    }

    struct List(std::vec::IntoIter<Value>);

    impl Values for List {
        fn word(&mut self) -> u64 {
            match self.0.next() {
                Some(Value::Word(word)) => word,
                _ => panic!("the format takes a word that is not there"),
            }
        }

        fn string(&mut self, limit: usize) -> &[u8] {
            match self.0.next() {
                Some(Value::Text(text)) => &text[..text.len().min(limit)],
                _ => panic!("the format takes a string that is not there"),
            }
        }

        fn write_float(&mut self, letter: u8, how: &Conversion, out: &mut dyn FnMut(&[u8])) -> bool {
            match self.0.next() {
                Some(Value::Float(value)) => {
                    write(letter, how, value, out);
                    true
                }
                _ => panic!("the format takes a floating-point value that is not there"),
            }
        }
    }

    fn written(text: &str, values: Vec<Value>) -> String {
        let mut bytes = Vec::new();
        let mut list = List(values.into_iter());
        format(text.as_bytes(), &mut list, &mut |part| bytes.extend_from_slice(part));
        assert!(list.0.next().is_none(), "the format leaves a value over");
        String::from_utf8(bytes).unwrap()
    }

    fn number(text: &str, value: i64) -> String {
        // The upper bits of a narrow value are undefined.
        written(text, vec![Value::Word(value as u64)])
    }

    #[test]
    fn text_stays_as_it_is() {
        assert_eq!(written("", vec![]), "");
        assert_eq!(written("100%% sure", vec![]), "100% sure");
        assert_eq!(written("%s and %s", vec![Value::Text(b"this"), Value::Text(b"that")]), "this and that");
    }

    #[test]
    fn integers_as_standard_c_writes_them() {
        let cases = [
            ("%d", -5, "-5"),
            ("%d", 0xffff_ffff_0000_0007_u64 as i64, "7"),
            ("%u", -1, "4294967295"),
            ("%lu", -1, "18446744073709551615"),
            ("%lld", i64::MIN, "-9223372036854775808"),
            ("%hhd", 0x1ff, "-1"),
            ("%hu", 0x1_0005, "5"),
            ("%zx", 0xdead_beef_0000, "deadbeef0000"),
            ("%#X", 255, "0XFF"),
            ("%#x", 0, "0"),
            ("%o", 8, "10"),
            ("%5d|", 42, "   42|"),
            ("%-5d|", 42, "42   |"),
            ("%05d|", -42, "-0042|"),
            ("%-05d|", 42, "42   |"),
            ("%+d", 42, "+42"),
            ("% d", 42, " 42"),
            ("%.3d", 7, "007"),
            ("%8.3d|", 7, "     007|"),
            ("%08.3d|", 7, "     007|"),
            ("%.0d|", 0, "|"),
            ("%p", 0x1000, "0x1000"),
            ("%#010x", 255, "0x000000ff"),
            ("%c", 65, "A"),
            ("%3c|", 65, "  A|"),
        ];
        for (text, value, expected) in cases {
            assert_eq!(number(text, value), expected, "{text} of {value}");
        }
    }

    #[test]
    fn strings_are_cut_and_filled() {
        assert_eq!(written("%.2s|", vec![Value::Text(b"abc")]), "ab|");
        assert_eq!(written("%5s|%-5s|", vec![Value::Text(b"abc"), Value::Text(b"abc")]), "  abc|abc  |");
        assert_eq!(written("%20s|", vec![Value::Text(b"x")]), "                   x|");
    }

    #[test]
    fn values_of_all_kinds_are_taken_in_order() {
        let values = vec![Value::Word(1), Value::Float(2.5), Value::Text(b"x"), Value::Float(-3.0), Value::Word(4)];
        assert_eq!(written("%d %g %s %Lf %lu", values), "1 2.5 x -3.000000 4");
        assert_eq!(written("%*.*f|", vec![Value::Word(7), Value::Word(2), Value::Float(1.5)]), "   1.50|");
    }

    #[test]
    fn stars_take_values() {
        assert_eq!(written("%*d|", vec![Value::Word(4), Value::Word(7)]), "   7|");
        assert_eq!(written("%*d|", vec![Value::Word(-4_i64 as u64), Value::Word(7)]), "7   |");
        assert_eq!(written("%.*s|", vec![Value::Word(1), Value::Text(b"abc")]), "a|");
        assert_eq!(written("%.*s|", vec![Value::Word(-1_i64 as u64), Value::Text(b"abc")]), "abc|");
    }

    #[test]
    fn unknown_conversions_are_written_unchanged() {
        assert_eq!(written("%y %5.2q", vec![]), "%y %5.2q");
        assert_eq!(written("at the end %", vec![]), "at the end %");
        assert_eq!(written("at the end %-5l", vec![]), "at the end %-5l");
    }
}
