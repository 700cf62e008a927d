//! Single steps, for debuggers. A thread that is to make one has [`STEP`](blocker::STEP) among its blockers until its
//! exception.
//!
//! The machine lets whatever runs in user mode execute one instruction at a time while that is switched on, which it is
//! when such a thread begins to run. It stays on until the next exception of this kind, also if another thread runs
//! instead: that thread is stopped before its first instruction and goes on at once. So changes between threads that
//! nobody debugs cost nothing.

use tench_abi::fault::{Class, STEP_CLASS};

use crate::object::Ref;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel};

/// Position of the class in a syndrome.
const CLASS: u32 = 26;

/// Lets a thread at rest, whose registers have just been written, execute one instruction when it runs.
pub fn prepare<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    t.blockers |= blocker::STEP;
    t.registers.flags |= A::STEP_FLAG;
}

/// Has a thread that stops waiting for its handler raise the exception of its step again when it goes on, if no handler
/// has received it. (Other faults happen again by themselves: their instructions have not been executed.)
pub const fn raise_again(t: &mut Thread) {
    let is_step = t.fault.class == Class::Exception as u64 && t.fault.syndrome >> CLASS == STEP_CLASS;
    if is_step && matches!(t.state, ThreadState::Sending(_)) {
        t.blockers |= blocker::STEP;
    }
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
