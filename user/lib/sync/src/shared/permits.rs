//! A semaphore that threads of several processes use.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::{Crowd, Gate};
use crate::permits::Overflow;
use crate::platform::Word;

/// Permits that are taken and given back.
///
/// A permit has no owner: one that a member has taken is gone when it ends without giving it back.
#[repr(C)]
pub struct Permits<W> {
    free: W,
    gate: Gate<W>,
}

impl<W: Word> Permits<W> {
    /// With this many permits.
    pub fn new(permits: usize) -> Permits<W> {
        Permits { free: W::new(permits), gate: Gate::new() }
    }

    /// Permits that nobody has.
    pub fn available(&self) -> usize {
        self.free.load(Relaxed)
    }

    /// Sets the number of permits, before anybody uses them.
    pub fn reset(&self, permits: usize) {
        self.free.store(permits, SeqCst);
    }

    fn take(&self) -> Option<()> {
        let mut free = self.free.load(SeqCst);
        while free > 0 {
            match self.free.replace(free, free - 1, Acquire, Relaxed) {
                Ok(_) => return Some(()),
                Err(now) => free = now,
            }
        }
        None
    }

    /// Takes a permit if there is one and nobody waits.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.gate.is_empty() && self.take().is_some()
    }

    /// Takes a permit, and waits for it if need be; until a time if there is one. Answers whether it has one.
    #[inline]
    pub fn acquire(&self, crowd: &impl Crowd<Word = W>, deadline: Option<u64>) -> bool {
        self.try_acquire() || self.gate.pass(crowd, deadline, |_| self.take(), || self.free.load(SeqCst) > 0).is_some()
    }

    /// Gives a permit back.
    #[inline]
    pub fn release(&self, crowd: &impl Crowd<Word = W>) -> Result<(), Overflow> {
        let mut free = self.free.load(Relaxed);
        loop {
            let more = free.checked_add(1).ok_or(Overflow)?;
            match self.free.replace(free, more, SeqCst, Relaxed) {
                Ok(_) => break,
                Err(now) => free = now,
            }
        }
        if !self.gate.is_empty() {
            self.gate.wake_first(crowd);
        }
        Ok(())
    }
}
