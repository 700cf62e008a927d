//! Owners and payers of ends.
//!
//! An end has an owner and a payer. When the owner ends, the end is closed. The end counts to the quota of the payer's
//! family, with all that waits at it and all that is written through it; the payer is the process that opened it. A
//! capability does not tell its user, so a shared end may be used by its granter and by its receiver, and neither must
//! be able to use up the other's quota:
//!
//! - A process that gives an end away pays for it, and so for the receiver's use. That is limited: how often the end
//!   can be shared again, and what can wait there ([`MAX_GIVEN`]).
//! - When the payer ends, the owner pays, if it runs: it was given the end, or a third process claims so that cannot
//!   know. Therefore this is done for only a few ends ([`MAX_INHERITED`]); the others are closed, and blocks that are
//!   written through them belong to [`NOBODY`].
//! - Each process server knows only the processes of its own core, and reports their ends here. The first core's also
//!   knows the receivers on its core of ends that processes of other cores gave. An end that was given to a process of
//!   a further core is closed with a payer of another core.

use alloc::collections::{BTreeMap, BTreeSet};

use tench_quota::lasting::COMMON;
use tench_quota::unconfirmed::{Unconfirmed, core_of};
use tench_quota::{Client, Quota};

/// Maximum number of ends.
pub const MAX_ENDS: usize = 2048;
/// Maximum number of waiting requests.
pub const MAX_WAITING: usize = 1024;
/// Maximum number of ends, at a time, that are shared from one that a process was given; also the maximum number of
/// requests that wait at that end and these.
pub const MAX_GIVEN: u32 = 16;
/// Maximum number of ends that a process has to pay for after the ends' granters have ended.
pub const MAX_INHERITED: usize = 16;
/// Payer of an end whose payer has ended.
pub const NOBODY: Client = Client { process: u64::MAX, family: COMMON };

/// Object of an end: the number of a pipe or of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A pipe, to read.
    Reader(u64),
    /// A pipe, to write.
    Writer(u64),
    /// An open file.
    Open(u64),
}

/// An end.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The process with which it is closed.
    pub owner: u64,
    /// The client to whose quota it counts.
    pub payer: Client,
    /// Object of the end.
    pub at: At,
    /// Number of requests that wait at it.
    pub waiting: u32,
    /// The end that a process was given and from which this one comes; may be the end itself.
    lineage: Option<u64>,
    /// Set if it was inherited from a payer that has ended.
    inherited: bool,
}

impl End {
    /// Returns the client to whose quota blocks count that are written through it.
    pub const fn writer(&self) -> Client {
        if self.inherited { NOBODY } else { self.payer }
    }
}

/// Ends that come from one that a process was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lineage {
    ends: u32,
    waiting: u32,
}

/// All ends by number.
#[derive(Debug)]
pub struct Owners {
    ends: BTreeMap<u64, End>,
    owned: BTreeSet<(u64, u64)>,
    paid: BTreeSet<(u64, u64)>,
    /// Owners and ends without a payer.
    orphans: BTreeSet<(u64, u64)>,
    lineages: BTreeMap<u64, Lineage>,
    /// Quota of ends, by payer.
    quota: Quota,
    /// Quota of waiting requests, by payer.
    waits: Quota,
    /// Processes that have ended, some of whose ends may be left.
    ended: BTreeSet<u64>,
    /// Processes that pay for ends and have not been confirmed to run.
    unconfirmed: Unconfirmed,
}

/// Returns the second elements of the pairs with this process.
fn of(set: &BTreeSet<(u64, u64)>, process: u64) -> impl Iterator<Item = u64> {
    set.range((process, 0)..=(process, u64::MAX)).map(|(_, end)| *end)
}

impl Owners {
    /// Returns a table without ends.
    pub const fn new() -> Owners {
        Owners {
            ends: BTreeMap::new(),
            owned: BTreeSet::new(),
            paid: BTreeSet::new(),
            orphans: BTreeSet::new(),
            lineages: BTreeMap::new(),
            quota: Quota::new(MAX_ENDS),
            waits: Quota::new(MAX_WAITING),
            ended: BTreeSet::new(),
            unconfirmed: Unconfirmed::new(),
        }
    }

    /// Returns the number of ends.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of waiting requests.
    pub const fn waiting(&self) -> usize {
        self.waits.taken()
    }

    /// Returns all ends.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &End)> {
        self.ends.iter().map(|(number, end)| (*number, end))
    }

    /// Returns an end.
    pub fn get(&self, number: u64) -> Option<&End> {
        self.ends.get(&number)
    }

    /// Returns whether a client may open `count` more ends.
    pub fn may_open(&self, client: Client, count: usize) -> bool {
        self.quota.may_take_all(client, count)
    }

    fn insert(&mut self, number: u64, end: End) {
        self.ends.insert(number, end);
        self.owned.insert((end.owner, number));
        self.paid.insert((end.payer.process, number));
        if end.payer == NOBODY {
            self.orphans.insert((end.owner, number));
        }
        self.quota.take(end.payer);
        end.lineage.into_iter().for_each(|lineage| self.lineages.entry(lineage).or_default().ends += 1);
    }

    /// Adds an end that a client has opened.
    pub fn open(&mut self, number: u64, payer: Client, at: At) {
        let owner = payer.process;
        if self.quota.held(owner) == 0 {
            self.unconfirmed.note(owner);
        }
        self.insert(number, End { owner, payer, at, waiting: 0, lineage: None, inherited: false });
    }

    /// Returns whether an end may be shared once more.
    pub fn may_share(&self, end: &End) -> bool {
        let lineage = end.lineage.and_then(|lineage| self.lineages.get(&lineage));
        // The end itself is one of them.
        lineage.is_none_or(|lineage| lineage.ends <= MAX_GIVEN) && self.quota.may_take(end.payer)
    }

    /// Adds an end of this number by which an end is shared with a process.
    pub fn share(&mut self, end: &End, number: u64, process: u64) {
        let lineage = end.lineage.or_else(|| (process != end.payer.process).then_some(number));
        self.insert(number, End { owner: process, waiting: 0, lineage, ..*end });
    }

    /// Removes a closed end, at which no thread waits any more.
    pub fn remove(&mut self, number: u64) -> Option<End> {
        let end = self.ends.remove(&number)?;
        self.owned.remove(&(end.owner, number));
        self.paid.remove(&(end.payer.process, number));
        self.orphans.remove(&(end.owner, number));
        self.quota.give_back(end.payer.process);
        self.forget_if_nothing(end.payer.process);
        (0..end.waiting).for_each(|_| self.waits.give_back(end.payer.process));
        if let Some(number) = end.lineage
            && let Some(lineage) = self.lineages.get_mut(&number)
        {
            lineage.ends -= 1;
            lineage.waiting -= end.waiting;
            if lineage.ends == 0 {
                self.lineages.remove(&number);
            }
        }
        Some(end)
    }

    /// Returns whether one more request may wait at an end.
    pub fn may_wait(&self, end: &End) -> bool {
        let lineage = end.lineage.and_then(|lineage| self.lineages.get(&lineage));
        lineage.is_none_or(|lineage| lineage.waiting < MAX_GIVEN) && self.waits.may_take(end.payer)
    }

    /// Counts one more request that waits at an end.
    pub fn wait(&mut self, number: u64) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        end.waiting += 1;
        self.waits.take(end.payer);
        let lineage = end.lineage.and_then(|lineage| self.lineages.get_mut(&lineage));
        lineage.into_iter().for_each(|lineage| lineage.waiting += 1);
    }

    /// Counts one waiting request less at an end.
    pub fn stop_waiting(&mut self, number: u64) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        end.waiting -= 1;
        self.waits.give_back(end.payer.process);
        let lineage = end.lineage.and_then(|lineage| self.lineages.get_mut(&lineage));
        lineage.into_iter().for_each(|lineage| lineage.waiting -= 1);
    }

    /// Returns the first end after `after` at which requests wait and that has a payer of the same family: its waits
    /// use the same quota.
    pub fn next_in_the_way(&self, end: &End, after: u64) -> Option<(u64, At)> {
        let is_in_the_way = |other: &End| other.waiting > 0 && other.payer.family == end.payer.family;
        let mut others = self.ends.range(after + 1..);
        others.find(|(_, other)| is_in_the_way(other)).map(|(number, other)| (*number, other.at))
    }

    /// Notes that a process has ended. Its ends are to be [closed](Self::next_of_ended).
    pub fn process_ended(&mut self, process: u64) {
        self.ended.insert(process);
    }

    /// Returns a process, of the same core as `process`, that has ended and has ends.
    pub fn some_ended(&self, process: u64) -> Option<u64> {
        self.ended.range(core_of(process)).next().copied()
    }

    /// Returns the next end of an ended process: `false` says that it is to be closed. When none of its own is left,
    /// the ends follow that it gave away: they lose their payer, and `true` is returned; those given to a process about
    /// which no process server will be asked are to be closed. After the last, the process is removed.
    pub fn next_of_ended(&mut self, process: u64) -> Option<(u64, bool)> {
        if let Some(number) = of(&self.owned, process).next() {
            return Some((number, false));
        }
        let Some(number) = of(&self.paid, process).next() else {
            self.ended.remove(&process);
            return None;
        };
        // The first core's process server is asked about it, or that of its own core.
        let is_asked_about = |owner| [0, process].into_iter().any(|asked| core_of(asked).contains(owner));
        let is_known = self.ends.get(&number).is_some_and(|end| is_asked_about(&end.owner));
        if is_known {
            self.set_payer(number, NOBODY);
        }
        Some((number, is_known))
    }

    fn set_payer(&mut self, number: u64, to: Client) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        let from = core::mem::replace(&mut end.payer, to).process;
        let (owner, waiting) = (end.owner, end.waiting as usize);
        self.paid.remove(&(from, number));
        self.paid.insert((to.process, number));
        self.quota.pass(from, to, 1);
        self.waits.pass(from, to, waiting);
        if to == NOBODY {
            self.orphans.insert((owner, number))
        } else {
            self.orphans.remove(&(owner, number))
        };
        self.forget_if_nothing(from);
    }

    /// Drops the confirmation state of a process that no longer pays for any end.
    fn forget_if_nothing(&mut self, process: u64) {
        if self.quota.held(process) == 0 {
            self.unconfirmed.forget(process);
        }
    }

    /// Returns a process, of the same core as `process`, with ends that have no payer: it is to be found out whether it
    /// runs.
    pub fn orphan(&self, process: u64) -> Option<u64> {
        let (first, last) = core_of(process).into_inner();
        self.orphans.range((first, 0)..=(last, u64::MAX)).next().map(|(owner, _)| *owner)
    }

    /// Returns how many ends a process pays for.
    pub fn opened(&self, process: u64) -> usize {
        self.quota.held(process)
    }

    /// Returns a process, of the same core as `process`, that has opened its first end: it is to be found out whether
    /// it runs.
    pub fn unconfirmed(&self, process: u64) -> Option<u64> {
        self.unconfirmed.next(process)
    }

    /// Notes that a client runs, so that its end will be reported. It pays from now on for its ends without a payer.
    /// Returns an end beyond the maximum, which is to be closed; then there may be more.
    pub fn process_lives(&mut self, client: Client) -> Option<u64> {
        let process = client.process;
        self.unconfirmed.forget(process);
        // Most have none: then their ends need not be counted.
        of(&self.orphans, process).next()?;
        let is_its =
            |number: &u64, payer: Client| self.ends.get(number).is_some_and(|end| end.payer.process == payer.process);
        let mut inherited = of(&self.owned, process)
            .filter(|number| is_its(number, client) && self.ends.get(number).is_some_and(|end| end.inherited))
            .count();
        loop {
            let number = of(&self.orphans, process).next()?;
            if inherited >= MAX_INHERITED {
                return Some(number);
            }
            inherited += 1;
            self.set_payer(number, client);
            self.ends.get_mut(&number).into_iter().for_each(|end| end.inherited = true);
        }
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let (mut lineages, mut paid, mut waits) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (number, end) in &self.ends {
            assert!(self.owned.contains(&(end.owner, *number)) && self.paid.contains(&(end.payer.process, *number)));
            *paid.entry(end.payer.process).or_insert(0) += 1;
            *waits.entry(end.payer.process).or_insert(0) += end.waiting as usize;
            if let Some(lineage) = end.lineage {
                let lineage: &mut Lineage = lineages.entry(lineage).or_default();
                lineage.ends += 1;
                lineage.waiting += end.waiting;
            }
        }
        assert_eq!((self.owned.len(), self.paid.len()), (self.ends.len(), self.ends.len()));
        assert_eq!(lineages, self.lineages);
        let orphans = self.ends.iter().filter(|(_, end)| end.payer == NOBODY);
        assert!(orphans.map(|(number, end)| (end.owner, *number)).collect::<BTreeSet<_>>() == self.orphans);
        assert!(
            self.unconfirmed.iter().all(|process| paid.contains_key(&process)),
            "who has nothing is not asked about"
        );
        assert!(lineages.values().all(|lineage| lineage.ends <= MAX_GIVEN + 1 && lineage.waiting <= MAX_GIVEN));
        for (quota, counted) in [(&self.quota, &paid), (&self.waits, &waits)] {
            quota.check_invariants();
            assert_eq!(quota.taken(), counted.values().sum::<usize>());
            assert!(counted.iter().all(|(payer, count)| quota.held(*payer) == *count), "what counts for whom");
            assert!(quota.taken() <= quota.limit());
        }
    }
}

impl Default for Owners {
    fn default() -> Owners {
        Owners::new()
    }
}
