//! Semaphores shared by several processes.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::{Crowd, Gate};
use crate::permits::Overflow;
use crate::platform::Word;

/// A semaphore.
///
/// A permit has no owner: if a member ends without returning a permit, the permit is lost.
#[repr(C)]
pub struct Permits<W> {
    free: W,
    gate: Gate<W>,
}

impl<W: Word> Permits<W> {
    /// Returns a semaphore with this many permits.
    pub fn new(permits: usize) -> Permits<W> {
        Permits { free: W::new(permits), gate: Gate::new() }
    }

    /// Returns the number of free permits.
    pub fn available(&self) -> usize {
        self.free.load(Relaxed)
    }

    /// Returns the number of waiting members.
    pub fn waiting(&self) -> u32 {
        self.gate.waiting.load(Relaxed).count_ones()
    }

    /// Sets the number of permits, before any is used.
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

    /// Takes a permit if there is one and no member waits.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.gate.is_empty() && self.take().is_some()
    }

    /// Takes a permit, after waiting if necessary, at most until a deadline if there is one. Returns whether a permit
    /// was taken.
    #[inline]
    pub fn acquire(&self, crowd: &impl Crowd<Word = W>, deadline: Option<u64>) -> bool {
        self.try_acquire() || self.gate.pass(crowd, deadline, |_| self.take(), || self.free.load(SeqCst) > 0).is_some()
    }

    /// Returns a permit.
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
