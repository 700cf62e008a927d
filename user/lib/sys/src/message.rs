//! Messages: building one to send, and reading a received one.
//!
//! [`Message`] and [`Received`] hold up to 64 words and 4 capabilities; only the words in use are ever touched. For
//! messages of up to eight words there are the shorter `call0` to `call8` of an endpoint, which answer [`Words`].

use core::mem::MaybeUninit;

use tench_abi::message::{MAX_CAPS, MAX_WORDS, MessageArea, REGISTER_WORDS};
use tench_abi::{CapAddress, Tag};

use crate::block;
use crate::raw::Answer;

/// Words that do not travel in registers.
const AREA_WORDS: usize = MAX_WORDS - REGISTER_WORDS;

/// A message to send.
///
/// Too many words or capabilities are no error here: sending such a message is refused with `MessageTooLong`.
#[derive(Clone, Debug)]
pub struct Message {
    label: u64,
    length: usize,
    cap_count: usize,
    registers: [u64; REGISTER_WORDS],
    rest: [MaybeUninit<u64>; AREA_WORDS],
    caps: [u32; MAX_CAPS],
}

impl Message {
    /// A message without words. Of the label, 48 bits travel.
    #[inline]
    pub const fn new(label: u64) -> Message {
        Message {
            label,
            length: 0,
            cap_count: 0,
            registers: [0; REGISTER_WORDS],
            rest: [MaybeUninit::uninit(); AREA_WORDS],
            caps: [0; MAX_CAPS],
        }
    }

    /// Begins anew, as a message without words: what it was before is forgotten without being written over.
    #[inline(always)]
    pub const fn restart(&mut self, label: u64) {
        (self.label, self.length, self.cap_count) = (label, 0, 0);
    }

    /// A message with these words.
    #[inline]
    pub fn with_words(label: u64, words: &[u64]) -> Message {
        let mut message = Message::new(label);
        message.extend(words);
        message
    }

    /// Appends a word.
    #[inline]
    pub fn push(&mut self, word: u64) -> &mut Message {
        if let Some(place) = self.registers.get_mut(self.length) {
            *place = word;
        } else if let Some(place) = self.rest.get_mut(self.length - REGISTER_WORDS) {
            place.write(word);
        }
        // One more than fits is remembered, so that the kernel refuses the message.
        self.length = (self.length + 1).min(MAX_WORDS + 1);
        self
    }

    /// Appends words.
    #[inline]
    pub fn extend(&mut self, words: &[u64]) -> &mut Message {
        for word in words {
            self.push(*word);
        }
        self
    }

    /// Appends text: a word with its length in bytes, and then its bytes, eight to a word, the first in the lowest
    /// bits.
    pub fn push_text(&mut self, text: &[u8]) -> &mut Message {
        self.push(text.len() as u64);
        let (chunks, rest) = text.as_chunks::<8>();
        for chunk in chunks {
            self.push(u64::from_le_bytes(*chunk));
        }
        if !rest.is_empty() {
            self.push(rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        self
    }

    /// Sends a copy of a capability along.
    #[inline]
    pub fn copy_cap(&mut self, cap: impl Into<CapAddress>) -> &mut Message {
        self.push_cap(cap.into().0)
    }

    /// Sends a capability along; it leaves its slot when the message is received.
    #[inline]
    pub fn move_cap(&mut self, cap: impl Into<CapAddress>) -> &mut Message {
        self.push_cap(cap.into().0 | MessageArea::MOVE)
    }

    #[inline]
    fn push_cap(&mut self, cap: u32) -> &mut Message {
        if let Some(place) = self.caps.get_mut(self.cap_count) {
            *place = cap;
        }
        self.cap_count = (self.cap_count + 1).min(MAX_CAPS + 1);
        self
    }

    /// What the message is about.
    pub const fn label(&self) -> u64 {
        self.label
    }

    /// Words so far.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// The tag that describes it.
    #[inline]
    pub const fn tag(&self) -> Tag {
        Tag::new(self.label, self.length).with_caps(self.cap_count)
    }

    /// The words that travel in registers.
    #[inline]
    pub(crate) const fn registers(&self) -> &[u64; REGISTER_WORDS] {
        &self.registers
    }

    /// The words beyond those in registers.
    pub(crate) fn rest(&self) -> &[u64] {
        let count = self.length.clamp(REGISTER_WORDS, MAX_WORDS) - REGISTER_WORDS;
        // SAFETY: `push` has written all words below `length`.
        unsafe { initialised(&self.rest[..count]) }
    }

    /// Puts what does not travel in registers where the kernel looks for it.
    #[inline]
    pub(crate) fn stage(&self) {
        if self.length > REGISTER_WORDS {
            block::write_words(self.rest());
        }
        if self.cap_count > 0 {
            block::write_caps(&self.caps[..self.cap_count.min(MAX_CAPS)]);
        }
    }
}

/// A slice that is known to be initialised.
///
/// # Safety
/// Every element has been written.
const unsafe fn initialised(words: &[MaybeUninit<u64>]) -> &[u64] {
    // SAFETY: `MaybeUninit<u64>` has the layout of `u64`, and the caller says that all are written.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
}

/// A capability that a message carries along: a copy, or the capability itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried(u32);

impl Carried {
    /// A copy.
    pub const fn copy(cap: CapAddress) -> Carried {
        Carried(cap.0)
    }

    /// It leaves its slot when the message is received.
    pub const fn moved(cap: CapAddress) -> Carried {
        Carried(cap.0 | MessageArea::MOVE)
    }
}

impl Message {
    /// Sends a capability along.
    #[inline]
    pub fn carry(&mut self, cap: Carried) -> &mut Message {
        self.push_cap(cap.0)
    }
}

/// Puts capabilities where the kernel looks for them when a message is sent.
#[inline]
pub(crate) fn stage_caps(caps: &[Carried]) {
    // They are as they travel, a number each.
    let mut numbers = [0; MAX_CAPS];
    numbers.iter_mut().zip(caps).for_each(|(number, cap)| *number = cap.0);
    block::write_caps(&numbers[..caps.len().min(MAX_CAPS)]);
}

/// A received message of at most eight words, or the first eight of a longer one.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// What describes it.
    pub tag: Tag,
    /// Who sent it: the badge of the capability that was used.
    pub badge: u64,
    /// The words; those beyond the length are 0.
    pub words: [u64; REGISTER_WORDS],
}

impl Words {
    /// What the message is about.
    #[inline]
    pub const fn label(&self) -> u64 {
        self.tag.label()
    }
}

impl Words {
    /// Where the capabilities that came along lie now. Asked once, before the next message is received.
    #[inline]
    pub fn take_caps(&self) -> [CapAddress; MAX_CAPS] {
        if self.tag.caps() > 0 { block::take_slots(self.tag.caps()) } else { [CapAddress::NULL; MAX_CAPS] }
    }
}

impl From<Answer> for Words {
    #[inline(always)]
    fn from(answer: Answer) -> Words {
        Words { tag: answer.tag(), badge: answer.badge, words: answer.words }
    }
}

/// A received message, or a received signal ([`is_notification`](Received::is_notification)).
#[derive(Clone, Debug)]
pub struct Received {
    tag: Tag,
    badge: u64,
    words: [MaybeUninit<u64>; MAX_WORDS],
    caps: [CapAddress; MAX_CAPS],
}

impl Received {
    /// Room for a message: one without words, until something is received into it.
    #[inline]
    pub const fn new() -> Received {
        Received {
            tag: Tag::new(0, 0),
            badge: 0,
            words: [MaybeUninit::uninit(); MAX_WORDS],
            caps: [CapAddress::NULL; MAX_CAPS],
        }
    }

    /// Takes a message out of registers and message area.
    #[inline]
    pub(crate) fn take(answer: &Answer) -> Received {
        let mut received = Received::new();
        received.fill(answer);
        received
    }

    /// The same, in the place of the message that was here. Only what the new one has is written.
    #[inline]
    pub(crate) fn fill(&mut self, answer: &Answer) {
        let tag = answer.tag();
        for (place, word) in self.words.iter_mut().zip(answer.words) {
            place.write(word);
        }
        if tag.length() > REGISTER_WORDS {
            block::read_words(&mut self.words[REGISTER_WORDS..tag.length().min(MAX_WORDS)]);
        }
        if tag.caps() > 0 {
            self.caps = block::take_slots(tag.caps());
        }
        // Last, because it says which words have been written.
        (self.tag, self.badge) = (tag, answer.badge);
    }

    /// A message as it would arrive if it were sent, with the capabilities where they are. For tests of protocols, and
    /// for ways of sending that are not the kernel's.
    pub fn from_message(message: &Message, badge: u64) -> Received {
        let mut received = Received {
            tag: message.tag(),
            badge,
            words: [MaybeUninit::uninit(); MAX_WORDS],
            caps: message.caps.map(|cap| CapAddress(cap & !MessageArea::MOVE)),
        };
        let words = message.registers.iter().chain(message.rest());
        received.words.iter_mut().zip(words).for_each(|(place, word)| {
            place.write(*word);
        });
        received
    }

    /// What describes it.
    #[inline]
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// What the message is about.
    #[inline]
    pub const fn label(&self) -> u64 {
        self.tag.label()
    }

    /// Who sent it: the badge of the capability that was used. Of a signal, its word.
    #[inline]
    pub const fn badge(&self) -> u64 {
        self.badge
    }

    /// Whether this is the word of the bound notification and not a message.
    #[inline]
    pub const fn is_notification(&self) -> bool {
        self.tag.is_notification()
    }

    /// Whether the kernel wrote this message on behalf of a thread that faulted.
    #[inline]
    pub const fn is_fault(&self) -> bool {
        self.tag.is_kernel()
    }

    /// The words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        let count = self.tag.length().min(MAX_WORDS);
        // SAFETY: a tag with a length is set by `fill`, which has written the first eight words and all below the length,
        // and by `from_message`, which has written all below the length.
        unsafe { initialised(&self.words[..count]) }
    }

    /// Word `index`, or 0 if the message is shorter.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.words().get(index).copied().unwrap_or(0)
    }

    /// Where the capabilities that came along lie now.
    #[inline]
    pub fn caps(&self) -> &[CapAddress] {
        &self.caps[..self.tag.caps().min(MAX_CAPS)]
    }

    /// Reads the words one after another.
    #[inline]
    pub fn reader(&self) -> Reader<'_> {
        Reader { words: self.words() }
    }
}

impl Default for Received {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads the words of a message one after another. What is missing is `None`.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    words: &'a [u64],
}

impl<'a> Reader<'a> {
    /// Reads these words.
    pub const fn new(words: &'a [u64]) -> Reader<'a> {
        Reader { words }
    }

    /// The next word.
    #[inline]
    pub fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }

    /// The next text, as [`Message::push_text`] writes it.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let mut ahead = self.clone();
        let length = usize::try_from(ahead.word()?).ok()?;
        let count = length.div_ceil(8);
        if count > ahead.words.len() {
            return None;
        }
        let (words, rest) = ahead.words.split_at(count);
        self.words = rest;
        Some(&bytes(words)[..length])
    }

    /// The words that were not read yet.
    pub const fn rest(&self) -> &'a [u64] {
        self.words
    }
}

/// The bytes of words, those in the lowest bits first.
const fn bytes(words: &[u64]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little"), "messages are little-endian") };
    // SAFETY: any eight bytes of a `u64` are eight `u8`, which need no alignment.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver would make of a message of at most eight words.
    fn arrive(message: &Message) -> Received {
        let tag = message.tag();
        Received::take(&Answer { code: 0, first: tag.0, words: *message.registers(), badge: 7 })
    }

    #[test]
    fn words_and_label_arrive() {
        let message = Message::with_words(42, &[1, 2, 3]);
        let received = arrive(&message);
        assert_eq!((received.label(), received.badge()), (42, 7));
        assert_eq!(received.words(), [1, 2, 3]);
        assert_eq!((received.word(2), received.word(3), received.word(99)), (3, 0, 0));
        assert!(!received.is_notification() && !received.is_fault() && received.caps().is_empty());
    }

    #[test]
    fn a_message_takes_the_place_of_another() {
        let mut room = Received::new();
        assert!(room.words().is_empty() && room.caps().is_empty() && !room.is_notification());
        for words in [&[1, 2, 3][..], &[4], &[], &[5, 6, 7, 8, 9, 10, 11, 12]] {
            let mut message = Message::with_words(9, &[90; 12]);
            message.restart(words.len() as u64);
            message.extend(words);
            room.fill(&Answer { code: 0, first: message.tag().0, words: *message.registers(), badge: 3 });
            assert_eq!((room.label(), room.badge(), room.words()), (words.len() as u64, 3, words));
        }
    }

    #[test]
    fn a_message_that_begins_anew_has_nothing_of_the_old_one() {
        let mut message = Message::with_words(1, &[7; MAX_WORDS + 1]);
        message.copy_cap(CapAddress(20));
        message.restart(2);
        assert_eq!((message.tag(), message.rest()), (Message::new(2).tag(), &[][..]));
        assert_eq!(Received::from_message(&message, 0).words(), [0_u64; 0]);
    }

    #[test]
    fn long_messages_are_split_between_registers_and_area() {
        let words: [u64; MAX_WORDS] = core::array::from_fn(|index| index as u64);
        let message = Message::with_words(1, &words);
        assert_eq!(message.tag().length(), MAX_WORDS);
        assert_eq!(message.registers(), &words[..REGISTER_WORDS]);
        assert_eq!(message.rest(), &words[REGISTER_WORDS..]);
        assert!(Message::with_words(1, &words[..5]).rest().is_empty());
    }

    #[test]
    fn too_much_is_left_for_the_kernel_to_refuse() {
        let mut message = Message::with_words(1, &[0; MAX_WORDS]);
        message.push(1).push(2);
        assert_eq!(message.tag().length(), MAX_WORDS + 1);
        assert_eq!(message.rest().len(), MAX_WORDS - REGISTER_WORDS);
        for slot in 1..=6 {
            message.copy_cap(CapAddress(slot));
        }
        assert_eq!(message.tag().caps(), MAX_CAPS + 1);
    }

    #[test]
    fn caps_are_copied_or_moved() {
        let mut message = Message::new(0);
        message.copy_cap(CapAddress(20)).move_cap(CapAddress(21));
        assert_eq!(message.tag().caps(), 2);
        assert_eq!(message.caps[..2], [20, 21 | MessageArea::MOVE]);
    }

    #[test]
    fn text_is_packed_lowest_byte_first() {
        let mut message = Message::new(0);
        message.push(5).push_text(b"hello, world").push(6);
        assert_eq!(message.registers()[1], 12);
        assert_eq!(message.registers()[2], u64::from_le_bytes(*b"hello, w"));
        let received = arrive(&message);
        let mut reader = received.reader();
        assert_eq!(reader.word(), Some(5));
        assert_eq!(reader.text(), Some(&b"hello, world"[..]));
        assert_eq!((reader.word(), reader.word()), (Some(6), None));
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
