//! Calls of traced threads that were interrupted, and are made again.
//!
//! ```text
//!   the wait ends ──▶ [Exit] ──▶ put back to the call ──▶ [Signal] [Trap] [Stopped] ──▶ a handler begins, or it runs
//! ```
//! As on Linux, a thread is put back to its call before all stops but that at the call's end. A handler takes that
//! back, unless it wants calls to be made again; so does a tracer that sets another program counter.

use core::time::Duration;

use tench_linux_calls::Sysno;

use super::INSTRUCTION;
use crate::Machine;
use crate::thread::{Registers, Thread};
use crate::waiting::{Interruption, Waiting};

/// `ERESTARTSYS` as a result: the call is made again unless a handler says otherwise.
pub(super) const AGAIN: u64 = (-512i64).cast_unsigned();
/// `ERESTARTNOHAND` as a result: the call is made again unless there is a handler.
const WITHOUT_HANDLER: u64 = (-514i64).cast_unsigned();
/// `ERESTART_RESTARTBLOCK` as a result: as this, and the time for which it waits goes on.
const GOES_ON: u64 = (-516i64).cast_unsigned();
/// `EINTR` as a result.
const INTERRUPTED: u64 = (-4i64).cast_unsigned();

/// A call that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Number of the call.
    pub number: u64,
    /// Arguments of the call.
    pub arguments: [u64; 6],
    /// When its wait ends.
    pub deadline: Option<Duration>,
    decision: Decision,
}

/// The stage at which it is whether a call is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// The thread's result says so.
    Result,
    /// The thread has been put back to the call at an address; that was its result.
    PutBack { at: u64, result: u64 },
    /// The end, after which registers stay as they are.
    Made,
}

impl Interrupted {
    /// Returns the call whose wait has been interrupted.
    pub(super) const fn new(waiting: &Waiting) -> Interrupted {
        let Waiting { number, arguments, deadline, .. } = *waiting;
        Interrupted { number, arguments, deadline, decision: Decision::Result }
    }

    /// Has it decided anew whether the call is made again.
    pub(super) const fn reopen(&mut self) {
        self.decision = Decision::Result;
    }
}

/// Returns how a call ends that is interrupted, and made again unless there is a handler.
pub(super) fn result(waiting: &Waiting) -> u64 {
    const BY_DATE: u64 = 1;
    let is = |call: Sysno| waiting.number == call as u64;
    let is_until = is(Sysno::clock_nanosleep) && waiting.arguments[1] & BY_DATE != 0;
    let sleeps = is(Sysno::nanosleep) || is(Sysno::clock_nanosleep) && !is_until || is(Sysno::restart_syscall);
    if sleeps && waiting.until_run.is_none() {
        return GOES_ON;
    }
    let final_calls = [Sysno::ppoll, Sysno::pselect6, Sysno::rt_sigsuspend, Sysno::msgrcv, Sysno::msgsnd];
    match waiting.interruption {
        Interruption::Restartable => AGAIN,
        _ if sleeps || is_until || final_calls.into_iter().any(is) => WITHOUT_HANDLER,
        _ => INTERRUPTED,
    }
}

/// Puts a thread back to its call, if its result says that the call was interrupted.
pub(super) fn put_back<M: Machine>(thread: &mut Thread<M>, registers: &mut Registers) {
    let Some(call) = thread.interrupted.as_mut().filter(|call| call.decision == Decision::Result) else { return };
    let result = registers.x[0];
    if ![AGAIN, WITHOUT_HANDLER, GOES_ON].contains(&result) {
        call.decision = Decision::Made;
        return;
    }
    registers.pc = registers.pc.wrapping_sub(INSTRUCTION);
    registers.x[0] = call.arguments[0];
    call.decision = Decision::PutBack { at: registers.pc, result };
}

/// Decides. Returns the result with which the call was interrupted, if the thread is still where it was put back to.
fn decide<M: Machine>(thread: &mut Thread<M>, registers: &Registers) -> Option<u64> {
    let call = thread.interrupted.as_mut()?;
    match core::mem::replace(&mut call.decision, Decision::Made) {
        Decision::PutBack { at, result } if at == registers.pc => Some(result),
        _ => None,
    }
}

/// Lets a handler interrupt a call that would be made again, unless it wants that.
pub(super) fn interrupt<M: Machine>(thread: &mut Thread<M>, restarts: bool, registers: &mut Registers) {
    match decide(thread, registers) {
        Some(AGAIN) if restarts => {}
        Some(_) => {
            registers.pc = registers.pc.wrapping_add(INSTRUCTION);
            registers.x[0] = INTERRUPTED;
        }
        None => {}
    }
}

/// Lets a thread run that may be about to make a call again. Returns whether it is. One whose time goes on is made by
/// `restart_syscall`.
pub(super) fn make_again<M: Machine>(thread: &mut Thread<M>, registers: &mut Registers) -> bool {
    let result = decide(thread, registers);
    if result == Some(GOES_ON) {
        registers.x[8] = Sysno::restart_syscall as u64;
    }
    result.is_some()
}
