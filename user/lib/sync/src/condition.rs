//! Waiting until somebody says that something has changed.

use core::sync::atomic::Ordering::Relaxed;

use crate::lock::FairLock;
use crate::platform::{Platform, Word};
use crate::waiter::{Line, Waiter, wake_all};

/// A condition variable for data behind a [`FairLock`].
///
/// Waiters are woken in the order in which they came. None wakes without having been notified or its time being up, but
/// whoever is woken has to look again: somebody else may have been faster.
pub struct Condition<P: Platform> {
    /// Whether somebody waits, so that a notification without waiters costs one load.
    waited: P::Word,
    line: Line<P>,
}

impl<P: Platform> Condition<P> {
    /// Nobody waits; made of a word that is 0 and an empty line.
    pub const fn of(waited: P::Word, line: Line<P>) -> Condition<P> {
        Condition { waited, line }
    }

    /// Nobody waits.
    pub fn new() -> Condition<P> {
        Condition::of(P::Word::new(0), Line::new())
    }

    /// Gives the lock up, waits to be notified, and takes the lock again.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub unsafe fn wait(&self, lock: &FairLock<P>) {
        // SAFETY: the caller holds the lock.
        self.wait_with(None, || unsafe { lock.unlock() });
        lock.lock();
    }

    /// The same until a time at most. Answers whether it was notified.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub unsafe fn wait_until(&self, lock: &FairLock<P>, deadline: u64) -> bool {
        // SAFETY: the caller holds the lock.
        let notified = self.wait_with(Some(deadline), || unsafe { lock.unlock() });
        lock.lock();
        notified
    }

    /// Waits to be notified, until a time if there is one; `release` gives the lock up, whichever kind of lock it is,
    /// when notifications are no longer missed. Answers whether it was notified.
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
            // Somebody took it out of the list and is about to wake it, and will touch it until then.
            waiter.wait();
        }
        !left
    }

    /// Wakes the thread that has waited longest.
    pub fn notify_one(&self) {
        // Whoever began to wait before the caller changed something did so under the same lock as the caller.
        if self.waited.load(Relaxed) == 0 {
            return;
        }
        let first = self.line.with(|list| {
            let first = list.pop();
            self.waited.store(usize::from(!list.is_empty()), Relaxed);
            first
        });
        if let Some(waiter) = first {
            // SAFETY: it was in the list, so it waits, and now it is in no list.
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
        // SAFETY: they were in the list, so they wait, and now they are in no list.
        unsafe { wake_all(all) };
    }

    /// How many wait. Panics if the state contradicts itself.
    pub fn check_invariants(&self) -> usize {
        self.line.check_invariants()
    }
}

impl<P: Platform> Default for Condition<P> {
    fn default() -> Self {
        Self::new()
    }
}
