//! Single steps, for debuggers. A thread that is to make one has [`STEP`](blocker::STEP) among its blockers until its
//! exception.
//!
//! The machine lets whatever runs in user mode execute one instruction at a time while that is switched on, which it is
//! when such a thread begins to run. It stays on until the next exception of this kind, also if another thread runs
//! instead: that thread is stopped before its first instruction and goes on at once. So changes between threads that
//! nobody debugs cost nothing.

use crate::object::Ref;
use crate::thread::{Thread, blocker};
use crate::{Arch, Kernel};

/// Lets a thread at rest, whose registers have just been written, execute one instruction when it runs.
pub fn prepare<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    t.blockers |= blocker::STEP;
    t.registers.flags |= A::STEP_FLAG;
}

/// Switches steps on, for a thread that is about to run.
pub fn begin<A: Arch>(k: &mut Kernel<A>) {
    k.arch().step_enable(true);
}

/// Switches steps off, after the exception that ends one. Returns whether the running thread was to make one.
pub fn end<A: Arch>(k: &mut Kernel<A>) -> bool {
    k.arch().step_enable(false);
    let thread = k.current();
    let t = k.get(thread);
    let was_prepared = t.blockers & blocker::STEP != 0;
    t.blockers &= !blocker::STEP;
    was_prepared
}
