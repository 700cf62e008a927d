//! Semaphores.

use core::sync::atomic::AtomicUsize;

use tench_sync::Overflow;
use tench_sys::Instant;

use super::{RawPermits, line};

/// A semaphore. Its permits go to threads in the order of their requests.
pub struct Semaphore {
    raw: RawPermits,
}

impl Semaphore {
    /// Returns a semaphore with this many permits.
    pub const fn new(permits: usize) -> Semaphore {
        Semaphore { raw: RawPermits::of(AtomicUsize::new(RawPermits::word(permits)), line()) }
    }

    /// Takes a permit, after waiting if necessary.
    #[inline]
    pub fn acquire(&self) {
        self.raw.acquire();
    }

    /// Takes a permit if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.raw.try_acquire()
    }

    /// Takes a permit, waiting at most until a deadline. Returns whether a permit was taken.
    #[inline]
    pub fn acquire_until(&self, deadline: Instant) -> bool {
        self.raw.acquire_until(deadline.ticks())
    }

    /// Returns a permit, or adds one. Fails with [`Overflow`] if the count is at its maximum.
    #[inline]
    pub fn release(&self) -> Result<(), Overflow> {
        self.raw.release()
    }

    /// Returns the number of free permits.
    pub fn available(&self) -> usize {
        self.raw.available()
    }

    /// Returns the number of waiters. Panics if the state is inconsistent.
    pub fn check_invariants(&self) -> usize {
        self.raw.check_invariants()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_than_permitted() {
        let (semaphore, inside) = (Semaphore::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        semaphore.acquire();
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < 3);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        semaphore.release().unwrap();
                    }
                });
            }
        });
        assert_eq!((semaphore.available(), semaphore.check_invariants()), (3, 0));
    }

    #[test]
    fn waits_end_and_counts_are_bounded() {
        let semaphore = Semaphore::new(0);
        assert!(!semaphore.try_acquire() && !semaphore.acquire_until(Instant::from_ticks(0)));
        assert_eq!((semaphore.release(), semaphore.available()), (Ok(()), 1));
        assert_eq!(Semaphore::new(RawPermits::MAX).release(), Err(Overflow));
    }
}
