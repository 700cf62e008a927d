//! What the terminal is sent of what ordinary programs write: text, and nothing that a terminal obeys.
//!
//! A terminal carries out what follows an escape character, or a control character beyond ASCII: it moves, deletes what
//! others have written, answers questions as if somebody had typed. So of a program without the power for that only
//! characters reach it, with the end of the line, tabulator, carriage return and backspace. Control characters are
//! shown as `^[`, what is no UTF-8 and the control characters from U+0080 on as U+FFFD.
//!
//! A character may come in several writes, with those of other programs between them. Its bytes wait here until it is
//! whole: a terminal would take them together with what comes next, whoever wrote that. Where they wait is shared by
//! families ([`allows`]): who has no place more takes that of his family's oldest beginning, and the oldest of all if
//! his family has none. So nobody keeps others out, not even with the beginnings of processes that have ended.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use tench_places::{Client, allows};
use tench_protocol::ArrayVec;

/// The beginning of a character: at most three bytes, of the four of the longest.
pub type Beginning = ArrayVec<u8, 3>;

/// Processes of which the beginning of a character can wait.
const MAX_BEGINNINGS: usize = 64;

/// What waits to become whole characters.
pub struct Plain {
    /// The oldest first.
    beginnings: Vec<(Client, Beginning)>,
}

impl Default for Plain {
    fn default() -> Plain {
        Plain { beginnings: Vec::with_capacity(MAX_BEGINNINGS) }
    }
}

impl Plain {
    /// Returns what is shown of the text that a process writes, and the beginning of a character at its end, which is
    /// to be [kept](Self::keep) if the text is accepted.
    pub fn show<'t>(&self, process: u64, text: &'t [u8]) -> (Cow<'t, [u8]>, Beginning) {
        let beginning = self.beginnings.iter().find(|(known, _)| known.process == process);
        if beginning.is_none() && text.iter().all(|byte| is_plain(*byte)) {
            return (Cow::Borrowed(text), Beginning::new());
        }
        let mut bytes = beginning.map_or_else(Vec::new, |(_, bytes)| bytes.to_vec());
        bytes.extend_from_slice(text);
        let (mut shown, mut left) = (Vec::with_capacity(bytes.len()), Beginning::new());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|character| show_character(character, &mut shown));
            match chunk.invalid() {
                [] => {}
                invalid if chunks.peek().is_none() && is_beginning(invalid) => {
                    left = invalid.iter().copied().collect();
                }
                _ => show_character(char::REPLACEMENT_CHARACTER, &mut shown),
            }
        }
        (Cow::Owned(shown), left)
    }

    /// Keeps the beginning of a character of a process, in the place of what was kept of it before.
    pub fn keep(&mut self, client: Client, beginning: Beginning) {
        let place = self.beginnings.iter().position(|(known, _)| known.process == client.process);
        match (place, beginning.is_empty()) {
            (Some(place), true) => drop(self.beginnings.remove(place)),
            (Some(place), false) => self.beginnings[place].1 = beginning,
            (None, true) => {}
            (None, false) => {
                self.make_room(client.family);
                self.beginnings.push((client, beginning));
            }
        }
    }

    /// Sees to it that there is a place for one more of a family.
    fn make_room(&mut self, family: u64) {
        let is_its = |(client, _): &(Client, Beginning)| client.family == family;
        let own = self.beginnings.iter().filter(|kept| is_its(kept)).count();
        if !allows(own, self.beginnings.len(), MAX_BEGINNINGS) {
            let oldest = self.beginnings.iter().position(is_its).unwrap_or(0);
            self.beginnings.remove(oldest);
        }
    }

    /// A process has ended: nothing will become whole any more.
    pub fn forget(&mut self, process: u64) {
        self.beginnings.retain(|(known, _)| known.process != process);
    }
}

/// Returns whether a byte is a character that is shown as it is, whatever stands before it.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r' | 8)
}

/// Returns whether a character may still become of these bytes at the end of a text.
fn is_beginning(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Appends what is shown of a character.
fn show_character(character: char, shown: &mut Vec<u8>) {
    match character {
        '\n' | '\t' | '\r' | '\u{8}' => shown.push(character as u8),
        '\0'..='\u{1f}' | '\u{7f}' => shown.extend([b'^', character as u8 ^ 0x40]),
        '\u{80}'..='\u{9f}' => show_character(char::REPLACEMENT_CHARACTER, shown),
        _ => shown.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}
