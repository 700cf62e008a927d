//! Operations that resume, suspend and inspect threads.

use tench_abi::fault::write;
use tench_abi::object::ThreadState as State;
use tench_abi::{Error, Kind, Rights};

use super::{Binding, FloatState, Thread, ThreadState, blocker, stack_depth, target};
use crate::ipc_buffer::Buffer;
use crate::object::Ref;
use crate::syscall::{Outcome, argument};
use crate::{Arch, Kernel, account, endpoint, float, scheduler, step};

/// Returns whether a thread has what it needs to run: a CSpace and an address space.
#[inline(always)]
pub fn is_configured(t: &Thread) -> bool {
    t.cspace_slots != 0 && t.bindings[Binding::AddressSpace as usize].cap.kind != Kind::Null
}

/// Resumes a suspended or faulted thread.
fn resume<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<(), Error> {
    let t = k.get(thread);
    if !is_configured(t) {
        return Err(Error::NotConfigured);
    }
    if matches!(t.state, ThreadState::Suspended | ThreadState::Faulted) {
        scheduler::make_ready(k, thread);
    }
    Ok(())
}

/// Performs `ThreadResume`.
pub fn resume_call<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    resume(k, thread)?;
    Ok(Outcome::Done)
}

/// Suspends a thread in any state.
#[inline(never)]
pub fn suspend<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if matches!(k.get(thread).state, ThreadState::Ready) {
        scheduler::dequeue(k, thread);
        k.get(thread).state = ThreadState::Suspended;
    } else {
        endpoint::cancel_and_suspend(k, thread, Error::Aborted);
    }
}

/// Performs `ThreadSuspend`.
pub fn suspend_call<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    suspend(k, thread);
    Ok(Outcome::Done)
}

/// Checks that a thread is stopped, or waits for its fault handler's reply, so that its registers can be read and
/// written.
#[inline(always)]
fn check_at_rest<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<(), Error> {
    let t = k.get(thread);
    match t.state {
        ThreadState::Suspended | ThreadState::Faulted => Ok(()),
        ThreadState::AwaitingReply(_) if t.blockers & blocker::FAULT != 0 => Ok(()),
        _ => Err(Error::WrongState),
    }
}

/// Performs `ThreadReadRegisters`.
pub fn read_registers<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::READ)?;
    let flags = argument(k, caller, 1);
    if flags > 1 {
        return Err(Error::InvalidArgument);
    }
    let buffer = Buffer::of(k, caller).ok_or(Error::NoIpcBuffer)?;
    if flags & 1 != 0 && thread != caller {
        suspend(k, thread);
    }
    check_at_rest(k, thread)?;
    buffer.store_registers(k, thread);
    Ok(Outcome::Done)
}

/// Performs `ThreadWriteRegisters`. Discards an operation that the thread left unfinished at a preemption point.
pub fn write_registers<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    let flags = argument(k, caller, 1);
    if flags > (write::RESUME | write::STEP) {
        return Err(Error::InvalidArgument);
    }
    let buffer = Buffer::of(k, caller).ok_or(Error::NoIpcBuffer)?;
    check_at_rest(k, thread)?;
    if flags & write::RESUME != 0 {
        resume(k, thread)?;
    }
    buffer.load_registers(k, thread);
    if flags & write::STEP != 0 {
        step::prepare(k, thread);
    }
    if k.get(thread).kernel_stack_pointer != 0 {
        k.get(thread).kernel_stack_pointer = 0;
        account::apply_suspension(k, thread);
    }
    Ok(Outcome::Done)
}

/// Performs `ThreadReadFloat`.
pub fn read_float<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::READ)?;
    let buffer = Buffer::of(k, caller).ok_or(Error::NoIpcBuffer)?;
    check_at_rest(k, thread)?;
    float::save(k, thread);
    buffer.store_float(k, thread);
    let FloatState { status, control, .. } = k.get(thread).float;
    Ok(Outcome::results(k, caller, &[status, control]))
}

/// Performs `ThreadWriteFloat`.
pub fn write_float<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    let (status, control) = (argument(k, caller, 1), argument(k, caller, 2));
    let buffer = Buffer::of(k, caller).ok_or(Error::NoIpcBuffer)?;
    check_at_rest(k, thread)?;
    float::disown(k, thread);
    buffer.load_float(k, thread);
    let float = &mut k.get(thread).float;
    (float.status, float.control) = (status, control);
    Ok(Outcome::Done)
}

/// Performs `ThreadQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let Some(depth) = stack_depth(k, |k| target(k, caller, Rights::READ))? else { return Ok(Outcome::Written) };
    let thread = target(k, caller, Rights::READ)?;
    scheduler::charge(k);
    let s = &mut k.state().statistics;
    s.deepest_stack = s.deepest_stack.max(depth);
    let t = k.get(thread);
    let state = match t.state {
        ThreadState::Suspended => State::Suspended,
        ThreadState::Ready => State::Ready,
        ThreadState::Sending(_) => State::Sending,
        ThreadState::Receiving(_) => State::Receiving,
        ThreadState::AwaitingReply(_) => State::AwaitingReply,
        ThreadState::Waiting(_) => State::Waiting,
        ThreadState::Faulted => State::Faulted,
    };
    let (priority, fault, scheduling) = (t.priority.max(0) as u64, t.fault, t.base.context);
    let consumed = scheduling.map_or(0, |context| k.get(context).consumed);
    let results = [state as u64, priority, consumed, depth, fault.address, fault.instruction, fault.syndrome];
    Ok(Outcome::results(k, caller, &results))
}
