//! Who waits until when.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::{Bound, RangeInclusive};

use tench_places::{Client, Places};

/// Bytes of heap that a request may need, with at most 1024 threads that wait. A test counts.
pub const GROWTH: usize = 30 << 10;

/// Waiting threads: those of each process in the order of their deadlines, and of arrival where these are equal; processes whose
/// threads' time has come in turn, so that one with many threads delays another by one answer and not by all of them.
///
/// ```text
/// waiters    process, deadline, arrival ──▶ R
/// heads      deadline, arrival ──▶ process       the earliest of each process, if its time had not come when this was looked at last
/// turns      processes of which one had come     no process is in both
/// ```
/// `R` is what it takes to answer.
pub struct Queue<R> {
    waiters: BTreeMap<(u64, u64, u64), R>,
    heads: BTreeMap<(u64, u64), u64>,
    turns: VecDeque<u64>,
    arrivals: u64,
    places: Places,
    /// Where [`take_out_some`](Self::take_out_some) goes on: behind this one.
    looked_at: (u64, u64, u64),
}

impl<R> Queue<R> {
    /// An empty queue for at most `limit` threads.
    pub const fn new(limit: usize) -> Queue<R> {
        let places = Places::new(limit);
        Queue {
            waiters: BTreeMap::new(),
            heads: BTreeMap::new(),
            turns: VecDeque::new(),
            arrivals: 0,
            places,
            looked_at: (0, 0, 0),
        }
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        self.places.may_take(client)
    }

    /// Lets somebody wait until `deadline`.
    pub fn push(&mut self, deadline: u64, client: Client, reply: R) {
        let process = client.process;
        self.arrivals += 1;
        self.places.take(client);
        let before = self.head(process);
        self.waiters.insert((process, deadline, self.arrivals), reply);
        match before {
            Some(head) if head <= (deadline, self.arrivals) => {}
            Some(head) if self.heads.remove(&head).is_none() => {
                // It has its turn, in which the earliest comes first.
            }
            _ => drop(self.heads.insert((deadline, self.arrivals), process)),
        }
    }

    /// The earliest deadline, which is 0 while anybody's time has come.
    pub fn next_deadline(&self) -> Option<u64> {
        if !self.turns.is_empty() {
            return Some(0);
        }
        self.heads.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    /// Takes out one whose deadline is `now` or earlier: the earliest of the process whose turn it is.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        while let Some(first) = self.heads.first_entry().filter(|first| first.key().0 <= now) {
            self.turns.push_back(first.remove());
        }
        let process = self.turns.pop_front()?;
        let (deadline, arrival) = self.head(process)?;
        let reply = self.waiters.remove(&(process, deadline, arrival));
        self.places.give_back(process);
        match self.head(process) {
            Some((next, _)) if next <= now => self.turns.push_back(process),
            Some(next) => drop(self.heads.insert(next, process)),
            None => {}
        }
        reply
    }

    /// Takes out everybody of a process that has ended.
    pub fn process_ended(&mut self, process: u64) -> Vec<R> {
        let keys: Vec<_> =
            self.waiters.range(of(process)).map(|(&(_, deadline, arrival), _)| (deadline, arrival)).collect();
        self.take_out(process, &keys)
    }

    /// Takes out those of a family who do not wait any more, without having said so: `has_gone` says which. Looks at no more than so many,
    /// and at others the next time.
    pub fn take_out_some(&mut self, family: u64, looks: usize, mut has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        let (mut gone, mut left) = (Vec::new(), looks.min(self.waiters.len()));
        let mut has_begun_anew = false;
        while left > 0 {
            let Some(process) = self.places.process_of(family, self.looked_at.0) else {
                if core::mem::replace(&mut has_begun_anew, true) {
                    break;
                }
                self.looked_at = (0, 0, 0);
                continue;
            };
            let (_, last) = of(process).into_inner();
            let behind = (Bound::Excluded(self.looked_at.max((process, 0, 0))), Bound::Included(last));
            let seen: Vec<_> =
                self.waiters.range(behind).take(left).map(|(key, reply)| (*key, has_gone(reply))).collect();
            left -= seen.len();
            self.looked_at = if left > 0 { (process + 1, 0, 0) } else { seen.last().map_or(last, |(key, _)| *key) };
            let keys = seen.into_iter().filter(|(_, has_gone)| *has_gone);
            let keys: Vec<_> = keys.map(|((_, deadline, arrival), _)| (deadline, arrival)).collect();
            gone.extend(self.take_out(process, &keys));
        }
        gone
    }

    /// Takes out some of a process.
    fn take_out(&mut self, process: u64, keys: &[(u64, u64)]) -> Vec<R> {
        let Some(head) = self.head(process).filter(|_| !keys.is_empty()) else { return Vec::new() };
        if self.heads.remove(&head).is_none() {
            self.turns.retain(|other| *other != process);
        }
        keys.iter().for_each(|_| self.places.give_back(process));
        let gone = keys.iter().filter_map(|&(deadline, arrival)| self.waiters.remove(&(process, deadline, arrival)));
        let gone = gone.collect();
        // The time of those who are left may not have come.
        if let Some(head) = self.head(process) {
            self.heads.insert(head, process);
        }
        gone
    }

    /// Deadline and arrival of the earliest of a process.
    fn head(&self, process: u64) -> Option<(u64, u64)> {
        self.waiters.range(of(process)).next().map(|(&(_, deadline, arrival), _)| (deadline, arrival))
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.places.check_invariants();
        assert_eq!(self.places.taken(), self.waiters.len());
        for &(process, ..) in self.waiters.keys() {
            assert_eq!(self.places.held(process), self.waiters.range(of(process)).count());
            let turns = self.turns.iter().filter(|other| **other == process).count();
            let heads = self.heads.values().filter(|other| **other == process).count();
            assert_eq!(turns + heads, 1, "a process waits for its time or for its turn");
            let head = self.head(process).expect("it has somebody who waits");
            assert!(turns == 1 || self.heads.get(&head) == Some(&process), "the first of a process is its earliest");
        }
        let known = |process: &u64| self.places.held(*process) > 0;
        assert!(self.turns.iter().chain(self.heads.values()).all(known), "nobody's turn comes for nothing");
    }
}

/// The keys of a process.
const fn of(process: u64) -> RangeInclusive<(u64, u64, u64)> {
    (process, 0, 0)..=(process, u64::MAX, u64::MAX)
}
