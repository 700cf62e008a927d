//! Places of a server's table, shared among its clients.
//!
//! A table has so many places in all. If the first who asks could have them all, one client would shut out every other; and a
//! fixed share for each would be small for the many times when hardly anybody asks. So what is free decides:
//!
//! > A client may take one more place while it has fewer than are free.
//!
//! Alone it gets half of the table; `n` that want everything at the same time get one part in `n + 1` each, and as much stays free;
//! if they come one after another, each gets half of what the others left. A client that has nothing is refused only when nothing
//! is free at all. The rule needs to know no more than how many places each client has, which is all that is kept here.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

use alloc::collections::BTreeMap;

/// Whether a client that has `own` of `limit` places, of which `taken` are taken in all, may take one more.
pub const fn allows(own: usize, taken: usize, limit: usize) -> bool {
    own < limit.saturating_sub(taken)
}

/// How many places each client has.
#[derive(Clone, Debug)]
pub struct Places {
    limit: usize,
    taken: usize,
    /// Only clients that have some.
    held: BTreeMap<u64, usize>,
}

impl Places {
    /// So many places, all free.
    pub const fn new(limit: usize) -> Places {
        Places { limit, taken: 0, held: BTreeMap::new() }
    }

    /// Places that are taken.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Places that a client has.
    pub fn held(&self, client: u64) -> usize {
        self.held.get(&client).copied().unwrap_or(0)
    }

    /// Whether a client may take one more.
    pub fn may_take(&self, client: u64) -> bool {
        allows(self.held(client), self.taken, self.limit)
    }

    /// A client has one more, whether it [may](Self::may_take) or not: a server that is started again finds what there is.
    pub fn take(&mut self, client: u64) {
        self.taken += 1;
        *self.held.entry(client).or_default() += 1;
    }

    /// A client has one less. If it has none, nothing happens.
    pub fn give_back(&mut self, client: u64) {
        let Some(held) = self.held.get_mut(&client) else { return };
        *held -= 1;
        if *held == 0 {
            self.held.remove(&client);
        }
        self.taken -= 1;
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        assert_eq!(self.held.values().sum::<usize>(), self.taken, "what is taken, somebody has");
        assert!(self.held.values().all(|held| *held > 0), "who has nothing is not remembered");
    }
}
