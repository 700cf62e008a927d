//! Faults and foreign system calls: one mechanism for both, an upcall in the thread's own address space or a call to an
//! endpoint on the thread's behalf.

use tench_abi::fault::{
    Class, FOREIGN_WORDS, ForeignCall, MESSAGE_WORDS, Report, reply as label, timeout as timeout_cause,
};
use tench_abi::message::REGISTER_WORDS;
use tench_abi::{Error, Kind, Rights, Tag};

use crate::endpoint::rendezvous;
use crate::ipc_buffer::Buffer;
use crate::object::Ref;
use crate::thread::{Binding, Purpose, Thread, ThreadState, blocker};
use crate::{Arch, Kernel, preemption_point, scheduling_context};

/// Raises a fault of the running thread, for which no upcall begins and whose handler does not wait, or cannot run at
/// once: the thread waits for the handler, or stops.
///
/// First comes a preemption point, at which the fault consists only of saved registers and a report. If the thread is
/// stopped there and given other registers, the fault is discarded; with the same registers the instruction is executed
/// again, and faults again (but not at the end of a step, whose instruction has been executed). The fault bindings are
/// looked up after the preemption point.
///
/// Until a handler has received a foreign system call, the thread is at the instruction that makes the call: if its
/// wait ends before, it makes the call again once it is resumed.
#[cold]
#[inline(never)]
pub fn raise<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class) {
    if matches!(class, Class::ForeignCall) {
        let pc = &mut k.get(thread).registers.pc;
        *pc = pc.wrapping_sub(A::CALL_BYTES);
    }
    if !preemption_point::pass(k).is_deleted() && !send(k, thread, class) {
        k.get(thread).state = ThreadState::Faulted;
    }
}

/// Returns whether a thread's faults of a class have a handler.
pub fn is_handled<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class) -> bool {
    let t = k.get(thread);
    let cap = &t.bindings[Binding::fault(class) as usize].cap;
    cap.kind == Kind::Endpoint || t.fault_targets[class as usize].entry != 0
}

/// Raises the timeout fault of the running thread, which is about to leave the kernel and has used up its budget. If
/// there is a handler, the thread continues in its upcall once there is budget, or waits for its endpoint's reply.
pub fn timeout<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let class = Class::Timeout;
    let Some(context) = k.get(thread).scheduling else { return };
    if !is_handled(k, thread, class) {
        return;
    }
    let is_own = scheduling_context::of_thread(k, thread) == Some(context);
    let syndrome = if is_own { timeout_cause::OWN } else { timeout_cause::CALLER };
    let address = k.get(context).consumed;
    let instruction = k.get(thread).registers.pc;
    let report = Report { class: Class::Timeout as u64, address, instruction, syndrome };
    k.get(thread).fault = report;
    if upcall(k, thread, class, &report) {
        // The thread may have been about to return from a system call.
        k.get(thread).full_restore = 1;
    } else {
        send(k, thread, class);
    }
}

/// Starts the upcall for this class, if there is one and no upcall is running. (An architecture may do the same for its
/// commonest classes without coming here.)
#[cold]
#[inline(never)]
pub fn upcall<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class, report: &Report) -> bool {
    let t = k.get(thread);
    let target = t.fault_targets[class as usize];
    if target.entry == 0 {
        return false;
    }
    let Some(buffer) = Buffer::of(k, thread).filter(|buffer| !buffer.upcall_is_running()) else { return false };
    buffer.set_upcall_running(true);
    buffer.set_fault(*report);
    // The running thread may have changed its thread pointer since the last switch.
    let pointer = k.arch().thread_pointer();
    k.get(thread).registers.thread_pointer = pointer;
    buffer.store_registers(k, thread);
    let r = &mut k.get(thread).registers;
    r.pc = target.entry;
    if target.stack != 0 {
        r.sp = target.stack;
    }
    r.x[0] = report.class;
    r.x[1] = report.address;
    r.x[2] = report.instruction;
    r.x[3] = report.syndrome;
    true
}

/// Calls the fault endpoint on the thread's behalf, if one is bound.
fn send<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class) -> bool {
    let t = k.get(thread);
    let cap = &t.bindings[Binding::fault(class) as usize].cap;
    let Some(endpoint) = cap.named().filter(|_| cap.allows(Rights::WRITE.union(Rights::CALL))) else { return false };
    let badge = cap.badge();
    t.badge = badge;
    t.may_grant = false;
    t.purpose = Purpose::Fault;
    t.blockers |= blocker::FAULT;
    rendezvous(k, thread, endpoint, None);
    true
}

/// Hands over a fault for which the thread has waited.
pub fn receive<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    let t = k.get(sender);
    if t.fault.class == Class::ForeignCall as u64 {
        t.registers.pc = t.registers.pc.wrapping_add(A::CALL_BYTES);
    }
    transfer(k, sender, receiver);
}

/// Writes a fault message into the receiver's registers.
pub fn transfer<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    let t = k.get(sender);
    let report = t.fault;
    if report.class != Class::ForeignCall as u64 {
        return transfer_report(k, receiver, &report);
    }
    let x = &t.registers.x;
    let words = [x[8], x[0], x[1], x[2], x[3], x[4], x[5], report.instruction];
    let x = &mut k.get(receiver).registers.x;
    x[1] = foreign_tag(report.syndrome).0;
    x[2..2 + REGISTER_WORDS].copy_from_slice(&words);
}

/// Writes the message of a fault, other than a foreign system call, into the receiver's registers.
pub fn transfer_report<A: Arch>(k: &mut Kernel<A>, receiver: Ref<Thread>, report: &Report) {
    let words = [report.class, report.address, report.instruction, report.syndrome, 0, 0, 0, 0];
    let x = &mut k.get(receiver).registers.x;
    x[1] = Tag::new(report.class, MESSAGE_WORDS).with(Tag::KERNEL).0;
    x[2..2 + REGISTER_WORDS].copy_from_slice(&words);
}

/// Returns the tag of the message of a foreign system call.
#[inline(always)]
pub const fn foreign_tag(immediate: u64) -> Tag {
    Tag::new(ForeignCall::label(immediate), FOREIGN_WORDS).with(Tag::KERNEL)
}

/// Applies the handler's reply to a fault: the thread continues, with all its registers, or stays stopped.
/// `goes_on` makes it ready.
pub fn apply_reply<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    handler: Ref<Thread>,
    tag: Tag,
    goes_on: fn(&mut Kernel<A>, Ref<Thread>),
) {
    if tag.label() == label::REGISTERS
        && let Some(buffer) = Buffer::of(k, handler)
    {
        forget(k.get(thread));
        buffer.load_registers(k, thread);
        goes_on(k, thread);
    } else if lets_go_on(tag) {
        apply_resuming_reply(k, thread, handler, tag);
        goes_on(k, thread);
    } else {
        let t = k.get(thread);
        forget(t);
        t.state = ThreadState::Faulted;
    }
}

/// Returns whether a reply lets the thread continue, with its registers as they are but for a result.
pub const fn lets_go_on(tag: Tag) -> bool {
    tag.label() == label::RESUME || (tag.label() == label::RESULT && tag.length() > 0)
}

/// Checks that a reply to `caller`, if that is a reply to a fault, brings what it promises.
pub fn check_reply<A: Arch>(
    k: &mut Kernel<A>,
    caller: Option<Ref<Thread>>,
    handler: Ref<Thread>,
    tag: Tag,
) -> Result<(), Error> {
    if tag.label() != label::REGISTERS {
        return Ok(());
    }
    let is_fault = caller.is_some_and(|caller| k.get(caller).blockers & blocker::FAULT != 0);
    if is_fault && Buffer::of(k, handler).is_none() { Err(Error::NoIpcBuffer) } else { Ok(()) }
}

/// Ends a thread's wait in a fault. If the fault reported a budget, and the thread has a context without a budget
/// meanwhile, the report is forgotten.
pub const fn forget(t: &mut Thread) {
    t.blockers &= !blocker::FAULT;
    if t.blockers & blocker::BUDGETED == 0 {
        t.blockers &= !blocker::REPORTED;
    }
}

/// Applies a reply that lets the thread continue, except that the caller makes the thread ready.
pub fn apply_resuming_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, handler: Ref<Thread>, tag: Tag) {
    let word = k.get(handler).registers.x[2];
    let t = k.get(thread);
    forget(t);
    if tag.label() == label::RESULT {
        t.registers.x[0] = word;
    }
}

/// Performs `UpcallReturn`: the thread continues with the registers in its IPC buffer.
pub fn upcall_return<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<crate::syscall::Outcome, Error> {
    let buffer = Buffer::of(k, thread).ok_or(Error::NoIpcBuffer)?;
    buffer.set_upcall_running(false);
    buffer.load_registers(k, thread);
    let pointer = k.get(thread).registers.thread_pointer;
    k.arch().set_thread_pointer(pointer);
    Ok(crate::syscall::Outcome::Written)
}
