//! A mutex whose waiters help its holder.
//!
//! Each thread that uses such a mutex serves an endpoint of its own. A thread that has to wait calls the holder's
//! endpoint; so the kernel lets the holder run on its time and at its priority, as it does for servers. The algorithm
//! is [`InheritingLock`]'s.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::null;
use core::sync::atomic::AtomicUsize;

use tench_abi::CapAddress;
use tench_sync::{Gate, Gates, Helping, InheritingLock, Member, WaitEnd};
use tench_sys::{Cap, Endpoint, Error, Instant, Message, OWN_CSPACE, Reply, Wait};

use super::Mutex;
use crate::memory;
use crate::thread::{self, Own};

/// How many servers deep the calls of a holder go: it may call the memory server, which page faults do, too.
const DEPTH: u64 = 1;

/// Queues in the kernel, and slots with capabilities to them.
pub enum Queues {}

/// A thread's endpoint, and what the thread needs to receive there.
pub struct Queue {
    endpoint: Cap<Endpoint>,
    /// An endpoint that nobody calls.
    unused: Cap<Endpoint>,
    reply: Cap<Reply>,
}

impl Helping for Queues {
    type Word = AtomicUsize;
    type Queue = Queue;
    type Entrance = CapAddress;

    fn open(entrance: &CapAddress, queue: &Queue) {
        let opened = queue.endpoint.copy_to(*entrance);
        assert!(opened.is_ok(), "the slot is empty, and the endpoint is this library's");
    }

    fn shut(entrance: &CapAddress) {
        // The slot can be empty only if the program itself has emptied it.
        let _ = OWN_CSPACE.delete_at(*entrance);
    }

    fn wait(entrance: &CapAddress, word: usize, deadline: Option<u64>) -> WaitEnd {
        let endpoint = Cap::<Endpoint>::new(*entrance);
        let wait = deadline.map_or(Wait::FOREVER, |deadline| Wait::until(Instant::from_ticks(deadline)));
        match endpoint.call_with(&Message::with_words(0, &[word as u64]), wait) {
            Ok(_) => WaitEnd::Released,
            Err(Error::TimedOut) => WaitEnd::TimedOut,
            Err(_) => WaitEnd::Refused,
        }
    }

    /// The alarm, which is over, makes the running thread's own priority count until it replies: the waiter's may be
    /// lower.
    fn take(own: &Queue, queue: &Queue) -> Option<usize> {
        let wait = Wait::alarm(Instant::from_ticks(0)).with_reply(own.reply);
        loop {
            let received = queue.endpoint.try_receive(wait).ok()?;
            // A signal to a bound notification is none of the lock's; see `InheritingMutex`.
            if !received.is_notification() {
                return Some(received.word(0) as usize);
            }
        }
    }

    fn release(own: &Queue, _: &Queue) -> bool {
        own.reply.reply(&Message::new(0)).is_ok() || {
            own.start_afresh();
            false
        }
    }
}

impl Queue {
    /// Makes the objects of a queue.
    fn new() -> Result<Queue, memory::Error> {
        let (endpoint, unused, reply) = (memory::make(0)?, memory::make(0)?, memory::make(0)?);
        Ok(Queue { endpoint: endpoint.leak(), unused: unused.leak(), reply: reply.leak() })
    }

    /// Lifts the limit on the running thread's priority after a waiter that it had taken has given up: the kernel lets
    /// a thread finish such work at no higher priority than the waiter's, until the thread receives.
    fn start_afresh(&self) {
        // There is no message, and the deadline is over.
        let _ = self.unused.receive(Wait::until(Instant::from_ticks(0)).with_reply(self.reply));
    }
}

type Record = Member<Queues>;

/// All gates.
static GATES: Gates<Queues> = Gates::of(AtomicUsize::new(0));

/// Members whose threads have ended.
static IDLE: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());

/// Returns the running thread's member.
#[inline]
fn me() -> &'static Record {
    // SAFETY: the address is 0 or that of a member, which stays.
    match Own::current().and_then(|own| unsafe { own.member.get().as_ref() }) {
        Some(member) => member,
        None => join(),
    }
}

/// Makes the running thread a member: from now on, who waits for a lock that it holds helps it.
#[cold]
fn join() -> &'static Record {
    let Some(own) = Own::current() else {
        panic!("a thread that did not begin in this library takes an inheriting lock")
    };
    let Ok(member) = make() else { panic!("no memory for a thread's first inheriting lock") };
    // A thread that serves an endpoint is helped by who waits there, and not by who waits for its locks.
    let _ = thread::current_thread().serve(member.queue().endpoint, DEPTH);
    own.member.set(member);
    MEMBERSHIP.with(|_| ());
    member
}

/// Returns an idle member, or a new one.
fn make() -> Result<&'static Record, memory::Error> {
    if let Some(idle) = IDLE.lock().pop() {
        return Ok(idle);
    }
    for _ in 0..2 {
        GATES.add(Box::leak(Box::new(Gate::new(memory::take_slot()?))));
    }
    Ok(Box::leak(Box::new(Member::new(Queue::new()?, &GATES))))
}

/// Ends a thread's membership when the thread ends.
struct Membership;

crate::thread_local! {
    static MEMBERSHIP: Membership = Membership;
}

impl Drop for Membership {
    fn drop(&mut self) {
        let Some(own) = Own::current() else { return };
        let member = own.member.replace(null());
        let _ = thread::current_thread().stop_serving();
        // SAFETY: as in `me`.
        if let Some(member) = unsafe { member.as_ref() } {
            IDLE.lock().push(member);
        }
    }
}

/// Makes the running thread free to serve another endpoint.
pub(crate) fn give_way() {
    if Own::current().is_some_and(|own| !own.member.get().is_null()) {
        let _ = thread::current_thread().stop_serving();
    }
}

/// Data that one thread at a time can access. Whoever waits for it helps the thread that has it: that thread runs at
/// the priority, and on the time, of its most important waiter. So the wait takes as long as what the holder does with
/// the data, whatever threads of priorities in between do.
///
/// - Of those that wait, the thread of the highest priority continues first; threads of the same priority in no
///   promised order. [`Mutex`] is granted in the order of the requests, and does not help.
/// - Holders may wait for further inheriting locks and for servers; help reaches through a chain of
///   at most five threads.
/// - A thread's first use makes some kernel objects, and panics if there is no memory for them.
/// - A thread that serves an endpoint (such as a server's main thread) can use the lock, but is not helped. A thread
///   with a bound notification must not use it, because the lock may consume a signal.
/// - If the holder is deleted, the data stay locked; whoever might wait for such a thread uses
///   [`lock_until`](Self::lock_until).
pub struct InheritingMutex<T: ?Sized> {
    raw: InheritingLock<Queues>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time access the data.
unsafe impl<T: ?Sized + Send> Send for InheritingMutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for InheritingMutex<T> {}

impl<T> InheritingMutex<T> {
    /// Returns a free mutex with this data.
    pub const fn new(data: T) -> InheritingMutex<T> {
        InheritingMutex { raw: InheritingLock::of(AtomicUsize::new(0)), data: UnsafeCell::new(data) }
    }

    /// Returns the data; nobody can hold the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> InheritingMutex<T> {
    /// Takes the lock, after waiting if necessary. A thread that already holds it waits for ever.
    #[inline]
    pub fn lock(&self) -> InheritingGuard<'_, T> {
        let me = me();
        // Without a deadline, the wait ends only with the lock.
        self.raw.lock(me, None);
        self.guard(me)
    }

    /// Takes the lock, waiting at most until a deadline.
    pub fn lock_until(&self, deadline: Instant) -> Option<InheritingGuard<'_, T>> {
        let me = me();
        self.raw.lock(me, Some(deadline.ticks())).then(|| self.guard(me))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<InheritingGuard<'_, T>> {
        let me = me();
        self.raw.try_lock(me).then(|| self.guard(me))
    }

    /// Returns whether a thread waits for the lock, or has waited for it since its holder took it.
    pub fn is_contended(&self) -> bool {
        self.raw.is_contended()
    }

    /// Returns the data; nobody can hold the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    #[inline]
    fn guard(&self, me: &'static Record) -> InheritingGuard<'_, T> {
        InheritingGuard { mutex: self, me, not_send: PhantomData }
    }
}

/// Access to the data of an inheriting mutex, as long as the lock is held.
pub struct InheritingGuard<'a, T: ?Sized> {
    mutex: &'a InheritingMutex<T>,
    me: &'static Record,
    not_send: PhantomData<*const ()>,
}

// SAFETY: sharing a guard shares the data.
unsafe impl<T: ?Sized + Sync> Sync for InheritingGuard<'_, T> {}

impl<T: ?Sized> Deref for InheritingGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for InheritingGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized> Drop for InheritingGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard exists, so this thread, to which it cannot be sent, holds the lock.
        unsafe { self.mutex.raw.unlock(self.me, &GATES) };
    }
}
