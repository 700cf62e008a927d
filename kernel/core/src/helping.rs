//! Helping: a thread that waits for another lets it run on its own processor time, at its own priority.
//!
//! ```text
//!   H, 200 ── Sending ──► endpoint ── server ──► S ── AwaitingReply ──► reply object ── claimed ──► T
//!   │                                            │                                                  │
//!   └─ its context, 200 ─────────────────────────┴── S has it, too ─────────────────────────────────┴─ T runs on it
//! ```
//! A thread waits *for* another in the reply object with which that one has received last, and at the endpoint that it
//! serves ([`Binding::Served`](crate::thread::Binding::Served)). Which scheduling context a thread runs on follows from
//! who waits for it, each time anew ([`choose`]):
//!
//! - Without a caller, a thread runs on its own context.
//! - With a caller, it runs on whatever its caller would run on. So what is done for somebody costs him, and is as
//!   urgent as he is. Who is to be answered later, in another reply object, is nobody's caller meanwhile; and who was
//!   received with a capability to a reply object that lacks `CALL` is laid aside from the beginning.
//! - If the first who waits at the endpoint that it serves (they wait in the order of their priorities) has a higher
//!   priority than that, it runs on his.
//! - If something of its own is due (a signal to its bound notification, or its alarm), its own context counts, too.
//!
//! The highest priority counts. Contexts do not move: a thread that waits keeps its context in mind, and whoever it
//! waits for has a copy of that. So a copy is always derived from the context's owner through threads that wait for
//! each other, and whenever one of them stops waiting, [`settle`] takes the copies back, one thread after the other.
//!
//! Not everybody who waits helps: there is a bound on how many wait for each other ([`heights`]).
//!
//! If the caller cannot help any more (it has gone, its process is suspended, its context was taken away, the chain is
//! too long), the thread goes on on its own context, but at no higher a priority than his, and at the lowest if his
//! context has a limit: otherwise whoever wants something done at a server's priority, or beyond his budget, would
//! begin it and leave. The same is true of a caller that cannot help from the start, and of a message that was sent
//! before the thread served the endpoint ([`begin_unhelped`]); since then, `Send` is refused.
//!
//! Threads that wait for each other in a ring all wait, so none of them needs help; and each would offer another what
//! he has from that one.
//!
//! The fast paths copy and restore what a thread runs on without asking; they are taken only where that is what would
//! be chosen.

pub mod heights;

use core::hint::cold_path;

use crate::endpoint::queue;
use crate::object::{Ref, Reply, SchedulingContext};
use crate::thread::{HEIGHT_UNIT, Thread, ThreadState, slow};
use crate::{Arch, Kernel, depletion, scheduler};
use heights::{MAX_HEIGHT, rejoin, take_height};

/// Highest priority of own time that means no limit.
pub const UNCAPPED: i16 = i16::MAX;

/// What a thread can run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offer {
    /// -1: not now.
    priority: i16,
    context: Option<Ref<SchedulingContext>>,
}

/// Whom a thread helps, because it waits for that one.
#[inline]
pub fn server_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Thread>> {
    if !can_help(k, thread) {
        return None;
    }
    match k.get(thread).state {
        ThreadState::AwaitingReply(object) => {
            let r = k.get(object);
            let (caller, claimed) = (r.caller, r.claimed?);
            // While it is being answered, its state still says that it waits.
            if caller == Some(thread) && works_with(k, claimed) == Some(object) { Some(claimed) } else { None }
        }
        ThreadState::Sending(endpoint) => queue::server(k, endpoint),
        _ => None,
    }
}

/// Whether a thread that waits helps: not if it waits because its time is used up, since whoever is told of that has to
/// have some; and not if too many would wait for each other. That stays as it is until the wait ends, or until the
/// kernel ends the help because the chain would get too long.
#[inline]
pub fn can_help<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let flags = k.get(thread).slow;
    flags & slow::TOLD != slow::TOLD && flags & slow::HELPLESS == 0
}

/// Returns the highest priority at which something that was begun on a context may be finished on the server's own. For
/// a limited context that is the lowest there is: the server's time has no such limit, so it may use what nobody else
/// wants, and whoever waits for it helps.
fn cap_of<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) -> i16 {
    let c = k.get(context);
    if c.budget.is_limited() {
        return 0;
    }
    let (priority, owner) = (c.priority.into(), c.owner);
    // The owner may itself go on with what it has begun for another.
    owner.map_or(priority, |owner| k.get(owner).cap.min(priority))
}

/// Returns the highest priority at which a server deals with the report of a thread that has used up its budget: there
/// is one such report each time, so nobody gets more done by it than he pays for. What is above the context's ceiling
/// was given together with the limit. If the owner goes on with what he has begun for another, he is no more urgent
/// here.
fn cap_of_report<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) -> i16 {
    let c = k.get(context);
    let (priority, owner) = (c.priority.min(c.ceiling).into(), c.owner);
    owner.map_or(priority, |owner| k.get(owner).cap.min(priority))
}

/// What a thread offers to the one that it waits for; `None` if it cannot help.
#[inline]
fn offer<A: Arch>(k: &mut Kernel<A>, waiter: Ref<Thread>) -> Option<Offer> {
    let t = k.get(waiter);
    if t.parked || t.scheduling.is_none() {
        return None;
    }
    Some(Offer { priority: t.priority, context: t.scheduling })
}

/// A thread's own context, at no more than a priority.
#[inline]
fn own<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cap: i16) -> Offer {
    let base = &k.get(thread).base;
    Offer { priority: base.priority.min(cap), context: base.context }
}

/// The reply object with which a thread has received last: the bound one, unless it was another.
#[inline]
pub fn current_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Reply>> {
    let t = k.get(thread);
    t.other_reply.or(t.bound_reply)
}

/// The reply object in which a thread's caller waits: the current one, unless callers in that are laid aside.
#[inline]
pub fn works_with<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Reply>> {
    if k.get(thread).aside { None } else { current_reply(k, thread) }
}

/// A thread receives with a reply object from now on: it works for the caller in that, unless that one is laid aside.
#[inline]
pub fn receive_with<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, (reply, aside): (Ref<Reply>, bool)) {
    if current_reply(k, thread) != Some(reply) {
        change_reply(k, thread, reply);
    }
    k.get(thread).aside = aside;
}

/// The same where that is not its current one.
#[inline]
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

/// A thread's current reply object is the bound one again, whatever was. What it runs on then is settled by the caller.
#[inline]
pub fn leave_other_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    t.aside = false;
    if let Some(other) = t.other_reply.take() {
        k.get(other).claimed = None;
    }
}

/// A reply object that is not bound is not that of the thread any more that has received with it last.
pub fn release<A: Arch>(k: &mut Kernel<A>, reply: Ref<Reply>) {
    if let Some(worker) = k.get(reply).claimed.take() {
        let t = k.get(worker);
        (t.other_reply, t.aside) = (None, false);
        rejoin(k, worker);
    }
}

/// The caller for whom a thread works: the one in its current reply object.
#[inline]
pub fn caller_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Thread>> {
    let reply = works_with(k, thread)?;
    let caller = k.get(reply).caller?;
    if can_help(k, caller) { Some(caller) } else { None }
}

/// What a thread is to run on, from the states of those who wait for it.
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
    let flags = k.get(thread).slow;
    if flags & slow::URGENT != 0 {
        let own = own(k, thread, UNCAPPED);
        if own.priority > best.priority {
            best = own;
        }
    }
    if flags & slow::HELPED != 0
        && let Some(endpoint) = k.get(thread).served
        && let Some(first) = queue::first_sender(k, endpoint)
        && can_help(k, first)
        && let Some(offer) = offer(k, first)
        && offer.priority > best.priority
    {
        best = offer;
    }
    if k.get(thread).parked {
        best.priority = -1;
    }
    best
}

/// A thread's caller waits, and cannot help: the highest priority at which the thread goes on by itself. It is
/// remembered, because less and less is known of the caller as it goes.
#[cold]
fn cap_without<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) -> i16 {
    let t = k.get(thread);
    let (before, cap) = (t.scheduling.filter(|context| Some(*context) != t.base.context), t.cap);
    let cap = match k.get(caller).scheduling {
        Some(context) => cap_of(k, context),
        // The caller may himself have gone on with what another had begun.
        None if cap == UNCAPPED => before.map_or(0, |context| cap_of(k, context).min(k.get(caller).cap)),
        None => cap,
    };
    set_cap(k, thread, cap);
    cap
}

/// Sets the highest priority of a thread's own time.
fn set_cap<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cap: i16) {
    let t = k.get(thread);
    t.cap = cap;
    t.slow |= slow::CAPPED;
}

/// A thread works for a caller from now on.
#[inline]
pub fn begin<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) {
    let is_too_high = k.get(caller).height == MAX_HEIGHT;
    if is_too_high {
        cold_path();
        k.get(caller).slow |= slow::HELPLESS;
    }
    let offer = if is_too_high { None } else { offer(k, caller) };
    let t = k.get(thread);
    let others = t.slow & slow::OF_HELPING != 0 || t.parked;
    match offer {
        // Nothing else counts, and it is in no queue in which its priority does.
        Some(offer) if !others && matches!(t.state, ThreadState::Receiving(_)) => accept(k, thread, caller, offer),
        Some(_) if !others && can_change_at_once(t) && t.base.slow == 0 => receive_on(k, thread, caller),
        Some(_) => drop(settle(k, thread)),
        None => {
            let cap = k.get(caller).scheduling.map_or(0, |context| cap_of(k, context));
            set_cap(k, thread, cap);
            settle(k, thread);
        }
    }
}

/// A thread has received a message whose sender does not help: it was sent before the thread served the endpoint, or it
/// reports a budget that is used up. A server deals with it on its own context, at no higher a priority than the
/// sender's: otherwise a client could have work done at the server's priority.
#[cold]
#[inline(never)]
pub fn begin_unhelped<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, sender: Ref<Thread>) {
    if k.get(thread).served.is_none() {
        return;
    }
    let reports = k.get(sender).slow & slow::TOLD == slow::TOLD;
    let cap_of = if reports { cap_of_report } else { cap_of };
    let cap = k.get(sender).scheduling.map_or(0, |context| cap_of(k, context));
    set_cap(k, thread, cap);
    settle(k, thread);
}

/// A thread runs on what its caller offers.
#[inline]
fn accept<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>, offer: Offer) {
    let c = k.get(caller);
    let (limit, height) = (c.slow & slow::BUDGETED, c.height + 1);
    let t = k.get(thread);
    t.slow = t.slow & !slow::OF_BUDGET | limit;
    (t.scheduling, t.priority, t.height) = (offer.context, offer.priority, height);
}

/// The running thread has received the message of a caller who waited.
#[inline]
fn receive_on<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) {
    if thread != k.current() || k.get(caller).slow & slow::BUDGETED != 0 {
        settle(k, thread);
        return;
    }
    scheduler::charge(k);
    let [standing, context] = k.get(caller).standing();
    change_at_once(k, thread, [(standing & 0xffff_ffff) + HEIGHT_UNIT, context]);
}

/// A thread's caller has gone without an answer.
pub fn abandon<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, caller: Ref<Thread>) {
    cap_without(k, thread, caller);
    settle(k, thread);
}

/// A thread has answered its caller, or receives: nothing of its own is overdue, and if it works for nobody, what it
/// was asked before limits it no more.
#[inline]
pub fn begin_anew<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.slow & (slow::CAPPED | slow::ALARMED) == 0 {
        return;
    }
    t.slow &= !slow::ALARMED;
    if caller_of(k, thread).is_none() {
        let t = k.get(thread);
        t.slow &= !slow::CAPPED;
        t.cap = UNCAPPED;
        // It may have its own context already, because its caller has lost his in the same call, and still his height.
        settle(k, thread);
    }
}

/// Something of its own is due for a thread: its own time counts now, if it runs on another's or less than all of its
/// own counted.
#[inline]
pub fn hurry<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.scheduling != t.base.context || t.slow & slow::CAPPED != 0 {
        settle(k, thread);
    }
}

/// The running thread has received, or waits to, or has answered: it runs on what is best for that. `before` are its
/// reasons against the fast path when it began.
#[inline(always)]
pub fn settle_receiver<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, before: u32) {
    let t = k.get(thread);
    let others = (t.slow | before) & slow::OF_HELPING != 0;
    if others || t.scheduling != t.base.context {
        settle_helped_receiver(k, thread, others);
    }
}

/// The same for one that runs on another's context, or for which `others` count than its caller.
#[inline(never)]
fn settle_helped_receiver<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, others: bool) {
    if others {
        settle(k, thread);
    } else if caller_of(k, thread).is_none() {
        return_to_own(k, thread);
    }
    // Otherwise it works for a caller, and did so before or was settled when that began.
}

/// The running thread works for nobody any more, and nothing else counts: it runs on its own context.
fn return_to_own<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.base.slow != 0 || !can_change_at_once(t) {
        settle(k, thread);
        return;
    }
    scheduler::charge(k);
    let base = k.get(thread).base.standing();
    change_at_once(k, thread, base);
}

/// Whether the running thread can be given another unlimited context without anything else to be done.
#[inline]
fn can_change_at_once(t: &Thread) -> bool {
    t.slow & slow::OF_BUDGET == 0 && !t.parked
}

/// The running thread runs on another context, neither of which is limited.
#[inline]
fn change_at_once<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, [standing, context]: [u64; 2]) {
    let t = k.get(thread);
    let (before, others) = (t.priority, u64::from(t.slow & !slow::OF_BUDGET) << 32);
    t.set_standing([standing | others, context]);
    if t.priority != before && matches!(t.state, ThreadState::Ready) {
        scheduler::time_again(k, thread);
    }
}

/// Who waits for a thread has changed, or what one of them runs on, or what the thread has itself: it runs on whatever
/// is best now, and so do those that it waits for in turn. Returns how many threads were looked at.
///
/// This ends: each further thread has a greater height, and where nothing changes nobody further is looked at.
pub fn settle<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> usize {
    let (mut at, mut count) = (thread, 1);
    while take_best(k, at)
        && let Some(next) = server_of(k, at)
    {
        at = next;
        count += 1;
    }
    count
}

/// The same, where what a thread offers has changed, although it runs on the same as before. Returns how many others
/// were looked at.
pub fn settle_with_server<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> usize {
    take_best(k, thread);
    server_of(k, thread).map_or(0, |server| settle(k, server))
}

/// A thread runs on whatever is best. Returns whether that is something else than before, or its height is.
fn take_best<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let is_other_height = take_height(k, thread);
    let best = choose(k, thread);
    let is_limited = best.context.is_some_and(|context| k.get(context).budget.is_limited());
    let t = k.get(thread);
    let was_limited = t.slow & slow::BUDGETED != 0;
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

/// A thread runs on another context from now on, or one whose limit has come or gone.
fn run_on<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, best: Offer, is_limited: bool) {
    let is_current = thread == k.current();
    if is_current {
        scheduler::charge(k);
        if k.get(thread).slow & slow::BUDGETED != 0 {
            depletion::leave(k, thread);
        }
    }
    let t = k.get(thread);
    t.scheduling = best.context;
    // That it waits because it tells of a budget does not change while it does.
    let kept = if t.slow & slow::TOLD == slow::TOLD { slow::REPORTED } else { 0 };
    t.slow = t.slow & !slow::OF_BUDGET | kept;
    if is_limited {
        t.slow |= slow::BUDGETED;
    }
    run_at(k, thread, best);
    if is_current && is_limited {
        depletion::begin(k, thread);
    }
}

/// A thread runs at a priority from now on, behind its equals, or not at all.
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
