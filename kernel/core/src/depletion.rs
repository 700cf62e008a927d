//! The life of a budget: it is timed while a thread runs on it, ends, and is refilled.
//!
//! ```text
//!            begin                    timer: ended                       timer: replenish
//!  ready ──────────► runs, timed ─────────────────────► used up ──────────────────────────► ready
//!            pause ◄──────┘      └──► timeout fault, if it has a handler; then the same
//! ```
//! A thread that runs on a context with a budget has `BUDGETED` in [`Thread::blockers`], so no fast path switches to or
//! from it: [`start_timing`] and [`pause`] see every such switch. The kernel does not ask whether a thread that becomes
//! ready has budget left. If it has none, a timer tells when the thread runs, before its first instruction. So waking a
//! thread costs the same with and without a budget, and no loop searches for a thread with budget.
//!
//! A context whose budget is used up waits in the timer queue for its next refill. Meanwhile a thread that runs on it
//! runs on another context, if another thread helps it ([`helping`](crate::helping)), or not at all.

use crate::kernel::NEVER;
use crate::object::Ref;
use crate::scheduling_context::SchedulingContext;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, fault, scheduler, scheduling_context, timers};

/// Stops timing the budget of the running thread, which stops running on that context, or whose budget changes. The
/// time has been charged.
#[cold]
#[inline(never)]
pub fn stop_timing<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if let Some(context) = k.get(thread).scheduling {
        charge_budget(k, context);
    }
    k.state().budget_end = NEVER;
}

/// Takes what a context has consumed since the last call off its budget. The consumption was without a break.
pub fn charge_budget<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    let until = k.state().charged_until;
    let c = k.get(context);
    let used = c.consumed.wrapping_sub(c.charged);
    c.charged = c.consumed;
    c.budget.consume(until.saturating_sub(used), until);
}

/// Returns the ticks of a context's budget that can be used at the time of the last charge.
fn usable<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) -> u64 {
    let now = k.state().charged_until;
    k.get(context).budget.usable(now)
}

/// Times the budget of a thread that runs or is about to run. The time has been charged.
#[cold]
#[inline(never)]
pub fn start_timing<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let Some(context) = k.get(thread).scheduling else { return };
    let usable = usable(k, context);
    let t = k.get(thread);
    if usable != 0 {
        t.blockers &= !blocker::REPORTED;
    }
    let (is_due, in_kernel) = (t.blockers & blocker::TIMEOUT != 0, t.kernel_stack_pointer != 0);
    let s = k.state();
    s.budget_end = s.charged_until.saturating_add(usable);
    if is_due && in_kernel {
        // Makes the kernel look again at the end of the operation.
        s.reschedule = true;
    } else if is_due {
        s.budget_end = s.charged_until;
    }
    timers::program(k);
}

/// Stops timing the budget of the running thread, which is about to be switched away from, on leaving the kernel
/// (`leaves`) or at a preemption point. Raises the timeout fault if the budget is used up, and makes the context wait
/// for its next refill.
#[cold]
#[inline(never)]
pub fn pause<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, leaves: bool) {
    scheduler::charge(k);
    stop_timing(k, thread);
    let Some(context) = k.get(thread).scheduling else { return };
    // A server may have returned to its own context, whose budget was used up before another thread helped it.
    if k.get(context).is_used_up || !matches!(k.get(thread).state, ThreadState::Ready) {
        return;
    }
    let is_empty = usable(k, context) == 0;
    let flags = k.get(thread).blockers;
    if flags & blocker::TIMEOUT != 0 || is_empty && flags & blocker::REPORTED == 0 {
        report(k, thread, leaves);
    }
    if is_empty && matches!(k.get(thread).state, ThreadState::Ready) && k.get(thread).scheduling == Some(context) {
        use_up(k, context);
        // The thread may have another context now, which is timed when the thread is switched to.
        k.state().budget_end = NEVER;
    }
}

/// Raises the timeout fault of the running thread if it has a handler: now, or when the thread leaves the kernel.
fn report<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, leaves: bool) {
    if !leaves && fault::is_handled(k, thread, tench_abi::fault::Class::Timeout) {
        k.get(thread).blockers |= blocker::TIMEOUT;
        return;
    }
    let t = k.get(thread);
    t.blockers = t.blockers & !blocker::TIMEOUT | blocker::REPORTED;
    if leaves {
        fault::timeout(k, thread);
    }
}

/// Keeps every thread from running on a context until its next refill.
fn use_up<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    let now = k.state().charged_until;
    let c = k.get(context);
    let refill = c.budget.next_refill(now).unwrap_or(NEVER);
    c.is_used_up = true;
    timers::await_refill(k, context, refill);
    scheduling_context::refresh(k, context);
}

/// Handles the timer at the expected end of the running thread's budget.
#[cold]
#[inline(never)]
pub fn ended<A: Arch>(k: &mut Kernel<A>) {
    scheduler::charge(k);
    let current = k.current();
    let Some(context) = k.get(current).scheduling else { return };
    charge_budget(k, context);
    if usable(k, context) == 0 || k.get(current).blockers & blocker::TIMEOUT != 0 {
        // The next switch deals with it.
        let s = k.state();
        s.budget_end = NEVER;
        s.reschedule = true;
    } else {
        start_timing(k, current);
    }
}

/// Handles the timer at a context's refill. The refill can be used, unless an overrun that was charged later has moved
/// it.
#[cold]
#[inline(never)]
pub fn replenish<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    timers::forget_refill(k, context);
    let now = k.arch().now();
    let budget = &k.get(context).budget;
    if budget.usable(now) == 0
        && let Some(refill) = budget.next_refill(now)
    {
        timers::await_refill(k, context, refill);
        return;
    }
    release(k, context);
}

/// Lets threads run on a context again, whatever its budget.
pub fn release<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    timers::forget_refill(k, context);
    k.get(context).is_used_up = false;
    scheduling_context::refresh(k, context);
}
