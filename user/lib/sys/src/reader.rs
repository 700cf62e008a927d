//! Reading the words of a received message.

use crate::word_buffer::bytes;

/// A reader of the words of a message, one after another. Its methods return `None` at the end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    words: &'a [u64],
}

impl<'a> Reader<'a> {
    /// Returns a reader of these words.
    pub const fn new(words: &'a [u64]) -> Reader<'a> {
        Reader { words }
    }

    /// Returns the next word.
    #[inline]
    pub fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }

    /// Returns the next text, as [`Message::push_text`](crate::Message::push_text) writes it.
    #[inline(always)]
    pub fn text(&mut self) -> Option<&'a [u8]> {
        self.packed(usize::MAX).map(|(text, _)| text)
    }

    /// Returns the next text, if it is UTF-8 of at most `max` bytes.
    #[inline(always)]
    pub fn str(&mut self, max: usize) -> Option<&'a str> {
        let (text, words) = self.packed(max)?;
        // Short texts are checked without a loop, which would cost more than the check.
        let all = match words {
            [] => 0,
            [one] => *one,
            [one, other] => one | other,
            several => several.iter().fold(0, |all, word| all | word),
        };
        // Bytes beyond the text may have any value; then each byte of the text is checked.
        if all & 0x8080_8080_8080_8080 != 0 && !is_utf_8(text) {
            return None;
        }
        // SAFETY: the text was checked, or all its bytes are below 128, that is, ASCII and so UTF-8.
        Some(unsafe { core::str::from_utf8_unchecked(text) })
    }

    /// Returns the next text of at most `max` bytes, and the words that hold it.
    #[inline(always)]
    fn packed(&mut self, max: usize) -> Option<(&'a [u8], &'a [u64])> {
        let (length, rest) = self.words.split_first()?;
        if *length > max as u64 {
            return None;
        }
        let length = *length as usize;
        let (words, left) = rest.split_at_checked(length.div_ceil(8))?;
        self.words = left;
        // SAFETY: these words hold all of the bytes.
        Some((unsafe { bytes(words).get_unchecked(..length) }, words))
    }

    /// Returns the words not read yet.
    pub const fn rest(&self) -> &'a [u64] {
        self.words
    }
}

/// Returns whether bytes are UTF-8. Out of line, away from the path for ASCII.
#[cold]
#[inline(never)]
fn is_utf_8(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf_8_and_what_lies_behind_it_does_not_matter() {
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let mut reader = Reader::new(&[3, 0, 4, 5]);
        reader.word();
        let mut empty = reader.clone();
        assert_eq!((empty.str(0), empty.rest()), (Some(""), &[4, 5][..]));
        let text = |words: &[u64]| Reader::new(words).str(10).map(str::len);
        assert_eq!(text(&[5, word(b"hello\0\0\0")]), Some(5));
        assert_eq!(text(&[5, word(b"hello\xff\x80!")]), Some(5));
        assert_eq!(text(&[10, word("grüße, w".as_bytes().first_chunk().unwrap()), word(b"elt\0\0\0\0\0")]), Some(10));
        assert_eq!(text(&[2, word(b"\xc3(......")]), None);
        assert_eq!(text(&[1, word(b"\xc3\xbc\0\0\0\0\0\0")]), None, "a character is cut");
        assert_eq!(text(&[9, 0]), None);
        assert_eq!(text(&[11, 0, 0]), None, "longer than was asked for");
        assert_eq!(Reader::new(&[20, 0, 0, 0]).str(20).map(str::len), Some(20));
    }

    #[test]
    fn a_text_that_claims_too_much_is_refused_and_nothing_is_read() {
        let mut reader = Reader::new(&[17, 0, 0]);
        assert_eq!(reader.text(), None);
        assert_eq!(reader.rest().len(), 3);
        assert_eq!(Reader::new(&[u64::MAX]).text(), None);
        assert_eq!(Reader::new(&[0]).text(), Some(&b""[..]));
        assert_eq!(Reader::new(&[]).text(), None);
    }
}
