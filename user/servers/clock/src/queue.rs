//! Who waits until when.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

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
    limit: usize,
}

impl<R> Queue<R> {
    /// An empty queue for at most `limit` threads.
    pub const fn new(limit: usize) -> Queue<R> {
        Queue { waiters: BTreeMap::new(), arrivals: 0, limit }
    }

    /// Whether nobody more may wait.
    pub fn is_full(&self) -> bool {
        self.waiters.len() >= self.limit
    }

    /// Lets somebody wait until `deadline`.
    pub fn push(&mut self, deadline: u64, process: u64, reply: R) {
        self.arrivals += 1;
        self.waiters.insert((deadline, self.arrivals), Waiter { process, reply });
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Option<u64> {
        self.waiters.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    /// Takes out the first whose deadline is `now` or earlier.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        let first = self.waiters.first_entry()?;
        if first.key().0 > now { None } else { Some(first.remove().reply) }
    }

    /// Takes out everybody of a process that has ended.
    pub fn process_ended(&mut self, process: u64) -> Vec<R> {
        let keys: Vec<_> =
            self.waiters.iter().filter(|(_, waiter)| waiter.process == process).map(|(&key, _)| key).collect();
        keys.iter().filter_map(|key| self.waiters.remove(key)).map(|waiter| waiter.reply).collect()
    }
}
