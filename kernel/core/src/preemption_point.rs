//! Preemption points: where a long operation lets pending interrupts in and may be preempted.
//!
//! The kernel runs with interrupts off except here. Passing a preemption point needs the token, so no reference into
//! kernel state lives across one, and the operation must look up again whatever it knew. At a preemption point the
//! state is complete: if the thread is deleted meanwhile, the operation is discarded, with nothing to undo.
//!
//! Interrupt handlers have preemption points of their own ([`nested`]), at which no other thread runs.

use crate::latency_tracer::{self, edge};
use crate::object::Ref;
use crate::scheduler;
use crate::thread::{Thread, blocker};
use crate::{Arch, Kernel};

/// True if preemption points let interrupts in. The non-preemptible kernel differs in this line only.
pub const PREEMPTIBLE: bool = cfg!(feature = "preemption");

/// Lets pending interrupts in. Returns the path of the current operation, for
/// [`latency_tracer`].
#[inline(always)]
pub fn let_interrupts_in<A: Arch>(k: &mut Kernel<A>) -> u64 {
    let path = latency_tracer::end_interval(k, edge::PREEMPTION_POINT);
    A::take_pending_interrupts(k);
    latency_tracer::begin_interval(k, path, A::call_site());
    path
}

/// How an operation finds the kernel after a preemption point.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    /// As it was: no other thread has run. Interrupts change neither capabilities nor tables nor threads, so nothing
    /// needs to be looked up again.
    Undisturbed,
    /// Other threads have run, and may have changed anything.
    Disturbed,
    /// The operation has deleted the thread that performs it: it must end at once and touch nothing any more.
    Deleted,
}

impl Passed {
    /// Returns whether the operation has deleted the thread that performs it.
    #[inline(always)]
    pub const fn is_deleted(self) -> bool {
        matches!(self, Passed::Deleted)
    }

    /// Returns whether other threads have run.
    #[inline(always)]
    pub const fn is_disturbed(self) -> bool {
        matches!(self, Passed::Disturbed)
    }
}

/// Passes a preemption point.
#[cfg_attr(feature = "latency-tracer", inline(never))]
#[cfg_attr(not(feature = "latency-tracer"), inline)]
pub fn pass<A: Arch>(k: &mut Kernel<A>) -> Passed {
    let current = k.current();
    if k.get(current).blockers & blocker::DELETED != 0 {
        return Passed::Deleted;
    }
    k.state().statistics.preemption_points += 1;
    if PREEMPTIBLE && (latency_tracer::MEASURING || A::interrupt_is_pending(k) || scheduler::should_switch(k)) {
        let_others_in(k, current)
    } else {
        Passed::Undisturbed
    }
}

/// Lets interrupts in, and other threads if one of them should run. A function of its own, so that preemption points at
/// which nothing is pending stay short in the code.
#[cold]
#[inline(never)]
fn let_others_in<A: Arch>(k: &mut Kernel<A>, current: Ref<Thread>) -> Passed {
    let before = k.state().statistics.preemptions;
    let path = let_interrupts_in(k);
    if k.state().nesting == 0 && scheduler::should_switch(k) {
        give_way(k, current, path);
    }
    let registers = &k.get(current).registers;
    let (pc, sp) = (registers.pc, registers.sp);
    k.arch().prepare_return(pc, sp);
    if k.state().statistics.preemptions == before { Passed::Undisturbed } else { Passed::Disturbed }
}

/// Runs other threads until the running thread is to continue.
fn give_way<A: Arch>(k: &mut Kernel<A>, current: Ref<Thread>, mut path: u64) {
    loop {
        let next = scheduler::switch::<A, false>(k);
        if next == current {
            return;
        }
        k.state().statistics.preemptions += 1;
        // SAFETY: `current` owns the kernel stack in use, since only the running thread passes preemption points;
        // `next` came from the scheduler, so it is alive; this function holds no reference.
        unsafe { A::switch(current, next) };
        // Interrupts have been off for a while before the switch back, so they are let in before this continues. If one
        // was pending, the scheduler decides again.
        latency_tracer::goes_on(k, path);
        let interrupts = k.state().statistics.interrupts;
        path = let_interrupts_in(k);
        let s = k.state();
        if s.nesting != 0 || s.statistics.interrupts == interrupts || !scheduler::should_switch(k) {
            return;
        }
    }
}

/// Passes a preemption point in an interrupt handler: lets other interrupts in, and never switches threads. A switch
/// waits until the outermost handler returns.
///
/// A handler that interrupted user mode counts in `State::nesting` only here, where it matters; a handler that
/// interrupted a preemption point counts from its beginning.
#[cfg_attr(feature = "latency-tracer", inline(never))]
pub fn nested<A: Arch>(k: &mut Kernel<A>) {
    if !PREEMPTIBLE {
        return;
    }
    let s = k.state();
    let outside = s.nesting;
    let depth = outside.max(1);
    s.nesting = depth;
    let before = s.statistics;
    let_interrupts_in(k);
    let s = k.state();
    s.nesting = outside;
    let came = s.statistics.interrupts - before.interrupts;
    if came > 0 {
        // Interrupts nested more deeply are among these, and counted once.
        s.statistics.nested_interrupts = before.nested_interrupts + came;
        s.statistics.deepest_nesting = s.statistics.deepest_nesting.max(depth + 1);
    }
}
