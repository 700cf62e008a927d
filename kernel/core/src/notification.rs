//! Notifications: a word of bits that is set without waiting and waited for without polling.

use tench_abi::{Error, Kind, Rights, Tag};

use crate::entry::{Outcome, argument, capability_slot};
use crate::object::{Notification, Ref};
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel, endpoint, helping, interrupt, scheduler, space, timers};

/// `Signal`.
pub fn signal_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let address = argument(k, thread, 0);
    let slot = space::lookup(k, address)?;
    if k.slot(slot).cap.kind == Kind::Doorbell {
        let slot = capability_slot(k, thread, Kind::Doorbell, Rights::WRITE)?;
        let bell = k.slot(slot).cap.object;
        interrupt::ring(k, bell);
        return Ok(Outcome::Done);
    }
    let slot = capability_slot(k, thread, Kind::Notification, Rights::WRITE)?;
    let cap = &k.slot(slot).cap;
    let (object, badge) = (cap.object, cap.badge);
    // SAFETY: a live capability of this kind names such an object.
    let Some(notification) = (unsafe { Ref::<Notification>::at(object) }) else {
        return Err(Error::InvalidCapability);
    };
    signal(k, notification, if badge == 0 { 1 } else { badge });
    Ok(Outcome::Done)
}

/// Sets bits, and wakes whoever waits for them.
#[inline]
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
            k.get(thread).slow |= slow::SIGNALLED;
            helping::hurry(k, thread);
        }
    }
}

/// Hands the word to a thread that is no longer in any queue, and lets it run. Until now the word was 0, so the thread
/// that it is bound to has no signal that somebody else takes.
fn wake<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    timers::end_wait(k, thread);
    let_in(k, notification);
    deliver_first(k, notification, thread);
    scheduler::make_ready(k, thread);
}

/// Whether somebody waits for a signal, who would have it at once.
#[inline]
pub fn is_awaited<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>) -> bool {
    let n = k.get(notification);
    let (head, bound) = (n.head, n.bound);
    head.is_some() || bound.is_some_and(|thread| matches!(k.get(thread).state, ThreadState::Receiving(_)))
}

/// Hands the word to a thread: it becomes the result of its system call. Lines that were held until then are let in
/// again.
pub fn deliver<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let_in(k, notification);
    deliver_first(k, notification, thread);
    if let Some(bound) = k.get(notification).bound
        && k.get(bound).slow & slow::SIGNALLED != 0
    {
        // Somebody else has taken what was signalled to it.
        k.get(bound).slow &= !slow::SIGNALLED;
        helping::settle(k, bound);
    }
}

/// Lines that a notification holds are let in again.
#[inline]
fn let_in<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>) {
    if k.get(notification).held != 0 {
        interrupt::let_in(k, notification);
    }
}

/// The same for a signal that somebody waited for: there was none before it, so no line is held.
#[inline]
pub fn deliver_first<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let word = core::mem::take(&mut k.get(notification).word);
    let t = k.get(thread);
    // Of another notification than the bound one, it says nothing about that.
    if t.notification == Some(notification) {
        t.slow &= !slow::SIGNALLED;
    }
    let x = &mut t.registers.x;
    (x[0], x[1], x[10]) = (0, Tag::NOTIFICATION, word);
    x[2..10].fill(0);
}

/// Whether the bound notification has a signal.
#[inline]
pub fn has_bound<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    k.get(thread).notification.is_some_and(|notification| k.get(notification).word != 0)
}

/// The bound notification's signal, if there is one: delivered to the thread that is about to receive.
#[inline]
pub fn take_bound<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let Some(notification) = k.get(thread).notification else { return false };
    if k.get(notification).word == 0 {
        k.get(thread).slow &= !slow::SIGNALLED;
        return false;
    }
    deliver(k, notification, thread);
    true
}

/// `Receive` and `TryReceive` on a notification.
pub fn wait<A: Arch>(
    k: &mut Kernel<A>,
    notification: Ref<Notification>,
    thread: Ref<Thread>,
    deadline: Option<u64>,
    blocking: bool,
) -> Result<Outcome, Error> {
    if k.get(notification).word != 0 {
        let before = k.get(thread).slow;
        deliver(k, notification, thread);
        if before & slow::SIGNALLED != 0 {
            // It may have been this signal for which its own time counted.
            helping::settle(k, thread);
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

/// A thread waits behind the others.
#[inline]
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

/// Takes the first waiting thread out of the queue.
#[inline(always)]
pub fn unqueue_first<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>, thread: Ref<Thread>) {
    let next = k.get(thread).next.take();
    k.get(notification).head = next;
    match next {
        Some(next) => k.get(next).previous = None,
        None => k.get(notification).tail = None,
    }
}

/// Takes a waiting thread out of the queue.
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

/// One step of the end of a notification: wakes one waiter with `Aborted`, or unbinds one interrupt. Answers whether
/// it was the last.
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
        t.slow &= !slow::SIGNALLED;
        helping::settle(k, thread);
    }
    true
}
