//! The set of waits: which thread waits for the end of which process, and until when.
//!
//! A wait is found in the queue by its key, and in an ordered set by the process whose end is awaited: finding one
//! takes O(log n) steps.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tench_quota::Client;
use tench_quota::queue::{Key, NEVER, Queue};

/// Maximum number of waiting threads. A family can have half of them.
pub const MAX_WAITS: usize = 2048;
/// Number of waits of a family that are checked when a request finds no room.
pub const LOOKS: usize = 128;
/// Number of waits of any family that are checked when a process ends, here or on another core.
pub const LOOKS_AT_END: usize = 8;

/// A wait. `R` is what it takes to reply.
struct Wait<R> {
    target: u64,
    family: u64,
    reply: R,
}

/// All waits.
pub struct Waits<R> {
    queue: Queue<Wait<R>>,
    /// Target, arrival, and the rest of the key.
    by_target: BTreeSet<(u64, u64, u64, u64)>,
}

impl<R> Default for Waits<R> {
    fn default() -> Self {
        Waits { queue: Queue::new(MAX_WAITS), by_target: BTreeSet::new() }
    }
}

impl<R> Waits<R> {
    /// Adds a thread of `waiter` that waits for the end of `target`, until the deadline if there is one.
    pub fn add(&mut self, target: u64, waiter: Client, deadline: Option<u64>, reply: R) {
        let wait = Wait { target, family: waiter.family, reply };
        let key = self.queue.push(deadline.unwrap_or(NEVER), waiter, wait);
        self.by_target.insert(of_target(target, key));
    }

    /// Returns the waits for `target`, in the order in which they began.
    fn of(&self, target: u64) -> impl Iterator<Item = Key> {
        let range = (target, 0, 0, 0)..=(target, u64::MAX, u64::MAX, u64::MAX);
        self.by_target.range(range).map(|&(_, arrival, process, deadline)| Key { process, deadline, arrival })
    }

    /// Removes a wait that was taken out of the queue from `by_target`. Returns its reply.
    fn forget(&mut self, (key, wait): (Key, Wait<R>)) -> R {
        self.by_target.remove(&of_target(wait.target, key));
        wait.reply
    }

    /// Removes several waits that were taken out of the queue. Returns their replies.
    fn forget_all(&mut self, taken: Vec<(Key, Wait<R>)>) -> Vec<R> {
        taken.into_iter().map(|taken| self.forget(taken)).collect()
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        self.queue.may_wait(client)
    }

    /// Returns how many threads wait for `target`; counts no further than `limit`.
    pub fn count_for(&self, target: u64, limit: usize) -> usize {
        self.of(target).take(limit).count()
    }

    /// Returns how many threads of `waiter` wait.
    pub fn count_of(&self, waiter: u64) -> usize {
        self.queue.held(waiter)
    }

    /// Returns how many of the threads that wait for `target` belong to a family; looks at no more than `limit`.
    pub fn count_between(&self, target: u64, family: u64, limit: usize) -> usize {
        let is_of = |key: &Key| self.queue.get(*key).is_some_and(|wait| wait.family == family);
        self.of(target).take(limit).filter(is_of).count()
    }

    /// Removes and returns all waits for `target`, which has ended, in the order of their arrival.
    pub fn target_ended(&mut self, target: u64) -> Vec<R> {
        let keys: Vec<Key> = self.of(target).collect();
        self.take_out(keys)
    }

    /// Removes the waits with these keys.
    fn take_out(&mut self, keys: Vec<Key>) -> Vec<R> {
        let taken = keys.into_iter().filter_map(|key| Some((key, self.queue.remove(key)?))).collect();
        self.forget_all(taken)
    }

    /// Removes and returns the waits of the threads of `waiter`, which has ended.
    pub fn waiter_ended(&mut self, waiter: u64) -> Vec<R> {
        let taken = self.queue.process_ended(waiter, usize::MAX);
        self.forget_all(taken)
    }

    /// Removes, among some waits for `target` by the family of `waiter` and some by any family, those whose thread has
    /// stopped waiting.
    pub fn give_back(&mut self, target: u64, waiter: Client, mut has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        let is_gone = |key: &Key| self.queue.get(*key).is_some_and(|wait| has_gone(&wait.reply));
        let keys: Vec<Key> = self.of(target).filter(is_gone).collect();
        let mut gone = self.take_out(keys);
        let taken = self.queue.take_out_some(waiter.family, LOOKS, |wait| has_gone(&wait.reply));
        gone.extend(self.forget_all(taken));
        let taken = self.queue.take_out_any(LOOKS, |wait| has_gone(&wait.reply));
        gone.extend(self.forget_all(taken));
        gone
    }

    /// Removes, among a few waits, those whose thread has stopped waiting. The next call checks others.
    pub fn look(&mut self, mut has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        let taken = self.queue.take_out_any(LOOKS_AT_END, |wait| has_gone(&wait.reply));
        self.forget_all(taken)
    }

    /// Returns the earliest deadline, or 0 while some wait has expired.
    pub fn next_deadline(&self) -> Option<u64> {
        self.queue.next_deadline()
    }

    /// Removes a wait whose deadline is `now` or earlier: the earliest of the process whose turn it is.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        let expired = self.queue.pop_expired(now)?;
        Some(self.forget(expired))
    }

    /// Panics unless queue and set agree, and each wait is by and for a process for which `is_live` holds.
    pub fn check_invariants(&self, is_live: impl Fn(u64) -> bool) {
        self.queue.check_invariants();
        assert_eq!(self.by_target.len(), self.queue.len());
        for &(target, arrival, process, deadline) in &self.by_target {
            let wait = self.queue.get(Key { process, deadline, arrival });
            assert_eq!(wait.map(|wait| wait.target), Some(target));
            assert!(is_live(target), "nobody waits for {target}, which has ended");
            assert!(is_live(process), "nobody of {process} waits, which has ended");
        }
    }
}

/// Returns the key in `by_target` of a wait for `target`.
const fn of_target(target: u64, Key { process, deadline, arrival }: Key) -> (u64, u64, u64, u64) {
    (target, arrival, process, deadline)
}
