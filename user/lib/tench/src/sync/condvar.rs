//! Condition variables.

use core::sync::atomic::{AtomicBool, Ordering};

use tench_sys::Instant;

use super::mutex::{Mutex, MutexGuard};
use super::queue::{Waiter, WaiterList};

/// Lets threads wait until others say that something has changed.
///
/// Waiters are woken in the order in which they came. There are no spurious wake-ups, but whoever is woken has to look
/// again: somebody else may have been faster.
pub struct Condvar {
    /// Whether somebody waits, so that a notification without waiters costs one load.
    waited: AtomicBool,
    waiters: Mutex<Waiters>,
}

struct Waiters(WaiterList);

// SAFETY: the list names waiters on other threads' stacks, and may be used by any thread that holds its lock.
unsafe impl Send for Waiters {}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Condvar {
        Condvar { waited: AtomicBool::new(false), waiters: Mutex::new(Waiters(WaiterList::new())) }
    }

    /// Gives the lock up, waits to be notified, and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let waiter = Waiter::new();
        let mutex = self.enqueue(&waiter, guard);
        waiter.wait();
        mutex.lock()
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

    /// As [`wait`](Self::wait), until a time at most. Also answers whether it was notified.
    pub fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, deadline: Instant) -> (MutexGuard<'a, T>, bool) {
        let waiter = Waiter::new();
        let mutex = self.enqueue(&waiter, guard);
        if !waiter.wait_until(deadline) {
            let waiters = self.waiters.lock();
            let left = waiters.0.remove(&waiter);
            self.waited.store(!waiters.0.is_empty(), Ordering::Relaxed);
            drop(waiters);
            if left {
                return (mutex.lock(), false);
            }
            // Somebody took it out of the list and is about to wake it, and will touch it until then.
            waiter.wait();
        }
        (mutex.lock(), true)
    }

    /// Puts a waiter in the list, and then gives the lock up.
    fn enqueue<'a, T>(&self, waiter: &Waiter, guard: MutexGuard<'a, T>) -> &'a Mutex<T> {
        let waiters = self.waiters.lock();
        // SAFETY: the callers' waiters stay where they are until they were woken or have removed themselves.
        unsafe { waiters.0.push(waiter) };
        self.waited.store(true, Ordering::Relaxed);
        drop(waiters);
        guard.mutex()
    }

    /// Wakes the thread that has waited longest.
    pub fn notify_one(&self) {
        // Whoever began to wait before the caller changed something did so under the same lock as the caller.
        if !self.waited.load(Ordering::Relaxed) {
            return;
        }
        let waiters = self.waiters.lock();
        let oldest = waiters.0.pop();
        self.waited.store(!waiters.0.is_empty(), Ordering::Relaxed);
        drop(waiters);
        if let Some(waiter) = oldest {
            // SAFETY: it was in the list, so it waits, and now it is in no list.
            unsafe { Waiter::wake(waiter) };
        }
    }

    /// Wakes all threads that wait now.
    pub fn notify_all(&self) {
        if !self.waited.load(Ordering::Relaxed) {
            return;
        }
        let waiters = self.waiters.lock();
        while let Some(waiter) = waiters.0.pop() {
            // SAFETY: as in `notify_one`.
            unsafe { Waiter::wake(waiter) };
        }
        self.waited.store(false, Ordering::Relaxed);
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn everything_that_is_produced_is_consumed_once() {
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
        assert!(condvar.waiters.lock().0.is_empty() && !condvar.waited.load(Ordering::Relaxed));
        condvar.notify_one();
    }
}
