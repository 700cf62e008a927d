//! Where traps enter: the table of operations, interrupts, faults.
//!
//! The architecture saves registers in the running thread, calls one function of this module, and continues with the
//! thread it answers.

use tench_abi::fault::{Class, Report};
use tench_abi::{Error, Kind, Operation, Rights};

use crate::object::Ref;
use crate::slot::SlotRef;
use crate::thread::{Purpose, Thread, slow};
use crate::{
    Arch, Kernel, delete, endpoint, fault, frame, interrupt, mapping, notification, reply, scheduler, scheduling,
    space, table, thread, untyped,
};

/// What a system call did to the registers of the thread that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Success without results: `x0`..`x10` are to be cleared.
    Done,
    /// Success with this many results from `x1` on; the rest is to be cleared.
    Results(usize),
    /// The registers are as they should be, or somebody else will write them.
    Written,
}

impl Outcome {
    /// Success with these results (at most 8).
    #[inline]
    pub fn results<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, values: &[u64]) -> Outcome {
        let x = &mut k.get(thread).registers.x;
        for (register, value) in x[1..].iter_mut().zip(values) {
            *register = *value;
        }
        Outcome::Results(values.len())
    }
}

/// Argument `i` of the system call, as the user named it: register `x(i)`.
#[inline(always)]
pub fn argument<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, i: usize) -> u64 {
    k.get(thread).registers.x[i]
}

/// The slot that `x0` names, if its capability is of this kind and has these rights.
#[inline]
pub fn capability_slot<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    kind: Kind,
    rights: Rights,
) -> Result<SlotRef, Error> {
    let address = argument(k, thread, 0);
    let slot = space::lookup(k, address)?;
    let cap = &k.slot(slot).cap;
    if cap.kind != kind {
        return Err(Error::WrongType);
    }
    if !cap.allows(rights) {
        return Err(Error::MissingRights);
    }
    Ok(slot)
}

/// The object that `x0` names. `T` is the type that goes with `kind`.
#[inline]
pub fn capability<A: Arch, T>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    kind: Kind,
    rights: Rights,
) -> Result<Ref<T>, Error> {
    let slot = capability_slot(k, thread, kind, rights)?;
    // SAFETY: a live capability of `kind` names an object of the type that goes with it.
    unsafe { Ref::at(k.slot(slot).cap.object) }.ok_or(Error::InvalidCapability)
}

/// A system call of the running thread, whose `x0`..`x12` are saved. Answers who runs next.
#[inline]
pub fn system_call<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    let thread = k.current();
    let outcome = dispatch(k, thread);
    finish(k, thread, outcome);
    scheduler::leave(k)
}

/// Writes what a system call answers into the registers of its thread.
#[inline]
fn finish<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, outcome: Result<Outcome, Error>) {
    let t = k.get(thread);
    if t.slow & slow::DELETED != 0 {
        return;
    }
    let x = &mut t.registers.x;
    match outcome {
        Ok(Outcome::Written) => {}
        Ok(Outcome::Done) => x[..11].fill(0),
        Ok(Outcome::Results(count)) => {
            x[0] = 0;
            x[1 + count.min(9)..11].fill(0);
        }
        Err(error) => {
            x[..11].fill(0);
            x[0] = error as u64;
        }
    }
}

/// The table.
#[inline]
fn dispatch<A: Arch>(k: &mut Kernel<A>, t: Ref<Thread>) -> Result<Outcome, Error> {
    let Some(operation) = Operation::from_code(argument(k, t, 10)) else { return Err(Error::UnknownOperation) };
    match operation {
        Operation::Call => endpoint::send(k, t, Purpose::Call, true),
        Operation::ReplyReceive => endpoint::reply_receive(k, t),
        Operation::Receive => endpoint::receive_call(k, t, true),
        Operation::Send => endpoint::send(k, t, Purpose::Send, true),
        Operation::TrySend => endpoint::send(k, t, Purpose::Send, false),
        Operation::TryReceive => endpoint::receive_call(k, t, false),
        Operation::Reply => reply::reply(k, t),
        Operation::Yield => {
            scheduler::rotate(k);
            Ok(Outcome::Done)
        }
        Operation::Signal => notification::signal_call(k, t),
        Operation::UntypedRetype => untyped::retype(k, t),
        Operation::UntypedQuery => untyped::query(k, t),
        Operation::Copy => space::copy_call(k, t),
        Operation::Mint => space::mint_call(k, t),
        Operation::Move => space::move_call(k, t),
        Operation::Delete => delete::delete_call(k, t),
        Operation::Revoke => delete::revoke_call(k, t),
        Operation::Identify => space::identify(k, t),
        Operation::NodeInstall => space::node_install(k, t),
        Operation::NodeRemove => space::node_remove(k, t),
        Operation::FrameMap => frame::map_call(k, t),
        Operation::MappingProtect => mapping::protect(k, t),
        Operation::MappingQuery => mapping::query(k, t),
        Operation::PageTableMap => table::map(k, t),
        Operation::PageTableUnmap => table::unmap(k, t),
        Operation::ThreadConfigure => thread::configure(k, t),
        Operation::ThreadBind => thread::bind(k, t),
        Operation::ThreadFaults => thread::faults(k, t),
        Operation::ThreadResume => thread::resume_call(k, t),
        Operation::ThreadSuspend => thread::suspend_call(k, t),
        Operation::ThreadReadRegisters => thread::read_registers(k, t),
        Operation::ThreadWriteRegisters => thread::write_registers(k, t),
        Operation::ThreadQuery => thread::query(k, t),
        Operation::UpcallReturn => fault::upcall_return(k, t),
        Operation::SchedulingConfigure => scheduling::configure(k, t),
        Operation::SchedulingQuery => scheduling::query(k, t),
        Operation::InterruptGet => interrupt::get(k, t),
        Operation::InterruptBind => interrupt::bind(k, t),
        Operation::InterruptAcknowledge => interrupt::acknowledge(k, t),
        Operation::KernelPowerOff => crate::power::power_off(k, t),
        Operation::KernelPrint => crate::power::print(k, t),
        Operation::KernelQuery => crate::power::query(k, t),
    }
}

/// An interrupt while a thread ran in user mode; all its registers are saved. Answers who runs next.
#[inline]
pub fn user_interrupt<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    k.state().nesting += 1;
    interrupt::serve(k);
    k.state().nesting -= 1;
    scheduler::leave(k)
}

/// An interrupt inside a window, or while idle. Switching is left to the window.
pub fn kernel_interrupt<A: Arch>(k: &mut Kernel<A>) {
    k.state().nesting += 1;
    interrupt::serve(k);
    k.state().nesting -= 1;
}

/// A fault or foreign system call of the running thread; all its registers are saved. Answers who runs next.
pub fn exception<A: Arch>(k: &mut Kernel<A>, class: Class, report: Report) -> Ref<Thread> {
    fault::raise(k, class, report);
    scheduler::leave(k)
}

/// The running thread touched the floating-point unit while it was off: the unit becomes its own.
pub fn float_trap<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    let thread = k.current();
    k.arch().float_enable(true);
    k.get(thread).slow |= slow::FLOAT;
    let owner = k.state().float_owner.replace(thread);
    if owner != Some(thread) {
        if let Some(owner) = owner {
            let float = &raw mut k.get(owner).float;
            // SAFETY: the thread is alive (a deleted one stops being the owner), and `Arch` shares no memory with it.
            k.arch().float_save(unsafe { &mut *float });
        }
        let float = &raw const k.get(thread).float;
        // SAFETY: as above.
        k.arch().float_restore(unsafe { &*float });
    }
    thread
}
