//! What happens as budgets are used: they are timed while somebody runs on them, end, and come back.
//!
//! ```text
//!            begin                    timer: ended                       timer: replenish
//!  ready ──────────► runs, timed ─────────────────────► used up ──────────────────────────► ready
//!            pause ◄──────┘      └──► timeout fault, if somebody handles it; then the same
//! ```
//! A thread that runs on a limited context has `BUDGETED` in [`Thread::slow`], so no fast path switches to or from it
//! unseen: [`begin`] and [`pause`] are told of every such switch. Whether a thread that becomes ready has budget is not
//! asked; it is once it runs, by a timer that fires before its first instruction. So waking somebody costs the same
//! whether it has a budget or not, and no loop looks for somebody who has.
//!
//! A context that is used up waits in the timer queue for its next refill. Whoever runs on it runs on another
//! meanwhile, if somebody else helps ([`helping`](crate::helping)), or not at all.

use crate::kernel::NEVER;
use crate::object::{Ref, SchedulingContext};
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel, fault, scheduler, scheduling, timers};

/// The running thread, whose time is charged, stops running on its limited context, or that changes.
#[cold]
#[inline(never)]
pub fn leave<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if let Some(context) = k.get(thread).scheduling {
        settle(k, context);
    }
    k.state().budget_end = NEVER;
}

/// Tells a context's budget what was consumed since it was last told. Until then whoever runs on it ran without a
/// break.
pub fn settle<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    let until = k.state().charged_until;
    let c = k.get(context);
    let used = c.consumed.wrapping_sub(c.charged);
    c.charged = c.consumed;
    c.budget.consume(until.saturating_sub(used), until);
}

/// Ticks of a context's budget that can be used now, at the time of the last charge.
fn usable<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) -> u64 {
    let now = k.state().charged_until;
    k.get(context).budget.usable(now)
}

/// The thread, which is about to run or runs, has a limited context, whose budget is timed from now on. Time is
/// charged.
#[cold]
#[inline(never)]
pub fn begin<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let Some(context) = k.get(thread).scheduling else { return };
    let usable = usable(k, context);
    let t = k.get(thread);
    if usable != 0 {
        t.slow &= !slow::REPORTED;
    }
    let (is_due, in_kernel) = (t.slow & slow::TIMEOUT != 0, t.kernel_stack_pointer != 0);
    let s = k.state();
    s.budget_end = s.charged_until.saturating_add(usable);
    if is_due && in_kernel {
        // So the kernel looks again at the end of the operation.
        s.reschedule = true;
    } else if is_due {
        s.budget_end = s.charged_until;
    }
    timers::program(k);
}

/// The running thread, whose context is limited, is about to be switched away from, to `leave` the kernel or in a
/// window. If its budget is used up, it cannot go on with that.
#[cold]
#[inline(never)]
pub fn pause<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, leaves: bool) {
    scheduler::charge(k);
    leave(k, thread);
    let Some(context) = k.get(thread).scheduling else { return };
    // A server may have come back to its own context, which it had used up before somebody helped it.
    if k.get(context).is_used_up || !matches!(k.get(thread).state, ThreadState::Ready) {
        return;
    }
    let is_empty = usable(k, context) == 0;
    let flags = k.get(thread).slow;
    if flags & slow::TIMEOUT != 0 || is_empty && flags & slow::REPORTED == 0 {
        report(k, thread, leaves);
    }
    if is_empty && matches!(k.get(thread).state, ThreadState::Ready) && k.get(thread).scheduling == Some(context) {
        use_up(k, context);
        // It may have another now, which is timed when it is switched to.
        k.state().budget_end = NEVER;
    }
}

/// The running thread's budget has ended: whoever handles that is told, at once or when the thread leaves the kernel.
fn report<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, leaves: bool) {
    if !leaves && fault::is_handled(k, thread, tench_abi::fault::Class::Timeout) {
        k.get(thread).slow |= slow::TIMEOUT;
        return;
    }
    let t = k.get(thread);
    t.slow = t.slow & !slow::TIMEOUT | slow::REPORTED;
    if leaves {
        fault::timeout(k, thread);
    }
}

/// Nobody can run on a context until its next refill.
fn use_up<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    let now = k.state().charged_until;
    let c = k.get(context);
    let refill = c.budget.next_refill(now).unwrap_or(NEVER);
    c.is_used_up = true;
    timers::await_refill(k, context, refill);
    scheduling::refresh(k, context);
}

/// The timer: the running thread's budget has ended, or so it was expected.
#[cold]
#[inline(never)]
pub fn ended<A: Arch>(k: &mut Kernel<A>) {
    scheduler::charge(k);
    let current = k.current();
    let Some(context) = k.get(current).scheduling else { return };
    settle(k, context);
    if usable(k, context) == 0 || k.get(current).slow & slow::TIMEOUT != 0 {
        // Whoever switches next deals with it.
        let s = k.state();
        s.budget_end = NEVER;
        s.reschedule = true;
    } else {
        begin(k, current);
    }
}

/// The timer: a context's refill is due, and it can be used, unless an overrun that was charged later has moved that.
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

/// A context's budget does not keep anybody from running on it any more.
pub fn release<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    timers::forget_refill(k, context);
    k.get(context).is_used_up = false;
    scheduling::refresh(k, context);
}
