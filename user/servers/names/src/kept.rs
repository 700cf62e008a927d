//! The journal of registered names, in memory that persists when the server is restarted.
//!
//! ```text
//! entry: 34 words
//! 0   1 + the registrant's badge, without powers; 0: the entry is free. Written last, and cleared first.
//! 1   bytes of the name
//! 2…  the name
//! ```
//! The capability of an entry is in the persistent slot with the entry's number.

use tench::server::Lasting;
use tench_names_interface::protocol::MAX_NAME;
use tench_protocol::{ArrayString, Powers};
use tench_quota::Client;

/// Number of words of an entry.
const ENTRY: usize = 2 + (MAX_NAME + 1) / 8;

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
        let count = limit.min((memory.size() / ENTRY) as u32);
        Journal { memory, count, lowest: 0 }
    }

    /// Returns the number of usable entries.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns an entry's content; `None` if it is free or invalid.
    pub fn entry(&self, number: u32) -> Option<Kept> {
        let at = number as usize * ENTRY;
        let owner = Client::of_badge(self.memory.read(at).checked_sub(1)?);
        let length = usize::try_from(self.memory.read(at + 1)).ok().filter(|length| (1..=MAX_NAME).contains(length))?;
        let mut bytes = [0; MAX_NAME + 1];
        for (index, chunk) in bytes.chunks_exact_mut(8).enumerate() {
            chunk.copy_from_slice(&self.memory.read(at + 2 + index).to_le_bytes());
        }
        let name = core::str::from_utf8(&bytes[..length]).ok()?;
        Some(Kept { number, owner, name: ArrayString::from(name).ok()? })
    }

    /// Returns the first free entry. The search starts at `lowest`.
    pub fn free_entry(&mut self) -> Option<u32> {
        let is_free = |number: &u32| self.memory.read(*number as usize * ENTRY) == 0;
        let found = (self.lowest..self.count).find(is_free);
        self.lowest = found.unwrap_or(self.count);
        found
    }

    /// Writes an entry.
    pub fn write(&mut self, number: u32, owner: Client, name: &str) {
        let at = number as usize * ENTRY;
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
        self.memory.write(number as usize * ENTRY, 0);
        self.lowest = self.lowest.min(number);
    }
}
