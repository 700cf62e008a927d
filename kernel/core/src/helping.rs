//! Helping: a thread that waits for another donates its scheduling context, and so its priority, for as long as it
//! waits.
//!
//! ```text
//!   H, 200 ── Sending ──► endpoint ── server ──► S ── AwaitingReply ──► reply object ── claimed ──► T
//!   │                                            │                                                  │
//!   └─ its context, 200 ─────────────────────────┴── S has it, too ─────────────────────────────────┴─ T runs on it
//! ```
//! A caller waits *for* the thread that has received last with the reply object in which the caller waits. A sender
//! waits for the thread that serves the endpoint ([`Binding::Served`](crate::thread::Binding::Served)). The scheduling
//! context on which a thread runs follows from the threads that wait for it, and is chosen anew at each change
//! ([`choose`]):
//!
//! - Without a caller, a thread runs on its own context.
//! - With a caller, it runs on whatever its caller would run on. So work for a caller costs the caller's time and is as
//!   urgent as the caller. A caller that is to be replied to later, in another reply object, is *deferred* and does not
//!   count meanwhile; a caller received with a capability to a reply object without `CALL` is deferred from the
//!   beginning.
//! - If the first sender at the endpoint that the thread serves has a higher priority, the thread runs on what that
//!   sender would run on. (Senders wait in the order of their priorities.)
//! - If an event of the thread's own is due (a signal to its bound notification, or its alarm), its own context counts,
//!   too.
//!
//! The highest priority wins. Contexts do not move: a waiting thread keeps its context, and the thread that it waits
//! for has a copy of the reference. So every copy derives from the context's owner through threads that wait for each
//! other, and when one of them stops waiting, [`propagate`] takes the copies back along the chain.
//!
//! Not every waiting thread helps: the length of a chain is bounded ([`heights`]).
//!
//! If the caller can no longer help (it was deleted, its process is suspended, its context was unbound, the chain is
//! too long), the thread continues on its own context, but at no higher priority than the caller's, and at the lowest
//! if the caller's context has a budget. Otherwise a client could have work done at a server's priority, or beyond its
//! own budget, by making a request and leaving. The same holds for a caller that cannot help from the start, and for a
//! message that was sent before the thread served the endpoint ([`limit_unhelped`]); `Send` to a served endpoint is
//! refused.
//!
//! Threads that wait for each other in a ring all wait, so none of them needs help; and each would only propagate what
//! it has from the others.
//!
//! The fast paths copy and restore a thread's scheduling state without choosing; they are taken only where [`choose`]
//! would choose the same.

pub mod heights;

use core::hint::cold_path;

use crate::endpoint::queue;
use crate::object::Ref;
use crate::reply::Reply;
use crate::scheduling_context::SchedulingContext;
use crate::thread::{HEIGHT_UNIT, Thread, ThreadState, blocker};
use crate::{Arch, Kernel, depletion, scheduler};
use heights::{MAX_HEIGHT, rejoin, take_height};

/// Value of [`Thread::cap`] without a limit.
pub const UNCAPPED: i16 = i16::MAX;

/// A context and a priority at which a thread can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offer {
    /// -1 if the thread cannot run now.
    priority: i16,
    context: Option<Ref<SchedulingContext>>,
}

/// Returns the thread that a waiting thread helps.
pub fn server_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Thread>> {
    if !can_help(k, thread) {
        return None;
    }
    match k.get(thread).state {
        ThreadState::AwaitingReply(object) => {
            let r = k.get(object);
            let (caller, claimed) = (r.caller, r.claimed?);
            // During the reply, the caller's state still says that it waits.
            if caller == Some(thread) && works_with(k, claimed) == Some(object) { Some(claimed) } else { None }
        }
        ThreadState::Sending(endpoint) => queue::server(k, endpoint),
        _ => None,
    }
}

/// Returns whether a waiting thread helps. It does not if it waits for the reply to its own timeout fault, since the
/// fault's handler needs a budget; nor if the chain would get too long. That stays so until the wait ends, except that
/// the kernel ends a thread's help if its chain would get too long.
#[inline(always)]
pub fn can_help<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let flags = k.get(thread).blockers;
    flags & blocker::FAULT_REPORTED != blocker::FAULT_REPORTED && flags & blocker::HELPLESS == 0
}

/// Returns the highest priority at which a server may complete, on its own context, work that it began on `context`.
/// For a context with a budget that is 0: the server's own context has no such budget, so it may use only time that no
/// other thread wants, or the help of threads that wait for it.
fn cap_of<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) -> i16 {
    let c = k.get(context);
    if c.budget.is_limited() {
        return 0;
    }
    let (priority, owner) = (c.priority.into(), c.owner);
    // The owner may itself be completing work under a cap.
    owner.map_or(priority, |owner| k.get(owner).cap.min(priority))
}

/// Returns the highest priority at which a server handles the report that a budget is used up. There is one report for
/// each time the budget is used up, so no thread gets more done by it than it pays for. A priority above the context's
/// ceiling was given together with the budget, and does not count here. An owner that is completing work under a cap is
/// no more urgent here.
fn cap_of_report<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) -> i16 {
    let c = k.get(context);
    let (priority, owner) = (c.priority.min(c.ceiling).into(), c.owner);
    owner.map_or(priority, |owner| k.get(owner).cap.min(priority))
}

/// Returns what a thread offers to the thread that it waits for, or `None` if it cannot help.
#[inline(always)]
fn offer<A: Arch>(k: &mut Kernel<A>, waiter: Ref<Thread>) -> Option<Offer> {
    let t = k.get(waiter);
    if t.account_suspended || t.scheduling.is_none() {
        return None;
    }
    Some(Offer { priority: t.priority, context: t.scheduling })
}

/// Returns a thread's own context, at a priority of at most `cap`.
#[inline(always)]
fn own<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cap: i16) -> Offer {
    let base = &k.get(thread).base;
    Offer { priority: base.priority.min(cap), context: base.context }
}

/// Returns a thread's current reply object: that with which it has received last, else the bound one.
#[inline(always)]
pub fn current_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Reply>> {
    let t = k.get(thread);
    t.other_reply.or(t.bound_reply)
}

/// Returns the reply object in which a thread's caller waits: the current one, unless its callers are deferred.
#[inline(always)]
pub fn works_with<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Reply>> {
    if k.get(thread).deferred { None } else { current_reply(k, thread) }
}

/// Makes `reply` the current reply object of a thread that receives. The thread then works for the caller in it, unless
/// `deferred` says that callers in it are deferred.
pub fn receive_with<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, (reply, deferred): (Ref<Reply>, bool)) {
    if current_reply(k, thread) != Some(reply) {
        change_reply(k, thread, reply);
    }
    k.get(thread).deferred = deferred;
}

/// Changes a thread's current reply object to another.
fn change_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, reply: Ref<Reply>) {
    leave_other_reply(k, thread);
    if k.get(thread).bound_reply != Some(reply) {
        if k.get(reply).claimed.is_some() {
            cold_path();
            release(k, reply);
        }
        k.get(reply).claimed = Some(thread);
        k.get(thread).other_reply = Some(reply);
    }
}

/// Makes the bound reply object a thread's current one again. The caller of this function then updates the thread.
pub fn leave_other_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    t.deferred = false;
    if let Some(other) = t.other_reply.take() {
        k.get(other).claimed = None;
    }
}

/// Detaches a reply object that is not bound from the thread that has received with it last.
pub fn release<A: Arch>(k: &mut Kernel<A>, reply: Ref<Reply>) {
    if let Some(worker) = k.get(reply).claimed.take() {
        let t = k.get(worker);
        (t.other_reply, t.deferred) = (None, false);
        rejoin(k, worker);
    }
}

/// Returns the caller for which a thread works: the one in its current reply object, if it can help.
#[inline(always)]
pub fn caller_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Thread>> {
    let reply = works_with(k, thread)?;
    let caller = k.get(reply).caller?;
    if can_help(k, caller) { Some(caller) } else { None }
}

/// Chooses what a thread runs on, from the states of the threads that wait for it.
fn choose<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Offer {
    let mut best = match caller_of(k, thread) {
        None => {
            let cap = k.get(thread).cap;
            own(k, thread, cap)
        }
        Some(caller) => match offer(k, caller) {
            Some(offer) => offer,
            None => {
                let cap = cap_without(k, thread, caller);
                own(k, thread, cap)
            }
        },
    };
    let flags = k.get(thread).blockers;
    if flags & blocker::URGENT != 0 {
        let own = own(k, thread, UNCAPPED);
        if own.priority > best.priority {
            best = own;
        }
    }
    if flags & blocker::HELPED != 0
        && let Some(endpoint) = k.get(thread).served
        && let Some(first) = queue::first_sender(k, endpoint)
        && can_help(k, first)
        && let Some(offer) = offer(k, first)
        && offer.priority > best.priority
    {
        best = offer;
    }
    if k.get(thread).account_suspended {
        best.priority = -1;
    }
    best
}

/// Returns the highest priority at which a thread continues on its own context while its caller waits but cannot help.
/// The priority is stored in the thread, because less and less is known of the caller as it is deleted.
#[cold]
fn cap_without<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) -> i16 {
    let t = k.get(thread);
    let (before, cap) = (t.scheduling.filter(|context| Some(*context) != t.base.context), t.cap);
    let cap = match k.get(caller).scheduling {
        Some(context) => cap_of(k, context),
        // The caller may itself have been completing work under a cap.
        None if cap == UNCAPPED => before.map_or(0, |context| cap_of(k, context).min(k.get(caller).cap)),
        None => cap,
    };
    set_cap(k, thread, cap);
    cap
}

/// Sets the highest priority at which a thread's own context counts.
fn set_cap<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cap: i16) {
    let t = k.get(thread);
    t.cap = cap;
    t.blockers |= blocker::CAPPED;
}

/// Makes a thread work for a caller.
pub fn work_for<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) {
    let is_too_high = k.get(caller).height == MAX_HEIGHT;
    if is_too_high {
        cold_path();
        k.get(caller).blockers |= blocker::HELPLESS;
    }
    let offer = if is_too_high { None } else { offer(k, caller) };
    let t = k.get(thread);
    let others = t.blockers & blocker::OF_HELPING != 0 || t.account_suspended;
    match offer {
        // The caller alone decides, and the thread is in no queue that is ordered by priority.
        Some(offer) if !others && matches!(t.state, ThreadState::Receiving(_)) => accept(k, thread, caller, offer),
        Some(_) if !others && can_change_at_once(t) && t.base.blockers == 0 => receive_on(k, thread, caller),
        Some(_) => drop(propagate(k, thread)),
        None => {
            let cap = k.get(caller).scheduling.map_or(0, |context| cap_of(k, context));
            set_cap(k, thread, cap);
            propagate(k, thread);
        }
    }
}

/// Limits a thread that has received a message whose sender does not help: one that was sent before the thread served
/// the endpoint, or that reports a used-up budget. A server handles it on its own context, at no higher priority than
/// the sender's: otherwise a client could have work done at the server's priority.
#[cold]
#[inline(never)]
pub fn limit_unhelped<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, sender: Ref<Thread>) {
    if k.get(thread).served.is_none() {
        return;
    }
    let reports = k.get(sender).blockers & blocker::FAULT_REPORTED == blocker::FAULT_REPORTED;
    let cap_of = if reports { cap_of_report } else { cap_of };
    let cap = k.get(sender).scheduling.map_or(0, |context| cap_of(k, context));
    set_cap(k, thread, cap);
    propagate(k, thread);
}

/// Makes a thread run on what its caller offers.
fn accept<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>, offer: Offer) {
    let c = k.get(caller);
    let (limit, height) = (c.blockers & blocker::BUDGETED, c.height + 1);
    let t = k.get(thread);
    t.blockers = t.blockers & !blocker::OF_BUDGET | limit;
    (t.scheduling, t.priority, t.height) = (offer.context, offer.priority, height);
}

/// Makes the running thread, which has received the message of a waiting caller, run on what the caller offers.
fn receive_on<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) {
    if thread != k.current() || k.get(caller).blockers & blocker::BUDGETED != 0 {
        propagate(k, thread);
        return;
    }
    scheduler::charge(k);
    let [standing, context] = k.get(caller).standing();
    change_at_once(k, thread, [(standing & 0xffff_ffff) + HEIGHT_UNIT, context]);
}

/// Updates a thread whose caller has left without a reply.
pub fn abandon<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) {
    cap_without(k, thread, caller);
    propagate(k, thread);
}

/// Starts afresh after a thread has replied or before it receives: its alarm is over, and if it works for no caller,
/// its earlier requests no longer limit its priority.
pub fn start_afresh<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.blockers & (blocker::CAPPED | blocker::ALARMED) == 0 {
        return;
    }
    t.blockers &= !blocker::ALARMED;
    if caller_of(k, thread).is_none() {
        let t = k.get(thread);
        t.blockers &= !blocker::CAPPED;
        t.cap = UNCAPPED;
        // The thread may already run on its own context, because its caller lost the context in this system call, and
        // yet still have the height that the caller gave it.
        propagate(k, thread);
    }
}

/// Makes a thread's own context count when an event of its own is due. Does nothing if the thread runs on all of its
/// own context already.
pub fn hurry<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.scheduling != t.base.context || t.blockers & blocker::CAPPED != 0 {
        propagate(k, thread);
    }
}

/// Updates the running thread after it has received, begun to wait for a message, or replied. `before` are its
/// fast-path blockers when the system call began.
pub fn update_receiver<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, before: u32) {
    let t = k.get(thread);
    let others = (t.blockers | before) & blocker::OF_HELPING != 0;
    if others || t.scheduling != t.base.context {
        update_helped_receiver(k, thread, others);
    }
}

/// Updates a thread that runs on another's context, or for which more than its caller counts (`others`).
#[inline(never)]
fn update_helped_receiver<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, others: bool) {
    if others {
        propagate(k, thread);
    } else if caller_of(k, thread).is_none() {
        return_to_own(k, thread);
    }
    // Otherwise the thread works for a caller, and did so before or was updated when it began.
}

/// Makes the running thread run on its own context when it no longer works for a caller and nothing else counts.
fn return_to_own<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.base.blockers != 0 || !can_change_at_once(t) {
        propagate(k, thread);
        return;
    }
    scheduler::charge(k);
    let base = k.get(thread).base.standing();
    change_at_once(k, thread, base);
}

/// Returns whether the running thread can be given another context without a budget by changing its fields alone.
fn can_change_at_once(t: &Thread) -> bool {
    t.blockers & blocker::OF_BUDGET == 0 && !t.account_suspended
}

/// Makes the running thread run on another context. Neither context has a budget.
fn change_at_once<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, [standing, context]: [u64; 2]) {
    let t = k.get(thread);
    let (before, others) = (t.priority, u64::from(t.blockers & !blocker::OF_BUDGET) << 32);
    t.set_standing([standing | others, context]);
    if t.priority != before && matches!(t.state, ThreadState::Ready) {
        scheduler::time_again(k, thread);
    }
}

/// Chooses again what a thread runs on, and likewise for the threads that it waits for in turn. To be called after a
/// change of the threads that wait for it, of what they run on, or of its own context and events. Returns the number of
/// threads examined.
///
/// This terminates: each further thread has a greater height, and the chain is followed only as long as something
/// changes.
pub fn propagate<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> usize {
    let (mut at, mut count) = (thread, 1);
    while take_best(k, at)
        && let Some(next) = server_of(k, at)
    {
        at = next;
        count += 1;
    }
    count
}

/// Chooses again for a thread whose offer has changed although its context and priority may be the same. Returns the
/// number of other threads examined.
pub fn propagate_with_server<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> usize {
    take_best(k, thread);
    server_of(k, thread).map_or(0, |server| propagate(k, server))
}

/// Gives a thread the best context and priority. Returns whether those, or the thread's height, have changed.
fn take_best<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let is_other_height = take_height(k, thread);
    let best = choose(k, thread);
    let is_limited = best.context.is_some_and(|context| k.get(context).budget.is_limited());
    let t = k.get(thread);
    let was_limited = t.blockers & blocker::BUDGETED != 0;
    let before = Offer { priority: t.priority, context: t.scheduling };
    if before == best && is_limited == was_limited {
        return is_other_height;
    }
    if before.context == best.context && is_limited == was_limited {
        run_at(k, thread, best);
    } else {
        run_on(k, thread, best, is_limited);
    }
    true
}

/// Makes a thread run on another context, or on one that has gained or lost its budget.
fn run_on<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, best: Offer, is_limited: bool) {
    let is_current = thread == k.current();
    if is_current {
        scheduler::charge(k);
        if k.get(thread).blockers & blocker::BUDGETED != 0 {
            depletion::stop_timing(k, thread);
        }
    }
    let t = k.get(thread);
    t.scheduling = best.context;
    // A thread that waits for the reply to its timeout fault keeps that status.
    let kept = if t.blockers & blocker::FAULT_REPORTED == blocker::FAULT_REPORTED { blocker::REPORTED } else { 0 };
    t.blockers = t.blockers & !blocker::OF_BUDGET | kept;
    if is_limited {
        t.blockers |= blocker::BUDGETED;
    }
    run_at(k, thread, best);
    if is_current && is_limited {
        depletion::start_timing(k, thread);
    }
}

/// Makes a thread run at a priority, behind its equals; at -1 it does not run.
fn run_at<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, best: Offer) {
    let t = k.get(thread);
    if t.priority == best.priority {
        return;
    }
    scheduler::dequeue(k, thread);
    let t = k.get(thread);
    t.priority = best.priority;
    match t.state {
        ThreadState::Ready => {
            scheduler::make_ready(k, thread);
            scheduler::time_again(k, thread);
        }
        ThreadState::Sending(endpoint) => queue::requeue(k, endpoint, thread),
        _ => {}
    }
}
