//! Messages: building one to send, and reading a received one.
//!
//! [`Message`] and [`Received`] hold up to 64 words and 4 capabilities. Only the words in use are accessed, and the
//! first eight, which always travel in registers. For messages of up to eight words an endpoint has the shorter `call0`
//! to `call8`, which return [`Words`].

use tench_abi::message::{IpcBuffer, MAX_CAPS, MAX_WORDS, REGISTER_WORDS};
use tench_abi::{CapAddress, Tag};

use crate::block;
use crate::raw::ResultRegisters;
pub use crate::reader::Reader;
use crate::word_buffer::WordBuffer;

/// A message to send.
///
/// Adding too many words or capabilities is no error here: sending such a message fails with `MessageTooLong`.
#[derive(Clone, Debug)]
pub struct Message {
    /// Label, length and number of capabilities, as the kernel takes them.
    tag: Tag,
    words: WordBuffer,
    caps: [u32; MAX_CAPS],
}

impl Message {
    /// Returns a message without words. The label is cut to 48 bits.
    #[inline]
    pub const fn new(label: u64) -> Message {
        Message { tag: Tag::new(label, 0), words: WordBuffer::new(), caps: [0; MAX_CAPS] }
    }

    /// Resets this to a message without words. The old contents are dropped without being overwritten.
    #[inline(always)]
    pub const fn restart(&mut self, label: u64) {
        self.tag = Tag::new(label, 0);
    }

    /// Returns a message with these words.
    #[inline]
    pub fn with_words(label: u64, words: &[u64]) -> Message {
        let mut message = Message::new(label);
        message.extend(words);
        message
    }

    /// Appends a word.
    #[inline]
    pub fn push(&mut self, word: u64) -> &mut Message {
        self.words.write(self.length(), word);
        self.lengthen(1);
        self
    }

    /// Adds to the length the number of words that were appended.
    #[inline(always)]
    fn lengthen(&mut self, words: usize) {
        // The length stops at one more than fits, so that the kernel refuses the message and the bits above stay as
        // they are.
        let length = self.length();
        self.tag.0 += ((length + words).min(MAX_WORDS + 1) - length) as u64;
    }

    /// Appends words.
    #[inline]
    pub fn extend(&mut self, words: &[u64]) -> &mut Message {
        for word in words {
            self.push(*word);
        }
        self
    }

    /// Appends text: a word with its length in bytes, then its bytes, eight to a word, the first in the lowest bits.
    pub fn push_text(&mut self, text: &[u8]) -> &mut Message {
        self.push(text.len() as u64);
        let words = self.words.write_bytes(self.length(), text);
        self.lengthen(words);
        self
    }

    /// Attaches a copy of a capability.
    #[inline]
    pub fn copy_cap(&mut self, cap: impl Into<CapAddress>) -> &mut Message {
        self.push_cap(cap.into().0)
    }

    /// Attaches a capability, which leaves its slot when the message is received.
    #[inline]
    pub fn move_cap(&mut self, cap: impl Into<CapAddress>) -> &mut Message {
        self.push_cap(cap.into().0 | IpcBuffer::MOVE)
    }

    #[inline]
    fn push_cap(&mut self, cap: u32) -> &mut Message {
        let count = self.tag.caps();
        if let Some(place) = self.caps.get_mut(count) {
            *place = cap;
        }
        self.tag = self.tag.with_caps((count + 1).min(MAX_CAPS + 1));
        self
    }

    /// Returns the label: the subject of the message.
    pub const fn label(&self) -> u64 {
        self.tag.label()
    }

    /// Returns the number of words so far.
    #[inline(always)]
    pub const fn length(&self) -> usize {
        self.tag.length()
    }

    /// Returns the message's tag.
    #[inline]
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// Returns the words that travel in registers.
    #[inline(always)]
    pub(crate) const fn registers(&self) -> &[u64; REGISTER_WORDS] {
        self.words.registers()
    }

    /// Returns all words that fit into a message.
    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: `push` and `push_text` have written all words below the length.
        unsafe { self.words.first(self.length().min(MAX_WORDS)) }
    }

    /// Puts everything that does not travel in registers into the IPC buffer.
    #[inline]
    pub(crate) fn stage(&self) {
        if !self.tag.is_in_registers() {
            self.stage_rest();
        }
    }

    #[inline(never)]
    fn stage_rest(&self) {
        if self.length() > REGISTER_WORDS {
            block::write_words(&self.words()[REGISTER_WORDS..]);
        }
        if self.tag.caps() > 0 {
            block::write_caps(&self.caps[..self.tag.caps().min(MAX_CAPS)]);
        }
    }
}

/// A capability attached to a message: a copy, or the capability itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried(u32);

impl Carried {
    /// Returns a capability to be copied.
    pub const fn copy(cap: CapAddress) -> Carried {
        Carried(cap.0)
    }

    /// Returns a capability to be moved, which leaves its slot when the message is received.
    pub const fn moved(cap: CapAddress) -> Carried {
        Carried(cap.0 | IpcBuffer::MOVE)
    }
}

impl Message {
    /// Attaches a capability.
    #[inline]
    pub fn carry(&mut self, cap: Carried) -> &mut Message {
        self.push_cap(cap.0)
    }
}

/// Puts the capabilities of a message to be sent into the IPC buffer.
#[inline]
pub(crate) fn stage_caps(caps: &[Carried]) {
    // They are stored in the form in which the kernel takes them, a number each.
    let mut numbers = [0; MAX_CAPS];
    numbers.iter_mut().zip(caps).for_each(|(number, cap)| *number = cap.0);
    block::write_caps(&numbers[..caps.len().min(MAX_CAPS)]);
}

/// A received message of at most eight words, or the first eight of a longer one.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The message's tag.
    pub tag: Tag,
    /// Badge of the capability with which the message was sent.
    pub badge: u64,
    /// The words; those beyond the length are 0.
    pub words: [u64; REGISTER_WORDS],
}

impl Words {
    /// Returns the label: the subject of the message.
    #[inline]
    pub const fn label(&self) -> u64 {
        self.tag.label()
    }
}

impl Words {
    /// Returns the slots of the capabilities received with the message. Call it once, before receiving the next
    /// message.
    #[inline]
    pub fn take_caps(&self) -> [CapAddress; MAX_CAPS] {
        if self.tag.caps() > 0 { block::take_slots(self.tag.caps()) } else { [CapAddress::NULL; MAX_CAPS] }
    }
}

impl From<ResultRegisters> for Words {
    #[inline(always)]
    fn from(result: ResultRegisters) -> Words {
        Words { tag: result.tag(), badge: result.badge, words: result.words }
    }
}

/// A received message, or a received signal ([`is_notification`](Received::is_notification)).
#[derive(Clone, Debug)]
pub struct Received {
    tag: Tag,
    badge: u64,
    words: WordBuffer,
    caps: [CapAddress; MAX_CAPS],
}

impl Received {
    /// Returns an empty buffer for a message: one without words, until something is received into it.
    #[inline]
    pub const fn new() -> Received {
        Received { tag: Tag::new(0, 0), badge: 0, words: WordBuffer::new(), caps: [CapAddress::NULL; MAX_CAPS] }
    }

    /// Returns the message in the registers and the IPC buffer.
    #[inline]
    pub(crate) fn take(result: &ResultRegisters) -> Received {
        let mut received = Received::new();
        received.fill(result);
        received
    }

    /// Replaces this message by the one in the registers and the IPC buffer, writing only what the new message has.
    #[inline]
    pub(crate) fn fill(&mut self, result: &ResultRegisters) {
        *self.registers_mut() = result.words;
        self.complete(result.tag(), result.badge);
    }

    /// Returns the buffer of the words that travel in registers.
    #[inline(always)]
    pub(crate) const fn registers_mut(&mut self) -> &mut [u64; REGISTER_WORDS] {
        self.words.registers_mut()
    }

    /// Completes a message whose register words are here with everything that did not travel in registers.
    #[inline(always)]
    pub(crate) fn complete(&mut self, tag: Tag, badge: u64) {
        if !tag.is_in_registers() {
            self.complete_rest(tag);
        }
        // Set last, because the tag says which words have been written. There are never more than fit.
        (self.tag, self.badge) = (tag, badge);
    }

    #[inline(never)]
    fn complete_rest(&mut self, tag: Tag) {
        assert!(tag.length() <= MAX_WORDS, "the kernel delivers no longer messages");
        if tag.length() > REGISTER_WORDS {
            block::read_words(self.words.beyond_registers(tag.length()));
        }
        if tag.caps() > 0 {
            self.caps = block::take_slots(tag.caps());
        }
    }

    /// Returns a message as it would be received if it were sent, with the capabilities in their old slots. For tests
    /// of protocols, and for ways of sending that do not use the kernel.
    pub fn from_message(message: &Message, badge: u64) -> Received {
        let caps = message.caps.map(|cap| CapAddress(cap & !IpcBuffer::MOVE));
        let tag = Tag(message.tag().0 & !0xff | message.length().min(MAX_WORDS) as u64);
        Received { tag, badge, words: message.words.clone(), caps }
    }

    /// Returns the message's tag.
    #[inline]
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// Returns the label: the subject of the message.
    #[inline]
    pub const fn label(&self) -> u64 {
        self.tag.label()
    }

    /// Returns the badge of the capability with which the message was sent; for a signal, its word.
    #[inline]
    pub const fn badge(&self) -> u64 {
        self.badge
    }

    /// Returns whether this is the word of the bound notification and not a message.
    #[inline]
    pub const fn is_notification(&self) -> bool {
        self.tag.is_notification()
    }

    /// Returns whether the kernel wrote this message on behalf of a thread that faulted.
    #[inline]
    pub const fn is_fault(&self) -> bool {
        self.tag.is_kernel()
    }

    /// Returns the words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        // SAFETY: `complete` sets a tag with a length after the first eight words and all below the length were
        // written; `from_message` sets it for a copy of a message whose words below the length are all written. Both
        // limit the length to the words that exist.
        unsafe { self.words.first(self.tag.length()) }
    }

    /// Returns word `index`, or 0 if the message is shorter.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.words().get(index).copied().unwrap_or(0)
    }

    /// Returns the slots of the capabilities received with the message.
    #[inline]
    pub fn caps(&self) -> &[CapAddress] {
        &self.caps[..self.tag.caps().min(MAX_CAPS)]
    }

    /// Returns a reader of the words.
    #[inline]
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self.words())
    }
}

impl Default for Received {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a message of at most eight words as its receiver would see it.
    fn arrive(message: &Message) -> Received {
        let tag = message.tag();
        Received::take(&ResultRegisters { code: 0, first: tag.0, words: *message.registers(), badge: 7 })
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
    fn a_message_replaces_another() {
        let mut room = Received::new();
        assert!(room.words().is_empty() && room.caps().is_empty() && !room.is_notification());
        for words in [&[1, 2, 3][..], &[4], &[], &[5, 6, 7, 8, 9, 10, 11, 12]] {
            let mut message = Message::with_words(9, &[90; 12]);
            message.restart(words.len() as u64);
            message.extend(words);
            room.fill(&ResultRegisters { code: 0, first: message.tag().0, words: *message.registers(), badge: 3 });
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
    fn long_messages_are_split_between_registers_and_buffer() {
        let words: [u64; MAX_WORDS] = core::array::from_fn(|index| index as u64);
        let message = Message::with_words(1, &words);
        assert_eq!(message.tag().length(), MAX_WORDS);
        assert_eq!(message.registers()[..], words[..REGISTER_WORDS]);
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
        assert_eq!(message.caps[..2], [20, 21 | IpcBuffer::MOVE]);
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
}
