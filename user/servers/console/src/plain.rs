//! The filter for the output of ordinary programs: it passes text, and nothing that a terminal interprets.
//!
//! A terminal interprets what follows an escape character, or a control character beyond ASCII: it moves the cursor,
//! deletes other programs' text, or sends replies as if they had been typed. So from a program without the power for
//! that only characters reach it, with the end of the line, tabulator, carriage return and backspace. Control
//! characters are shown as `^[`; invalid UTF-8 and the control characters from U+0080 on are shown as U+FFFD.
//!
//! A character may come in several writes, with those of other programs between them. Its bytes are held here until it
//! is complete: a terminal would combine them with the next bytes, whichever program wrote those. The entries for this
//! are shared by families ([`allows`]): a family that has used up its quota replaces its own oldest entry, or the
//! oldest of all if it has none. So no family can keep others out, not even with entries of processes that have ended.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use tench_protocol::ArrayVec;
use tench_quota::{Client, allows};

/// Beginning of a character: at most three of the four bytes of the longest.
pub type Beginning = ArrayVec<u8, 3>;

/// Maximum number of processes of which an incomplete character is held.
const MAX_BEGINNINGS: usize = 64;

/// The incomplete characters.
pub struct Plain {
    /// Entries, oldest first.
    beginnings: Vec<(Client, Beginning)>,
}

impl Default for Plain {
    fn default() -> Plain {
        Plain { beginnings: Vec::with_capacity(MAX_BEGINNINGS) }
    }
}

impl Plain {
    /// Returns what is shown of the text that a process writes, and the incomplete character at its end, which is to be
    /// [kept](Self::keep) if the text is accepted.
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

    /// Stores a process's incomplete character, in place of the one before.
    pub fn keep(&mut self, client: Client, beginning: Beginning) {
        let place = self.beginnings.iter().position(|(known, _)| known.process == client.process);
        match (place, beginning.is_empty()) {
            (Some(place), true) => drop(self.beginnings.remove(place)),
            (Some(place), false) => self.beginnings[place].1 = beginning,
            (None, true) => {}
            (None, false) => {
                self.drop_oldest(client.family);
                self.beginnings.push((client, beginning));
            }
        }
    }

    /// Makes room for one more entry of a family.
    fn drop_oldest(&mut self, family: u64) {
        let is_its = |(client, _): &(Client, Beginning)| client.family == family;
        let own = self.beginnings.iter().filter(|kept| is_its(kept)).count();
        if !allows(own, self.beginnings.len(), MAX_BEGINNINGS) {
            let oldest = self.beginnings.iter().position(is_its).unwrap_or(0);
            self.beginnings.remove(oldest);
        }
    }

    /// Drops the incomplete character of an ended process.
    pub fn forget(&mut self, process: u64) {
        self.beginnings.retain(|(known, _)| known.process != process);
    }
}

/// Returns whether a byte is a character that is shown as it is, whatever is before it.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r' | 8)
}

/// Returns whether these bytes at the end of a text may be the beginning of a character.
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
