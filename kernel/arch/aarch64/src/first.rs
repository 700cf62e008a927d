//! The first process. This runs once and belongs to the bootstrap. It is here so that the kernel's functions are
//! instantiated for this machine in one crate only, and not a second time for the few that the bootstrap calls.

use core::ptr::NonNull;

use tench_kernel::boot::{Plan, first_process};
use tench_kernel::{State, scheduler};

use crate::{Machine, counter, idle, timer, trap};

/// Makes the kernel's state and the first process. Returns the address of the thread to run.
///
/// # Errors
/// A sentence, if the machine has too little memory or the RAM disk does not have the host tool's format.
pub fn run(machine: Machine, plan: &Plan<'_>) -> Result<usize, &'static str> {
    let state = NonNull::new(idle::STATE.get()).ok_or("no state")?;
    let idle = idle::IDLE.get().addr();
    // SAFETY: both are zeroed static memory that is used here alone.
    let kernel = unsafe { State::initialise(state, machine, idle) }.ok_or("no idle thread")?;
    // SAFETY: the frame lies at the top of the idle thread's own kernel stack, which is not in use yet.
    unsafe { idle::prepare(idle) };
    // SAFETY: the state lives for ever, and the tokens made by traps exclude this one: no trap happens before
    // `tench_resume`, when this token is gone.
    unsafe { trap::install(state) };
    first_process(kernel, plan)?;
    kernel.state().statistics.boot_instructions = counter::instructions();
    kernel.state().charged_until = timer::now();
    Ok(scheduler::leave(kernel).address())
}
