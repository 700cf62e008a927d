//! Whose ends there are, and who pays for them.
//!
//! An end has an owner, with whom it is closed, and a payer, for whose family it counts, with all that waits at it and
//! all that is written through it: whoever opened it. Capabilities say nothing of who uses them, so an end that is
//! shared may be used by the one who gave it and by the one to whom it was given, and neither must be able to use up
//! what is the other's:
//!
//! - Whoever gives an end away pays for it, and so for what the other does with it. What can be shared of it again, and
//!   what can wait there, is little ([`MAX_GIVEN`]).
//! - When the payer ends, the owner pays, if it lives: it was given the end, or somebody says so who cannot know it. So
//!   that is only done for a few ends ([`MAX_INHERITED`]), the others are closed; and blocks that are written through
//!   them are [`NOBODY`]'s.
//! - Each process server knows the processes of its own core alone, and speaks here when one of them has ended. The
//!   first core's knows what those of others gave to its processes. What was given to a process of any further core
//!   goes with a payer of another.

use alloc::collections::{BTreeMap, BTreeSet};

use tench_places::lasting::COMMON;
use tench_places::unconfirmed::{Unconfirmed, core_of};
use tench_places::{Client, Places};

/// Ends that there can be.
pub const MAX_ENDS: usize = 2048;
/// Requests that can wait.
pub const MAX_WAITING: usize = 1024;
/// How often an end that a process was given can be shared again by whoever has it, at a time; and requests that can
/// wait there.
pub const MAX_GIVEN: u32 = 16;
/// Ends that a process is made to pay for when those have ended who gave them.
pub const MAX_INHERITED: usize = 16;
/// Payer of an end whose payer has ended.
pub const NOBODY: Client = Client { process: u64::MAX, family: COMMON };

/// What is at an end: the number of a pipe or of an open file.
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
    /// With whom it is closed.
    pub owner: u64,
    /// For whom it counts.
    pub payer: Client,
    /// What is there.
    pub at: At,
    /// Requests that wait at it.
    pub waiting: u32,
    /// The end that a process was given, of which this comes, or which it is.
    lineage: Option<u64>,
    /// Whether its payer was another one, who has ended.
    inherited: bool,
}

impl End {
    /// Returns for whom blocks count that are written through it.
    pub const fn writer(&self) -> Client {
        if self.inherited { NOBODY } else { self.payer }
    }
}

/// What comes of an end that a process was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lineage {
    ends: u32,
    waiting: u32,
}

/// All ends by their numbers.
#[derive(Debug)]
pub struct Owners {
    ends: BTreeMap<u64, End>,
    owned: BTreeSet<(u64, u64)>,
    paid: BTreeSet<(u64, u64)>,
    /// Owners and ends for which nobody pays.
    orphans: BTreeSet<(u64, u64)>,
    lineages: BTreeMap<u64, Lineage>,
    /// Of ends, for their payers.
    places: Places,
    /// Of requests that wait, for the same.
    waits: Places,
    /// Processes that have ended, some of whose ends may be left.
    ended: BTreeSet<u64>,
    /// Processes that pay for ends, of which it is not known whether they live.
    unconfirmed: Unconfirmed,
}

/// The pairs of a set that belong to a process.
fn of(set: &BTreeSet<(u64, u64)>, process: u64) -> impl Iterator<Item = u64> {
    set.range((process, 0)..=(process, u64::MAX)).map(|(_, end)| *end)
}

impl Owners {
    /// None yet.
    pub const fn new() -> Owners {
        Owners {
            ends: BTreeMap::new(),
            owned: BTreeSet::new(),
            paid: BTreeSet::new(),
            orphans: BTreeSet::new(),
            lineages: BTreeMap::new(),
            places: Places::new(MAX_ENDS),
            waits: Places::new(MAX_WAITING),
            ended: BTreeSet::new(),
            unconfirmed: Unconfirmed::new(),
        }
    }

    /// How many ends there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many requests wait.
    pub const fn waiting(&self) -> usize {
        self.waits.taken()
    }

    /// All ends.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &End)> {
        self.ends.iter().map(|(number, end)| (*number, end))
    }

    /// An end.
    pub fn get(&self, number: u64) -> Option<&End> {
        self.ends.get(&number)
    }

    /// Returns whether a client may open so many more ends.
    pub fn may_open(&self, client: Client, count: usize) -> bool {
        self.places.may_take_all(client, count)
    }

    fn insert(&mut self, number: u64, end: End) {
        self.ends.insert(number, end);
        self.owned.insert((end.owner, number));
        self.paid.insert((end.payer.process, number));
        if end.payer == NOBODY {
            self.orphans.insert((end.owner, number));
        }
        self.places.take(end.payer);
        end.lineage.into_iter().for_each(|lineage| self.lineages.entry(lineage).or_default().ends += 1);
    }

    /// A client has opened an end.
    pub fn open(&mut self, number: u64, payer: Client, at: At) {
        let owner = payer.process;
        if self.places.held(owner) == 0 {
            self.unconfirmed.note(owner);
        }
        self.insert(number, End { owner, payer, at, waiting: 0, lineage: None, inherited: false });
    }

    /// Whether an end may be shared once more.
    pub fn may_share(&self, end: &End) -> bool {
        let lineage = end.lineage.and_then(|lineage| self.lineages.get(&lineage));
        // The end itself is one of them.
        lineage.is_none_or(|lineage| lineage.ends <= MAX_GIVEN) && self.places.may_take(end.payer)
    }

    /// An end is shared with a process, as another end of this number.
    pub fn share(&mut self, end: &End, number: u64, process: u64) {
        let lineage = end.lineage.or_else(|| (process != end.payer.process).then_some(number));
        self.insert(number, End { owner: process, waiting: 0, lineage, ..*end });
    }

    /// An end is closed. Nobody waits there any more.
    pub fn remove(&mut self, number: u64) -> Option<End> {
        let end = self.ends.remove(&number)?;
        self.owned.remove(&(end.owner, number));
        self.paid.remove(&(end.payer.process, number));
        self.orphans.remove(&(end.owner, number));
        self.places.give_back(end.payer.process);
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

    /// Whether one more request may wait at an end.
    pub fn may_wait(&self, end: &End) -> bool {
        let lineage = end.lineage.and_then(|lineage| self.lineages.get(&lineage));
        lineage.is_none_or(|lineage| lineage.waiting < MAX_GIVEN) && self.waits.may_take(end.payer)
    }

    /// One more request waits at an end.
    pub fn wait(&mut self, number: u64) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        end.waiting += 1;
        self.waits.take(end.payer);
        let lineage = end.lineage.and_then(|lineage| self.lineages.get_mut(&lineage));
        lineage.into_iter().for_each(|lineage| lineage.waiting += 1);
    }

    /// A request at an end waits no more.
    pub fn answered(&mut self, number: u64) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        end.waiting -= 1;
        self.waits.give_back(end.payer.process);
        let lineage = end.lineage.and_then(|lineage| self.lineages.get_mut(&lineage));
        lineage.into_iter().for_each(|lineage| lineage.waiting -= 1);
    }

    /// Returns the first end after another one for which the same family pays as for this one, and at which somebody
    /// waits: whoever waits there keeps others from waiting here.
    pub fn next_in_the_way(&self, end: &End, after: u64) -> Option<(u64, At)> {
        let is_in_the_way = |other: &End| other.waiting > 0 && other.payer.family == end.payer.family;
        let mut others = self.ends.range(after + 1..);
        others.find(|(_, other)| is_in_the_way(other)).map(|(number, other)| (*number, other.at))
    }

    /// A process has ended. Its ends are to be [closed](Self::next_of_ended).
    pub fn process_ended(&mut self, process: u64) {
        self.ended.insert(process);
    }

    /// A process of the core of this one that has ended and has ends.
    pub fn some_ended(&self, process: u64) -> Option<u64> {
        self.ended.range(core_of(process)).next().copied()
    }

    /// The next end to be closed of a process that has ended. When there is none, nobody pays any more for what it gave
    /// away, one after another; `true` is said of each. What was given to a process of which nobody will be asked is to
    /// be closed. When that is done, too, the process is forgotten.
    pub fn next_of_ended(&mut self, process: u64) -> Option<(u64, bool)> {
        if let Some(number) = of(&self.owned, process).next() {
            return Some((number, false));
        }
        let Some(number) = of(&self.paid, process).next() else {
            self.ended.remove(&process);
            return None;
        };
        // By the first core's process server, or by that of its own core.
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
        self.places.pass(from, to, 1);
        self.waits.pass(from, to, waiting);
        if to == NOBODY {
            self.orphans.insert((owner, number))
        } else {
            self.orphans.remove(&(owner, number))
        };
        self.forget_if_nothing(from);
    }

    /// A process pays for fewer ends: of one that pays for none it need not be known whether it lives.
    fn forget_if_nothing(&mut self, process: u64) {
        if self.places.held(process) == 0 {
            self.unconfirmed.forget(process);
        }
    }

    /// A process of the core of this one for whose ends nobody pays: whether it lives must be found out.
    pub fn orphan(&self, process: u64) -> Option<u64> {
        let (first, last) = core_of(process).into_inner();
        self.orphans.range((first, 0)..=(last, u64::MAX)).next().map(|(owner, _)| *owner)
    }

    /// How many ends a process pays for.
    pub fn opened(&self, process: u64) -> usize {
        self.places.held(process)
    }

    /// A process of the core of this one that has opened its first end: whether it lives must be found out.
    pub fn unconfirmed(&self, process: u64) -> Option<u64> {
        self.unconfirmed.next(process)
    }

    /// A client lives: when it ends, that will be said. It pays for its ends from now on, for which nobody pays.
    /// Answers one that is too much, and is to be closed; then there may be more.
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
        for (places, counted) in [(&self.places, &paid), (&self.waits, &waits)] {
            places.check_invariants();
            assert_eq!(places.taken(), counted.values().sum::<usize>());
            assert!(counted.iter().all(|(payer, count)| places.held(*payer) == *count), "what counts for whom");
            assert!(places.taken() <= places.limit());
        }
    }
}

impl Default for Owners {
    fn default() -> Owners {
        Owners::new()
    }
}
