//! Read-write locks.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::platform::{Platform, Word};
use crate::waiter::{Line, List, Waiter};

/// State bit: a writer holds the lock.
const WRITER: usize = 1;
/// State bit: a thread waits, so that no newcomer goes first.
const WAITED: usize = 2;
/// State increment for one reader.
const READER: usize = 4;

/// Kinds of waiters.
const TO_READ: usize = 0;
const TO_WRITE: usize = 1;

/// A lock that many threads hold for reading, or one for writing.
///
/// All wait in one line. The lock is granted to the first as soon as possible, and if that is a reader, also to the
/// readers right behind it. So neither readers nor writers starve. [`WAITED`] is set and cleared under the line's lock,
/// and is set exactly while the line is not empty; while it is set, only threads that hold the line's lock add holders.
pub struct ReadWrite<P: Platform> {
    state: P::Word,
    line: Line<P>,
}

impl<P: Platform> ReadWrite<P> {
    /// Returns a free lock, made from a word that is 0 and an empty line.
    pub const fn of(state: P::Word, line: Line<P>) -> ReadWrite<P> {
        ReadWrite { state, line }
    }

    /// Returns a free lock.
    pub fn new() -> ReadWrite<P> {
        ReadWrite::of(P::Word::new(0), Line::new())
    }

    /// Takes the lock for reading, if no writer holds it and no thread waits.
    #[inline]
    pub fn try_read(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        while state & (WRITER | WAITED) == 0 {
            match self.state.replace(state, state + READER, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes the lock for writing, if it is free.
    #[inline]
    pub fn try_write(&self) -> bool {
        self.state.replace(0, WRITER, Acquire, Relaxed).is_ok()
    }

    /// Takes the lock for reading, after waiting if necessary, at most until a deadline if there is one. Returns
    /// whether it was taken.
    #[inline]
    pub fn read(&self, deadline: Option<u64>) -> bool {
        self.try_read() || self.wait_for(TO_READ, deadline)
    }

    /// Takes the lock for writing, after waiting if necessary, at most until a deadline if there is one. Returns
    /// whether it was taken.
    #[inline]
    pub fn write(&self, deadline: Option<u64>) -> bool {
        self.try_write() || self.wait_for(TO_WRITE, deadline)
    }

    #[cold]
    fn wait_for(&self, kind: usize, deadline: Option<u64>) -> bool {
        let waiter = Waiter::with_kind(kind);
        let waits = self.line.with(|list| {
            loop {
                let state = self.state.load(Relaxed);
                if state & WAITED != 0 {
                    break;
                }
                if if kind == TO_READ { self.try_read() } else { self.try_write() } {
                    return false;
                }
                // This fails if the state has changed. The bit must not be set when the lock has become free: no thread
                // would hand it over.
                if state != 0 && self.state.replace(state, state | WAITED, Relaxed, Relaxed).is_ok() {
                    break;
                }
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

    /// Stops waiting. Returns false if the lock has come at the last moment.
    fn leave(&self, waiter: &Waiter<P>) -> bool {
        let (left, granted) = self.line.with(|list| {
            let left = list.remove(waiter);
            // Readers may have stood behind a writer that leaves.
            (left, if left { self.grant(list) } else { Granted::none() })
        });
        granted.wake();
        if !left {
            // The thread that took the waiter out of the list is about to wake it, and will access it until then.
            waiter.wait();
        }
        left
    }

    /// Releases the lock after reading.
    ///
    /// # Safety
    /// The caller must hold it for reading.
    #[inline]
    pub unsafe fn unlock_read(&self) {
        if self.state.subtract(READER, Release) == READER | WAITED {
            self.hand_over(0);
        }
    }

    /// Releases the lock after writing.
    ///
    /// # Safety
    /// The caller must hold it for writing.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        if self.state.replace(WRITER, 0, Release, Relaxed).is_err() {
            self.hand_over(WRITER);
        }
    }

    /// Clears bits of the state, and grants the lock to the first waiters.
    #[cold]
    fn hand_over(&self, bits: usize) {
        let granted = self.line.with(|list| {
            self.state.clear_bits(bits, AcqRel);
            self.grant(list)
        });
        granted.wake();
    }

    /// Grants the lock to as many of the first waiters as can have it, and returns them.
    fn grant(&self, list: &List<'_, P>) -> Granted<P> {
        let mut granted = Granted::none();
        while let Some(kind) = list.first_kind() {
            let state = self.state.load(Acquire);
            if state & WRITER != 0 || kind == TO_WRITE && state >= READER {
                break;
            }
            // No other thread adds holders meanwhile.
            self.state.add(if kind == TO_READ { READER } else { WRITER }, Acquire);
            if let Some(waiter) = list.pop() {
                granted.push(waiter);
            }
        }
        if list.is_empty() {
            self.state.clear_bits(WAITED, Relaxed);
        }
        granted
    }

    /// Returns the number of waiters. Panics if the state is inconsistent.
    pub fn check_invariants(&self) -> usize {
        let waiting = self.line.check_invariants();
        let state = self.state.load(Relaxed);
        assert!(state & WRITER == 0 || state < READER, "a writer among readers");
        waiting
    }
}

impl<P: Platform> Default for ReadWrite<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// Waiters that were taken out of the line and are to be woken.
struct Granted<P: Platform> {
    first: *const Waiter<P>,
    last: *const Waiter<P>,
}

impl<P: Platform> Granted<P> {
    const fn none() -> Granted<P> {
        Granted { first: core::ptr::null(), last: core::ptr::null() }
    }

    /// Appends a waiter, which was just taken out of the line.
    fn push(&mut self, waiter: *const Waiter<P>) {
        // SAFETY: a waiter stays until it is woken, and this chain wakes it.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.store(waiter.expose_provenance(), Relaxed),
            None => self.first = waiter,
        }
        self.last = waiter;
    }

    /// Wakes the waiters.
    fn wake(self) {
        // SAFETY: the waiters are in no list, and only this chain has them.
        unsafe { crate::waiter::wake_all(self.first) };
    }
}
