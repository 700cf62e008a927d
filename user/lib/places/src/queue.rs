//! Who waits until when, of all processes.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::{Bound, RangeInclusive};

use crate::{Client, Places};

/// The deadline of who waits for as long as it takes.
pub const NEVER: u64 = u64::MAX;
/// Families of which is known where to go on looking. Of more, one begins anew.
const CURSORS: usize = 64;

/// What a wait is found by. Those of a process are in the order of their deadlines, and of arrival where these are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// Whose thread waits.
    pub process: u64,
    /// Until when; [`NEVER`]: as long as it takes.
    pub deadline: u64,
    /// Which of all waits this is, in the order in which they began.
    pub arrival: u64,
}

/// Waiting threads, each in a place that its family has. Processes whose threads' time has come are served in turn, so that one with
/// many threads delays another by one answer and not by all of them.
///
/// ```text
/// waiters    process, deadline, arrival ──▶ R
/// heads      deadline, arrival ──▶ process       the earliest of each process, if its time had not come when this was looked at last
/// turns      processes of which one had come     no process is in both
/// ```
/// `R` is what it takes to answer.
pub struct Queue<R> {
    waiters: BTreeMap<Key, R>,
    heads: BTreeMap<(u64, u64), u64>,
    turns: VecDeque<u64>,
    arrivals: u64,
    /// The earliest deadline, which servers ask for with each request: 0 while anybody's time has come, [`NEVER`] if there is none.
    next: u64,
    places: Places,
    /// Families, and behind whom of each [`take_out_some`](Self::take_out_some) goes on; who has looked last comes last.
    cursors: Vec<(u64, Key)>,
    /// Behind whom of all [`take_out_any`](Self::take_out_any) goes on.
    cursor: Key,
}

impl<R> Queue<R> {
    /// An empty queue for at most `limit` threads.
    pub const fn new(limit: usize) -> Queue<R> {
        Queue {
            waiters: BTreeMap::new(),
            heads: BTreeMap::new(),
            turns: VecDeque::new(),
            arrivals: 0,
            next: NEVER,
            places: Places::new(limit),
            cursors: Vec::new(),
            cursor: FIRST,
        }
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        self.places.may_take(client)
    }

    /// Returns how many threads wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Returns whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Returns how many threads of a process wait.
    pub fn held(&self, process: u64) -> usize {
        self.places.held(process)
    }

    /// Returns who waits with this key.
    pub fn get(&self, key: Key) -> Option<&R> {
        self.waiters.get(&key)
    }

    /// Lets somebody wait until `deadline`.
    pub fn push(&mut self, deadline: u64, client: Client, reply: R) -> Key {
        let process = client.process;
        self.arrivals += 1;
        self.places.take(client);
        let before = self.head(process);
        let key = Key { process, deadline, arrival: self.arrivals };
        self.waiters.insert(key, reply);
        // A process that has its turn is not among the heads.
        let is_first =
            before.is_none_or(|head| key < head && self.heads.remove(&(head.deadline, head.arrival)).is_some());
        if is_first {
            self.heads.insert((deadline, key.arrival), process);
            self.look_ahead();
        }
        key
    }

    /// The earliest deadline, which is 0 while anybody's time has come.
    #[inline]
    pub const fn next_deadline(&self) -> Option<u64> {
        if self.next == NEVER { None } else { Some(self.next) }
    }

    /// Works out the earliest deadline anew.
    fn look_ahead(&mut self) {
        let first = self.heads.first_key_value().map_or(NEVER, |(&(deadline, _), _)| deadline);
        self.next = if self.turns.is_empty() { first } else { 0 };
    }

    /// Takes out one whose deadline is `now` or earlier: the earliest of the process whose turn it is.
    pub fn pop_expired(&mut self, now: u64) -> Option<(Key, R)> {
        if self.next > now || self.next == NEVER {
            return None;
        }
        let is_over = |deadline: u64| deadline <= now && deadline != NEVER;
        while let Some(first) = self.heads.first_entry().filter(|first| is_over(first.key().0)) {
            self.turns.push_back(first.remove());
        }
        let process = self.turns.pop_front()?;
        let key = self.head(process)?;
        let reply = self.waiters.remove(&key);
        self.places.give_back(process);
        match self.head(process) {
            Some(next) if is_over(next.deadline) => self.turns.push_back(process),
            Some(next) => drop(self.heads.insert((next.deadline, next.arrival), process)),
            None => {}
        }
        self.look_ahead();
        reply.map(|reply| (key, reply))
    }

    /// Takes one out.
    pub fn remove(&mut self, key: Key) -> Option<R> {
        if self.waiters.contains_key(&key) {
            self.take_out(key.process, &[key]).pop().map(|(_, reply)| reply)
        } else {
            None
        }
    }

    /// Takes out so many of a process that has ended, or all.
    pub fn process_ended(&mut self, process: u64, most: usize) -> Vec<(Key, R)> {
        let keys: Vec<_> = self.waiters.range(of(process)).map(|(key, _)| *key).take(most).collect();
        self.take_out(process, &keys)
    }

    /// Takes out those of a family who do not wait any more, without having said so: `has_gone` says which. Looks at no more than so many,
    /// and at others the next time. Finding the family's processes takes a step for each process that waits.
    pub fn take_out_some(&mut self, family: u64, looks: usize, mut has_gone: impl FnMut(&R) -> bool) -> Vec<(Key, R)> {
        let known = self.cursors.iter().position(|(other, _)| *other == family);
        let mut cursor = known.map_or(FIRST, |place| self.cursors.remove(place).1);
        let (mut gone, mut left) = (Vec::new(), looks.min(self.waiters.len()));
        let mut has_begun_anew = false;
        while left > 0 {
            let Some(process) = self.places.process_of(family, cursor.process) else {
                if core::mem::replace(&mut has_begun_anew, true) {
                    break;
                }
                cursor = FIRST;
                continue;
            };
            let (first, last) = of(process).into_inner();
            let behind = (Bound::Excluded(cursor.max(first)), Bound::Included(last));
            let seen: Vec<_> =
                self.waiters.range(behind).take(left).map(|(key, reply)| (*key, has_gone(reply))).collect();
            left -= seen.len();
            cursor = if left > 0 {
                Key { process: process + 1, ..FIRST }
            } else {
                seen.last().map_or(last, |(key, _)| *key)
            };
            let keys: Vec<_> = seen.into_iter().filter(|(_, has_gone)| *has_gone).map(|(key, _)| key).collect();
            gone.extend(self.take_out(process, &keys));
        }
        if self.cursors.len() == CURSORS {
            self.cursors.remove(0);
        }
        self.cursors.push((family, cursor));
        gone
    }

    /// The same among everybody: what somebody has left behind who asked in the name of a process that had ended is looked at by nobody of its family.
    pub fn take_out_any(&mut self, looks: usize, mut has_gone: impl FnMut(&R) -> bool) -> Vec<(Key, R)> {
        let behind = (Bound::Excluded(self.cursor), Bound::Unbounded);
        let seen: Vec<_> = self.waiters.range(behind).take(looks).map(|(key, reply)| (*key, has_gone(reply))).collect();
        self.cursor = seen.last().filter(|_| seen.len() == looks).map_or(FIRST, |(key, _)| *key);
        let gone = seen.into_iter().filter(|(_, has_gone)| *has_gone);
        gone.filter_map(|(key, _)| Some((key, self.remove(key)?))).collect()
    }

    /// Takes out some of a process.
    fn take_out(&mut self, process: u64, keys: &[Key]) -> Vec<(Key, R)> {
        let Some(head) = self.head(process).filter(|_| !keys.is_empty()) else { return Vec::new() };
        if self.heads.remove(&(head.deadline, head.arrival)).is_none() {
            self.turns.retain(|other| *other != process);
        }
        keys.iter().for_each(|_| self.places.give_back(process));
        let gone = keys.iter().filter_map(|key| Some((*key, self.waiters.remove(key)?))).collect();
        // The time of those who are left may not have come.
        if let Some(head) = self.head(process) {
            self.heads.insert((head.deadline, head.arrival), process);
        }
        self.look_ahead();
        gone
    }

    /// The earliest of a process.
    fn head(&self, process: u64) -> Option<Key> {
        self.waiters.range(of(process)).next().map(|(key, _)| *key)
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.places.check_invariants();
        assert_eq!(self.places.taken(), self.waiters.len());
        for Key { process, .. } in self.waiters.keys() {
            assert_eq!(self.places.held(*process), self.waiters.range(of(*process)).count());
            let turns = self.turns.iter().filter(|other| *other == process).count();
            let heads = self.heads.values().filter(|other| *other == process).count();
            assert_eq!(turns + heads, 1, "a process waits for its time or for its turn");
            let head = self.head(*process).expect("it has somebody who waits");
            let of_head = self.heads.get(&(head.deadline, head.arrival));
            assert!(turns == 1 || of_head == Some(process), "the first of a process is its earliest");
        }
        let known = |process: &u64| self.places.held(*process) > 0;
        assert!(self.turns.iter().chain(self.heads.values()).all(known), "nobody's turn comes for nothing");
        let earliest = self.waiters.keys().map(|key| key.deadline).min().unwrap_or(NEVER);
        assert_eq!(self.next, if self.turns.is_empty() { earliest } else { 0 });
        assert!(self.cursors.len() <= CURSORS);
    }
}

/// Before all keys.
const FIRST: Key = Key { process: 0, deadline: 0, arrival: 0 };

/// The keys of a process.
const fn of(process: u64) -> RangeInclusive<Key> {
    Key { process, ..FIRST }..=Key { process, deadline: u64::MAX, arrival: u64::MAX }
}
