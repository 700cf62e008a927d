//! Scheduling contexts: the object that stands for the right to processor time.

use tench_abi::object::{MAX_PERIOD, MIN_BUDGET};
use tench_abi::{Error, Kind, Rights};

use crate::budget::Budget;
use crate::heap::Node;
use crate::object::Ref;
use crate::slot::Named;
use crate::slot::flag;
use crate::syscall::{Outcome, argument, capability, capability_at};
use crate::thread::{Base, Binding, Thread, blocker};
use crate::{Arch, Kernel, depletion, helping, scheduler, timers};

/// The right to processor time: a priority, a time slice, and a budget in each period.
#[derive(Default)]
#[repr(C, align(256))]
pub struct SchedulingContext {
    /// Priority, 0 to 255.
    pub priority: u8,
    /// Highest priority that the context can authorise.
    pub ceiling: u8,
    /// Set while the budget is used up: no thread runs on the context until its next refill.
    pub is_used_up: bool,
    /// Set once a caller has configured the context. Before that, its slice of 0 is only the initial value
    /// ([`configure`]).
    pub is_configured: bool,
    /// Ticks until the next thread of equal priority runs; 0 for no limit.
    pub slice: u64,
    /// Ticks consumed in all.
    pub consumed: u64,
    /// The thread to which the context is bound. Threads that it waits for run on the context, too
    /// ([`helping`]).
    pub owner: Option<Ref<Thread>>,
    /// Part of `consumed` that has been added to the owner's account, or was consumed before the context was bound.
    pub accounted: u64,
    /// Part of `consumed` that has been taken off the budget.
    pub charged: u64,
    /// Ticks that may be consumed, and when.
    pub budget: Budget,
    /// The context's node in the timer queue, where it waits for its next refill.
    pub refill: Node,
}

const _: () = assert!(size_of::<SchedulingContext>() == 1 << tench_abi::object::SCHEDULING_CONTEXT_BITS);

// SAFETY: retype makes a context together with its first capability. It lives until its last capability is deleted.
unsafe impl Named for SchedulingContext {
    const KIND: Kind = Kind::SchedulingContext;
}

/// Performs `SchedulingConfigure`.
pub fn configure<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Rights::WRITE)?;
    let (priority, ceiling) = (argument(k, thread, 1), argument(k, thread, 2));
    let slice = argument(k, thread, 3);
    let (Ok(priority), Ok(ceiling)) = (u8::try_from(priority), u8::try_from(ceiling)) else {
        return Err(Error::InvalidArgument);
    };
    let authority = authority(k, thread, 4)?;
    if priority > authority.ceiling || ceiling > authority.ceiling {
        return Err(Error::PriorityTooHigh);
    }
    let is_below = priority < authority.ceiling && ceiling < authority.ceiling;
    if !is_below && last_tick(slice) > last_tick(authority.slice) {
        return Err(Error::SliceTooLong);
    }
    let context = k.get(scheduling);
    context.priority = priority;
    context.ceiling = ceiling;
    context.slice = slice;
    context.is_configured = true;
    refresh(k, scheduling);
    Ok(Outcome::Done)
}

/// The limits that a scheduling context authorises.
struct Authority {
    /// The highest priority.
    ceiling: u8,
    /// The longest slice at the ceiling. At lower priorities any slice is allowed: a thread that may have a higher
    /// priority can keep the others from running anyway.
    slice: u64,
}

/// Returns the authority of the context that argument `i` names. 0 names the thread's own context, whatever it runs on.
fn authority<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, i: usize) -> Result<Authority, Error> {
    let address = argument(k, thread, i);
    let context = if address == 0 {
        k.get(thread).base.context.ok_or(Error::PriorityTooHigh)?
    } else {
        capability_at::<A, SchedulingContext>(k, address, Rights::WRITE)?
    };
    let c = k.get(context);
    Ok(Authority { ceiling: c.ceiling, slice: slice_of(c) })
}

/// Returns a context's slice. A context that was never configured has the shortest slice, 1, since no authority was
/// given for more. (Its field is still 0.)
fn slice_of(context: &SchedulingContext) -> u64 {
    if context.is_configured { context.slice } else { 1 }
}

/// Returns the last tick of a slice, counted from 0. This orders slices by length, with 0 (no limit) as the longest.
fn last_tick(slice: u64) -> u64 {
    slice.wrapping_sub(1)
}

/// Performs `SchedulingReserve`.
pub fn reserve<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Rights::WRITE)?;
    let (budget, period) = (argument(k, thread, 1), argument(k, thread, 2));
    let is_limit = (MIN_BUDGET..=period).contains(&budget) && period <= MAX_PERIOD;
    if !is_limit && (budget, period) != (0, 0) {
        return Err(Error::InvalidArgument);
    }
    let allowed = authority(k, thread, 3)?.ceiling;
    if k.get(scheduling).priority > allowed {
        return Err(Error::PriorityTooHigh);
    }
    // ── Point of no return ──
    scheduler::charge(k);
    let now = k.state().charged_until;
    let current = k.current();
    let is_running = k.get(current).scheduling == Some(scheduling);
    if is_running {
        depletion::stop_timing(k, current);
    }
    let c = k.get(scheduling);
    c.charged = c.consumed;
    c.budget = if is_limit { Budget::new(budget, period, now) } else { Budget::default() };
    depletion::release(k, scheduling);
    if is_running && k.get(current).blockers & blocker::BUDGETED != 0 {
        depletion::start_timing(k, current);
    }
    Ok(Outcome::Done)
}

/// Updates a context's owner, and the threads that it helps, after a change of the context's priority or budget.
pub fn refresh<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>) {
    let c = k.get(scheduling);
    let Some(owner) = c.owner else { return };
    let priority = if c.is_used_up { -1 } else { i16::from(c.priority) };
    let blockers = if c.budget.is_limited() { blocker::BUDGETED } else { 0 };
    k.get(owner).base = Base { blockers, priority, context: Some(scheduling), ..Base::NONE };
    helping::propagate(k, owner);
}

/// Performs `SchedulingQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Rights::READ)?;
    scheduler::charge(k);
    depletion::charge_budget(k, scheduling);
    let now = k.state().charged_until;
    let c = k.get(scheduling);
    let (usable, refill) = (c.budget.usable(now), c.budget.next_refill(now).unwrap_or(0));
    let Budget { budget, period, .. } = c.budget;
    let results =
        [u64::from(c.priority), u64::from(c.ceiling), slice_of(c), c.consumed, budget, period, usable, refill];
    Ok(Outcome::results(k, thread, &results))
}

/// Makes a scheduling context without an owner the thread's own.
pub fn bind<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>, thread: Ref<Thread>) {
    let c = k.get(scheduling);
    c.owner = Some(thread);
    c.slice = slice_of(c);
    c.accounted = c.consumed;
    refresh(k, scheduling);
}

/// Takes a scheduling context from its owner. No thread runs on it any more, including those that had it through
/// helping.
pub fn unbind<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>) {
    let Some(owner) = k.get(scheduling).owner.take() else { return };
    k.get(owner).base = Base::NONE;
    helping::propagate(k, owner);
}

/// Ends a scheduling context, whose last capability is being deleted.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>) -> bool {
    unbind(k, scheduling);
    timers::forget_refill(k, scheduling);
    true
}

/// Returns the scheduling context that is bound to a thread, whichever threads run on it.
pub fn of_thread<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<SchedulingContext>> {
    let cap = &k.get(thread).bindings[Binding::Scheduling as usize].cap;
    // A slot without `EMBEDDED` was unbound, and holds a capability that is being deleted.
    cap.named().filter(|_| cap.flags & flag::EMBEDDED != 0)
}
