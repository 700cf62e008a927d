//! Fast paths of calls and replies between two threads that both use the floating-point unit, with messages in
//! registers.
//!
//! The unit stays on. Its registers, those of the running thread, are exchanged for the partner's.

use super::{FLOAT, Fast, HEIGHT_LIMIT, Handoff, is_long, meet, receiver, wait_with};
use crate::endpoint::Endpoint;
use crate::object::Ref;
use crate::slot::Slot;
use crate::thread::{HEIGHT_UNIT, Thread, blocker};
use crate::{Arch, Kernel};

/// Exchanges the registers of the running thread for those of another, which does not run.
#[inline(always)]
fn exchange<A: Arch>(k: &mut Kernel<A>, running: Ref<Thread>, next: Ref<Thread>) {
    k.state().float_owner = Some(next);
    let from = &raw mut k.get(running).float;
    let to = &raw const k.get(next).float;
    // SAFETY: the thread is alive, and `Arch` shares no memory with it.
    let from = unsafe { &mut *from };
    // SAFETY: likewise, and it is another thread.
    let to = unsafe { &*to };
    k.arch().float_exchange(from, to);
}

/// Fast path of `Call` through the capability in this slot, where a thread waits.
#[inline(always)]
pub fn call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, slot: Ref<Slot>, tag: u64) -> Fast {
    let cap = &k.get(slot).cap;
    let (object, badge) = cap.object_and_badge::<A>();
    let Some((endpoint, receiver)) = receiver(k, object) else { return Fast::Slow };
    let [standing, context] = k.get(thread).standing();
    // The use of the unit is the thread's only fast-path blocker, and its height is below the limit.
    let helps = standing ^ FLOAT < HEIGHT_LIMIT;
    let r = k.get(receiver);
    let waits = r.blockers == blocker::FLOAT && !r.deferred;
    let (next, reply) = (r.next, r.receive_reply);
    if !helps || !waits || is_long(tag) {
        return Fast::Other(slot);
    }
    let Some(reply) = reply else { return Fast::Slow };
    // ── Point of no return ──
    k.get(receiver).set_standing([standing + HEIGHT_UNIT, context]);
    meet(k, thread, endpoint, receiver, (reply, next));
    exchange(k, thread, receiver);
    Fast::HandOff(Handoff { next: receiver, tag, badge })
}

/// Fast path of `ReplyReceive` at the endpoint in this slot, where nobody waits, by a thread with a reply object.
#[inline(always)]
pub fn reply_receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, slot: Ref<Slot>, tag: u64) -> Fast {
    let object = k.get(slot).cap.object;
    // SAFETY: a live endpoint capability names a live endpoint; the path before this one has checked it.
    let endpoint = unsafe { Ref::<Endpoint>::at_unchecked(object) };
    let t = k.get(thread);
    let ([_, context], blockers, reply) = (t.standing(), t.blockers, t.bound_reply);
    let Some(reply) = reply else { return Fast::Slow };
    let Some(caller) = k.get(reply).caller else { return Fast::Slow };
    let c = k.get(caller);
    let continues = c.standing()[1] == context && c.blockers == blocker::FLOAT;
    if !continues || blockers != blocker::FLOAT || is_long(tag) {
        return Fast::Other(slot);
    }
    // ── Point of no return ──
    // The server stays a user of the unit: the next call comes to `call`, which exchanges the registers.
    wait_with(k, thread, endpoint, (caller, reply), FLOAT);
    exchange(k, thread, caller);
    Fast::HandOff(Handoff { next: caller, tag, badge: 0 })
}
