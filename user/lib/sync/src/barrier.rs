//! Barriers.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Platform, Word};
use crate::waiter::{Line, Waiter, wake_all};

/// A point that threads pass together, repeatedly.
pub struct Barrier<P: Platform> {
    /// Number of threads that have arrived; changes under the line's lock.
    arrived: P::Word,
    line: Line<P>,
    size: usize,
}

impl<P: Platform> Barrier<P> {
    /// Returns a barrier for `size` threads, made from a word that is 0 and an empty line.
    pub const fn of(arrived: P::Word, line: Line<P>, size: usize) -> Barrier<P> {
        Barrier { arrived, line, size }
    }

    /// Returns a barrier for `size` threads.
    pub fn new(size: usize) -> Barrier<P> {
        Barrier::of(P::Word::new(0), Line::new(), size)
    }

    /// Waits until as many threads have arrived as the barrier's size. Returns true to the thread that came last.
    pub fn wait(&self) -> bool {
        let waiter = Waiter::new();
        let others = self.line.with(|list| {
            let arrived = self.arrived.load(Relaxed) + 1;
            if arrived >= self.size {
                self.arrived.store(0, Relaxed);
                return Some(list.take_all());
            }
            self.arrived.store(arrived, Relaxed);
            // SAFETY: this function returns only when the waiter was woken.
            unsafe { list.push(&waiter) };
            None
        });
        match others {
            Some(others) => {
                // SAFETY: the waiters were in the list, so they wait, and now they are in no list.
                unsafe { wake_all(others) };
                true
            }
            None => {
                waiter.wait();
                false
            }
        }
    }

    /// Returns the number of waiters. Panics if the state is inconsistent.
    pub fn check_invariants(&self) -> usize {
        let waiting = self.line.check_invariants();
        assert!(waiting < self.size.max(1));
        waiting
    }
}
