//! The algorithms' requirements of the system below.

use core::sync::atomic::{AtomicUsize, Ordering};

/// A word in memory that several threads access at the same time.
pub trait Word {
    /// Returns a word with this value.
    fn new(value: usize) -> Self;
    /// Returns the value.
    fn load(&self, order: Ordering) -> usize;
    /// Sets the value.
    fn store(&self, value: usize, order: Ordering);
    /// Sets the value, and returns the old one.
    fn swap(&self, value: usize, order: Ordering) -> usize;
    /// Sets the value if it is `current`; otherwise fails with the actual value.
    fn replace(&self, current: usize, new: usize, success: Ordering, failure: Ordering) -> Result<usize, usize>;
    /// Adds to the value, and returns the old one.
    fn add(&self, value: usize, order: Ordering) -> usize;
    /// Subtracts from the value, and returns the old one.
    fn subtract(&self, value: usize, order: Ordering) -> usize;
    /// Sets bits, and returns the old value.
    fn set_bits(&self, bits: usize, order: Ordering) -> usize;
    /// Clears bits, and returns the old value.
    fn clear_bits(&self, bits: usize, order: Ordering) -> usize;
}

impl Word for AtomicUsize {
    #[inline]
    fn new(value: usize) -> Self {
        AtomicUsize::new(value)
    }

    #[inline]
    fn load(&self, order: Ordering) -> usize {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: usize, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn swap(&self, value: usize, order: Ordering) -> usize {
        self.swap(value, order)
    }

    #[inline]
    fn replace(&self, current: usize, new: usize, success: Ordering, failure: Ordering) -> Result<usize, usize> {
        self.compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn add(&self, value: usize, order: Ordering) -> usize {
        self.fetch_add(value, order)
    }

    #[inline]
    fn subtract(&self, value: usize, order: Ordering) -> usize {
        self.fetch_sub(value, order)
    }

    #[inline]
    fn set_bits(&self, bits: usize, order: Ordering) -> usize {
        self.fetch_or(bits, order)
    }

    #[inline]
    fn clear_bits(&self, bits: usize, order: Ordering) -> usize {
        self.fetch_and(!bits, order)
    }
}

/// Threads' sleeping and waking.
pub trait Platform: Sized {
    /// Type of a word in memory.
    type Word: Word;
    /// Handle for waking one thread.
    type Parker: Clone;

    /// Returns the handle for waking the running thread.
    fn own() -> Self::Parker;

    /// Sleeps until [`unpark`](Self::unpark) is called with the running thread's handle, or returns at once if that
    /// happened since it last slept; may also return without that.
    fn park(own: &Self::Parker);

    /// As [`park`](Self::park), at most until a deadline in ticks of the system's counter. Returns whether the deadline
    /// was still to come when it returned.
    fn park_until(own: &Self::Parker, deadline: u64) -> bool;

    /// Wakes a thread, or makes its next sleep end at once.
    fn unpark(parker: &Self::Parker);
}
