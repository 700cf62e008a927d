//! The journal of registered names, in memory that persists when the server is restarted.
//!
//! ```text
//! word 0: how many entries have ever been used, so that a server which begins need not look at the others
//!
//! entry: 34 words
//! 0   1 + the registrant's badge, without powers; 0: the entry is free. Written last, and cleared first.
//! 1   bytes of the name
//! 2…  the name
//! ```
//! The capability of an entry is in the persistent slot with the entry's number. From the number in word 0 on, entries
//! are free and slots empty.

use tench::server::Lasting;
use tench_names_interface::protocol::MAX_NAME;
use tench_protocol::{ArrayString, Powers};
use tench_quota::Client;

/// Index of the word that says how many entries have ever been used.
const USED: usize = 0;
/// Number of words of an entry.
const ENTRY: usize = 2 + (MAX_NAME + 1) / 8;

/// Returns the index of the first word of an entry.
const fn place(number: u32) -> usize {
    USED + 1 + number as usize * ENTRY
}

/// A registered name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Number of the entry.
    pub number: u32,
    /// The registrant.
    pub owner: Client,
    /// The name.
    pub name: ArrayString<MAX_NAME>,
}

/// The entries.
pub struct Journal<M> {
    memory: M,
    /// Number of usable entries.
    count: u32,
    /// No entry before this one is free.
    lowest: u32,
}

impl<M: Lasting> Journal<M> {
    /// Returns the journal in this memory, with at most `limit` entries.
    pub fn new(memory: M, limit: u32) -> Journal<M> {
        let count = limit.min((memory.size().saturating_sub(place(0)) / ENTRY) as u32);
        Journal { memory, count, lowest: 0 }
    }

    /// Returns the number of usable entries.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns how many entries can have a name or a capability: all others have a higher number.
    pub fn used(&self) -> u32 {
        if self.count == 0 { 0 } else { self.memory.read(USED).min(u64::from(self.count)) as u32 }
    }

    /// Returns an entry's content; `None` if it is free or invalid.
    pub fn entry(&self, number: u32) -> Option<Kept> {
        let at = place(number);
        let owner = Client::of_badge(self.memory.read(at).checked_sub(1)?);
        let length = usize::try_from(self.memory.read(at + 1)).ok().filter(|length| (1..=MAX_NAME).contains(length))?;
        let mut bytes = [0; MAX_NAME + 1];
        for (index, chunk) in bytes.chunks_exact_mut(8).enumerate() {
            chunk.copy_from_slice(&self.memory.read(at + 2 + index).to_le_bytes());
        }
        let name = core::str::from_utf8(&bytes[..length]).ok()?;
        Some(Kept { number, owner, name: ArrayString::from(name).ok()? })
    }

    /// Returns the first free entry, which counts as used from now on. The search starts at `lowest`.
    pub fn free_entry(&mut self) -> Option<u32> {
        let is_free = |number: &u32| self.memory.read(place(*number)) == 0;
        let found = (self.lowest..self.count).find(is_free);
        self.lowest = found.unwrap_or(self.count);
        if found.is_some_and(|number| number >= self.used()) {
            self.memory.write(USED, u64::from(self.lowest) + 1);
        }
        found
    }

    /// Writes an entry.
    pub fn write(&mut self, number: u32, owner: Client, name: &str) {
        let at = place(number);
        self.memory.write(at + 1, name.len() as u64);
        for (index, chunk) in name.as_bytes().chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.memory.write(at + 2 + index, u64::from_le_bytes(word));
        }
        self.memory.write(at, owner.badge(Powers::empty()) + 1);
    }

    /// Frees an entry.
    pub fn clear(&mut self, number: u32) {
        self.memory.write(place(number), 0);
        self.lowest = self.lowest.min(number);
    }
}
