//! What the algorithms need of the system below.

use core::sync::atomic::{AtomicUsize, Ordering};

/// A word in memory that several threads use at the same time.
pub trait Word {
    /// With this value.
    fn new(value: usize) -> Self;
    /// Its value.
    fn load(&self, order: Ordering) -> usize;
    /// Sets it.
    fn store(&self, value: usize, order: Ordering);
    /// Sets it, and answers what it was.
    fn swap(&self, value: usize, order: Ordering) -> usize;
    /// Sets it if it is `current`; otherwise answers what it is.
    fn replace(&self, current: usize, new: usize, success: Ordering, failure: Ordering) -> Result<usize, usize>;
    /// Adds, and answers what it was.
    fn add(&self, value: usize, order: Ordering) -> usize;
    /// Subtracts, and answers what it was.
    fn subtract(&self, value: usize, order: Ordering) -> usize;
    /// Sets bits, and answers what it was.
    fn set_bits(&self, bits: usize, order: Ordering) -> usize;
    /// Clears bits, and answers what it was.
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

/// How threads sleep.
pub trait Platform: Sized {
    /// A word in memory.
    type Word: Word;
    /// What wakes one thread.
    type Parker: Clone;

    /// What wakes the running thread.
    fn own() -> Self::Parker;

    /// Sleeps until [`unpark`](Self::unpark) is called on what wakes the running thread, or was since it last slept;
    /// may also return without that.
    fn park(own: &Self::Parker);

    /// The same until a time at most, in ticks of the system's counter. Answers whether the time was still to come when
    /// it returned.
    fn park_until(own: &Self::Parker, deadline: u64) -> bool;

    /// Wakes a thread, or lets its next sleep end at once.
    fn unpark(parker: &Self::Parker);
}
