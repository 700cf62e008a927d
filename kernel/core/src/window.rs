//! Preemption windows: where a long operation lets pending interrupts in and may be switched away from.
//!
//! The kernel runs with interrupts masked except here. A window needs the token, so no reference into kernel state
//! lives across one; whatever the operation knew it must look up again. At a window the state is complete: if the
//! thread is deleted meanwhile, the operation is simply forgotten, with nothing to undo.

use crate::scheduler;
use crate::thread::slow;
use crate::{Arch, Kernel};

/// Whether windows let interrupts in. The kernel without preemption differs in this line.
pub const PREEMPTIBLE: bool = cfg!(feature = "preemption");

/// Passes a window. Answers `false` if the operation has deleted the thread that carries it out: then nothing may be
/// touched any more and the operation ends at once.
#[must_use]
pub fn pass<A: Arch>(k: &mut Kernel<A>) -> bool {
    let current = k.current();
    if k.get(current).slow & slow::DELETED != 0 {
        return false;
    }
    k.state().statistics.windows += 1;
    if PREEMPTIBLE {
        A::open_window(k);
        if k.state().nesting == 0 && scheduler::should_switch(k) {
            let next = scheduler::switch::<A, false>(k);
            if next != current {
                k.state().statistics.preemptions += 1;
                // SAFETY: `current` owns the kernel stack in use, since windows are passed only by the running thread;
                // `next` came from the scheduler, so it is alive; this function holds no reference.
                unsafe { A::switch(current, next) };
            }
        }
    }
    true
}

/// How often somebody else ran in a window. If that is the same before and after one, then capabilities, tables and threads
/// are as they were, and need not be looked up again: interrupts change none of them.
#[inline]
pub fn disturbances<A: Arch>(k: &mut Kernel<A>) -> u64 {
    k.state().statistics.preemptions
}

/// The idle thread's window: always lets interrupts in, and switches to whoever became ready.
pub fn idle<A: Arch>(k: &mut Kernel<A>) {
    A::open_window(k);
    let current = k.current();
    let next = scheduler::switch::<A, false>(k);
    if next != current {
        // SAFETY: as in `pass`; the idle thread runs in the kernel alone, on its own kernel stack.
        unsafe { A::switch(current, next) };
    }
}
