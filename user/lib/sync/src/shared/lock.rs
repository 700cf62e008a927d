//! Locks shared by several processes.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::{Crowd, Gate};
use crate::platform::Word;

/// A lock. All words are 0 at first.
#[repr(C)]
pub struct Lock<W> {
    /// 0, or the number of the member that holds the lock plus 1.
    owner: W,
    gate: Gate<W>,
}

/// Result of taking the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what the lock protects may be half changed"]
pub enum Taken {
    /// The last owner released it.
    InOrder,
    /// The last owner has ended: data that the lock protects may be inconsistent.
    OwnerDied,
}

/// Reason why a lock was not taken or not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The lock is held.
    Busy,
    /// The deadline has passed.
    TimedOut,
    /// The running member holds it already.
    HeldAlready,
    /// The running member does not hold it.
    NotHeld,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Error::Busy => "somebody holds the lock; wait for it",
            Error::TimedOut => "the lock was not free in time",
            Error::HeldAlready => "this thread holds the lock already; give it up first",
            Error::NotHeld => "this thread does not hold the lock; only its holder gives it up",
        })
    }
}

impl core::error::Error for Error {}

impl<W: Word> Lock<W> {
    /// Returns a free lock.
    pub fn new() -> Lock<W> {
        Lock { owner: W::new(0), gate: Gate::new() }
    }

    /// Takes the lock if it is free and no member waits.
    /// Errors: `Busy`, `HeldAlready`.
    #[inline]
    pub fn try_lock(&self, crowd: &impl Crowd<Word = W>) -> Result<Taken, Error> {
        let own = crowd.me() + 1;
        if self.gate.is_empty() && self.owner.replace(0, own, Acquire, Relaxed).is_ok() {
            return Ok(Taken::InOrder);
        }
        Err(if self.owner.load(Relaxed) == own { Error::HeldAlready } else { Error::Busy })
    }

    /// Takes the lock, after waiting if necessary, at most until a deadline if there is one.
    /// Errors: `TimedOut`, `HeldAlready`.
    #[inline]
    pub fn lock(&self, crowd: &impl Crowd<Word = W>, deadline: Option<u64>) -> Result<Taken, Error> {
        match self.try_lock(crowd) {
            Err(Error::Busy) => {
                let taken = self.gate.pass(crowd, deadline, |look| self.take(crowd, look), || self.is_free());
                taken.ok_or(Error::TimedOut)
            }
            other => other,
        }
    }

    /// Takes the lock from an owner that has ended, without waiting, if no member waits.
    /// Errors: `Busy`.
    pub fn take_over(&self, crowd: &impl Crowd<Word = W>) -> Result<Taken, Error> {
        if self.gate.is_empty() { self.take(crowd, true).ok_or(Error::Busy) } else { Err(Error::Busy) }
    }

    fn is_free(&self) -> bool {
        self.owner.load(SeqCst) == 0
    }

    /// Takes the lock if it is free or, if `look` is true, if its owner has ended.
    fn take(&self, crowd: &impl Crowd<Word = W>, look: bool) -> Option<Taken> {
        let own = crowd.me() + 1;
        match self.owner.replace(0, own, SeqCst, SeqCst) {
            Ok(_) => Some(Taken::InOrder),
            Err(owner) if look && !crowd.is_alive(owner - 1) => {
                self.owner.replace(owner, own, SeqCst, SeqCst).ok().map(|_| Taken::OwnerDied)
            }
            Err(_) => None,
        }
    }

    /// Releases the lock.
    /// Errors: `NotHeld`.
    #[inline]
    pub fn unlock(&self, crowd: &impl Crowd<Word = W>) -> Result<(), Error> {
        if self.owner.load(Relaxed) != crowd.me() + 1 {
            return Err(Error::NotHeld);
        }
        self.owner.store(0, SeqCst);
        if !self.gate.is_empty() {
            self.gate.wake_first(crowd);
        }
        Ok(())
    }

    /// Returns the member that holds the lock.
    pub fn owner(&self) -> Option<usize> {
        self.owner.load(Relaxed).checked_sub(1)
    }

    /// Returns the number of waiting members.
    pub fn waiting(&self) -> u32 {
        self.gate.waiting.load(Relaxed).count_ones()
    }
}

impl<W: Word> Default for Lock<W> {
    fn default() -> Self {
        Self::new()
    }
}
