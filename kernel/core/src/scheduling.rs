//! Scheduling contexts: the right to processor time, as an object.

use tench_abi::object::{MAX_PERIOD, MIN_BUDGET};
use tench_abi::{Error, Kind, Rights};

use crate::budget::Budget;
use crate::entry::{Outcome, argument, capability, capability_at};
use crate::object::{Ref, SchedulingContext};
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel, depletion, inherit, scheduler};

/// `SchedulingConfigure`.
pub fn configure<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Kind::SchedulingContext, Rights::WRITE)?;
    let (priority, ceiling) = (argument(k, thread, 1), argument(k, thread, 2));
    let slice = argument(k, thread, 3);
    let (Ok(priority), Ok(ceiling)) = (u8::try_from(priority), u8::try_from(ceiling)) else {
        return Err(Error::InvalidArgument);
    };
    let allowed = highest_allowed(k, thread, 4)?;
    if priority > allowed || ceiling > allowed {
        return Err(Error::PriorityTooHigh);
    }
    let context = k.get(scheduling);
    let falls = priority < context.priority;
    context.priority = priority;
    context.ceiling = ceiling;
    context.slice = slice;
    if let Some(holder) = context.thread {
        if falls {
            inherit::begin(k, holder);
        }
        update(k, holder);
    }
    Ok(Outcome::Done)
}

/// The highest priority that the context authorises which argument `i` names: 0 is the thread's own.
fn highest_allowed<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, i: usize) -> Result<u8, Error> {
    let address = argument(k, thread, i);
    if address == 0 {
        let own = k.get(thread).scheduling.ok_or(Error::PriorityTooHigh)?;
        return Ok(k.get(own).ceiling);
    }
    let authority = capability_at::<A, SchedulingContext>(k, address, Kind::SchedulingContext, Rights::WRITE)?;
    Ok(k.get(authority).ceiling)
}

/// `SchedulingReserve`.
pub fn reserve<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Kind::SchedulingContext, Rights::WRITE)?;
    let (budget, period) = (argument(k, thread, 1), argument(k, thread, 2));
    let is_limit = (MIN_BUDGET..=period).contains(&budget) && period <= MAX_PERIOD;
    if !is_limit && (budget, period) != (0, 0) {
        return Err(Error::InvalidArgument);
    }
    let allowed = highest_allowed(k, thread, 3)?;
    if k.get(scheduling).priority > allowed {
        return Err(Error::PriorityTooHigh);
    }
    // ── Point of no return ──
    scheduler::charge(k);
    let now = k.state().charged_until;
    let holder = k.get(scheduling).thread;
    if let Some(holder) = holder {
        depletion::part(k, scheduling, holder);
    }
    let c = k.get(scheduling);
    c.charged = c.consumed;
    c.budget = if is_limit { Budget::new(budget, period, now) } else { Budget::default() };
    if let Some(holder) = holder {
        if is_limit {
            depletion::adopt(k, holder);
        }
        apply(k, holder);
    }
    Ok(Outcome::Done)
}

/// `SchedulingQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Kind::SchedulingContext, Rights::READ)?;
    scheduler::charge(k);
    depletion::settle(k, scheduling);
    let now = k.state().charged_until;
    let c = k.get(scheduling);
    let (usable, refill) = (c.budget.usable(now), c.budget.next_refill(now).unwrap_or(0));
    let Budget { budget, period, .. } = c.budget;
    let answers = [u64::from(c.priority), u64::from(c.ceiling), c.slice, c.consumed, budget, period, usable, refill];
    Ok(Outcome::results(k, thread, &answers))
}

/// The priority of the context on which a thread runs; 0 without one.
#[inline]
pub fn own_priority<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> i32 {
    k.get(thread).scheduling.map_or(0, |context| i32::from(k.get(context).priority))
}

/// The priority at which a thread is to run: that of the context it runs on, or what it has inherited, if that is higher; -1
/// without a context, while it is parked, and while the context's budget is used up.
fn priority_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> i32 {
    let t = k.get(thread);
    let inherited = t.inherited;
    match t.scheduling {
        Some(context) if !t.parked && t.slow & slow::DEPLETED == 0 => i32::from(k.get(context).priority).max(inherited),
        _ => -1,
    }
}

/// Something has changed from which a thread's priority follows: it runs at that from now on, behind its equals, or not at all, and
/// so does, if it waits and the priority has risen, whoever it waits for. Answers how many threads those were.
pub fn update<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> usize {
    inherit::outgrow(k, thread);
    apply(k, thread);
    inherit::pass_on(k, thread)
}

/// The same, but for those that it waits for.
pub fn apply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let priority = priority_of(k, thread);
    if k.get(thread).priority == priority {
        return;
    }
    scheduler::dequeue(k, thread);
    let t = k.get(thread);
    t.priority = priority;
    if matches!(t.state, ThreadState::Ready) {
        scheduler::make_ready(k, thread);
        scheduler::time_again(k, thread);
    }
}

/// Gives a scheduling context to a thread that has none, as its own or on loan.
pub fn give<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>, to: Ref<Thread>) {
    let is_limited = k.get(scheduling).budget.is_limited();
    if is_limited {
        // What the thread has used without a context is not this one's.
        scheduler::charge(k);
    }
    k.get(scheduling).thread = Some(to);
    k.get(to).scheduling = Some(scheduling);
    if is_limited {
        depletion::adopt(k, to);
    }
    update(k, to);
}

/// Takes a scheduling context from whoever runs on it. That thread can no longer run.
pub fn take<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>) {
    let Some(holder) = k.get(scheduling).thread.take() else { return };
    if holder == k.current() {
        scheduler::charge(k);
    }
    if k.get(scheduling).budget.is_limited() {
        depletion::part(k, scheduling, holder);
    }
    k.get(holder).scheduling = None;
    let own = i32::from(k.get(scheduling).priority);
    inherit::time_has_gone(k, holder, own);
    apply(k, holder);
}

/// The last capability goes.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>) -> bool {
    take(k, scheduling);
    true
}
