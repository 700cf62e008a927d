//! Who waits until when.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tench_places::Places;

/// Bytes of heap that a request may need, with at most 1024 threads that wait. A test counts.
pub const GROWTH: usize = 30 << 10;

/// Somebody who waits. `R` is what it takes to answer.
struct Waiter<R> {
    process: u64,
    reply: R,
}

/// Waiting threads in the order of their deadlines, and of arrival where these are equal.
pub struct Queue<R> {
    waiters: BTreeMap<(u64, u64), Waiter<R>>,
    arrivals: u64,
    places: Places,
}

impl<R> Queue<R> {
    /// An empty queue for at most `limit` threads.
    pub const fn new(limit: usize) -> Queue<R> {
        Queue { waiters: BTreeMap::new(), arrivals: 0, places: Places::new(limit) }
    }

    /// Whether one more thread of a process may wait.
    pub fn may_wait(&self, process: u64) -> bool {
        self.places.may_take(process)
    }

    /// Lets somebody wait until `deadline`.
    pub fn push(&mut self, deadline: u64, process: u64, reply: R) {
        self.arrivals += 1;
        self.places.take(process);
        self.waiters.insert((deadline, self.arrivals), Waiter { process, reply });
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Option<u64> {
        self.waiters.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    /// Takes out the first whose deadline is `now` or earlier.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        let first = self.waiters.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let Waiter { process, reply } = first.remove();
        self.places.give_back(process);
        Some(reply)
    }

    /// Takes out everybody of a process that has ended.
    pub fn process_ended(&mut self, process: u64) -> Vec<R> {
        self.take_out(process, |_| true)
    }

    /// Takes out those of a process who do not wait any more, without having said so: `has_gone` says which.
    pub fn take_out(&mut self, process: u64, mut has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        if self.places.held(process) == 0 {
            return Vec::new();
        }
        let mut is_one = |waiter: &Waiter<R>| waiter.process == process && has_gone(&waiter.reply);
        let keys: Vec<_> = self.waiters.iter().filter(|(_, waiter)| is_one(waiter)).map(|(&key, _)| key).collect();
        keys.iter().for_each(|_| self.places.give_back(process));
        keys.iter().filter_map(|key| self.waiters.remove(key)).map(|waiter| waiter.reply).collect()
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.places.check_invariants();
        assert_eq!(self.places.taken(), self.waiters.len());
        for waiter in self.waiters.values() {
            let all = self.waiters.values().filter(|other| other.process == waiter.process).count();
            assert_eq!(self.places.held(waiter.process), all);
        }
    }
}
