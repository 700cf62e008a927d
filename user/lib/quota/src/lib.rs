//! Fair-share quota of a server's table, whose entries its clients share.
//!
//! A table has a limited number of entries. If the first client could take all of them, it would shut out every other;
//! and a fixed share for each would be small for the usual case of few clients. So the number of free entries decides.
//! And because a process starts others, what counts is not the process but its [family](tench_abi::power::family):
//!
//! > A client may take one more entry while its family has fewer than are free.
//!
//! Alone, a family gets half of the table; `n` families that want everything at the same time get one part in `n + 1`
//! each, and as much stays free; if they come one after another, each gets half of what the others left. A family
//! without entries is refused only when no entry is free. This holds however many processes each of them has: of 1,024
//! entries, a program alone gets 512, and with eleven children it gets 512, too. If each process could have half of
//! what is left, twelve of them would have 512 + 256 + … + 1 + 1, which is all. Within a family, processes can take
//! entries from each other. A process with the power `processes` starts each of its children as a new family.
//!
//! ```text
//! held       process ──▶ its family, its entries        returned when the process ends
//! families   family  ──▶ the entries of its processes   used by the rule
//! ```
//! The rule needs only the number of entries of each family. Servers are told of the ends of processes, and return
//! entries by process; so each process's number is kept, too. Entries that outlast their process are counted by family
//! alone ([`lasting`]).

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

/// Returns whether a client may take one more entry if its family has `own` of `limit` entries, of which `taken` are in
/// use in all.
pub const fn allows(own: usize, taken: usize, limit: usize) -> bool {
    own < limit.saturating_sub(taken)
}

/// The share of a process.
#[derive(Clone, Copy, Debug)]
struct Held {
    family: u64,
    count: usize,
}

/// Number of entries of each process and of each family.
#[derive(Clone, Debug)]
pub struct Quota {
    limit: usize,
    taken: usize,
    /// Processes with entries.
    held: BTreeMap<u64, Held>,
    /// Families with entries.
    families: BTreeMap<u64, usize>,
}

impl Quota {
    /// Returns a quota of `limit` entries, all free.
    pub const fn new(limit: usize) -> Quota {
        Quota { limit, taken: 0, held: BTreeMap::new(), families: BTreeMap::new() }
    }

    /// Returns the number of entries.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of entries in use.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Returns the number of entries of a process.
    pub fn held(&self, process: u64) -> usize {
        self.held.get(&process).map_or(0, |held| held.count)
    }

    /// Returns the number of entries of a family's processes.
    pub fn held_by_family(&self, family: u64) -> usize {
        self.families.get(&family).copied().unwrap_or(0)
    }

    /// Returns the family for which a process's entries count, if it has any.
    pub fn family_of(&self, process: u64) -> Option<u64> {
        self.held.get(&process).map(|held| held.family)
    }

    /// Returns the first process of a family, from this number on, that has entries.
    pub fn process_of(&self, family: u64, from: u64) -> Option<u64> {
        self.held.range(from..).find(|(_, held)| held.family == family).map(|(process, _)| *process)
    }

    /// Returns the family for which a client counts: the known one of its process, if the client does not name any.
    fn family(&self, Client { process, family }: Client) -> u64 {
        let known = self.held.get(&process).filter(|_| family == process);
        known.map_or(family, |held| held.family)
    }

    /// Returns the number of entries that count for a client: those of its family, and its own if they were taken
    /// before its family was known.
    fn own(&self, client: Client) -> usize {
        let family = self.family(client);
        let stray = self.held.get(&client.process).filter(|held| held.family != family);
        self.held_by_family(family) + stray.map_or(0, |held| held.count)
    }

    /// Returns whether a client may take one more entry.
    pub fn may_take(&self, client: Client) -> bool {
        allows(self.own(client), self.taken, self.limit)
    }

    /// Returns whether a client may take `count` more entries, one after another. 0 is always possible.
    pub fn may_take_all(&self, client: Client, count: usize) -> bool {
        // Each is harder to get than the one before.
        let Some(before) = count.checked_sub(1) else { return true };
        allows(self.own(client) + before, self.taken + before, self.limit)
    }

    /// Gives a client one more entry, whether it [may](Self::may_take) take it or not: a restarted server re-enters the
    /// existing ones. If no family of the client was known before, its entries count for its family from now on.
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

    /// Takes `count` entries from a process, or as many as it has. Returns their number.
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

    /// Frees one entry of a process. Does nothing if the process has none.
    pub fn give_back(&mut self, process: u64) {
        self.give_back_all(process, 1);
    }

    /// Frees `count` entries of a process, as if it returned one after another.
    pub fn give_back_all(&mut self, process: u64, count: usize) {
        self.taken -= self.subtract(process, count).unwrap_or(0);
    }

    /// Transfers `count` entries from a process to a client, whether the client may have them or not; at most as many
    /// as the process has.
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
