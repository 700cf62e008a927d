//! A lock whose waiters help its holder.

use core::ptr::{self, null};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::platform::Word;

/// The end of a wait at an entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// A thread has released the waiter.
    Released,
    /// The deadline has passed first.
    TimedOut,
    /// The entrance is shut, or something else has ended the wait.
    Refused,
}

/// The algorithm's requirements of the system below: queues in which threads help the queue's owner while they wait.
pub trait Helping: Sized + 'static {
    /// A word in memory.
    type Word: Word;
    /// A thread's queue, with what the thread needs to serve queues.
    type Queue;
    /// A way into a queue, which can be shut for good in one step.
    type Entrance;

    /// Opens a shut entrance to a queue.
    fn open(entrance: &Self::Entrance, queue: &Self::Queue);
    /// Shuts an entrance: who has not entered yet is refused. Threads in the queue stay.
    fn shut(entrance: &Self::Entrance);
    /// Enters a queue with a word for who serves it, and waits. Meanwhile the running thread helps the queue's owner.
    fn wait(entrance: &Self::Entrance, word: usize, deadline: Option<u64>) -> WaitEnd;
    /// Takes the first thread out of a queue, and returns its word; `own` is the running thread's queue. The thread
    /// goes on waiting until it is released.
    fn take(own: &Self::Queue, queue: &Self::Queue) -> Option<usize>;
    /// Releases the thread that was taken. Returns whether that thread's wait ends with [`WaitEnd::Released`].
    fn release(own: &Self::Queue, queue: &Self::Queue) -> bool;
}

/// State bit: a thread may wait.
const CONTENDED: usize = 1;

/// A lock without data, whose waiters help its holder.
///
/// ```text
/// state   0: free      address of the holder's Member: held      CONTENDED: a thread may wait
///
///   waiter ──▶ Gate ──▶ queue of the holder ──▶ holder      waiters of all locks of the holder
/// ```
/// When a contended lock is released, it becomes free, and all threads in the holder's queue continue, the most
/// important one first: each takes the lock, or waits again, in the queue of the new holder. Those that wait for
/// another lock of the same thread wait again in the same queue.
///
/// A thread that has announced itself may not have entered the queue yet when the lock is released. It would enter too
/// late, and nobody would release it. So the holder shuts the gate behind which the thread is, and uses another; the
/// thread finds the gate shut and tries again.
pub struct InheritingLock<H: Helping> {
    state: H::Word,
}

impl<H: Helping> InheritingLock<H> {
    /// Returns a free lock, made from a word that is 0.
    pub const fn of(state: H::Word) -> InheritingLock<H> {
        InheritingLock { state }
    }

    /// Returns whether the lock is held.
    pub fn is_locked(&self) -> bool {
        self.state.load(Relaxed) != 0
    }

    /// Returns whether a thread waits for the lock, or has waited for it since its holder took it.
    pub fn is_contended(&self) -> bool {
        self.state.load(Relaxed) & CONTENDED != 0
    }

    /// Takes the lock if it is free. `me` is the running thread.
    #[inline]
    pub fn try_lock(&self, me: &'static Member<H>) -> bool {
        self.state.replace(0, me.address(), Acquire, Relaxed).is_ok()
    }

    /// Takes the lock, after waiting if necessary, at most until a deadline. Returns whether the lock was taken.
    #[inline]
    pub fn lock(&self, me: &'static Member<H>, deadline: Option<u64>) -> bool {
        self.try_lock(me) || self.lock_slowly(me, deadline)
    }

    #[cold]
    fn lock_slowly(&self, me: &'static Member<H>, deadline: Option<u64>) -> bool {
        loop {
            let state = self.state.load(Acquire);
            // SAFETY: the state is 0 or the address of a member, with or without the flag; members stay.
            let Some(holder) = (unsafe { Member::<H>::at(state & !CONTENDED).as_ref() }) else {
                if self.try_lock(me) {
                    return true;
                }
                continue;
            };
            holder.finish_round(me);
            let gate = holder.announce();
            // The state is written even if it stays the same, so that whoever releases the lock sees the announcement.
            if self.state.replace(state, state | CONTENDED, AcqRel, Relaxed).is_err() {
                gate.leave();
                continue;
            }
            match H::wait(&gate.entrance, gate.address(), deadline) {
                // Whoever released this thread has counted that.
                WaitEnd::Released => {}
                WaitEnd::Refused => gate.leave(),
                WaitEnd::TimedOut => {
                    gate.leave();
                    return self.try_lock(me);
                }
            }
        }
    }

    /// Releases the lock. `gates` are those of all threads that use it.
    ///
    /// # Safety
    /// `me` must be the running thread, and must hold the lock and not rely on it any more.
    #[inline]
    pub unsafe fn unlock(&self, me: &'static Member<H>, gates: &Gates<H>) {
        if self.state.replace(me.address(), 0, Release, Relaxed).is_err() {
            self.unlock_slowly(me, gates);
        }
    }

    #[cold]
    fn unlock_slowly(&self, me: &'static Member<H>, gates: &Gates<H>) {
        self.state.swap(0, AcqRel);
        me.release_all(gates);
    }
}

/// A gate to the queue of the thread that uses it now.
pub struct Gate<H: Helping> {
    entrance: H::Entrance,
    /// Number of threads that have announced themselves, and have not been released or refused.
    pending: H::Word,
    /// Set to 1 while a thread uses the gate; else 0.
    used: H::Word,
    /// The next gate in the list.
    next: H::Word,
}

impl<H: Helping> Gate<H> {
    /// Returns an unused gate with a shut entrance.
    pub fn new(entrance: H::Entrance) -> Gate<H> {
        Gate { entrance, pending: H::Word::new(0), used: H::Word::new(0), next: H::Word::new(0) }
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).expose_provenance()
    }

    /// Returns the gate at an address; null for 0.
    fn at(address: usize) -> *const Gate<H> {
        if address == 0 { null() } else { ptr::with_exposed_provenance(address) }
    }

    /// Withdraws an announcement.
    fn leave(&self) {
        self.pending.subtract(1, Release);
    }

    fn is_pending(&self) -> bool {
        self.pending.load(Acquire) != 0
    }
}

/// The gates of a process. There are two for each thread: the one that it uses, and one that may stay shut because the
/// thread has announced itself there and not gone on since. So a thread always finds an unused one.
pub struct Gates<H: Helping> {
    first: H::Word,
}

impl<H: Helping> Gates<H> {
    /// Returns an empty list, made from a word that is 0.
    pub const fn of(first: H::Word) -> Gates<H> {
        Gates { first }
    }

    /// Adds a gate. Each new member must be preceded by two.
    pub fn add(&self, gate: &'static Gate<H>) {
        let mut first = self.first.load(Relaxed);
        loop {
            gate.next.store(first, Relaxed);
            match self.first.replace(first, gate.address(), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes a gate through which no thread is about to go.
    fn take(&self) -> &'static Gate<H> {
        loop {
            let mut place = self.first.load(Acquire);
            // SAFETY: gates in the list stay.
            while let Some(gate) = unsafe { Gate::<H>::at(place).as_ref() } {
                let is_free = gate.used.load(Acquire) == 0 && !gate.is_pending();
                if is_free && gate.used.replace(0, 1, AcqRel, Relaxed).is_ok() {
                    return gate;
                }
                place = gate.next.load(Relaxed);
            }
        }
    }
}

/// A thread that uses inheriting locks. Its memory is never freed, because other threads may just have read its address
/// in a lock.
#[repr(align(8))]
pub struct Member<H: Helping> {
    queue: H::Queue,
    /// Address of its gate; only the thread itself changes it.
    gate: H::Word,
    /// Number of the current round of releases, or 0. Who comes during a round finishes it before waiting again, so
    /// that no thread is released twice in a round while another waits.
    round: H::Word,
    /// Number of the last round; only the thread itself uses it.
    last_round: H::Word,
}

impl<H: Helping> Member<H> {
    /// Returns a member with an open gate.
    pub fn new(queue: H::Queue, gates: &Gates<H>) -> Member<H> {
        let gate = gates.take();
        H::open(&gate.entrance, &queue);
        let gate = H::Word::new(gate.address());
        Member { queue, gate, round: H::Word::new(0), last_round: H::Word::new(0) }
    }

    /// Returns the member's queue.
    pub const fn queue(&self) -> &H::Queue {
        &self.queue
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).expose_provenance()
    }

    /// Returns the member at an address; null for 0.
    fn at(address: usize) -> *const Member<H> {
        if address == 0 { null() } else { ptr::with_exposed_provenance(address) }
    }

    fn gate(&self) -> &'static Gate<H> {
        // SAFETY: the address is that of a gate, and gates stay.
        unsafe { &*Gate::<H>::at(self.gate.load(Acquire)) }
    }

    /// Announces a thread that is about to wait, and returns the gate for it. Until it is released or leaves, the gate
    /// leads nowhere else.
    fn announce(&self) -> &'static Gate<H> {
        loop {
            let gate = self.gate();
            gate.pending.add(1, AcqRel);
            if self.gate.load(Acquire) == gate.address() {
                return gate;
            }
            gate.leave();
        }
    }

    /// Releases all waiters, and sees to it that none comes late.
    fn release_all(&self, gates: &Gates<H>) {
        let gate = self.gate();
        let round = self.begin_round();
        while gate.is_pending() && self.round.load(Acquire) == round && self.release_one(self) {}
        self.end_round(round);
        if gate.is_pending() {
            self.change_gate(gates);
            self.begin_round();
            // Threads may have come through the former gate until it was shut.
            self.finish_round(self);
        }
    }

    /// Releases the first waiter. `by` is the running thread.
    fn release_one(&self, by: &Member<H>) -> bool {
        let Some(word) = H::take(&by.queue, &self.queue) else { return false };
        if H::release(&by.queue, &self.queue) {
            // SAFETY: the word is the address of the gate through which the waiter came.
            unsafe { &*Gate::<H>::at(word) }.leave();
        }
        true
    }

    fn begin_round(&self) -> usize {
        let round = self.last_round.load(Relaxed) + 1;
        self.last_round.store(round, Relaxed);
        self.round.store(round, Release);
        round
    }

    fn end_round(&self, round: usize) {
        let _ = self.round.replace(round, 0, AcqRel, Relaxed);
    }

    /// Releases waiters until none is left, if there is a round that nobody has finished. `by` is the running thread.
    fn finish_round(&self, by: &Member<H>) {
        let round = self.round.load(Acquire);
        if round == 0 {
            return;
        }
        while self.round.load(Acquire) == round && self.release_one(by) {}
        self.end_round(round);
    }

    /// Shuts the gate, and opens another.
    #[cold]
    fn change_gate(&self, gates: &Gates<H>) {
        let (former, gate) = (self.gate(), gates.take());
        H::open(&gate.entrance, &self.queue);
        self.gate.store(gate.address(), Release);
        H::shut(&former.entrance);
        former.used.store(0, Release);
    }
}
