//! Registered names in memory that stays when the server is started again.
//!
//! ```text
//! entry: 34 words
//! 0   1 + the badge, without powers, of who registered the name; 0: the entry is free. Written last, and cleared first.
//! 1   bytes of the name
//! 2…  the name
//! ```
//! The capability of an entry lies in the kept slot with the entry's number.

use tench::server::Lasting;
use tench_names_client::protocol::MAX_NAME;
use tench_places::Client;
use tench_protocol::{ArrayString, Powers};

/// Words of an entry.
const ENTRY: usize = 2 + (MAX_NAME + 1) / 8;

/// A name that was registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The entry's number.
    pub number: u32,
    /// Who registered it.
    pub owner: Client,
    /// The name.
    pub name: ArrayString<MAX_NAME>,
}

/// The entries.
pub struct Journal<M> {
    memory: M,
    /// Entries that can be used.
    count: u32,
    /// No entry before this one is free.
    lowest: u32,
}

impl<M: Lasting> Journal<M> {
    /// The entries in this memory, at most `limit`.
    pub fn new(memory: M, limit: u32) -> Journal<M> {
        let count = limit.min((memory.size() / ENTRY) as u32);
        Journal { memory, count, lowest: 0 }
    }

    /// Entries that can be used.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// What an entry says; `None` if it is free or no entry.
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

    /// The first free entry. It is not looked for where there has been none before.
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
