//! What is held for other cores: copies of capabilities of this one, with which their requests are made and their
//! signals given.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_abi::power::identity;

use super::{HELD, PROCESSES, Server, What};

/// A copy of a capability of this core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub slot: CapAddress,
    pub what: What,
    pub to: u64,
    pub badge: u64,
    pub server: Option<Server>,
    /// It is a proxy.
    pub is_proxy: bool,
}

impl Held {
    /// Whether it is to the process server.
    fn asks_processes(&self) -> bool {
        self.server.is_some_and(|server| server.number == PROCESSES)
    }
}

/// All of them, by number.
pub(super) struct Holdings {
    all: BTreeMap<u64, Held>,
    /// How many for each core.
    counts: BTreeMap<u64, usize>,
    /// Processes that have one way less to ask the process server: once for each.
    parted: Vec<u64>,
    /// The last number under which something was held.
    last: u64,
}

impl Holdings {
    /// None.
    pub const fn new() -> Holdings {
        Holdings { all: BTreeMap::new(), counts: BTreeMap::new(), parted: Vec::new(), last: 0 }
    }

    /// Whether one more may be held for a core.
    pub fn has_room(&self, to: u64) -> bool {
        self.counts.get(&to).is_none_or(|count| *count < HELD)
    }

    /// Holds something. Answers under which number.
    pub fn hold(&mut self, held: Held) -> u64 {
        *self.counts.entry(held.to).or_default() += 1;
        self.last += 1;
        self.all.insert(self.last, held);
        self.last
    }

    /// What is held under a number.
    pub fn at(&self, number: u64) -> Option<&Held> {
        self.all.get(&number)
    }

    /// The same, if it is for this core.
    pub fn held_for(&self, core: u64, number: u64) -> Option<&Held> {
        self.at(number).filter(|held| held.to == core)
    }

    /// Holds it no longer. Its slot is whoever's who asks.
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

    /// The same because the core does not need it any more.
    pub fn release(&mut self, core: u64, number: u64) -> Option<Held> {
        self.held_for(core, number)?;
        self.let_go(number)
    }

    /// The numbers of what is held for a core.
    pub fn numbers(&self, core: u64) -> Vec<u64> {
        self.all.iter().filter(|(_, held)| held.to == core).map(|(number, _)| *number).collect()
    }

    /// Nothing is held for a core any more.
    pub fn lose(&mut self, core: u64) {
        self.counts.remove(&core);
    }

    /// A process that has one way less to ask this core's process server.
    pub fn parted(&mut self) -> Option<u64> {
        self.parted.pop()
    }

    /// Whether there may be any.
    pub const fn has_parted(&self) -> bool {
        !self.parted.is_empty()
    }

    /// It is to be dealt with later.
    pub fn put_back(&mut self, process: u64) {
        self.parted.push(process);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}
