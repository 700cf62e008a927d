//! A fair lock without data.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Platform, Word};
use crate::waiter::Waiter;

/// The lock is held.
const LOCKED: usize = 1;
/// The holder's queue has waiters in it.
const QUEUED: usize = 2;
const FLAGS: usize = LOCKED | QUEUED;

/// A lock.
///
/// ```text
/// state   0: free      LOCKED: held, nobody waits      otherwise LOCKED, and QUEUED or the address of the newest arrival
///
///         newest arrival ─▶ … ─▶ oldest arrival         anybody pushes in front, the holder takes all at once
///         queue: longest waiting ─▶ … ─▶ last           only the holder reads and writes it
/// ```
/// When it is given up, it passes to the first of the queue; an empty queue first gets all that have arrived, turned
/// round. So waiters are served in the order of their arrival, and each is moved once: giving the lock up takes
/// constant time on average, however many wait. Between threads it stays locked.
pub struct FairLock<P: Platform> {
    state: P::Word,
    queue: P::Word,
}

impl<P: Platform> FairLock<P> {
    /// A free lock, made of two words that are 0.
    pub const fn of(state: P::Word, queue: P::Word) -> FairLock<P> {
        FairLock { state, queue }
    }

    /// A free lock.
    pub fn new() -> FairLock<P> {
        FairLock::of(P::Word::new(0), P::Word::new(0))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.state.replace(0, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// Whether somebody holds it.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.state.load(Relaxed) != 0
    }

    /// Whether somebody waits for it.
    pub fn is_waited_for(&self) -> bool {
        self.state.load(Relaxed) & !LOCKED != 0
    }

    /// Takes the lock, and waits for it if need be.
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

    /// Gives the lock up, or hands it to the thread that has waited longest.
    ///
    /// # Safety
    /// It is held, and whoever took it does not rely on it any more.
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
    /// The caller holds the lock, and somebody waits.
    #[cold]
    unsafe fn hand_over(&self) {
        let had_queue = self.state.load(Relaxed) & QUEUED != 0;
        let first = if had_queue { self.queue.load(Relaxed) } else { self.take_arrivals() };
        // SAFETY: whoever is in the queue waits, and so stays, until the holder wakes it.
        let rest = unsafe { &*Waiter::<P>::at(first) }.next.load(Relaxed);
        self.queue.store(rest, Relaxed);
        match (had_queue, rest != 0) {
            (true, false) => drop(self.state.clear_bits(QUEUED, Relaxed)),
            (false, true) => drop(self.state.set_bits(QUEUED, Relaxed)),
            _ => {}
        }
        // SAFETY: it was taken out of the queue, and only the holder wakes.
        unsafe { Waiter::wake(Waiter::<P>::at(first)) };
    }

    /// Takes those that have arrived, and answers the first of them, with links from the oldest to the newest.
    fn take_arrivals(&self) -> usize {
        let mut place = self.state.swap(LOCKED, Acquire) & !FLAGS;
        let mut first = 0;
        // SAFETY: whoever has arrived waits, and so stays, until the holder wakes it.
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
