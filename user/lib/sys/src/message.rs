//! Messages: building one to send, and reading a received one.
//!
//! [`Message`] and [`Received`] hold up to 64 words and 4 capabilities; only the words in use are ever touched, and the first
//! eight, which travel in registers whether they are in use or not. For
//! messages of up to eight words there are the shorter `call0` to `call8` of an endpoint, which answer [`Words`].

use tench_abi::message::{MAX_CAPS, MAX_WORDS, MessageArea, REGISTER_WORDS};
use tench_abi::{CapAddress, Tag};

use crate::block;
use crate::raw::Answer;
use crate::room::{Room, bytes};

/// A message to send.
///
/// Too many words or capabilities are no error here: sending such a message is refused with `MessageTooLong`.
#[derive(Clone, Debug)]
pub struct Message {
    label: u64,
    length: usize,
    cap_count: usize,
    words: Room,
    caps: [u32; MAX_CAPS],
}

impl Message {
    /// A message without words. Of the label, 48 bits travel.
    #[inline]
    pub const fn new(label: u64) -> Message {
        Message { label, length: 0, cap_count: 0, words: Room::new(), caps: [0; MAX_CAPS] }
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
        self.words.write(self.length, word);
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
        let words = self.words.write_bytes(self.length, text);
        self.length = (self.length + words).min(MAX_WORDS + 1);
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
    #[inline(always)]
    pub(crate) const fn registers(&self) -> [u64; REGISTER_WORDS] {
        self.words.registers()
    }

    /// All words, or as many as fit.
    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: `push` and `push_text` have written all words below the length.
        unsafe { self.words.first(self.length.min(MAX_WORDS)) }
    }

    /// Puts what does not travel in registers where the kernel looks for it.
    #[inline]
    pub(crate) fn stage(&self) {
        if self.length > REGISTER_WORDS {
            block::write_words(&self.words()[REGISTER_WORDS..]);
        }
        if self.cap_count > 0 {
            block::write_caps(&self.caps[..self.cap_count.min(MAX_CAPS)]);
        }
    }
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
    words: Room,
    caps: [CapAddress; MAX_CAPS],
}

impl Received {
    /// Room for a message: one without words, until something is received into it.
    #[inline]
    pub const fn new() -> Received {
        Received { tag: Tag::new(0, 0), badge: 0, words: Room::new(), caps: [CapAddress::NULL; MAX_CAPS] }
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
        self.words.set_registers(answer.words);
        if tag.length() > REGISTER_WORDS {
            block::read_words(self.words.beyond_registers(tag.length()));
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
        let caps = message.caps.map(|cap| CapAddress(cap & !MessageArea::MOVE));
        Received { tag: message.tag(), badge, words: message.words.clone(), caps }
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
        // and by `from_message`, which copies a message of which all words below the length are written.
        unsafe { self.words.first(count) }
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
    #[inline(always)]
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let mut ahead = self.clone();
        let length = usize::try_from(ahead.word()?).ok()?;
        let count = length.div_ceil(8);
        if count > ahead.words.len() {
            return None;
        }
        let (words, rest) = ahead.words.split_at(count);
        self.words = rest;
        bytes(words).get(..length)
    }

    /// The next text, as [`Message::push_text`] writes it, if it is UTF-8.
    #[inline(always)]
    pub fn str(&mut self) -> Option<&'a str> {
        let words = self.words;
        let text = self.text()?;
        // Bytes beyond the text may be anything; then it is looked at byte by byte.
        let all = words.iter().skip(1).take(text.len().div_ceil(8)).fold(0, |all, word| all | word);
        if all & 0x8080_8080_8080_8080 == 0 {
            // SAFETY: bytes below 128 are ASCII, and so UTF-8.
            return Some(unsafe { core::str::from_utf8_unchecked(text) });
        }
        utf_8(text)
    }

    /// The words that were not read yet.
    pub const fn rest(&self) -> &'a [u64] {
        self.words
    }
}

/// Bytes as text, if they are. Kept out of the way of those that are ASCII.
#[cold]
#[inline(never)]
fn utf_8(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver would make of a message of at most eight words.
    fn arrive(message: &Message) -> Received {
        let tag = message.tag();
        Received::take(&Answer { code: 0, first: tag.0, words: message.registers(), badge: 7 })
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
            room.fill(&Answer { code: 0, first: message.tag().0, words: message.registers(), badge: 3 });
            assert_eq!((room.label(), room.badge(), room.words()), (words.len() as u64, 3, words));
        }
    }

    #[test]
    fn a_message_that_begins_anew_has_nothing_of_the_old_one() {
        let mut message = Message::with_words(1, &[7; MAX_WORDS + 1]);
        message.copy_cap(CapAddress(20));
        message.restart(2);
        assert_eq!((message.tag(), message.words()), (Message::new(2).tag(), &[][..]));
        assert_eq!(Received::from_message(&message, 0).words(), [0_u64; 0]);
    }

    #[test]
    fn long_messages_are_split_between_registers_and_area() {
        let words: [u64; MAX_WORDS] = core::array::from_fn(|index| index as u64);
        let message = Message::with_words(1, &words);
        assert_eq!(message.tag().length(), MAX_WORDS);
        assert_eq!(message.registers(), words[..REGISTER_WORDS]);
        assert_eq!(message.words(), words);
        assert_eq!(Message::with_words(1, &words[..5]).words(), &words[..5]);
    }

    #[test]
    fn too_much_is_left_for_the_kernel_to_refuse() {
        let mut message = Message::with_words(1, &[0; MAX_WORDS]);
        message.push(1).push(2);
        assert_eq!(message.tag().length(), MAX_WORDS + 1);
        assert_eq!(message.words().len(), MAX_WORDS);
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
    fn text_is_utf_8_and_what_lies_behind_it_does_not_matter() {
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let mut reader = Reader::new(&[3, 0, 4, 5]);
        reader.word();
        let mut empty = reader.clone();
        assert_eq!((empty.str(), empty.rest()), (Some(""), &[4, 5][..]));
        let text = |words: &[u64]| Reader::new(words).str().map(str::len);
        assert_eq!(text(&[5, word(b"hello\0\0\0")]), Some(5));
        assert_eq!(text(&[5, word(b"hello\xff\x80!")]), Some(5));
        assert_eq!(text(&[10, word("grüße, w".as_bytes().first_chunk().unwrap()), word(b"elt\0\0\0\0\0")]), Some(10));
        assert_eq!(text(&[2, word(b"\xc3(......")]), None);
        assert_eq!(text(&[1, word(b"\xc3\xbc\0\0\0\0\0\0")]), None, "a character is cut");
        assert_eq!(text(&[9, 0]), None);
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
