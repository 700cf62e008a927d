//! Reply objects: a caller waits in one until it is answered, once.

use tench_abi::{Error, Kind, Rights, Tag};

use crate::entry::{Outcome, argument, capability_at};
use crate::object::{Ref, Reply};
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel, endpoint, fault, inherit, scheduler, scheduling, timers};

/// The reply object that `cap` names in the space of the calling thread.
fn at<A: Arch>(k: &mut Kernel<A>, address: u64) -> Result<Ref<Reply>, Error> {
    capability_at(k, address, Kind::Reply, Rights::WRITE)
}

/// The reply object for a receive: that in `x11` if the tag says so, else the bound one. It must not be another's.
pub fn named<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag) -> Result<Ref<Reply>, Error> {
    let object = if tag.0 & Tag::REPLY != 0 {
        let address = k.get(thread).registers.x[11];
        at(k, address)?
    } else {
        k.get(thread).bound_reply.ok_or(Error::NoReplyObject)?
    };
    match k.get(object).claimed {
        Some(other) if other != thread => Err(Error::ReplyInUse),
        _ => Ok(object),
    }
}

/// `sender`'s message was taken by `receiver`: it waits in `object` from now on.
pub fn hold<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    let r = k.get(object);
    r.caller = Some(sender);
    r.lent = None;
    if !r.bound {
        r.claimed = None;
    }
    k.get(sender).state = ThreadState::AwaitingReply(object);
    if k.get(receiver).scheduling.is_none() {
        lend(k, object, sender, receiver);
    }
    inherit::pass_on(k, sender);
}

/// A server without processor time runs on its caller's. Then the caller waits without a deadline: the server could
/// not go on if its time were taken back.
fn lend<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    let Some(context) = k.get(sender).scheduling else { return };
    scheduling::take(k, context);
    scheduling::give(k, context, receiver);
    k.get(object).lent = Some(context);
    if k.get(sender).slow & slow::DEADLINE != 0 {
        timers::remove(k, sender);
    }
}

/// Gives lent processor time back to the caller.
fn give_back<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>, caller: Ref<Thread>) {
    let Some(context) = k.get(object).lent.take() else { return };
    scheduling::take(k, context);
    if k.get(caller).scheduling.is_none() {
        scheduling::give(k, context, caller);
    }
}

/// `Reply`.
pub fn reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let address = argument(k, thread, 0);
    let object = if address == 0 { k.get(thread).bound_reply.ok_or(Error::NoReplyObject)? } else { at(k, address)? };
    let tag = Tag(argument(k, thread, 1));
    endpoint::check_message(k, thread, tag, true)?;
    if k.get(object).caller.is_none() {
        return Err(Error::NoCaller);
    }
    answer(k, object, thread, tag);
    inherit::settle(k, thread);
    Ok(Outcome::Done)
}

/// Answers the caller in `object`, if there is one, with the message in `server`'s registers. What the server inherits from those
/// who still wait is settled when it is known whom it serves next.
pub fn answer<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>, server: Ref<Thread>, tag: Tag) {
    let Some(caller) = k.get(object).caller.take() else { return };
    give_back(k, object, caller);
    if let Some(other) = k.get(object).claimed.filter(|claimed| *claimed != server) {
        inherit::settle_soon(k, other);
    }
    if k.get(caller).slow & slow::DEADLINE != 0 {
        timers::remove(k, caller);
    }
    if k.get(caller).slow & slow::FAULT != 0 {
        fault::answer(k, caller, server, tag);
        return;
    }
    endpoint::transfer_message(k, server, caller, tag);
    let x = &mut k.get(caller).registers.x;
    x[0] = 0;
    x[10] = 0;
    scheduler::make_ready(k, caller);
}

/// The caller no longer waits (deadline, suspension, deletion).
pub fn forget_caller<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>) {
    let Some(caller) = k.get(object).caller.take() else { return };
    let lent = k.get(object).lent;
    let loan = lent.and_then(|context| k.get(context).thread.map(|server| (server, context)));
    give_back(k, object, caller);
    if let Some((server, context)) = loan {
        fault::loan_lost(k, server, context);
    }
}

/// The end of a reply object: the caller in it and the thread that waits with it get `Aborted`.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, object: Ref<Reply>) -> bool {
    if let Some(caller) = k.get(object).caller {
        endpoint::cancel(k, caller, Error::Aborted);
    }
    if let Some(thread) = k.get(object).claimed.take() {
        let t = k.get(thread);
        if t.bound_reply == Some(object) {
            t.bound_reply = None;
        }
        if t.receive_reply == Some(object) && matches!(t.state, ThreadState::Receiving(_)) {
            endpoint::cancel(k, thread, Error::Aborted);
        }
    }
    true
}
