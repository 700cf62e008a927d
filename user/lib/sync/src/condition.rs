//! Condition variables.

use core::sync::atomic::Ordering::Relaxed;

use crate::lock::FairLock;
use crate::platform::{Platform, Word};
use crate::waiter::{Line, Waiter, wake_all};

/// A condition variable for data behind a [`FairLock`].
///
/// Waiters are woken in the order in which they came. None wakes without a notification or the end of its deadline, but
/// a woken thread has to check the condition again: another thread may have been faster.
pub struct Condition<P: Platform> {
    /// Set while a thread may be waiting, so that a notification without waiters costs one load.
    waited: P::Word,
    line: Line<P>,
}

impl<P: Platform> Condition<P> {
    /// Returns a condition variable without waiters, made from a word that is 0 and an empty line.
    pub const fn of(waited: P::Word, line: Line<P>) -> Condition<P> {
        Condition { waited, line }
    }

    /// Returns a condition variable without waiters.
    pub fn new() -> Condition<P> {
        Condition::of(P::Word::new(0), Line::new())
    }

    /// Releases the lock, waits to be notified, and takes the lock again.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub unsafe fn wait(&self, lock: &FairLock<P>) {
        // SAFETY: the caller holds the lock.
        self.wait_with(None, || unsafe { lock.unlock() });
        lock.lock();
    }

    /// As [`wait`](Self::wait), at most until a deadline. Returns whether the thread was notified.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub unsafe fn wait_until(&self, lock: &FairLock<P>, deadline: u64) -> bool {
        // SAFETY: the caller holds the lock.
        let notified = self.wait_with(Some(deadline), || unsafe { lock.unlock() });
        lock.lock();
        notified
    }

    /// Waits to be notified, at most until a deadline if there is one; `release` releases the lock, of whatever kind,
    /// once notifications can no longer be missed. Returns whether the thread was notified.
    pub fn wait_with(&self, deadline: Option<u64>, release: impl FnOnce()) -> bool {
        let waiter = Waiter::new();
        self.line.with(|list| {
            // SAFETY: this function returns only when the waiter was woken or has left the list.
            unsafe { list.push(&waiter) };
            self.waited.store(1, Relaxed);
        });
        release();
        let Some(deadline) = deadline else {
            waiter.wait();
            return true;
        };
        if waiter.wait_until(deadline) {
            return true;
        }
        let left = self.line.with(|list| {
            let left = list.remove(&waiter);
            self.waited.store(usize::from(!list.is_empty()), Relaxed);
            left
        });
        if !left {
            // Another thread took the waiter out of the list and is about to wake it, and will access it until then.
            waiter.wait();
        }
        !left
    }

    /// Wakes the thread that has waited longest.
    pub fn notify_one(&self) {
        // A thread that began to wait before the caller's change did so under the same lock as the caller.
        if self.waited.load(Relaxed) == 0 {
            return;
        }
        let first = self.line.with(|list| {
            let first = list.pop();
            self.waited.store(usize::from(!list.is_empty()), Relaxed);
            first
        });
        if let Some(waiter) = first {
            // SAFETY: the waiter was in the list, so it waits, and now it is in no list.
            unsafe { Waiter::wake(waiter) };
        }
    }

    /// Wakes all threads that wait now.
    pub fn notify_all(&self) {
        if self.waited.load(Relaxed) == 0 {
            return;
        }
        let all = self.line.with(|list| {
            self.waited.store(0, Relaxed);
            list.take_all()
        });
        // SAFETY: the waiters were in the list, so they wait, and now they are in no list.
        unsafe { wake_all(all) };
    }

    /// Returns the number of waiters. Panics if the state is inconsistent.
    pub fn check_invariants(&self) -> usize {
        self.line.check_invariants()
    }
}

impl<P: Platform> Default for Condition<P> {
    fn default() -> Self {
        Self::new()
    }
}
