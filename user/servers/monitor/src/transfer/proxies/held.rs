//! Copies of this core's capabilities that are held for other cores: their calls and signals are made with these.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_abi::power::identity;

use super::HELD;
use crate::message::carried::{ObjectClass, PROCESSES, Server};

/// A held copy of a capability.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub slot: CapAddress,
    pub class: ObjectClass,
    pub to: u64,
    pub badge: u64,
    pub server: Option<Server>,
    /// Set if the capability is to a proxy.
    pub is_proxy: bool,
}

impl Held {
    /// Returns whether the capability is to the process server.
    fn asks_processes(&self) -> bool {
        self.server.is_some_and(|server| server.number == PROCESSES)
    }
}

/// All held copies, by number.
pub(super) struct Holdings {
    all: BTreeMap<u64, Held>,
    /// Number of copies for each core.
    counts: BTreeMap<u64, usize>,
    /// Processes that have one way fewer to reach the process server, an entry for each such loss.
    parted: Vec<u64>,
    /// The last number assigned.
    last: u64,
}

impl Holdings {
    /// Returns an empty set.
    pub const fn new() -> Holdings {
        Holdings { all: BTreeMap::new(), counts: BTreeMap::new(), parted: Vec::new(), last: 0 }
    }

    /// Returns whether one more copy may be held for a core.
    pub fn has_capacity(&self, to: u64) -> bool {
        self.counts.get(&to).is_none_or(|count| *count < HELD)
    }

    /// Adds a copy. Returns its number.
    pub fn hold(&mut self, held: Held) -> u64 {
        *self.counts.entry(held.to).or_default() += 1;
        self.last += 1;
        self.all.insert(self.last, held);
        self.last
    }

    /// Returns the copy of a number.
    pub fn at(&self, number: u64) -> Option<&Held> {
        self.all.get(&number)
    }

    /// Returns the copy of a number, if it is held for this core.
    pub fn held_for(&self, core: u64, number: u64) -> Option<&Held> {
        self.at(number).filter(|held| held.to == core)
    }

    /// Removes a copy. Its slot becomes the caller's.
    pub fn let_go(&mut self, number: u64) -> Option<Held> {
        let held = self.all.remove(&number)?;
        if let Some(count) = self.counts.get_mut(&held.to) {
            *count -= 1;
        }
        if held.asks_processes() {
            self.parted.push(identity(held.badge));
        }
        Some(held)
    }

    /// Removes a copy that the core no longer needs.
    pub fn release(&mut self, core: u64, number: u64) -> Option<Held> {
        self.held_for(core, number)?;
        self.let_go(number)
    }

    /// Returns the numbers of the copies held for a core.
    pub fn numbers(&self, core: u64) -> Vec<u64> {
        self.all.iter().filter(|(_, held)| held.to == core).map(|(number, _)| *number).collect()
    }

    /// Removes the count of a stopped core.
    pub fn lose(&mut self, core: u64) {
        self.counts.remove(&core);
    }

    /// Returns a process that has one way fewer to reach this core's process server.
    pub fn parted(&mut self) -> Option<u64> {
        self.parted.pop()
    }

    /// Returns whether there may be such a process.
    pub const fn has_parted(&self) -> bool {
        !self.parted.is_empty()
    }

    /// Queues such a process again.
    pub fn put_back(&mut self, process: u64) {
        self.parted.push(process);
    }

    /// Returns the number of copies.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}
