//! Fast path of `ReplyReceive` with a named reply object: that of a server that owes other callers their replies.

use core::hint::cold_path;

use tench_abi::Tag;
use tench_abi::message::REGISTER_WORDS;

use super::{Fast, Handoff, INVALID, REASON, free_endpoint, resume_fault, resumes_fault, slot, wait_again};
use crate::object::Ref;
use crate::reply::Reply;
use crate::thread::{Thread, blocker};
use crate::{Arch, Kernel, float};

/// Fast path of `ReplyReceive` with the reply object in `x11`, with which the thread has received last, and a message
/// in registers. Callers received with that object help. The caller may use the floating-point unit, if its registers
/// are still there. `shape` is the tag's [shape](super::SHAPE).
#[inline(always)]
pub fn reply_receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, (tag, shape): (u64, u64)) -> Fast {
    if shape.wrapping_sub(Tag::REPLY) > REGISTER_WORDS as u64 {
        return Fast::Slow;
    }
    let tag = tag ^ Tag::REPLY;
    let Some(slot) = slot(k, thread, address) else { return INVALID };
    let t = k.get(thread);
    let (current, is_deferred, named) = (t.other_reply, t.deferred, t.registers.x[11]);
    let Some(reply) = replyable(k, thread, named) else { return Fast::Slow };
    if current != Some(reply) || is_deferred {
        return Fast::Slow;
    }
    let Some(endpoint) = free_endpoint(k, slot) else { return Fast::Slow };
    let Some(caller) = k.get(reply).caller else { return Fast::Slow };
    let [standing, context] = k.get(thread).standing_at_once::<A>();
    let c = k.get(caller);
    let ([_, helping], blockers) = (c.standing(), c.blockers);
    if standing >= REASON || helping != context {
        return Fast::Slow;
    }
    match blockers {
        0 => {}
        blocker::FLOAT => {
            if !float::is_there(k, caller) {
                return Fast::Slow;
            }
            k.arch().float_enable(true);
        }
        _ => {
            cold_path();
            let uses_float = blockers & blocker::FLOAT != 0;
            if uses_float && !float::is_there(k, caller) || !resumes_fault(blockers & !blocker::FLOAT, tag) {
                return Fast::Slow;
            }
            if uses_float {
                k.arch().float_enable(true);
            }
            return resume_fault(k, thread, endpoint, (caller, reply), tag);
        }
    }
    // ── Point of no return ──
    wait_again(k, thread, endpoint, (caller, reply));
    Fast::HandOff(Handoff { next: caller, tag, badge: 0 })
}

/// Returns the reply object at an address in the CSpace of `thread`, if it can be used and callers in it are not
/// deferred.
#[inline(always)]
fn replyable<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Option<Ref<Reply>> {
    let slot = slot(k, thread, address)?;
    let cap = &k.get(slot).cap;
    if !cap.is_replyable() {
        return None;
    }
    let object = cap.object;
    // SAFETY: a live capability of this kind names a live reply object.
    Some(unsafe { Ref::at_unchecked(object) })
}
