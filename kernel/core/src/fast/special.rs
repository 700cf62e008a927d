//! Fast paths of the less common messages: to and from threads that use the floating-point unit, with capabilities that
//! are moved, with named reply objects, and to callers that the server has deferred.
//!
//! Each is entered from the path of the common case in [`fast`](super), which has written nothing.

use core::hint::cold_path;

use tench_abi::{Rights, Tag};

use super::{Fast, Handoff, REASON, free_endpoint, help, is_long, meet, receiver, uses_float_only, wait_again};
use crate::endpoint::Endpoint;
use crate::object::Ref;
use crate::reply::Reply;
use crate::slot::Slot;
use crate::thread::{Thread, blocker};
use crate::{Arch, Kernel, endpoint, fault, float, helping, scheduler};

/// Bits of a tag for the number of capabilities.
const CAPS: u64 = 0xf00;

/// Fast path of `ReplyReceive` at the endpoint in this slot, where [`reply_receive`](super::reply_receive) does not
/// decide.
#[inline(always)]
pub fn reply_receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, slot: Ref<Slot>, tag: u64) -> Fast {
    let t = k.get(thread);
    let ([standing, context], bound) = (t.standing(), t.bound_reply);
    let Some(reply) = bound else { return Fast::Slow };
    let Some(caller) = k.get(reply).caller else { return Fast::Slow };
    if standing >= REASON || k.get(caller).standing()[1] == context {
        reply_and_wait(k, thread, slot, reply, tag)
    } else {
        reply_to_deferred(k, thread, slot, tag)
    }
}

/// Replies to a deferred caller: the server does not run on its context, since it has worked for others meanwhile or
/// for none. The caller becomes ready like any thread, and runs at once if no ready thread has its priority or a higher
/// one.
#[inline(always)]
fn reply_to_deferred<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, slot: Ref<Slot>, tag: u64) -> Fast {
    let object = k.get(slot).cap.object;
    // SAFETY: a live endpoint capability names a live endpoint; `reply_receive` has checked it.
    let endpoint = unsafe { Ref::<Endpoint>::at_unchecked(object) };
    let Some(reply) = k.get(thread).bound_reply else { return Fast::Slow };
    let Some(caller) = k.get(reply).caller else { return Fast::Slow };
    let c = k.get(caller);
    let (blockers, priority) = (c.blockers, c.priority);
    if blockers != 0 || priority < 0 || moves_out_of_run(k, thread, tag) {
        return Fast::Slow;
    }
    // ── Point of no return ──
    helping::leave_other_reply(k, thread);
    if i32::from(priority) > k.state().highest_ready {
        scheduler::end_turn(k, thread);
        wait_again(k, thread, endpoint, (caller, reply));
        return deliver(k, thread, Handoff { next: caller, tag, badge: 0 });
    }
    endpoint::transfer_message(k, thread, caller, Tag(tag));
    let x = &mut k.get(caller).registers.x;
    (x[0], x[10]) = (0, 0);
    scheduler::make_ready(k, caller);
    let next = scheduler::leave_to_first(k, thread);
    wait_again(k, thread, endpoint, (caller, reply));
    if k.get(next).blockers & blocker::TO_BEGIN == 0 { Fast::Resume(next) } else { Fast::Begin(next) }
}

/// Replies to the caller in `reply`, and waits for the next at the endpoint in `slot`, if no message waits there.
/// Caller and server may use the floating-point unit.
#[inline(always)]
fn reply_and_wait<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    slot: Ref<Slot>,
    reply: Ref<Reply>,
    tag: u64,
) -> Fast {
    let Some(endpoint) = free_endpoint(k, slot) else { return Fast::Slow };
    let [standing, context] = k.get(thread).standing();
    let uses_float = uses_float_only(standing);
    if standing >= REASON && !uses_float {
        return Fast::Slow;
    }
    let Some(caller) = k.get(reply).caller else { return Fast::Slow };
    let c = k.get(caller);
    let ([_, helping], blockers) = (c.standing(), c.blockers);
    if helping != context || blockers & !(blocker::FAULT | blocker::FLOAT) != 0 {
        return Fast::Slow;
    }
    let is_fault = blockers & blocker::FAULT != 0;
    if moves_out_of_run(k, thread, tag) {
        return Fast::Slow;
    }
    if is_fault && (is_long(tag) || !fault::lets_go_on(Tag(tag))) {
        return Fast::Slow;
    }
    // ── Point of no return ──
    if is_fault {
        fault::apply_resuming_reply(k, caller, thread, Tag(tag));
    }
    wait_again(k, thread, endpoint, (caller, reply));
    if uses_float {
        // The next call goes through `call`, which switches the unit on.
        float::stop(k);
        let t = k.get(thread);
        t.blockers |= blocker::FLOAT;
        t.fast_reply = None;
    }
    if blockers & blocker::FLOAT != 0 {
        float::go_on(k, caller);
    }
    if is_fault {
        return Fast::Resume(caller);
    }
    deliver(k, thread, Handoff { next: caller, tag, badge: 0 })
}

/// Moves what a message has beyond the registers, and hands over to its receiver.
#[inline(always)]
fn deliver<A: Arch>(k: &mut Kernel<A>, from: Ref<Thread>, handoff: Handoff) -> Fast {
    if !is_long(handoff.tag) {
        return Fast::HandOff(handoff);
    }
    let Tag(tag) = endpoint::transfer_rest(k, from, handoff.next, Tag(handoff.tag));
    Fast::HandOff(Handoff { tag, ..handoff })
}

/// Returns whether a long message moves a capability out of a run of frames, which takes too long here.
#[inline(always)]
fn moves_out_of_run<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: u64) -> bool {
    tag & CAPS != 0 && endpoint::moves(k, thread) && endpoint::moves_out_of_run(k, thread, Tag(tag))
}

/// Returns the reply object with which a thread waits that uses the floating-point unit, if that is the only reason why
/// it has no [`fast_reply`](Thread::fast_reply).
#[inline(always)]
pub(super) fn reply_of_user_of_float(t: &Thread) -> Option<Ref<Reply>> {
    cold_path();
    if t.blockers == blocker::FLOAT && !t.deferred { t.receive_reply } else { None }
}

/// Switches the floating-point unit on for the handler of a fault.
#[cold]
#[inline(never)]
pub(super) fn use_float<A: Arch>(k: &mut Kernel<A>, handler: Ref<Thread>) {
    float::go_on(k, handler);
}

/// Fast path of `Call` through the capability in this slot, to a waiting server, where [`call`](super::call) does not
/// decide.
#[inline(always)]
pub fn call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, slot: Ref<Slot>, tag: u64) -> Fast {
    let cap = &k.get(slot).cap;
    let ((object, badge), may_grant) = (cap.object_and_badge::<A>(), cap.allows(Rights::GRANT));
    if tag & CAPS != 0 && !may_grant {
        return Fast::Slow;
    }
    let Some((endpoint, receiver)) = receiver(k, object) else { return Fast::Slow };
    let r = k.get(receiver);
    let next = r.next;
    let uses_float = r.fast_reply.is_none();
    let reply = if uses_float { reply_of_user_of_float(r) } else { r.fast_reply };
    let Some(reply) = reply else { return Fast::Slow };
    if moves_out_of_run(k, thread, tag) {
        return Fast::Slow;
    }
    let Some(standing) = help(k, thread) else { return Fast::Slow };
    // ── Point of no return ──
    k.get(receiver).set_standing(standing);
    meet(k, thread, endpoint, receiver, (reply, next));
    if uses_float {
        float::go_on(k, receiver);
    }
    deliver(k, thread, Handoff { next: receiver, tag, badge })
}
