//! Encoding of values in messages.
//!
//! A value is some words, in the order of its fields; text is its length in bytes and then its bytes, eight to a word,
//! the first in the lowest bits; a list is its length and then its elements. Capabilities travel beside the words.
//! Received values are checked while they are read: words that are no value of the type are refused.

use core::cell::Cell;

use tench_abi::message::{MAX_CAPS, REGISTER_WORDS};
use tench_sys::{CapAddress, Carried, Instant, Kind, Message, Reader, Rights, SHORT_BYTES, put_bytes, put_short};

pub use crate::caps::{Any, Arrived, Expected, Given, KindOf, Lent, Sent, own_kind_of};
pub use crate::text::{Bytes, List, Text};

/// Destination of the words of a message.
pub trait Sink {
    /// Appends a word.
    fn word(&mut self, word: u64);
    /// Appends text, which is at most `max` bytes long.
    fn text(&mut self, bytes: &[u8], max: usize);
    /// Attaches a copy of a capability.
    fn lend(&mut self, cap: CapAddress);
    /// Attaches a capability, which leaves its slot.
    fn give(&mut self, cap: CapAddress);
}

impl Sink for Message {
    #[inline]
    fn word(&mut self, word: u64) {
        self.push(word);
    }

    #[inline]
    fn text(&mut self, bytes: &[u8], _: usize) {
        self.push_text(bytes);
    }

    #[inline]
    fn lend(&mut self, cap: CapAddress) {
        self.copy_cap(cap);
    }

    #[inline]
    fn give(&mut self, cap: CapAddress) {
        self.move_cap(cap);
    }
}

/// A message whose words travel in registers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Registers {
    /// The words; those beyond the length are 0.
    pub words: [u64; REGISTER_WORDS],
    /// Number of free words. (If used words were counted from 0, the initial structure would be all zeros and be
    /// cleared by a call of `memset`, which costs more than a message of one word.)
    free: usize,
    caps: [Carried; MAX_CAPS],
    cap_count: usize,
}

impl Default for Registers {
    #[inline(always)]
    fn default() -> Registers {
        let (words, caps) = ([0; REGISTER_WORDS], [Carried::default(); MAX_CAPS]);
        Registers { words, free: REGISTER_WORDS, caps, cap_count: 0 }
    }
}

impl Registers {
    /// Returns the number of words. More words than fit mean that the message is too long.
    #[inline(always)]
    pub const fn length(&self) -> usize {
        REGISTER_WORDS.wrapping_sub(self.free)
    }

    /// Returns the first `count` attached capabilities. A caller that knows the count at compile time passes it, so
    /// that no code is generated for capabilities that never come.
    #[inline(always)]
    pub fn caps(&self, count: usize) -> &[Carried] {
        &self.caps[..count.min(MAX_CAPS)]
    }

    #[inline(always)]
    fn carry(&mut self, cap: Carried) {
        // Client stubs use this only for values whose capabilities fit.
        if let Some(place) = self.caps.get_mut(self.cap_count) {
            *place = cap;
        }
        self.cap_count += 1;
    }
}

impl Sink for Registers {
    #[inline(always)]
    fn word(&mut self, word: u64) {
        // Client stubs use this only for values whose words fit.
        let length = self.length();
        if let Some(place) = self.words.get_mut(length) {
            *place = word;
        }
        self.free = self.free.wrapping_sub(1);
    }

    #[inline(always)]
    fn text(&mut self, bytes: &[u8], max: usize) {
        self.word(bytes.len() as u64);
        let length = self.length();
        let room = self.words.get_mut(length..).unwrap_or_default();
        // The limit is known at compile time, so only one of the two calls is generated.
        let count = if max <= SHORT_BYTES { put_short(room, bytes, max) } else { put_bytes(room, bytes) };
        self.free = self.free.wrapping_sub(count);
    }

    #[inline(always)]
    fn lend(&mut self, cap: CapAddress) {
        self.carry(Carried::copy(cap));
    }

    #[inline(always)]
    fn give(&mut self, cap: CapAddress) {
        self.carry(Carried::moved(cap));
    }
}

/// The words and capabilities of a message that is being decoded.
pub struct Source<'a> {
    words: Reader<'a>,
    caps: &'a [CapAddress],
    next_cap: usize,
    pub(crate) kept: &'a Cell<u8>,
    pub(crate) kind_of: KindOf,
}

impl<'a> Source<'a> {
    /// Returns a source of these words and capabilities. If a capability is kept, the bit of its index is set in
    /// `kept`.
    #[inline]
    pub const fn new(words: &'a [u64], caps: &'a [CapAddress], kept: &'a Cell<u8>) -> Source<'a> {
        Source { words: Reader::new(words), caps, next_cap: 0, kept, kind_of: own_kind_of }
    }

    /// Returns this source with another way than the kernel to find out the kinds of capabilities.
    #[inline]
    pub const fn with_kinds(self, kind_of: KindOf) -> Source<'a> {
        Source { kind_of, ..self }
    }

    /// Returns the next word.
    #[inline]
    pub fn word(&mut self) -> Option<u64> {
        self.words.word()
    }

    /// Returns the next bytes, at most `max`.
    #[inline(always)]
    pub fn bytes(&mut self, max: usize) -> Option<&'a [u8]> {
        self.words.text().filter(|text| text.len() <= max)
    }

    /// Returns the next text, of at most `max` bytes.
    #[inline(always)]
    pub fn text(&mut self, max: usize) -> Option<&'a str> {
        self.words.str(max)
    }

    /// Returns the next capability and its index.
    pub(crate) fn cap(&mut self) -> Option<(CapAddress, usize)> {
        let index = self.next_cap;
        self.next_cap += 1;
        self.caps.get(index).map(|cap| (*cap, index))
    }

    /// Returns whether everything has been read.
    #[inline]
    pub const fn is_done(&self) -> bool {
        self.words.rest().is_empty() && self.next_cap == self.caps.len()
    }
}

/// A value that can be sent.
pub trait Encode {
    /// Maximum number of words.
    const WORDS: usize;
    /// Maximum number of capabilities.
    const CAPS: usize = 0;
    /// Appends the value to a message.
    fn encode(&self, to: &mut impl Sink);
}

/// A value that can be received.
pub trait Decode<'a>: Sized {
    /// Reads a value; returns `None` if the next words are no such value.
    fn decode(from: &mut Source<'a>) -> Option<Self>;
}

/// Integers: one word each. A word out of the type's range is refused.
macro_rules! integers {
    ($($type:ty)*) => { $(
        impl Encode for $type {
            const WORDS: usize = 1;

            #[inline(always)]
            fn encode(&self, to: &mut impl Sink) {
                to.word(*self as u64);
            }
        }

        impl Decode<'_> for $type {
            #[inline(always)]
            fn decode(from: &mut Source<'_>) -> Option<$type> {
                let word = from.word()?;
                // Signed numbers are sent sign-extended.
                (word as $type as u64 == word).then_some(word as $type)
            }
        }
    )* };
}

integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

impl Encode for bool {
    const WORDS: usize = 1;

    #[inline(always)]
    fn encode(&self, to: &mut impl Sink) {
        to.word(u64::from(*self));
    }
}

impl Decode<'_> for bool {
    #[inline(always)]
    fn decode(from: &mut Source<'_>) -> Option<bool> {
        match from.word()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Encode for () {
    const WORDS: usize = 0;

    #[inline(always)]
    fn encode(&self, _: &mut impl Sink) {}
}

impl Decode<'_> for () {
    #[inline(always)]
    fn decode(_: &mut Source<'_>) -> Option<()> {
        Some(())
    }
}

impl Encode for Instant {
    const WORDS: usize = 1;

    #[inline(always)]
    fn encode(&self, to: &mut impl Sink) {
        to.word(self.ticks());
    }
}

impl Decode<'_> for Instant {
    #[inline(always)]
    fn decode(from: &mut Source<'_>) -> Option<Instant> {
        from.word().map(Instant::from_ticks)
    }
}

impl Encode for CapAddress {
    const WORDS: usize = 1;

    #[inline(always)]
    fn encode(&self, to: &mut impl Sink) {
        to.word(u64::from(self.0));
    }
}

impl Decode<'_> for CapAddress {
    #[inline(always)]
    fn decode(from: &mut Source<'_>) -> Option<CapAddress> {
        u32::decode(from).map(CapAddress)
    }
}

impl Encode for Kind {
    const WORDS: usize = 1;

    fn encode(&self, to: &mut impl Sink) {
        to.word(*self as u64);
    }
}

impl Decode<'_> for Kind {
    fn decode(from: &mut Source<'_>) -> Option<Kind> {
        Kind::from_code(from.word()?)
    }
}

impl Encode for Rights {
    const WORDS: usize = 1;

    fn encode(&self, to: &mut impl Sink) {
        to.word(u64::from(self.bits()));
    }
}

impl Decode<'_> for Rights {
    fn decode(from: &mut Source<'_>) -> Option<Rights> {
        Rights::from_bits(u8::decode(from)?)
    }
}

/// An optional value: whether it exists, and its words or as many zeros.
impl<T: Encode> Encode for Option<T> {
    const WORDS: usize = 1 + T::WORDS;

    #[inline]
    fn encode(&self, to: &mut impl Sink) {
        const { assert!(T::CAPS == 0, "optional values have no capabilities") };
        self.is_some().encode(to);
        match self {
            Some(value) => value.encode(to),
            None => (0..T::WORDS).for_each(|_| to.word(0)),
        }
    }
}

impl<'a, T: Decode<'a> + Encode> Decode<'a> for Option<T> {
    #[inline]
    fn decode(from: &mut Source<'a>) -> Option<Option<T>> {
        if bool::decode(from)? {
            return T::decode(from).map(Some);
        }
        for _ in 0..T::WORDS {
            from.word().filter(|word| *word == 0)?;
        }
        Some(None)
    }
}

impl<T: Encode, const N: usize> Encode for [T; N] {
    const WORDS: usize = N * T::WORDS;

    #[inline]
    fn encode(&self, to: &mut impl Sink) {
        self.iter().for_each(|value| value.encode(to));
    }
}

impl<'a, T: Decode<'a> + Copy + Default, const N: usize> Decode<'a> for [T; N] {
    #[inline]
    fn decode(from: &mut Source<'a>) -> Option<[T; N]> {
        let mut values = [T::default(); N];
        for value in &mut values {
            *value = T::decode(from)?;
        }
        Some(values)
    }
}

/// Several values, one after another.
macro_rules! tuples {
    ($(($($type:ident $index:tt),+))*) => { $(
        impl<$($type: Encode),+> Encode for ($($type,)+) {
            const WORDS: usize = 0 $(+ $type::WORDS)+;
            const CAPS: usize = 0 $(+ $type::CAPS)+;

            #[inline(always)]
            fn encode(&self, to: &mut impl Sink) {
                $(self.$index.encode(to);)+
            }
        }

        impl<'a, $($type: Decode<'a>),+> Decode<'a> for ($($type,)+) {
            #[inline(always)]
            fn decode(from: &mut Source<'a>) -> Option<Self> {
                Some(($($type::decode(from)?,)+))
            }
        }
    )* };
}

tuples! { (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sent value as it is received.
    fn through<T: Encode + for<'a> Decode<'a>>(value: &T) -> Option<T> {
        let mut registers = Registers::default();
        value.encode(&mut registers);
        let kept = Cell::new(0);
        let mut source = Source::new(&registers.words[..registers.length()], &[], &kept);
        T::decode(&mut source).filter(|_| source.is_done())
    }

    #[test]
    fn values_arrive_as_they_were() {
        assert_eq!(through(&-1_i8), Some(-1));
        assert_eq!(through(&u64::MAX), Some(u64::MAX));
        assert_eq!(through(&i64::MIN), Some(i64::MIN));
        assert_eq!(through(&(true, 7_u16, Some(3_u8))), Some((true, 7, Some(3))));
        assert_eq!(through(&None::<u32>), Some(None));
        assert_eq!(through(&[1_u32, 2, 3]), Some([1, 2, 3]));
        assert_eq!(through(&()), Some(()));
    }

    #[test]
    fn words_that_are_no_value_are_refused() {
        let kept = Cell::new(0);
        let refused = |words: &[u64]| {
            let source = || Source::new(words, &[], &kept);
            assert_eq!(u8::decode(&mut source()), None);
            assert_eq!(i16::decode(&mut source()), None);
            assert_eq!(bool::decode(&mut source()), None);
            assert_eq!(Option::<u32>::decode(&mut source()), None);
            assert_eq!(Text::<8>::decode(&mut source()), None);
            assert_eq!(Bytes::<8>::decode(&mut source()), None);
            assert!(List::<u64, 2>::decode(&mut source()).is_none());
            assert!(Arrived::<Any>::decode(&mut source()).is_none());
        };
        refused(&[]);
        refused(&[u64::MAX / 2]);
        refused(&[0x8000_0000_0000_0000, 0]);
        refused(&[1 << 32, 1]);
        assert_eq!(Text::<8>::decode(&mut Source::new(&[2, 0xffff], &[], &kept)), None, "not UTF-8");
        assert_eq!(Text::<1>::decode(&mut Source::new(&[2, 0x4141], &[], &kept)), None, "too long");
        assert_eq!(Option::<u8>::decode(&mut Source::new(&[0, 1], &[], &kept)), None, "something in nothing");
    }
}
