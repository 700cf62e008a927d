//! Reply objects: a caller waits in one until it gets its reply, once.

use tench_abi::{Error, Kind, Rights, Tag};

use crate::helping::heights;
use crate::object::Ref;
use crate::slot::Named;
use crate::syscall::{Outcome, argument, capability_at, slot_at};
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, endpoint, fault, helping, scheduler, timers};

/// A reply object. It holds at most one caller, which waits for the reply.
#[derive(Default)]
#[repr(C, align(32))]
pub struct Reply {
    /// The caller. Its state is `AwaitingReply` of this object.
    pub caller: Option<Ref<Thread>>,
    /// The thread to which the object is bound, or else the one that received with it last or waits to receive with it.
    pub claimed: Option<Ref<Thread>>,
    /// Set if `claimed` is a binding, which outlasts a receive.
    pub bound: bool,
}

const _: () = assert!(size_of::<Reply>() == 1 << tench_abi::object::REPLY_BITS);

// SAFETY: retype makes a reply object together with its first capability. It lives until its last capability is
// deleted.
unsafe impl Named for Reply {
    const KIND: Kind = Kind::Reply;
}

/// Returns the reply object that `address` names in the calling thread's CSpace.
fn at<A: Arch>(k: &mut Kernel<A>, address: u64) -> Result<Ref<Reply>, Error> {
    capability_at(k, address, Rights::WRITE)
}

/// Returns the reply object for a receive, and whether callers in it are deferred. The object is that in `x11` if the
/// tag says so, else the bound one. Fails with `ReplyInUse` if another thread has it.
pub fn named<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag) -> Result<(Ref<Reply>, bool), Error> {
    let bound = k.get(thread).bound_reply;
    let (object, may_help) = if tag.0 & Tag::REPLY != 0 {
        let address = k.get(thread).registers.x[11];
        let slot = slot_at(k, address, Kind::Reply, Rights::WRITE)?;
        let cap = &k.slot(slot).cap;
        (cap.named().ok_or(Error::WrongType)?, cap.allows(Rights::CALL))
    } else {
        (bound.ok_or(Error::NoReplyObject)?, true)
    };
    if k.get(object).claimed != Some(thread) && is_taken(k, object) {
        return Err(Error::ReplyInUse);
    }
    Ok((object, !may_help && bound != Some(object)))
}

/// Returns whether a reply object is bound to a thread, or a thread waits to receive with it.
pub fn is_taken<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>) -> bool {
    let r = k.get(object);
    let (is_bound, claimed) = (r.bound, r.claimed);
    is_bound || claimed.is_some_and(|thread| matches!(k.get(thread).state, ThreadState::Receiving(_)))
}

/// Makes `sender`, whose message `receiver` has taken, wait in `object`, the receiver's current reply object, and help
/// the receiver.
pub fn hold<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    k.get(sender).state = ThreadState::AwaitingReply(object);
    let (helps, works) = (helping::can_help(k, sender), helping::works_with(k, receiver) == Some(object));
    if helps && works && k.get(sender).height > heights::MAX_HELPER {
        heights::lower(k, sender, heights::MAX_HELPER);
    }
    k.get(object).caller = Some(sender);
    if !helps {
        helping::limit_unhelped(k, receiver, sender);
    } else if works {
        helping::work_for(k, receiver, sender);
    }
}

/// Performs `Reply`.
pub fn reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let tag = Tag(argument(k, thread, 1));
    if !endpoint::prepare_message(k, thread, tag) {
        return Ok(Outcome::Written);
    }
    let address = argument(k, thread, 0);
    let object = if address == 0 { k.get(thread).bound_reply.ok_or(Error::NoReplyObject)? } else { at(k, address)? };
    endpoint::check_message(k, thread, tag, true)?;
    let caller = k.get(object).caller.ok_or(Error::NoCaller)?;
    fault::check_reply(k, Some(caller), thread, tag)?;
    let before = k.get(thread).blockers;
    send(k, object, thread, tag, scheduler::make_ready);
    if helping::current_reply(k, thread) == Some(object) {
        helping::start_afresh(k, thread);
        helping::update_receiver(k, thread, before);
    }
    Ok(Outcome::Done)
}

/// Replies to the caller in `object`, if there is one, with the message in `server`'s registers. The server itself is
/// updated later, when it is known for which caller it works next. `goes_on` makes the caller ready.
pub fn send<A: Arch>(
    k: &mut Kernel<A>,
    object: Ref<Reply>,
    server: Ref<Thread>,
    tag: Tag,
    goes_on: fn(&mut Kernel<A>, Ref<Thread>),
) {
    let Some(caller) = k.get(object).caller.take() else { return };
    if let Some(other) = k.get(object).claimed.filter(|claimed| *claimed != server) {
        helping::propagate(k, other);
    }
    timers::end_wait(k, caller);
    let flags = k.get(caller).blockers;
    k.get(caller).blockers = flags & !blocker::HELPLESS;
    if flags & blocker::FAULT != 0 {
        fault::apply_reply(k, caller, server, tag, goes_on);
        return;
    }
    endpoint::transfer_message(k, server, caller, tag);
    let x = &mut k.get(caller).registers.x;
    x[0] = 0;
    x[10] = 0;
    goes_on(k, caller);
}

/// Removes a caller that no longer waits (because of its deadline, suspension or deletion).
pub fn forget_caller<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>) {
    k.get(object).caller = None;
}

/// Ends a reply object: the caller in it and the thread that waits to receive with it get `Aborted`.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>) -> bool {
    if let Some(caller) = k.get(object).caller {
        endpoint::cancel(k, caller, Error::Aborted);
    }
    if let Some(thread) = k.get(object).claimed.take() {
        let t = k.get(thread);
        t.bound_reply = t.bound_reply.filter(|bound| *bound != object);
        if t.other_reply == Some(object) {
            (t.other_reply, t.deferred) = (None, false);
        }
        if t.receive_reply == Some(object) && matches!(t.state, ThreadState::Receiving(_)) {
            endpoint::cancel(k, thread, Error::Aborted);
        }
        heights::rejoin(k, thread);
    }
    true
}
