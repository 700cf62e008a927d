//! Sets of open files that are watched, and whose events are read.
//!
//! An entry watches what its file's events come with. When that happens, the entry is *touched*; whoever reads events
//! asks the touched entries' files, and nobody else's, however many are watched.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::descriptors::DescriptionId;
use crate::waiting::{EntryId, Key};
use crate::{Machine, System};

/// An open file that is watched.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The descriptor by which the file was named.
    pub descriptor: u32,
    /// The file.
    pub description: DescriptionId,
    /// The events that are wanted, with flags.
    pub events: u32,
    /// A number that is read with the events.
    pub data: u64,
    /// Everything that the events come with.
    pub keys: Vec<Key>,
}

/// A set of open files that are watched.
#[derive(Debug, Default)]
pub struct Epoll {
    /// The entries by their numbers.
    entries: BTreeMap<u32, Entry>,
    /// The entries' numbers by file and descriptor.
    numbers: BTreeMap<(DescriptionId, u32), u32>,
    /// The number of the next entry.
    next: u32,
}

impl Epoll {
    /// Returns the number of an entry.
    pub fn find(&self, descriptor: u32, description: DescriptionId) -> Option<u32> {
        self.numbers.get(&(description, descriptor)).copied()
    }

    /// Returns an entry.
    pub fn get(&mut self, number: u32) -> Option<&mut Entry> {
        self.entries.get_mut(&number)
    }

    /// Adds an entry. Returns its number.
    pub fn add(&mut self, entry: Entry) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.numbers.insert((entry.description, entry.descriptor), number);
        self.entries.insert(number, entry);
        number
    }

    /// Removes an entry.
    pub fn remove(&mut self, number: u32) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.numbers.remove(&(entry.description, entry.descriptor));
        Some(entry)
    }

    /// Returns the numbers of all entries of a file.
    pub fn numbers_of(&self, file: DescriptionId) -> Vec<u32> {
        self.numbers.range((file, 0)..=(file, u32::MAX)).map(|(_, number)| *number).collect()
    }

    /// Returns all entries.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}

impl<M: Machine> System<M> {
    /// Removes the entry of an `epoll`, if it is there.
    pub(crate) fn remove_entry(&mut self, id: EntryId, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.waiters.watch(id, &entry.keys, false);
            self.waiters.touched.remove(id);
            self.descriptions.get(entry.description).watchers -= 1;
        }
    }

    /// Ends the watching of an open file that is about to be closed.
    pub(crate) fn end_watching(&mut self, description: DescriptionId) {
        self.end_owner(description);
        let mut removed = Vec::new();
        for (epoll, set) in self.specials.epolls() {
            for entry in set.numbers_of(description) {
                removed.push((EntryId { epoll, entry }, set.remove(entry)));
            }
        }
        for (id, entry) in removed {
            self.remove_entry(id, entry);
        }
    }

    /// Ends an `epoll` with all its entries.
    pub(crate) fn end_epoll(&mut self, number: u32, mut epoll: Epoll) {
        for (entry, removed) in core::mem::take(&mut epoll.entries) {
            self.remove_entry(EntryId { epoll: number, entry }, Some(removed));
        }
        self.waiters.touched.forget(number);
    }
}
