//! Waiting threads, and queues of them.

use core::ptr::{self, null};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::FairLock;
use crate::platform::{Platform, Word};

/// Values of a waiter's state.
const WAITING: usize = 0;
const WOKEN: usize = 1;

/// A waiting thread. It lies on the thread's own stack, and stays there until the thread is woken or has left the
/// queue.
///
/// Its links belong to its queue, and are accessed only by a thread that may change that queue.
pub struct Waiter<P: Platform> {
    parker: P::Parker,
    state: P::Word,
    /// The waiter that came after it.
    pub(crate) next: P::Word,
    /// The waiter that came before it.
    previous: P::Word,
    /// Set to 1 while the waiter is in a [`List`]; else 0.
    listed: P::Word,
    /// Kind of the wait, where a queue has different waiters.
    kind: usize,
}

impl<P: Platform> Waiter<P> {
    /// Returns a waiter for the running thread, which does not wait yet.
    pub fn new() -> Waiter<P> {
        Self::with_kind(0)
    }

    /// Returns a waiter of a given kind.
    pub fn with_kind(kind: usize) -> Waiter<P> {
        Waiter {
            parker: P::own(),
            state: P::Word::new(WAITING),
            next: P::Word::new(0),
            previous: P::Word::new(0),
            listed: P::Word::new(0),
            kind,
        }
    }

    /// Returns the waiter's address as it is stored in links.
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).expose_provenance()
    }

    /// Returns the waiter at an address stored in a link; null for 0.
    pub(crate) fn at(address: usize) -> *const Waiter<P> {
        if address == 0 { null() } else { ptr::with_exposed_provenance(address) }
    }

    /// Returns whether the waiter was woken.
    pub fn is_woken(&self) -> bool {
        self.state.load(Acquire) == WOKEN
    }

    /// Waits until the waiter is woken.
    pub fn wait(&self) {
        while !self.is_woken() {
            P::park(&self.parker);
        }
    }

    /// Waits until the waiter is woken, at most until a deadline. Returns whether it was woken.
    pub fn wait_until(&self, deadline: u64) -> bool {
        while !self.is_woken() {
            if !P::park_until(&self.parker, deadline) {
                return self.is_woken();
            }
        }
        true
    }

    /// Wakes a waiter, which may cease to exist the moment it notices.
    ///
    /// # Safety
    /// `waiter` must wait or be about to, must not have been woken before, and must be in no queue any more.
    pub unsafe fn wake(waiter: *const Waiter<P>) {
        // SAFETY: the waiter stays where it is until it is woken, which happens below.
        let waiting = unsafe { &*waiter };
        let parker = waiting.parker.clone();
        waiting.state.store(WOKEN, Release);
        // From here on only the copy is used.
        P::unpark(&parker);
    }
}

impl<P: Platform> Default for Waiter<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A queue of waiters in the order in which they came, behind a lock that is held for a few instructions at a time and
/// never while a thread is woken.
pub struct Line<P: Platform> {
    lock: FairLock<P>,
    first: P::Word,
    last: P::Word,
}

impl<P: Platform> Line<P> {
    /// Returns an empty line, made from a free lock and two words that are 0.
    pub const fn of(lock: FairLock<P>, first: P::Word, last: P::Word) -> Line<P> {
        Line { lock, first, last }
    }

    /// Returns an empty line.
    pub fn new() -> Line<P> {
        Line::of(FairLock::new(), P::Word::new(0), P::Word::new(0))
    }

    /// Runs a function on the line's list, with exclusive access.
    pub(crate) fn with<T>(&self, function: impl FnOnce(&List<'_, P>) -> T) -> T {
        self.lock.lock();
        let result = function(&List { line: self });
        // SAFETY: the lock was taken above.
        unsafe { self.lock.unlock() };
        result
    }

    /// Returns the number of waiters. Panics if the list is broken.
    pub fn check_invariants(&self) -> usize {
        self.with(|list| list.check())
    }
}

impl<P: Platform> Default for Line<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A line's list, while its lock is held.
pub(crate) struct List<'l, P: Platform> {
    line: &'l Line<P>,
}

impl<P: Platform> List<'_, P> {
    /// Returns whether no thread waits.
    pub fn is_empty(&self) -> bool {
        self.line.first.load(Relaxed) == 0
    }

    /// Appends a waiter.
    ///
    /// # Safety
    /// The waiter must stay where it is until it has left the list.
    pub unsafe fn push(&self, waiter: &Waiter<P>) {
        let last = self.line.last.load(Relaxed);
        waiter.next.store(0, Relaxed);
        waiter.previous.store(last, Relaxed);
        waiter.listed.store(1, Relaxed);
        // SAFETY: waiters in the list stay (`push`).
        match unsafe { Waiter::<P>::at(last).as_ref() } {
            Some(before) => before.next.store(waiter.address(), Relaxed),
            None => self.line.first.store(waiter.address(), Relaxed),
        }
        self.line.last.store(waiter.address(), Relaxed);
    }

    /// Returns the kind of the waiter that came first.
    pub fn first_kind(&self) -> Option<usize> {
        // SAFETY: waiters in the list stay (`push`).
        unsafe { Waiter::<P>::at(self.line.first.load(Relaxed)).as_ref() }.map(|waiter| waiter.kind)
    }

    /// Removes the first waiter.
    pub fn pop(&self) -> Option<*const Waiter<P>> {
        // SAFETY: waiters in the list stay (`push`).
        let waiter = unsafe { Waiter::<P>::at(self.line.first.load(Relaxed)).as_ref() }?;
        self.unlink(waiter);
        Some(waiter)
    }

    /// Removes all waiters: returns the first of a chain for [`wake_all`].
    pub fn take_all(&self) -> *const Waiter<P> {
        let first = Waiter::<P>::at(self.line.first.load(Relaxed));
        let mut place = first;
        // SAFETY: waiters in the list stay (`push`), and nobody wakes them while the line is locked.
        while let Some(waiter) = unsafe { place.as_ref() } {
            waiter.listed.store(0, Relaxed);
            place = Waiter::at(waiter.next.load(Relaxed));
        }
        self.line.first.store(0, Relaxed);
        self.line.last.store(0, Relaxed);
        first
    }

    /// Removes a given waiter. Returns whether it was in the list.
    pub fn remove(&self, waiter: &Waiter<P>) -> bool {
        let listed = waiter.listed.load(Relaxed) == 1;
        if listed {
            self.unlink(waiter);
        }
        listed
    }

    fn unlink(&self, waiter: &Waiter<P>) {
        let (next, previous) = (waiter.next.load(Relaxed), waiter.previous.load(Relaxed));
        // SAFETY: waiters in the list stay (`push`).
        match unsafe { Waiter::<P>::at(next).as_ref() } {
            Some(after) => after.previous.store(previous, Relaxed),
            None => self.line.last.store(previous, Relaxed),
        }
        // SAFETY: as above.
        match unsafe { Waiter::<P>::at(previous).as_ref() } {
            Some(before) => before.next.store(next, Relaxed),
            None => self.line.first.store(next, Relaxed),
        }
        waiter.next.store(0, Relaxed);
        waiter.listed.store(0, Relaxed);
    }

    /// Returns the number of waiters. Panics if the links are inconsistent.
    fn check(&self) -> usize {
        let (mut count, mut previous) = (0, 0);
        let mut place = Waiter::<P>::at(self.line.first.load(Relaxed));
        // SAFETY: waiters in the list stay (`push`).
        while let Some(waiter) = unsafe { place.as_ref() } {
            assert_eq!((waiter.listed.load(Relaxed), waiter.previous.load(Relaxed)), (1, previous));
            previous = waiter.address();
            count += 1;
            place = Waiter::at(waiter.next.load(Relaxed));
        }
        assert_eq!(self.line.last.load(Relaxed), previous);
        count
    }
}

/// Wakes a chain of waiters.
///
/// # Safety
/// The chain must have been taken out of a list, and no other thread may wake its waiters.
pub(crate) unsafe fn wake_all<P: Platform>(first: *const Waiter<P>) {
    let mut place = first;
    // SAFETY: a waiter stays until it is woken.
    while let Some(waiter) = unsafe { place.as_ref() } {
        place = Waiter::at(waiter.next.load(Relaxed));
        // SAFETY: the waiter waits, is in no list, and is woken only here.
        unsafe { Waiter::wake(waiter) };
    }
}
