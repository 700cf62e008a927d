//! Condition variables.

use core::sync::atomic::AtomicUsize;

use tench_sys::Instant;

use super::mutex::MutexGuard;
use super::{RawCondition, line};

/// A condition variable: threads wait until others notify them of a change.
///
/// Waiters are woken in the order in which they came. There are no spurious wake-ups, but a woken thread has to check
/// the condition again: another thread may have been faster.
pub struct Condvar {
    raw: RawCondition,
}

impl Condvar {
    /// Returns a condition variable without waiters.
    pub const fn new() -> Condvar {
        Condvar { raw: RawCondition::of(AtomicUsize::new(0), line()) }
    }

    /// Releases the lock, waits to be notified, and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        // SAFETY: the guard exists, so this thread holds the lock.
        guard.wait_with(|lock| unsafe { self.raw.wait(lock) }).0
    }

    /// Waits as long as a condition holds.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// As [`wait`](Self::wait), with a deadline. Also returns whether the thread was notified.
    pub fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, deadline: Instant) -> (MutexGuard<'a, T>, bool) {
        // SAFETY: the guard exists, so this thread holds the lock.
        guard.wait_with(|lock| unsafe { self.raw.wait_until(lock, deadline.ticks()) })
    }

    /// Wakes the thread that has waited longest.
    pub fn notify_one(&self) {
        self.raw.notify_one();
    }

    /// Wakes all threads that wait now.
    pub fn notify_all(&self) {
        self.raw.notify_all();
    }

    /// Returns the number of waiters. Panics if the state is inconsistent.
    pub fn check_invariants(&self) -> usize {
        self.raw.check_invariants()
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mutex;
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn each_produced_item_is_consumed_once() {
        let (queue, filled) = (Mutex::new(VecDeque::new()), Condvar::new());
        let sum: u64 = std::thread::scope(|scope| {
            let consumers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut sum = 0;
                        loop {
                            let mut guard = filled.wait_while(queue.lock(), |queue| queue.is_empty());
                            match guard.pop_front() {
                                Some(0) | None => return sum,
                                Some(number) => sum += number,
                            }
                        }
                    })
                })
                .collect();
            for number in 1..=2_000 {
                queue.lock().push_back(number);
                filled.notify_one();
            }
            queue.lock().extend([0; 4]);
            filled.notify_all();
            consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
        });
        assert_eq!(sum, 2_000 * 2_001 / 2);
    }

    #[test]
    fn a_wait_can_time_out() {
        let (mutex, condvar) = (Mutex::new(()), Condvar::new());
        let (guard, notified) = condvar.wait_until(mutex.lock(), Instant::from_ticks(0));
        assert!(!notified && mutex.try_lock().is_none());
        drop(guard);
        assert_eq!(condvar.check_invariants(), 0);
        condvar.notify_one();
    }
}
