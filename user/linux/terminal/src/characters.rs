//! Kinds of characters, as Linux's kernel knows them: Latin-1.

/// Returns whether a byte is a control character. Those of Latin-1 above 127 do not count.
pub(crate) const fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}

/// Returns whether a byte is a letter or a digit.
pub(crate) const fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_digit() || is_upper(byte) || is_lower(byte)
}

const fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, 0xc0..=0xde) && byte != 0xd7
}

const fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || matches!(byte, 0xdf..=0xff) && byte != 0xf7
}

/// Returns a letter in lower case. Others stay.
pub(crate) const fn to_lower(byte: u8) -> u8 {
    if is_upper(byte) { byte + 32 } else { byte }
}

/// Returns a letter in upper case. Others stay. Of the two without an upper case in Latin-1, Linux makes some byte.
pub(crate) const fn to_upper(byte: u8) -> u8 {
    if is_lower(byte) { byte - 32 } else { byte }
}

/// Returns whether a byte continues a character of UTF-8.
pub(crate) const fn continues_utf8(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_latin_1() {
        assert_eq!((to_lower(b'A'), to_lower(0xc4), to_lower(0xd7), to_lower(b'[')), (b'a', 0xe4, 0xd7, b'['));
        assert_eq!((to_upper(b'z'), to_upper(0xe4), to_upper(0xf7), to_upper(b'{')), (b'Z', 0xc4, 0xf7, b'{'));
        let all = |is: fn(u8) -> bool| (0..=255).filter(|byte| is(*byte)).count();
        assert_eq!((all(is_control), all(is_alphanumeric), all(continues_utf8)), (33, 62 + 62, 64));
    }
}
