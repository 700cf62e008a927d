//! Who waits for the end of which process, and until when.
//!
//! A wait is found by its number, and through ordered sets by the process whose end is awaited, by the process whose thread
//! waits, and by its deadline: each question takes O(log n) steps, however many wait.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use tench_places::Client;

/// A wait. `R` is what it takes to answer.
struct Wait<R> {
    target: u64,
    waiter: Client,
    deadline: Option<u64>,
    reply: R,
}

/// All waits. Numbers rise, so those of one process are in the order in which they began.
pub struct Waits<R> {
    waits: BTreeMap<u64, Wait<R>>,
    by_target: BTreeSet<(u64, u64)>,
    by_waiter: BTreeSet<(u64, u64)>,
    by_deadline: BTreeSet<(u64, u64)>,
    begun: u64,
}

impl<R> Default for Waits<R> {
    fn default() -> Self {
        Waits {
            waits: BTreeMap::new(),
            by_target: BTreeSet::new(),
            by_waiter: BTreeSet::new(),
            by_deadline: BTreeSet::new(),
            begun: 0,
        }
    }
}

/// The pairs of a set that begin with `key`.
fn of(set: &BTreeSet<(u64, u64)>, key: u64) -> impl Iterator<Item = u64> {
    set.range((key, 0)..=(key, u64::MAX)).map(|(_, number)| *number)
}

impl<R> Waits<R> {
    /// A thread of `waiter` waits for the end of `target`, until a time if it says so.
    pub fn begin(&mut self, target: u64, waiter: Client, deadline: Option<u64>, reply: R) {
        self.begun += 1;
        let number = self.begun;
        self.waits.insert(number, Wait { target, waiter, deadline, reply });
        self.by_target.insert((target, number));
        self.by_waiter.insert((waiter.process, number));
        if let Some(deadline) = deadline {
            self.by_deadline.insert((deadline, number));
        }
    }

    fn remove(&mut self, number: u64) -> Option<R> {
        let Wait { target, waiter, deadline, reply } = self.waits.remove(&number)?;
        self.by_target.remove(&(target, number));
        self.by_waiter.remove(&(waiter.process, number));
        if let Some(deadline) = deadline {
            self.by_deadline.remove(&(deadline, number));
        }
        Some(reply)
    }

    /// How many wait for `target`; counts no further than `limit`.
    pub fn count_for(&self, target: u64, limit: usize) -> usize {
        of(&self.by_target, target).take(limit).count()
    }

    /// How many threads of `waiter` wait; counts no further than `limit`.
    pub fn count_of(&self, waiter: u64, limit: usize) -> usize {
        of(&self.by_waiter, waiter).take(limit).count()
    }

    /// Returns how many of those who wait for `target` are threads of a family; looks at no more than `limit`.
    pub fn count_between(&self, target: u64, family: u64, limit: usize) -> usize {
        let is_of = |number: &u64| self.waits.get(number).is_some_and(|wait| wait.waiter.family == family);
        of(&self.by_target, target).take(limit).filter(is_of).count()
    }

    /// `target` has ended: takes out everybody who waited for it, in the order in which they came.
    pub fn target_ended(&mut self, target: u64) -> Vec<R> {
        let numbers: Vec<u64> = of(&self.by_target, target).collect();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// `waiter` has ended: takes out what its threads waited with.
    pub fn waiter_ended(&mut self, waiter: u64) -> Vec<R> {
        let numbers: Vec<u64> = of(&self.by_waiter, waiter).collect();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// Takes out those, among the waits for `target` and the waits of `waiter`, whose thread does not wait any more.
    pub fn give_back(&mut self, target: u64, waiter: u64, mut has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        let numbers: Vec<u64> = of(&self.by_target, target).chain(of(&self.by_waiter, waiter)).collect();
        let gone = |number: &u64| self.waits.get(number).is_some_and(|wait| has_gone(&wait.reply));
        let numbers: Vec<u64> = numbers.into_iter().filter(gone).collect();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Option<u64> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    /// Takes out the first whose deadline is `now` or earlier.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        let (deadline, number) = *self.by_deadline.first()?;
        if deadline > now { None } else { self.remove(number) }
    }

    /// Panics unless all sets say the same, and everybody waits for a process for which `is_living` holds, and is one of it.
    pub fn check_invariants(&self, is_living: impl Fn(u64) -> bool) {
        assert_eq!(self.by_target.len(), self.waits.len());
        assert_eq!(self.by_waiter.len(), self.waits.len());
        assert_eq!(self.by_deadline.len(), self.waits.values().filter(|wait| wait.deadline.is_some()).count());
        for (number, wait) in &self.waits {
            assert!(*number <= self.begun);
            assert!(self.by_target.contains(&(wait.target, *number)));
            assert!(self.by_waiter.contains(&(wait.waiter.process, *number)));
            assert!(wait.deadline.is_none_or(|deadline| self.by_deadline.contains(&(deadline, *number))));
            assert!(is_living(wait.target), "nobody waits for {}, which has ended", wait.target);
            assert!(is_living(wait.waiter.process), "nobody of {} waits, which has ended", wait.waiter.process);
        }
    }
}
