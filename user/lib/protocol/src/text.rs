//! Values of any length up to a limit: text, bytes, lists.

use core::ops::Deref;

use arrayvec::{ArrayString, ArrayVec};

use crate::wire::{Decode, Encode, Sink, Source};

/// Returns the number of words of a text of `bytes` bytes: its length and its bytes.
const fn text_words(bytes: usize) -> usize {
    1 + bytes.div_ceil(8)
}

/// Text of at most `MAX` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a, const MAX: usize>(&'a str);

impl<'a, const MAX: usize> Text<'a, MAX> {
    /// Returns the text if it is short enough, or `None`.
    #[inline]
    pub const fn new(text: &'a str) -> Option<Text<'a, MAX>> {
        if text.len() <= MAX { Some(Text(text)) } else { None }
    }

    /// Returns the text as a string slice.
    #[inline]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Returns an owned copy.
    pub fn to_owned(self) -> ArrayString<MAX> {
        // The text is at most `MAX` bytes long.
        ArrayString::from(self.0).unwrap_or_default()
    }
}

impl<const MAX: usize> Deref for Text<'_, MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl<const MAX: usize> Encode for Text<'_, MAX> {
    const WORDS: usize = text_words(MAX);

    #[inline(always)]
    fn encode(&self, to: &mut impl Sink) {
        to.text(self.0.as_bytes(), MAX);
    }
}

impl<'a, const MAX: usize> Decode<'a> for Text<'a, MAX> {
    #[inline(always)]
    fn decode(from: &mut Source<'a>) -> Option<Text<'a, MAX>> {
        from.text(MAX).map(Text)
    }
}

impl<const MAX: usize> Encode for ArrayString<MAX> {
    const WORDS: usize = text_words(MAX);

    #[inline(always)]
    fn encode(&self, to: &mut impl Sink) {
        to.text(self.as_bytes(), MAX);
    }
}

impl<const MAX: usize> Decode<'_> for ArrayString<MAX> {
    fn decode(from: &mut Source<'_>) -> Option<ArrayString<MAX>> {
        Text::<MAX>::decode(from).map(Text::to_owned)
    }
}

/// Byte string of at most `MAX` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes<'a, const MAX: usize>(&'a [u8]);

impl<'a, const MAX: usize> Bytes<'a, MAX> {
    /// Returns the bytes if they are few enough, or `None`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Option<Bytes<'a, MAX>> {
        if bytes.len() <= MAX { Some(Bytes(bytes)) } else { None }
    }

    /// Returns as many of the bytes as can be sent.
    pub fn first_of(bytes: &'a [u8]) -> Bytes<'a, MAX> {
        Bytes(&bytes[..bytes.len().min(MAX)])
    }

    /// Returns the bytes as a slice.
    #[inline]
    pub const fn as_slice(self) -> &'a [u8] {
        self.0
    }

    /// Returns an owned copy.
    pub fn to_owned(self) -> ArrayVec<u8, MAX> {
        // There are at most `MAX` bytes.
        ArrayVec::try_from(self.0).unwrap_or_default()
    }
}

impl<const MAX: usize> Deref for Bytes<'_, MAX> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl<const MAX: usize> Encode for Bytes<'_, MAX> {
    const WORDS: usize = text_words(MAX);

    #[inline(always)]
    fn encode(&self, to: &mut impl Sink) {
        to.text(self.0, MAX);
    }
}

impl<'a, const MAX: usize> Decode<'a> for Bytes<'a, MAX> {
    #[inline(always)]
    fn decode(from: &mut Source<'a>) -> Option<Bytes<'a, MAX>> {
        from.bytes(MAX).map(Bytes)
    }
}

/// List of at most `MAX` values of one type.
pub type List<T, const MAX: usize> = ArrayVec<T, MAX>;

impl<T: Encode, const MAX: usize> Encode for List<T, MAX> {
    const WORDS: usize = 1 + MAX * T::WORDS;

    fn encode(&self, to: &mut impl Sink) {
        to.word(self.len() as u64);
        self.iter().for_each(|value| value.encode(to));
    }
}

impl<'a, T: Decode<'a>, const MAX: usize> Decode<'a> for List<T, MAX> {
    fn decode(from: &mut Source<'a>) -> Option<List<T, MAX>> {
        let count = usize::try_from(from.word()?).ok().filter(|count| *count <= MAX)?;
        let mut values = List::new();
        for _ in 0..count {
            values.push(T::decode(from)?);
        }
        Some(values)
    }
}
