//! Kernel entry: the table of operations, interrupts, faults.
//!
//! The architecture saves registers in the running thread, calls one function of this module, and continues with the
//! thread that it returns.

use tench_abi::fault::{Class, Report};
use tench_abi::object::entry_path;
use tench_abi::{Error, Operation};

use crate::address_space::{frames, protection, scattered, tables};
use crate::object::Ref;
use crate::syscall::{Outcome, argument, clear};
use crate::thread::{Thread, blocker};
use crate::{
    Arch, Kernel, account, capabilities, configuration, delete, endpoint, fast, fault, interrupt, kernel_object,
    latency_tracer, notification, page_table, remote, reply, scheduler, scheduling_context, thread, untyped,
};

/// Performs a system call of the running thread, whose `x0`..`x12` are saved. Returns the thread that runs next.
pub fn system_call<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    let thread = k.current();
    let outcome = dispatch(k, thread);
    finish(k, thread, outcome);
    scheduler::leave(k)
}

/// Writes the outcome of a system call into the registers of its thread.
fn finish<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, outcome: Result<Outcome, Error>) {
    let code = match outcome {
        Ok(Outcome::Written) => return,
        Ok(Outcome::Done) => 0,
        Err(error) => error as u64,
    };
    let t = k.get(thread);
    if t.blockers & blocker::DELETED == 0 {
        clear(&mut t.registers.x);
        t.registers.x[0] = code;
    }
}

/// A function that performs an operation for a thread.
type Handler<A> = fn(&mut Kernel<A>, Ref<Thread>) -> Result<Outcome, Error>;

/// The table of operations, by number.
struct Table<A>(core::marker::PhantomData<A>);

impl<A: Arch> Table<A> {
    const HANDLERS: [Handler<A>; Operation::LIMIT] = {
        let mut table: [Handler<A>; Operation::LIMIT] = [unknown::<A>; Operation::LIMIT];
        table[Operation::Call as usize] = endpoint::call::<A>;
        table[Operation::ReplyReceive as usize] = endpoint::reply_receive::<A>;
        table[Operation::Receive as usize] = endpoint::receive_call::<A>;
        table[Operation::Send as usize] = endpoint::send_call::<A>;
        table[Operation::TrySend as usize] = endpoint::try_send::<A>;
        table[Operation::TryReceive as usize] = endpoint::try_receive::<A>;
        table[Operation::Reply as usize] = reply::reply::<A>;
        table[Operation::Yield as usize] = give_way::<A>;
        table[Operation::Signal as usize] = notification::signal_call::<A>;
        table[Operation::UntypedRetype as usize] = untyped::retype::<A>;
        table[Operation::UntypedQuery as usize] = untyped::query::<A>;
        table[Operation::UntypedSplit as usize] = untyped::split::split::<A>;
        table[Operation::UntypedChildren as usize] = untyped::children::children::<A>;
        table[Operation::Copy as usize] = capabilities::copy_call::<A>;
        table[Operation::Mint as usize] = capabilities::mint_call::<A>;
        table[Operation::Move as usize] = capabilities::move_call::<A>;
        table[Operation::Delete as usize] = delete::delete_call::<A>;
        table[Operation::Revoke as usize] = delete::revoke_call::<A>;
        table[Operation::DeletePart as usize] = delete::delete_part_call::<A>;
        table[Operation::RevokePart as usize] = delete::revoke_part_call::<A>;
        table[Operation::Identify as usize] = capabilities::identify::<A>;
        table[Operation::NodeInstall as usize] = capabilities::node_install::<A>;
        table[Operation::NodeRemove as usize] = capabilities::node_remove::<A>;
        table[Operation::FrameMap as usize] = frames::map_call::<A>;
        table[Operation::MappingProtect as usize] = protection::protect::<A>;
        table[Operation::MappingQuery as usize] = protection::query::<A>;
        table[Operation::FrameScatter as usize] = scattered::make::<A>;
        table[Operation::MappingSet as usize] = scattered::set::<A>;
        table[Operation::MappingClone as usize] = scattered::clone::<A>;
        table[Operation::PageTableMap as usize] = tables::map::<A>;
        table[Operation::PageTableUnmap as usize] = tables::unmap::<A>;
        table[Operation::ThreadConfigure as usize] = configuration::configure::<A>;
        table[Operation::ThreadBind as usize] = configuration::bind::<A>;
        table[Operation::ThreadFaults as usize] = configuration::faults::<A>;
        table[Operation::ThreadResume as usize] = thread::control::resume_call::<A>;
        table[Operation::ThreadSuspend as usize] = thread::control::suspend_call::<A>;
        table[Operation::ThreadReadRegisters as usize] = thread::control::read_registers::<A>;
        table[Operation::ThreadWriteRegisters as usize] = thread::control::write_registers::<A>;
        table[Operation::ThreadReadFloat as usize] = thread::control::read_float::<A>;
        table[Operation::ThreadWriteFloat as usize] = thread::control::write_float::<A>;
        table[Operation::ThreadQuery as usize] = thread::control::query::<A>;
        table[Operation::ThreadServe as usize] = configuration::serve::<A>;
        table[Operation::UpcallReturn as usize] = fault::upcall_return::<A>;
        table[Operation::SchedulingConfigure as usize] = scheduling_context::configure::<A>;
        table[Operation::SchedulingQuery as usize] = scheduling_context::query::<A>;
        table[Operation::SchedulingReserve as usize] = scheduling_context::reserve::<A>;
        table[Operation::AccountOpen as usize] = account::open::<A>;
        table[Operation::AccountQuery as usize] = account::query::<A>;
        table[Operation::AccountSuspend as usize] = account::suspend::<A>;
        table[Operation::InterruptGet as usize] = interrupt::get::<A>;
        table[Operation::InterruptBind as usize] = interrupt::bind::<A>;
        table[Operation::InterruptAcknowledge as usize] = interrupt::acknowledge::<A>;
        table[Operation::InterruptDoorbell as usize] = interrupt::doorbell::<A>;
        table[Operation::KernelExport as usize] = remote::export::<A>;
        table[Operation::KernelUnexport as usize] = remote::unexport::<A>;
        table[Operation::KernelImport as usize] = remote::import::<A>;
        table[Operation::KernelHolders as usize] = remote::holders::<A>;
        table[Operation::KernelPowerOff as usize] = kernel_object::power_off::<A>;
        table[Operation::KernelPrint as usize] = kernel_object::print::<A>;
        table[Operation::KernelQuery as usize] = kernel_object::query::<A>;
        table[Operation::KernelIrqOff as usize] = kernel_object::irq_off_intervals::<A>;
        table[Operation::KernelMachine as usize] = kernel_object::machine::<A>;
        table[Operation::KernelStartCore as usize] = kernel_object::start_core::<A>;
        table[Operation::KernelCorePower as usize] = kernel_object::core_power::<A>;
        table[Operation::KernelCounters as usize] = kernel_object::counters::<A>;
        table
    };
}

/// Fails a system call with an unknown number.
fn unknown<A: Arch>(k: &mut Kernel<A>, _: Ref<Thread>) -> Result<Outcome, Error> {
    latency_tracer::entered(k, entry_path::UNKNOWN);
    Err(Error::UnknownOperation)
}

/// Performs `Yield`.
fn give_way<A: Arch>(k: &mut Kernel<A>, _: Ref<Thread>) -> Result<Outcome, Error> {
    scheduler::rotate(k);
    Ok(Outcome::Done)
}

/// Performs the operation that `x10` names.
fn dispatch<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let number = argument(k, thread, 10);
    match Table::<A>::HANDLERS.get(number as usize) {
        Some(handler) => handler(k, thread),
        None => unknown(k, thread),
    }
}

/// Handles an interrupt that arrived in user mode, with all registers of the running thread saved. Returns the thread
/// that runs next.
pub fn user_interrupt<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    if let Some((notification, bits)) = interrupt::serve(k) {
        let thread = k.current();
        if let Some(waiter) = fast::signals::wake(k, thread, notification, bits) {
            scheduler::hand_to(k, thread, waiter);
            return waiter;
        }
        notification::signal(k, notification, bits);
    }
    scheduler::leave(k)
}

/// Runs the idle thread's work after it has waited for an interrupt: handles the interrupt without taking it, so that
/// there is nothing to save, and runs the threads that became ready. Returns when no thread is ready again.
#[inline(never)]
pub fn idle<A: Arch>(k: &mut Kernel<A>) {
    let idle = k.current();
    let next = wake_somebody(k, idle);
    if next != idle {
        // SAFETY: the idle thread runs only in the kernel, on its own kernel stack; `next` waited, or came from the
        // scheduler, so it is alive; this function holds no reference.
        unsafe { A::switch(idle, next) };
        latency_tracer::goes_on(k, entry_path::IDLE);
    }
}

/// Handles an interrupt on behalf of the idle thread. Returns the thread that runs next.
fn wake_somebody<A: Arch>(k: &mut Kernel<A>, idle: Ref<Thread>) -> Ref<Thread> {
    if let Some((notification, bits)) = interrupt::serve(k) {
        if let Some(waiter) = fast::signals::wake_alone(k, idle, notification, bits) {
            scheduler::hand_to(k, idle, waiter);
            return waiter;
        }
        notification::signal(k, notification, bits);
    }
    if k.state().highest_ready < 0 { idle } else { scheduler::switch::<A, false>(k) }
}

/// Handles an interrupt that arrived at a preemption point, which then does the switching.
pub fn kernel_interrupt<A: Arch>(k: &mut Kernel<A>) {
    k.state().nesting += 1;
    if let Some((notification, bits)) = interrupt::serve(k) {
        notification::signal(k, notification, bits);
    }
    k.state().nesting -= 1;
}

/// Handles a failed instruction fetch of the running thread, whose registers have all been saved. If its address space
/// was not loaded, loads it and returns true: then the thread continues.
pub fn space_was_missing<A: Arch>(k: &mut Kernel<A>) -> bool {
    let thread = k.current();
    page_table::load_shared(k, thread)
}

/// Handles a fault or foreign system call of the running thread, with all its registers saved. The thread continues in
/// its upcall, waits for its handler's reply, or stops. Returns the thread that runs next.
pub fn exception<A: Arch>(k: &mut Kernel<A>, class: Class, report: Report) -> Ref<Thread> {
    let thread = k.current();
    k.get(thread).fault = report;
    if k.get(thread).has_upcalls == 0 || !fault::upcall(k, thread, class, &report) {
        if !matches!(class, Class::ForeignCall)
            && let Some(handler) = fast::faults::fault(k, thread, class, &report)
        {
            return handler;
        }
        fault::raise(k, thread, class);
    }
    scheduler::leave(k)
}
