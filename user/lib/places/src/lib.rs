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
    /// Taken, and nobody's any more.
    left: usize,
    /// Only clients that have some.
    held: BTreeMap<u64, usize>,
}

impl Places {
    /// So many places, all free.
    pub const fn new(limit: usize) -> Places {
        Places { limit, taken: 0, left: 0, held: BTreeMap::new() }
    }

    /// Places that there are.
    pub const fn limit(&self) -> usize {
        self.limit
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

    /// Whether a client may take so many more, one after another. None are always possible.
    pub fn may_take_all(&self, client: u64, count: usize) -> bool {
        // Each is harder to get than the one before.
        let Some(before) = count.checked_sub(1) else { return true };
        allows(self.held(client) + before, self.taken + before, self.limit)
    }

    /// A client has one more, whether it [may](Self::may_take) or not: a server that is started again finds what there is.
    pub fn take(&mut self, client: u64) {
        self.taken += 1;
        *self.held.entry(client).or_default() += 1;
    }

    /// A client has one less. If it has none, it is one of those that were [left](Self::leave); if there are none either,
    /// nothing happens.
    pub fn give_back(&mut self, client: u64) {
        if let Some(held) = self.held.get_mut(&client) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&client);
            }
        } else if self.left > 0 {
            self.left -= 1;
        } else {
            return;
        }
        self.taken -= 1;
    }

    /// A client is gone. What it has stays taken, and is nobody's.
    pub fn leave(&mut self, client: u64) {
        self.left += self.held.remove(&client).unwrap_or(0);
    }

    /// So many places of a client are another's from now on, whether that one may have them or not. Of more than the first has,
    /// only as many as it has.
    pub fn pass(&mut self, from: u64, to: u64, count: usize) {
        let Some(held) = self.held.get_mut(&from) else { return };
        let count = count.min(*held);
        *held -= count;
        if *held == 0 {
            self.held.remove(&from);
        }
        if count > 0 {
            *self.held.entry(to).or_default() += count;
        }
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        assert_eq!(self.held.values().sum::<usize>() + self.left, self.taken, "what is taken, somebody has or left");
        assert!(self.held.values().all(|held| *held > 0), "who has nothing is not remembered");
    }
}
