//! A lock that threads of several processes take.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::{Crowd, Gate};
use crate::platform::Word;

/// A lock. All words are 0 at first.
#[repr(C)]
pub struct Lock<W> {
    /// 0, or the number of the member that holds it and 1.
    owner: W,
    gate: Gate<W>,
}

/// The lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what the lock protects may be half changed"]
pub enum Taken {
    /// From a member that gave it up.
    InOrder,
    /// From a member that has ended: what the lock protects may be half changed.
    OwnerDied,
}

/// Why a lock was not taken or not given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Somebody holds it.
    Busy,
    /// The time is up.
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
    /// A free lock.
    pub fn new() -> Lock<W> {
        Lock { owner: W::new(0), gate: Gate::new() }
    }

    /// Takes it if it is free and nobody waits.
    /// Errors: `Busy`, `HeldAlready`.
    #[inline]
    pub fn try_lock(&self, crowd: &impl Crowd<Word = W>) -> Result<Taken, Error> {
        let own = crowd.me() + 1;
        if self.gate.is_empty() && self.owner.replace(0, own, Acquire, Relaxed).is_ok() {
            return Ok(Taken::InOrder);
        }
        Err(if self.owner.load(Relaxed) == own { Error::HeldAlready } else { Error::Busy })
    }

    /// Takes it, and waits for it if need be; until a time if there is one.
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

    fn is_free(&self) -> bool {
        self.owner.load(SeqCst) == 0
    }

    /// Takes it if it is free or, when told to look, its owner has ended.
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

    /// Gives it up.
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

    /// The member that holds it.
    pub fn owner(&self) -> Option<usize> {
        self.owner.load(Relaxed).checked_sub(1)
    }

    /// How many wait.
    pub fn waiting(&self) -> u32 {
        self.gate.waiting.load(Relaxed).count_ones()
    }
}

impl<W: Word> Default for Lock<W> {
    fn default() -> Self {
        Self::new()
    }
}
