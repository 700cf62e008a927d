//! Fast paths of notifications: `Signal` on a notification or doorbell, `Receive` from a notification, and interrupts
//! that signal one.

use tench_abi::{Kind, Rights, Tag};

use super::{FLAGS, Fast, INVALID, slot};
use crate::notification::Notification;
use crate::object::Ref;
use crate::slot::{Slot, flag};
use crate::syscall::clear;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, endpoint, interrupt, notification, scheduler};

/// Fast path of `Signal` to a notification for which no thread waits, or a thread of higher priority without a
/// deadline.
#[inline(always)]
pub fn signal<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Fast {
    let Some(slot) = slot(k, thread, address) else { return INVALID };
    let cap = &k.get(slot).cap;
    if cap.kind != Kind::Notification || !cap.allows(Rights::WRITE) || cap.flags & flag::ZOMBIE != 0 {
        return Fast::Other(slot);
    }
    let (object, badge) = cap.object_and_badge::<A>();
    // SAFETY: a live notification capability names a live notification.
    let notification = unsafe { Ref::<Notification>::at_unchecked(object) };
    let bits = if badge == 0 { 1 } else { badge };
    let n = k.get(notification);
    if n.head.is_some() {
        let Some(waiter) = wake(k, thread, notification, bits) else { return Fast::Slow };
        clear(&mut k.get(thread).registers.x);
        return Fast::Resume(waiter);
    }
    if n.bound.is_some() {
        return Fast::Slow;
    }
    // ── Point of no return ──
    n.word |= bits;
    Fast::DONE
}

/// Fast path of `Signal` to a doorbell, if the slot holds one.
#[inline(always)]
pub fn notify<A: Arch>(k: &mut Kernel<A>, slot: Ref<Slot>) -> Fast {
    let cap = &k.get(slot).cap;
    if cap.kind != Kind::Doorbell || !cap.allows(Rights::WRITE) || cap.flags & flag::ZOMBIE != 0 {
        return Fast::Slow;
    }
    let doorbell = cap.object;
    // ── Point of no return ──
    interrupt::notify(k, doorbell);
    Fast::DONE
}

/// Wakes and returns the first thread that waits for a notification, if it can run at once. On `None`, nothing was
/// written.
#[inline(always)]
pub fn wake<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    notification: Ref<Notification>,
    bits: u64,
) -> Option<Ref<Thread>> {
    let waiter = k.get(notification).head?;
    let w = k.get(waiter);
    let (blockers, priority) = (w.blockers, w.priority);
    let t = k.get(thread);
    if blockers != 0 || t.blockers != 0 || priority <= t.priority || t.priority < 0 {
        return None;
    }
    // ── Point of no return ──
    k.get(notification).word |= bits;
    notification::unqueue_first(k, notification, waiter);
    notification::deliver_first(k, notification, waiter);
    k.get(waiter).state = ThreadState::Ready;
    scheduler::preempt(k, thread);
    Some(waiter)
}

/// Wakes and returns the first thread that waits for a notification, or the bound thread, from the idle thread while no
/// other thread is ready. The woken thread must have no budget and no deadline. On `None`, nothing was written.
pub fn wake_alone<A: Arch>(
    k: &mut Kernel<A>,
    idle: Ref<Thread>,
    notification: Ref<Notification>,
    bits: u64,
) -> Option<Ref<Thread>> {
    let n = k.get(notification);
    let (first, bound) = (n.head, n.bound);
    let waiter = first.or(bound)?;
    let w = k.get(waiter);
    let waits = first.is_some() || matches!(w.state, ThreadState::Receiving(_));
    if !waits || w.blockers != 0 || w.priority < 0 || k.state().highest_ready >= 0 {
        return None;
    }
    // ── Point of no return ──
    k.get(notification).word |= bits;
    if first.is_some() {
        notification::unqueue(k, notification, waiter);
    } else {
        endpoint::queue::leave(k, waiter);
    }
    notification::deliver(k, notification, waiter);
    k.get(waiter).state = ThreadState::Ready;
    scheduler::end_idleness(k, idle);
    Some(waiter)
}

/// Fast path of `Receive` from a notification without a signal: another thread runs.
#[inline(always)]
pub fn receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, tag: u64) -> Fast {
    if tag & FLAGS != 0 {
        return receive_specially(k, thread, address, tag);
    }
    let Some(slot) = slot(k, thread, address) else { return INVALID };
    let cap = &k.get(slot).cap;
    let is_usable = cap.allows(Rights::READ) && cap.flags & flag::ZOMBIE == 0;
    if cap.kind != Kind::Notification || !is_usable {
        return Fast::Other(slot);
    }
    let object = cap.object;
    // SAFETY: a live notification capability names a live notification.
    let notification = unsafe { Ref::<Notification>::at_unchecked(object) };
    if k.get(notification).word != 0 || k.get(thread).blockers != 0 {
        return Fast::Slow;
    }
    // ── Point of no return ──
    notification::enqueue(k, notification, thread);
    let next = scheduler::leave_to_first(k, thread);
    if k.get(next).blockers & blocker::TO_BEGIN == 0 { Fast::Resume(next) } else { Fast::Begin(next) }
}

/// Fast path of `Receive` with a deadline or with a reply object, which only messages can have.
#[inline(always)]
fn receive_specially<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, tag: u64) -> Fast {
    if tag & Tag::DEADLINE != 0 {
        return Fast::Slow;
    }
    slot(k, thread, address).map_or(INVALID, Fast::Other)
}
