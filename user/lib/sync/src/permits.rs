//! Semaphores.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Platform, Word};
use crate::waiter::{Line, Waiter};

/// State bit: a thread waits, and there are no permits.
const WAITED: usize = 1;
/// State increment for one permit.
const PERMIT: usize = 2;

/// A semaphore.
///
/// The state is twice the number of permits, or [`WAITED`]. That bit is set and cleared under the line's lock; while it
/// is set, a permit goes straight to the thread that has waited longest.
pub struct Permits<P: Platform> {
    state: P::Word,
    line: Line<P>,
}

/// Error: the number of permits is at its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl<P: Platform> Permits<P> {
    /// Maximum number of permits.
    pub const MAX: usize = usize::MAX / PERMIT;

    /// Returns the initial value of the first word for this many permits.
    pub const fn word(permits: usize) -> usize {
        permits * PERMIT
    }

    /// Returns a semaphore made from a word (see [`word`](Self::word)) and an empty line.
    pub const fn of(state: P::Word, line: Line<P>) -> Permits<P> {
        Permits { state, line }
    }

    /// Returns a semaphore with this many permits, at most [`MAX`](Self::MAX).
    pub fn new(permits: usize) -> Permits<P> {
        Permits::of(P::Word::new(Self::word(permits)), Line::new())
    }

    /// Returns the number of free permits.
    pub fn available(&self) -> usize {
        self.state.load(Relaxed) / PERMIT
    }

    /// Takes a permit if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        while state >= PERMIT {
            match self.state.replace(state, state - PERMIT, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes a permit, after waiting if necessary.
    #[inline]
    pub fn acquire(&self) {
        if !self.try_acquire() {
            self.wait_for(None);
        }
    }

    /// Takes a permit, waiting at most until a deadline. Returns whether a permit was taken.
    #[inline]
    pub fn acquire_until(&self, deadline: u64) -> bool {
        self.try_acquire() || self.wait_for(Some(deadline))
    }

    #[cold]
    fn wait_for(&self, deadline: Option<u64>) -> bool {
        let waiter = Waiter::new();
        let waits = self.line.with(|list| {
            while self.state.load(Relaxed) != WAITED {
                if self.try_acquire() {
                    return false;
                }
                // This fails if a permit has become free.
                let _ = self.state.replace(0, WAITED, Relaxed, Relaxed);
            }
            // SAFETY: this function returns only when the waiter was woken or has left the list.
            unsafe { list.push(&waiter) };
            true
        });
        match deadline {
            _ if !waits => true,
            None => {
                waiter.wait();
                true
            }
            Some(deadline) => waiter.wait_until(deadline) || !self.leave(&waiter),
        }
    }

    /// Stops waiting. Returns false if a permit has come at the last moment.
    fn leave(&self, waiter: &Waiter<P>) -> bool {
        let left = self.line.with(|list| {
            let left = list.remove(waiter);
            if left && list.is_empty() {
                self.state.store(0, Relaxed);
            }
            left
        });
        if !left {
            // The thread that took the waiter out of the list is about to wake it, and will access it until then.
            waiter.wait();
        }
        left
    }

    /// Returns a permit.
    #[inline]
    pub fn release(&self) -> Result<(), Overflow> {
        let mut state = self.state.load(Relaxed);
        loop {
            if state == WAITED {
                if self.hand_over() {
                    return Ok(());
                }
                state = self.state.load(Relaxed);
                continue;
            }
            let more = state.checked_add(PERMIT).ok_or(Overflow)?;
            match self.state.replace(state, more, Release, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => state = now,
            }
        }
    }

    /// Gives a permit to the thread that has waited longest; returns false if no thread waits any more.
    #[cold]
    fn hand_over(&self) -> bool {
        let first = self.line.with(|list| {
            let first = list.pop();
            if first.is_some() && list.is_empty() {
                self.state.store(0, Relaxed);
            }
            first
        });
        match first {
            Some(waiter) => {
                // SAFETY: the waiter was in the list, so it waits, and now it is in no list.
                unsafe { Waiter::wake(waiter) };
                true
            }
            None => false,
        }
    }

    /// Returns the number of waiters. Panics if the state is inconsistent.
    pub fn check_invariants(&self) -> usize {
        let waiting = self.line.check_invariants();
        assert!(self.state.load(Relaxed) == WAITED || self.state.load(Relaxed).is_multiple_of(PERMIT));
        waiting
    }
}
