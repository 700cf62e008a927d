//! Places of a server's table, shared among its clients.
//!
//! A table has so many places in all. If the first who asks could have them all, one client would shut out every other;
//! and a fixed share for each would be small for the many times when hardly anybody asks. So what is free decides. And
//! because a process starts others, it is not the process that counts but its [family](tench_abi::power::family):
//!
//! > A client may take one more place while its family has fewer than are free.
//!
//! Alone, a family gets half of the table; `n` that want everything at the same time get one part in `n + 1` each, and
//! as much stays free; if they come one after another, each gets half of what the others left. A family that has
//! nothing is refused only when nothing is free at all. That is so however many processes each of them has: of 1,024
//! places, a program alone gets 512, and with eleven children it gets 512, too. If each process could have half of what
//! is left, twelve of them would have 512 + 256 + … + 1 + 1, which is all. Within a family, processes can take places
//! from each other. Whoever has the power `processes` starts each of his children as a new family.
//!
//! ```text
//! held       process ──▶ its family, its places        so that they come back when the process ends
//! families   family  ──▶ the places of its processes   what the rule asks for
//! ```
//! The rule needs to know no more than how many places each family has. Servers hear of the ends of processes, and give
//! back by process; so it is kept how many each process has, too. Places for what stays when its maker has ended are
//! counted by family alone ([`lasting`]).

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod cursors;
pub mod lasting;
pub mod pace;
pub mod queue;
mod turns;
pub mod unconfirmed;

use alloc::collections::BTreeMap;

pub use tench_abi::power::Client;

/// Returns whether a client may take one more place whose family has `own` of `limit` places, of which `taken` are
/// taken in all.
pub const fn allows(own: usize, taken: usize, limit: usize) -> bool {
    own < limit.saturating_sub(taken)
}

/// What a process has.
#[derive(Clone, Copy, Debug)]
struct Held {
    family: u64,
    count: usize,
}

/// How many places each process has, and each family.
#[derive(Clone, Debug)]
pub struct Places {
    limit: usize,
    taken: usize,
    /// Only processes that have some.
    held: BTreeMap<u64, Held>,
    /// Only families that have some.
    families: BTreeMap<u64, usize>,
}

impl Places {
    /// So many places, all free.
    pub const fn new(limit: usize) -> Places {
        Places { limit, taken: 0, held: BTreeMap::new(), families: BTreeMap::new() }
    }

    /// Places that there are.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Places that are taken.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Places that a process has.
    pub fn held(&self, process: u64) -> usize {
        self.held.get(&process).map_or(0, |held| held.count)
    }

    /// Places that the processes of a family have.
    pub fn held_by_family(&self, family: u64) -> usize {
        self.families.get(&family).copied().unwrap_or(0)
    }

    /// Returns the family for which what a process has counts, if it has anything.
    pub fn family_of(&self, process: u64) -> Option<u64> {
        self.held.get(&process).map(|held| held.family)
    }

    /// Returns the first process of a family, from this number on, that has places.
    pub fn process_of(&self, family: u64, from: u64) -> Option<u64> {
        self.held.range(from..).find(|(_, held)| held.family == family).map(|(process, _)| *process)
    }

    /// Returns the family for which a client counts: the one that is known of its process, if the client does not say
    /// any.
    fn family(&self, Client { process, family }: Client) -> u64 {
        let known = self.held.get(&process).filter(|_| family == process);
        known.map_or(family, |held| held.family)
    }

    /// Returns how many places count for a client: those of its family, and its own if they were taken before its
    /// family was known.
    fn own(&self, client: Client) -> usize {
        let family = self.family(client);
        let stray = self.held.get(&client.process).filter(|held| held.family != family);
        self.held_by_family(family) + stray.map_or(0, |held| held.count)
    }

    /// Returns whether a client may take one more.
    pub fn may_take(&self, client: Client) -> bool {
        allows(self.own(client), self.taken, self.limit)
    }

    /// Returns whether a client may take so many more, one after another. None are always possible.
    pub fn may_take_all(&self, client: Client, count: usize) -> bool {
        // Each is harder to get than the one before.
        let Some(before) = count.checked_sub(1) else { return true };
        allows(self.own(client) + before, self.taken + before, self.limit)
    }

    /// A client has one more, whether it [may](Self::may_take) or not: a server that is started again finds what there
    /// is. Of whom no family was known before, what it has is its family's from now on.
    pub fn take(&mut self, client: Client) {
        self.taken += 1;
        self.add(client, 1);
    }

    fn add(&mut self, client: Client, count: usize) {
        let (process, family) = (client.process, self.family(client));
        let held = self.held.entry(process).or_insert(Held { family, count: 0 });
        held.count += count;
        let (before, moved) = (held.family, held.count - count);
        held.family = family;
        if before != family {
            self.subtract_from_family(before, moved);
            *self.families.entry(family).or_default() += moved + count;
        } else {
            *self.families.entry(family).or_default() += count;
        }
    }

    fn subtract_from_family(&mut self, family: u64, count: usize) {
        if let Some(own) = self.families.get_mut(&family) {
            *own -= count;
            if *own == 0 {
                self.families.remove(&family);
            }
        }
    }

    /// Takes so many places from a process, or as many as it has. Returns how many.
    fn subtract(&mut self, process: u64, count: usize) -> Option<usize> {
        let held = self.held.get_mut(&process)?;
        let (count, family) = (count.min(held.count), held.family);
        held.count -= count;
        if held.count == 0 {
            self.held.remove(&process);
        }
        self.subtract_from_family(family, count);
        Some(count)
    }

    /// A process has one less. If it has none, nothing happens.
    pub fn give_back(&mut self, process: u64) {
        self.give_back_all(process, 1);
    }

    /// A process has so many less: the same as if it gave back one after another.
    pub fn give_back_all(&mut self, process: u64, count: usize) {
        self.taken -= self.subtract(process, count).unwrap_or(0);
    }

    /// So many places of a process are a client's from now on, whether that one may have them or not. Of more than the
    /// first has, only as many as it has.
    pub fn pass(&mut self, from: u64, to: Client, count: usize) {
        if let Some(count @ 1..) = self.subtract(from, count) {
            self.add(to, count);
        }
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let held = self.held.values().map(|held| held.count).sum::<usize>();
        assert_eq!(held, self.taken, "what is taken, somebody has");
        assert!(self.held.values().all(|held| held.count > 0), "who has nothing is not remembered");
        let mut families = BTreeMap::new();
        self.held.values().for_each(|held| *families.entry(held.family).or_insert(0) += held.count);
        assert_eq!(families, self.families, "a family has what its processes have");
    }
}
