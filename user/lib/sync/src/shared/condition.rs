//! Condition variables shared by several processes.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::{Crowd, Error, Gate, Lock, Slept, Taken};
use crate::platform::Word;

/// A condition variable for data behind a [`Lock`]. Its word is 0 at first.
///
/// A member whose bit was cleared by another was notified. Waiters are notified in the order in which they came.
#[repr(transparent)]
pub struct Condition<W> {
    gate: Gate<W>,
}

impl<W: Word> Condition<W> {
    /// Returns a condition variable without waiters.
    pub fn new() -> Condition<W> {
        Condition { gate: Gate::new() }
    }

    /// Releases the lock, waits to be notified, at most until a deadline if there is one, and takes the lock again.
    /// Returns how it was taken, and whether the caller was notified.
    /// Errors: `NotHeld`; then it has not waited.
    pub fn wait(
        &self,
        crowd: &impl Crowd<Word = W>,
        lock: &Lock<W>,
        deadline: Option<u64>,
    ) -> Result<(Taken, bool), Error> {
        self.gate.enter(crowd);
        if let Err(error) = lock.unlock(crowd) {
            self.gate.remove(crowd.me());
            return Err(error);
        }
        let mut in_time = true;
        while in_time && self.gate.has(crowd.me()) {
            in_time = crowd.sleep(deadline) != Slept::TimedOut;
        }
        let notified = in_time || !self.gate.remove(crowd.me());
        Ok((lock.lock(crowd, None)?, notified))
    }

    /// Returns the number of waiting members.
    pub fn waiting(&self) -> u32 {
        self.gate.waiting.load(Relaxed).count_ones()
    }

    /// Wakes the member that has waited longest.
    pub fn notify_one(&self, crowd: &impl Crowd<Word = W>) {
        while let Some(first) = self.gate.first(crowd) {
            if self.gate.remove(first) && crowd.wake(first) {
                return;
            }
        }
    }

    /// Wakes all members that wait now.
    pub fn notify_all(&self, crowd: &impl Crowd<Word = W>) {
        let mut left = self.gate.waiting.swap(0, SeqCst);
        while left != 0 {
            crowd.wake(left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

impl<W: Word> Default for Condition<W> {
    fn default() -> Self {
        Self::new()
    }
}
