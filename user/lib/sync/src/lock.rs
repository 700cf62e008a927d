//! A fair lock without data.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Platform, Word};
use crate::waiter::Waiter;

/// State bit: the lock is held.
const LOCKED: usize = 1;
/// State bit: the holder's queue is not empty.
const QUEUED: usize = 2;
const FLAGS: usize = LOCKED | QUEUED;

/// A fair lock without data.
///
/// ```text
/// state   0: free      LOCKED: held, no waiters     otherwise LOCKED, and QUEUED or the address of the newest arrival
///
///         newest arrival ─▶ … ─▶ oldest arrival         any thread pushes in front, the holder takes all at once
///         queue: longest waiting ─▶ … ─▶ last           only the holder reads and writes it
/// ```
/// When the lock is released, it passes to the first waiter of the queue; an empty queue first receives all that have
/// arrived, in reverse order. So waiters are served in the order of their arrival, and each is moved once: releasing
/// the lock takes constant time on average, however many wait. Between threads it stays locked.
pub struct FairLock<P: Platform> {
    state: P::Word,
    queue: P::Word,
}

impl<P: Platform> FairLock<P> {
    /// Returns a free lock, made from two words that are 0.
    pub const fn of(state: P::Word, queue: P::Word) -> FairLock<P> {
        FairLock { state, queue }
    }

    /// Returns a free lock.
    pub fn new() -> FairLock<P> {
        FairLock::of(P::Word::new(0), P::Word::new(0))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.state.replace(0, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// Returns whether the lock is held.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.state.load(Relaxed) != 0
    }

    /// Returns whether a thread waits for the lock.
    pub fn is_waited_for(&self) -> bool {
        self.state.load(Relaxed) & !LOCKED != 0
    }

    /// Takes the lock, after waiting if necessary.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_slowly();
        }
    }

    #[cold]
    fn lock_slowly(&self) {
        let waiter = Waiter::<P>::new();
        let mut state = self.state.load(Relaxed);
        loop {
            let taken = if state == 0 {
                self.state.replace(0, LOCKED, Acquire, Relaxed)
            } else {
                waiter.next.store(state & !FLAGS, Relaxed);
                self.state.replace(state, waiter.address() | state & FLAGS, Release, Relaxed)
            };
            match taken {
                Ok(0) => return,
                Ok(_) => return waiter.wait(),
                Err(now) => state = now,
            }
        }
    }

    /// Releases the lock, or hands it to the thread that has waited longest.
    ///
    /// # Safety
    /// The lock must be held, and the thread that took it must not rely on it any more.
    #[inline]
    pub unsafe fn unlock(&self) {
        if self.state.replace(LOCKED, 0, Release, Relaxed).is_err() {
            // SAFETY: the caller holds the lock.
            unsafe { self.hand_over() };
        }
    }

    /// Hands the lock over.
    ///
    /// # Safety
    /// The caller must hold the lock, and a thread must wait.
    #[cold]
    unsafe fn hand_over(&self) {
        let had_queue = self.state.load(Relaxed) & QUEUED != 0;
        let first = if had_queue { self.queue.load(Relaxed) } else { self.take_arrivals() };
        // SAFETY: a thread in the queue waits, so its waiter stays valid until the holder wakes it.
        let rest = unsafe { &*Waiter::<P>::at(first) }.next.load(Relaxed);
        self.queue.store(rest, Relaxed);
        match (had_queue, rest != 0) {
            (true, false) => drop(self.state.clear_bits(QUEUED, Relaxed)),
            (false, true) => drop(self.state.set_bits(QUEUED, Relaxed)),
            _ => {}
        }
        // SAFETY: the waiter was taken out of the queue, and only the holder wakes waiters.
        unsafe { Waiter::wake(Waiter::<P>::at(first)) };
    }

    /// Takes the arrivals, and returns the first of them, with links from the oldest to the newest.
    fn take_arrivals(&self) -> usize {
        let mut place = self.state.swap(LOCKED, Acquire) & !FLAGS;
        let mut first = 0;
        // SAFETY: a thread that has arrived waits, so its waiter stays valid until the holder wakes it.
        while let Some(waiter) = unsafe { Waiter::<P>::at(place).as_ref() } {
            let next = waiter.next.load(Relaxed);
            waiter.next.store(first, Relaxed);
            first = place;
            place = next;
        }
        first
    }
}

impl<P: Platform> Default for FairLock<P> {
    fn default() -> Self {
        Self::new()
    }
}
