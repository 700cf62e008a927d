//! Preemption windows: where a long operation lets pending interrupts in and may be switched away from.
//!
//! The kernel runs with interrupts masked except here. A window needs the token, so no reference into kernel state
//! lives across one; whatever the operation knew it must look up again. At a window the state is complete: if the
//! thread is deleted meanwhile, the operation is simply forgotten, with nothing to undo.
//!
//! Handlers of interrupts have windows of their own ([`nested`]), in which nobody else runs.

use crate::object::Ref;
use crate::scheduler;
use crate::thread::{Thread, slow};
use crate::watch::{self, edge};
use crate::{Arch, Kernel};

/// Whether windows let interrupts in. The kernel without preemption differs in this line.
pub const PREEMPTIBLE: bool = cfg!(feature = "preemption");

/// Lets pending interrupts in. Answers the path of the operation that is under way, for [`watch`].
#[inline(always)]
pub fn open<A: Arch>(k: &mut Kernel<A>) -> u64 {
    let path = watch::end(k, edge::WINDOW);
    A::open_window(k);
    watch::begin(k, path, A::place());
    path
}

/// Passes a window. Answers `false` if the operation has deleted the thread that carries it out: then nothing may be
/// touched any more and the operation ends at once.
#[must_use]
#[cfg_attr(feature = "watch", inline(never))]
#[cfg_attr(not(feature = "watch"), inline)]
pub fn pass<A: Arch>(k: &mut Kernel<A>) -> bool {
    let current = k.current();
    if k.get(current).slow & slow::DELETED != 0 {
        return false;
    }
    k.state().statistics.windows += 1;
    if PREEMPTIBLE {
        let path = open(k);
        if k.state().nesting == 0 && scheduler::should_switch(k) {
            give_way(k, current, path);
        }
    }
    true
}

/// Lets others run, who should, until the running thread goes on. Apart, so that a window in which nothing happens
/// stays short wherever it is.
#[cold]
#[inline(never)]
fn give_way<A: Arch>(k: &mut Kernel<A>, current: Ref<Thread>, mut path: u64) {
    loop {
        let next = scheduler::switch::<A, false>(k);
        if next == current {
            return;
        }
        k.state().statistics.preemptions += 1;
        // SAFETY: `current` owns the kernel stack in use, since windows are passed only by the running thread;
        // `next` came from the scheduler, so it is alive; this function holds no reference.
        unsafe { A::switch(current, next) };
        // Whoever switched back has had interrupts off for a while already, so they are let in before this goes on; and
        // if one has come, it is asked again who should run.
        watch::goes_on(k, path);
        let interrupts = k.state().statistics.interrupts;
        path = open(k);
        let s = k.state();
        if s.nesting != 0 || s.statistics.interrupts == interrupts || !scheduler::should_switch(k) {
            return;
        }
    }
}

/// How often somebody else ran in a window. If that is the same before and after one, then capabilities, tables and
/// threads are as they were, and need not be looked up again: interrupts change none of them.
#[inline]
pub fn disturbances<A: Arch>(k: &mut Kernel<A>) -> u64 {
    k.state().statistics.preemptions
}

/// A window in an interrupt's handler: lets others in, and never switches, whoever became ready: that waits until the
/// outermost handler is left.
///
/// A handler that interrupted user mode begins to be counted here, where it matters; one that interrupted a window was
/// counted when it began.
#[cfg_attr(feature = "watch", inline(never))]
pub fn nested<A: Arch>(k: &mut Kernel<A>) {
    if !PREEMPTIBLE {
        return;
    }
    let s = k.state();
    let outside = s.nesting;
    let depth = outside.max(1);
    s.nesting = depth;
    let before = s.statistics;
    open(k);
    let s = k.state();
    s.nesting = outside;
    let came = s.statistics.interrupts - before.interrupts;
    if came > 0 {
        // Those that came deeper still are among them, and are counted once.
        s.statistics.nested_interrupts = before.nested_interrupts + came;
        s.statistics.deepest_nesting = s.statistics.deepest_nesting.max(depth + 1);
    }
}
