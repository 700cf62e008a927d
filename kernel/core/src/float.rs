//! The floating-point unit. It is on while a thread runs that uses it, and its registers stay in it until another
//! thread needs it.
//!
//! A thread that uses the unit has [`FLOAT`](blocker::FLOAT) among its blockers from its first use on, which traps,
//! until it waits elsewhere than in a call or for one. So a conversation of calls and replies does not trap again.

use crate::object::Ref;
use crate::thread::{Thread, blocker};
use crate::{Arch, Kernel};

/// Gives the unit, which was off, to the running thread, which has used it.
pub fn trap<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    let thread = k.current();
    go_on(k, thread);
    thread
}

/// Switches the unit on for a thread that is about to run, and exchanges its registers if another thread's are in it.
#[inline(never)]
pub fn go_on<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    k.arch().float_enable(true);
    k.get(thread).blockers |= blocker::FLOAT;
    let owner = k.state().float_owner.replace(thread);
    if owner == Some(thread) {
        return;
    }
    if let Some(owner) = owner {
        let float = &raw mut k.get(owner).float;
        // SAFETY: the thread is alive (a deleted one stops being the owner), and `Arch` shares no memory with it.
        k.arch().float_save(unsafe { &mut *float });
    }
    let float = &raw const k.get(thread).float;
    // SAFETY: as above.
    k.arch().float_restore(unsafe { &*float });
}

/// Returns whether a thread's registers are in the unit.
#[inline(always)]
pub fn is_there<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    k.state().float_owner == Some(thread)
}

/// Switches the unit on for a thread that is about to run if its registers are still in it. If not, they are exchanged
/// once the thread uses the unit: what chose the thread may have taken long.
pub fn go_on_if_there<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if is_there(k, thread) {
        k.arch().float_enable(true);
    } else {
        k.get(thread).blockers &= !blocker::FLOAT;
    }
}

/// Copies the registers of a thread that does not run into the thread, if they are in the unit, where they stay.
pub fn save<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if is_there(k, thread) {
        // It is off, since its registers are not those of the running thread.
        k.arch().float_enable(true);
        let float = &raw mut k.get(thread).float;
        // SAFETY: the thread is alive, and `Arch` shares no memory with it.
        k.arch().float_save(unsafe { &mut *float });
        k.arch().float_enable(false);
    }
}

/// Makes the registers that are saved in a thread that does not run the right ones, and those in the unit nobody's.
pub fn disown<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if is_there(k, thread) {
        k.state().float_owner = None;
    }
}

/// Switches the unit off, at the latest when the running thread is left that uses it.
pub fn stop<A: Arch>(k: &mut Kernel<A>) {
    k.arch().float_enable(false);
}
