//! Notifications: a word of bits that one sets without waiting and waits for without polling.

use tench_abi::{Error, Kind, Rights, Tag};

use crate::object::Ref;
use crate::slot::Named;
use crate::syscall::{Outcome, argument, capability_slot};
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, cspace, endpoint, helping, interrupt, scheduler, timers};

/// A word of signals with a queue of waiting threads.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Notification {
    /// Signals not yet received.
    pub word: u64,
    /// First waiting thread (state `Waiting`).
    pub head: Option<Ref<Thread>>,
    /// Last waiting thread.
    pub tail: Option<Ref<Thread>>,
    /// The bound thread: a signal also ends its wait in `Receive`.
    pub bound: Option<Ref<Thread>>,
    /// First interrupt line bound to this notification, as its number plus 1; 0 if none. See `State::interrupts`.
    pub first_interrupt: u16,
    /// Bitmap of the interrupt lines to unmask when `word` is taken: those with
    /// [`automatic`](interrupt::InterruptLine::automatic) that fired while no thread waited. While a bit is set, `word`
    /// is not 0.
    pub held: u16,
}

const _: () = assert!(size_of::<Notification>() == 1 << tench_abi::object::NOTIFICATION_BITS);

// SAFETY: retype makes a notification together with its first capability. It lives until its last capability is
// deleted.
unsafe impl Named for Notification {
    const KIND: Kind = Kind::Notification;
}

/// Performs `Signal`.
pub fn signal_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let address = argument(k, thread, 0);
    let slot = cspace::lookup(k, address)?;
    if k.slot(slot).cap.kind == Kind::Doorbell {
        let slot = capability_slot(k, thread, Kind::Doorbell, Rights::WRITE)?;
        let doorbell = k.slot(slot).cap.object;
        interrupt::notify(k, doorbell);
        return Ok(Outcome::Done);
    }
    let slot = capability_slot(k, thread, Kind::Notification, Rights::WRITE)?;
    let cap = &k.slot(slot).cap;
    let badge = cap.badge();
    let notification = cap.named().ok_or(Error::WrongType)?;
    signal(k, notification, if badge == 0 { 1 } else { badge });
    Ok(Outcome::Done)
}

/// Sets bits in a notification's word, and wakes the first waiting thread.
pub fn signal<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, bits: u64) {
    let n = k.get(notification);
    n.word |= bits;
    let (head, bound) = (n.head, n.bound);
    if let Some(waiter) = head {
        unqueue_first(k, notification, waiter);
        wake(k, notification, waiter);
    } else if let Some(thread) = bound {
        if matches!(k.get(thread).state, ThreadState::Receiving(_)) {
            endpoint::queue::leave(k, thread);
            wake(k, notification, thread);
        } else {
            k.get(thread).blockers |= blocker::SIGNALLED;
            helping::hurry(k, thread);
        }
    }
}

/// Delivers the word to a thread that is in no queue any more, and makes the thread ready. The word was 0 before the
/// signal, so the bound thread loses no signal to another.
fn wake<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    timers::end_wait(k, thread);
    let_in(k, notification);
    deliver_first(k, notification, thread);
    scheduler::make_ready(k, thread);
}

/// Returns whether a thread waits for a signal and would get it at once.
pub fn is_awaited<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>) -> bool {
    let n = k.get(notification);
    let (head, bound) = (n.head, n.bound);
    head.is_some() || bound.is_some_and(|thread| matches!(k.get(thread).state, ThreadState::Receiving(_)))
}

/// Delivers the word to a thread as the result of its system call, and unmasks the interrupt lines that the
/// notification held.
pub fn deliver<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let_in(k, notification);
    deliver_first(k, notification, thread);
    if let Some(bound) = k.get(notification).bound
        && k.get(bound).blockers & blocker::SIGNALLED != 0
    {
        // Another thread has taken the bound thread's signal.
        k.get(bound).blockers &= !blocker::SIGNALLED;
        helping::propagate(k, bound);
    }
}

/// Unmasks the interrupt lines that a notification holds.
fn let_in<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>) {
    if k.get(notification).held != 0 {
        interrupt::let_in(k, notification);
    }
}

/// Delivers the word to a thread. Used where no line is held: after a signal for which the thread was waiting.
pub fn deliver_first<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let word = core::mem::take(&mut k.get(notification).word);
    let t = k.get(thread);
    // A notification other than the bound one says nothing about the bound one's signal.
    if t.notification == Some(notification) {
        t.blockers &= !blocker::SIGNALLED;
    }
    let x = &mut t.registers.x;
    (x[0], x[1], x[10]) = (0, Tag::NOTIFICATION, word);
    x[2..10].fill(0);
}

/// Returns whether a thread's bound notification has a signal.
pub fn has_bound<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    k.get(thread).notification.is_some_and(|notification| k.get(notification).word != 0)
}

/// Takes the bound notification's signal, if there is one, for a thread that is about to receive. Returns whether it
/// did.
pub fn take_bound<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let Some(notification) = k.get(thread).notification else { return false };
    if k.get(notification).word == 0 {
        k.get(thread).blockers &= !blocker::SIGNALLED;
        return false;
    }
    deliver(k, notification, thread);
    true
}

/// Performs `Receive` and `TryReceive` on a notification.
pub fn wait<A: Arch>(
    k: &mut Kernel<A>,
    notification: Ref<Notification>,
    thread: Ref<Thread>,
    deadline: Option<u64>,
    blocking: bool,
) -> Result<Outcome, Error> {
    if k.get(notification).word != 0 {
        let before = k.get(thread).blockers;
        deliver(k, notification, thread);
        if before & blocker::SIGNALLED != 0 {
            // This signal may be the reason why the thread's own context counted.
            helping::propagate(k, thread);
        }
        return Ok(Outcome::Written);
    }
    if !blocking {
        return Err(Error::WouldBlock);
    }
    enqueue(k, notification, thread);
    timers::wait_until(k, thread, deadline);
    Ok(Outcome::Written)
}

/// Queues a thread behind the others that wait for a notification.
pub fn enqueue<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let tail = k.get(notification).tail;
    let t = k.get(thread);
    t.state = ThreadState::Waiting(notification);
    t.next = None;
    t.previous = tail;
    match tail {
        Some(last) => k.get(last).next = Some(thread),
        None => k.get(notification).head = Some(thread),
    }
    k.get(notification).tail = Some(thread);
}

/// Takes the first waiting thread out of a notification's queue.
pub fn unqueue_first<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let next = k.get(thread).next.take();
    k.get(notification).head = next;
    match next {
        Some(next) => k.get(next).previous = None,
        None => k.get(notification).tail = None,
    }
}

/// Takes a waiting thread out of a notification's queue.
pub fn unqueue<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let t = k.get(thread);
    let (next, previous) = (t.next.take(), t.previous.take());
    match previous {
        Some(previous) => k.get(previous).next = next,
        None => k.get(notification).head = next,
    }
    match next {
        Some(next) => k.get(next).previous = previous,
        None => k.get(notification).tail = previous,
    }
}

/// Does one step of a notification's end: wakes one waiting thread with `Aborted`, or unbinds one interrupt line.
/// Returns whether that was the last step.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>) -> bool {
    if let Some(thread) = k.get(notification).head {
        endpoint::cancel(k, thread, Error::Aborted);
        return false;
    }
    let line = k.get(notification).first_interrupt;
    if line != 0 {
        crate::interrupt::unbind(k, u32::from(line) - 1);
        return false;
    }
    if let Some(thread) = k.get(notification).bound.take() {
        let t = k.get(thread);
        t.notification = None;
        t.blockers &= !blocker::SIGNALLED;
        helping::propagate(k, thread);
    }
    true
}
