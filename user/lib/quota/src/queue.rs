//! Queue of the waiting threads of all processes, with their deadlines.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::{Bound, RangeInclusive};

use crate::cursors::Cursors;
use crate::turns::{Head, Turns};
use crate::{Client, Quota};

/// Deadline of a wait without one.
pub const NEVER: u64 = u64::MAX;

/// Key of a wait. Those of a process are in the order of their deadlines, and of arrival where these are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// Process of the waiting thread.
    pub process: u64,
    /// Deadline of the wait, or [`NEVER`].
    pub deadline: u64,
    /// Sequence number of the wait, in the order in which waits began.
    pub arrival: u64,
}

/// The only group of which families are members.
const ALL: u64 = 0;

/// Waiting threads, each of which takes an entry of its family's quota. Families with threads whose deadlines have
/// passed are served in turn, and in each of them the processes: so a family with many processes delays others by one
/// reply each time and not by all of them, and so does a process with many threads within its family.
///
/// ```text
/// waiters      process, deadline, arrival ──▶ R
/// families     each family, with the earliest of its processes    the family waits for that time, or for its turn
///              that wait for their time
/// processes    each process, with its earliest thread             likewise, within its family
/// ```
/// A family is called when its deadline has passed, and one of its processes with each reply to the family: so no reply
/// takes longer because many of one family have the same deadline. `R` is the data needed for a reply.
pub struct Queue<R> {
    waiters: BTreeMap<Key, R>,
    families: Turns,
    processes: Turns,
    arrivals: u64,
    /// The earliest deadline, which servers query with each request: 0 while a deadline has passed, [`NEVER`] if there
    /// is none.
    next: u64,
    quota: Quota,
    /// For each family, the key after which [`take_out_some`](Self::take_out_some) continues.
    cursors: Cursors<Key>,
    /// The key after which [`take_out_any`](Self::take_out_any) continues.
    cursor: Key,
}

impl<R> Queue<R> {
    /// Returns an empty queue for at most `limit` threads.
    pub const fn new(limit: usize) -> Queue<R> {
        Queue {
            waiters: BTreeMap::new(),
            families: Turns::new(),
            processes: Turns::new(),
            arrivals: 0,
            next: NEVER,
            quota: Quota::new(limit),
            cursors: Cursors::new(),
            cursor: FIRST,
        }
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        self.quota.may_take(client)
    }

    /// Returns how many threads wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Returns whether no thread waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Returns how many threads of a process wait.
    pub fn held(&self, process: u64) -> usize {
        self.quota.held(process)
    }

    /// Returns the data of the wait with this key.
    pub fn get(&self, key: Key) -> Option<&R> {
        self.waiters.get(&key)
    }

    /// Adds a wait until `deadline`.
    pub fn push(&mut self, deadline: u64, client: Client, reply: R) -> Key {
        let process = client.process;
        let before = self.quota.family_of(process).zip(self.head(process));
        self.arrivals += 1;
        self.quota.take(client);
        let key = Key { process, deadline, arrival: self.arrivals };
        let family = self.quota.family_of(process).unwrap_or(client.family);
        self.waiters.insert(key, reply);
        match before {
            Some((known, head)) if known != family => {
                // The family of the process was not known before.
                self.leave(known, head);
                self.rejoin(known);
                self.enter(family, None, head.min(key));
            }
            _ => self.enter(family, before.map(|(_, head)| head), key),
        }
        self.look_ahead();
        key
    }

    /// Adds a wait, before which `before` was the first of its process. If the new wait comes first, the process waits
    /// for its deadline, and so does the family, if it comes before all of the family. A process or family that is
    /// called stays called.
    fn enter(&mut self, family: u64, before: Option<Key>, key: Key) {
        let first = self.processes.first(family).map(|(head, _)| head);
        let is_first =
            before.is_none_or(|head| key < head && self.processes.stop_waiting(family, head.time(), key.process));
        if !is_first {
            return;
        }
        self.processes.wait(family, key.time(), key.process);
        let is_first = match first {
            Some(first) => key.time() < first && self.families.stop_waiting(ALL, first, family),
            None => !self.processes.is_any_called(family),
        };
        if is_first {
            self.families.wait(ALL, key.time(), family);
        }
    }

    /// Removes a process, whose first wait is `head`, from those that wait for a deadline or for their turn, and its
    /// family likewise.
    fn leave(&mut self, family: u64, head: Key) {
        self.families.remove(ALL, self.processes.first(family).map(|(head, _)| head), family);
        self.processes.remove(family, Some(head.time()), head.process);
    }

    /// Adds a family again after it has [left](Self::leave): waiting for its turn, after all others, if one of its
    /// processes is called, and otherwise for the earliest deadline of one.
    fn rejoin(&mut self, family: u64) {
        if self.processes.is_any_called(family) {
            self.families.call(ALL, family);
        } else if let Some((head, _)) = self.processes.first(family) {
            self.families.wait(ALL, head, family);
        }
    }

    /// Returns the earliest deadline, which is 0 while a deadline has passed.
    #[inline]
    pub const fn next_deadline(&self) -> Option<u64> {
        if self.next == NEVER { None } else { Some(self.next) }
    }

    /// Recomputes the earliest deadline.
    fn look_ahead(&mut self) {
        let first = self.families.first(ALL).map_or(NEVER, |((deadline, _), _)| deadline);
        self.next = if self.families.is_any_called(ALL) { 0 } else { first };
    }

    /// Removes a wait whose deadline is `now` or earlier: of the family whose turn it is, and in that of the process
    /// whose turn it is, the earliest.
    pub fn pop_expired(&mut self, now: u64) -> Option<(Key, R)> {
        if self.next > now || self.next == NEVER {
            return None;
        }
        // No family is called more than once, so this is short if there are few families.
        while self.families.call_first(ALL, now) {}
        let family = self.families.take_next(ALL)?;
        // If none of its processes was called yet, the deadline of its first has passed.
        let process = self.processes.take_next(family).or_else(|| self.processes.take_first(family))?;
        let key = self.head(process)?;
        self.quota.give_back(process);
        let reply = self.waiters.remove(&key);
        // Another process is called before the same again.
        self.processes.call_first(family, now);
        match self.head(process) {
            Some(next) if next.deadline <= now && next.deadline != NEVER => self.processes.call(family, process),
            Some(next) => self.processes.wait(family, next.time(), process),
            None => {}
        }
        self.rejoin(family);
        self.look_ahead();
        reply.map(|reply| (key, reply))
    }

    /// Removes a wait.
    pub fn remove(&mut self, key: Key) -> Option<R> {
        if self.waiters.contains_key(&key) {
            self.take_out(key.process, &[key]).pop().map(|(_, reply)| reply)
        } else {
            None
        }
    }

    /// Removes at most `most` waits of a process that has ended.
    pub fn process_ended(&mut self, process: u64, most: usize) -> Vec<(Key, R)> {
        let keys: Vec<_> = self.waiters.range(of(process)).map(|(key, _)| *key).take(most).collect();
        self.take_out(process, &keys)
    }

    /// Removes the waits of a family that have silently ended, which `has_gone` tells. Examines at most `looks` waits,
    /// and others the next time. Finding the family's processes takes a step for each process that waits.
    pub fn take_out_some(&mut self, family: u64, looks: usize, mut has_gone: impl FnMut(&R) -> bool) -> Vec<(Key, R)> {
        let mut cursor = self.cursors.take(family).unwrap_or(FIRST);
        let (mut gone, mut left) = (Vec::new(), looks.min(self.waiters.len()));
        let mut has_begun_anew = false;
        while left > 0 {
            let Some(process) = self.quota.process_of(family, cursor.process) else {
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
        self.cursors.put(family, cursor);
        gone
    }

    /// As [`take_out_some`](Self::take_out_some), among all waits: a wait begun with the capability of a process that
    /// had ended is examined by nobody of its family.
    pub fn take_out_any(&mut self, looks: usize, mut has_gone: impl FnMut(&R) -> bool) -> Vec<(Key, R)> {
        let behind = (Bound::Excluded(self.cursor), Bound::Unbounded);
        let seen: Vec<_> = self.waiters.range(behind).take(looks).map(|(key, reply)| (*key, has_gone(reply))).collect();
        self.cursor = seen.last().filter(|_| seen.len() == looks).map_or(FIRST, |(key, _)| *key);
        let gone = seen.into_iter().filter(|(_, has_gone)| *has_gone);
        gone.filter_map(|(key, _)| Some((key, self.remove(key)?))).collect()
    }

    /// Removes some waits of a process.
    fn take_out(&mut self, process: u64, keys: &[Key]) -> Vec<(Key, R)> {
        let head = self.head(process).filter(|_| !keys.is_empty());
        let Some((head, family)) = head.zip(self.quota.family_of(process)) else { return Vec::new() };
        self.leave(family, head);
        keys.iter().for_each(|_| self.quota.give_back(process));
        let gone = keys.iter().filter_map(|key| Some((*key, self.waiters.remove(key)?))).collect();
        // The deadlines of the remaining waits may not have passed.
        if let Some(head) = self.head(process) {
            self.processes.wait(family, head.time(), process);
        }
        self.rejoin(family);
        self.look_ahead();
        gone
    }

    /// Returns the earliest wait of a process.
    fn head(&self, process: u64) -> Option<Key> {
        self.waiters.range(of(process)).next().map(|(key, _)| *key)
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.quota.check_invariants();
        assert_eq!(self.quota.taken(), self.waiters.len());
        let (mut processes, mut families) = (Vec::new(), Vec::new());
        for Key { process, .. } in self.waiters.keys() {
            assert_eq!(self.quota.held(*process), self.waiters.range(of(*process)).count());
            let family = self.quota.family_of(*process).expect("it has somebody who waits");
            processes.push((family, *process));
            families.push((ALL, family));
        }
        for (mut wanted, turns) in [(processes, &self.processes), (families, &self.families)] {
            wanted.sort_unstable();
            wanted.dedup();
            let mut found: Vec<_> = turns.all().map(|(group, member, _)| (group, member)).collect();
            found.sort_unstable();
            assert_eq!(
                found, wanted,
                "whoever has threads that wait does so for its time or for its turn, and nobody else"
            );
        }
        for (_, process, head) in self.processes.all().filter(|(.., head)| head.is_some()) {
            assert_eq!(head, self.head(process).map(Key::time), "the first of a process is its earliest");
        }
        for (_, family, head) in self.families.all().filter(|(.., head)| head.is_some()) {
            let first = self.processes.first(family).map(|(head, _)| head);
            assert_eq!((head, self.processes.is_any_called(family)), (first, false), "so does a family with its first");
        }
        let earliest = self.waiters.keys().map(|key| key.deadline).min().unwrap_or(NEVER);
        assert_eq!(self.next, if self.families.is_any_called(ALL) { 0 } else { earliest });
    }
}

impl Key {
    /// Returns the data that determine the order.
    const fn time(self) -> Head {
        (self.deadline, self.arrival)
    }
}

/// A key before all keys.
const FIRST: Key = Key { process: 0, deadline: 0, arrival: 0 };

/// Returns the range of the keys of a process.
const fn of(process: u64) -> RangeInclusive<Key> {
    Key { process, ..FIRST }..=Key { process, deadline: u64::MAX, arrival: u64::MAX }
}
