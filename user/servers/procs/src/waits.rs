//! Who waits for the end of which process, and until when.
//!
//! A wait is found by its key in the queue, and through an ordered set by the process whose end is awaited: finding one
//! takes O(log n) steps.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tench_places::Client;
use tench_places::queue::{Key, NEVER, Queue};

/// Threads that can wait. A family can have half of these places.
pub const MAX_WAITS: usize = 2048;
/// Waits of a family that are checked when a request finds no place.
pub const LOOKS: usize = 128;
/// Waits of anybody that are checked when a process ends, here or on another core.
pub const LOOKS_AT_END: usize = 8;

/// A wait. `R` is what it takes to answer.
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
    /// A thread of `waiter` waits for the end of `target`, until a time if it says so.
    pub fn begin(&mut self, target: u64, waiter: Client, deadline: Option<u64>, reply: R) {
        let wait = Wait { target, family: waiter.family, reply };
        let key = self.queue.push(deadline.unwrap_or(NEVER), waiter, wait);
        self.by_target.insert(of_target(target, key));
    }

    /// The waits for `target`, in the order in which they began.
    fn of(&self, target: u64) -> impl Iterator<Item = Key> {
        let range = (target, 0, 0, 0)..=(target, u64::MAX, u64::MAX, u64::MAX);
        self.by_target.range(range).map(|&(_, arrival, process, deadline)| Key { process, deadline, arrival })
    }

    /// Removes a wait that was taken out of the queue from `by_target`. Returns its reply.
    fn forget(&mut self, (key, wait): (Key, Wait<R>)) -> R {
        self.by_target.remove(&of_target(wait.target, key));
        wait.reply
    }

    /// The same for some.
    fn forget_all(&mut self, taken: Vec<(Key, Wait<R>)>) -> Vec<R> {
        taken.into_iter().map(|taken| self.forget(taken)).collect()
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        self.queue.may_wait(client)
    }

    /// How many wait for `target`; counts no further than `limit`.
    pub fn count_for(&self, target: u64, limit: usize) -> usize {
        self.of(target).take(limit).count()
    }

    /// How many threads of `waiter` wait.
    pub fn count_of(&self, waiter: u64) -> usize {
        self.queue.held(waiter)
    }

    /// Returns how many of those who wait for `target` are threads of a family; looks at no more than `limit`.
    pub fn count_between(&self, target: u64, family: u64, limit: usize) -> usize {
        let is_of = |key: &Key| self.queue.get(*key).is_some_and(|wait| wait.family == family);
        self.of(target).take(limit).filter(is_of).count()
    }

    /// `target` has ended: takes out everybody who waited for it, in the order in which they came.
    pub fn target_ended(&mut self, target: u64) -> Vec<R> {
        let keys: Vec<Key> = self.of(target).collect();
        self.take_out(keys)
    }

    /// Takes these out.
    fn take_out(&mut self, keys: Vec<Key>) -> Vec<R> {
        let taken = keys.into_iter().filter_map(|key| Some((key, self.queue.remove(key)?))).collect();
        self.forget_all(taken)
    }

    /// `waiter` has ended: takes out what its threads waited with.
    pub fn waiter_ended(&mut self, waiter: u64) -> Vec<R> {
        let taken = self.queue.process_ended(waiter, usize::MAX);
        self.forget_all(taken)
    }

    /// Takes out those, among the waits for `target`, some of the family's of `waiter` and some of all, whose thread
    /// does not wait any more.
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

    /// Takes out those, among a few waits, whose thread does not wait any more; it is others the next time.
    pub fn look(&mut self, mut has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        let taken = self.queue.take_out_any(LOOKS_AT_END, |wait| has_gone(&wait.reply));
        self.forget_all(taken)
    }

    /// The earliest deadline, which is 0 while anybody's time has come.
    pub fn next_deadline(&self) -> Option<u64> {
        self.queue.next_deadline()
    }

    /// Takes out one whose deadline is `now` or earlier: the earliest of the process whose turn it is.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        let expired = self.queue.pop_expired(now)?;
        Some(self.forget(expired))
    }

    /// Panics unless queue and set say the same, and everybody waits for a process for which `is_living` holds, and is
    /// one of it.
    pub fn check_invariants(&self, is_living: impl Fn(u64) -> bool) {
        self.queue.check_invariants();
        assert_eq!(self.by_target.len(), self.queue.len());
        for &(target, arrival, process, deadline) in &self.by_target {
            let wait = self.queue.get(Key { process, deadline, arrival });
            assert_eq!(wait.map(|wait| wait.target), Some(target));
            assert!(is_living(target), "nobody waits for {target}, which has ended");
            assert!(is_living(process), "nobody of {process} waits, which has ended");
        }
    }
}

/// Where a wait for `target` stands in the set.
const fn of_target(target: u64, Key { process, deadline, arrival }: Key) -> (u64, u64, u64, u64) {
    (target, arrival, process, deadline)
}
