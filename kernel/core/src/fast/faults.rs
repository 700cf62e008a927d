//! Fast paths of faults and foreign system calls: calls to a waiting handler on the thread's behalf.

use tench_abi::fault::{Class, Report};

use super::{Handoff, help, meet, receiver, special};
use crate::object::Ref;
use crate::slot::flag;
use crate::thread::{Binding, Purpose, Thread, blocker};
use crate::{Arch, Kernel, fault, scheduler};

/// Fast path of a fault of the running thread, other than a foreign system call, if a handler waits at the endpoint for
/// faults of this class: the handler runs next, on the faulting thread's context. On `None`, nothing was written.
#[inline(always)]
pub fn fault<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class, report: &Report) -> Option<Ref<Thread>> {
    let (handler, badge) = call_handler(k, thread, class)?;
    fault::transfer_report(k, handler, report);
    let x = &mut k.get(handler).registers.x;
    (x[0], x[10]) = (0, badge);
    scheduler::hand_to(k, thread, handler);
    Some(handler)
}

/// Fast path of a foreign system call of a thread without upcalls, all of whose registers have been saved, if a handler
/// waits at the endpoint for such calls. The message's words are in the thread's registers; see
/// [`ForeignCall`](tench_abi::fault::ForeignCall). On `None`, nothing was written but the thread's report.
#[inline(always)]
pub fn foreign_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, report: Report) -> Option<Handoff> {
    let t = k.get(thread);
    t.fault = report;
    if t.has_upcalls != 0 {
        return None;
    }
    let (next, badge) = call_handler(k, thread, Class::ForeignCall)?;
    Some(Handoff { next, tag: fault::foreign_tag(report.syndrome).0, badge })
}

/// Makes the running thread wait for the reply of the handler that waits at the endpoint for faults of this class.
/// Returns the handler, which continues on the thread's context, and its badge. On `None`, nothing was written.
#[inline(always)]
fn call_handler<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class) -> Option<(Ref<Thread>, u64)> {
    let cap = &k.get(thread).bindings[Binding::fault(class) as usize].cap;
    if cap.flags & flag::CALLABLE == 0 {
        return None;
    }
    let (object, badge) = cap.object_and_badge::<A>();
    let (endpoint, handler) = receiver(k, object)?;
    let h = k.get(handler);
    let next = h.next;
    let uses_float = h.fast_reply.is_none();
    let reply = if uses_float { special::reply_of_user_of_float(h)? } else { h.fast_reply? };
    let standing = help(k, thread)?;
    // ── Point of no return ──
    k.get(handler).set_standing(standing);
    let t = k.get(thread);
    t.badge = badge;
    t.may_grant = false;
    t.purpose = Purpose::Fault;
    t.blockers |= blocker::FAULT;
    meet(k, thread, endpoint, handler, (reply, next));
    if uses_float {
        special::use_float(k, handler);
    }
    Some((handler, badge))
}
