//! Faults and foreign system calls are one mechanism: an upcall in the thread's own address space, or a
//! call to an endpoint on the thread's behalf.

use tench_abi::fault::{Class, FOREIGN_WORDS, MESSAGE_WORDS, Report, answer as label, timeout as timeout_cause};
use tench_abi::message::REGISTER_WORDS;
use tench_abi::{Kind, Rights, Tag};

use crate::area::Area;
use crate::endpoint::rendezvous;
use crate::object::{Endpoint, Ref};
use crate::thread::{Binding, Purpose, Thread, ThreadState, slow};
use crate::{Arch, Kernel, account, fast, scheduler, window};

/// The running thread, whose registers have all been saved, has faulted. It continues in its upcall, or waits for the
/// answer of its endpoint, or stops. Answers who runs next.
pub fn raise<A: Arch>(k: &mut Kernel<A>, class: Class, report: Report) -> Ref<Thread> {
    let thread = k.current();
    k.get(thread).fault = report;
    if !upcall(k, thread, class, &report) {
        if let Some(handler) = fast::fault(k, thread, class) {
            return handler;
        }
        raise_slowly(k, thread, class);
    }
    scheduler::leave(k)
}

/// The handler does not wait, or cannot run at once: the thread waits for it, or stops.
///
/// Before anything of that is written down, a window is passed, in which the fault is nothing but registers that were
/// saved and a report. If the thread is stopped there and given other registers, the fault is forgotten; with the same
/// ones the instruction is executed again, and fails again. What is bound for faults is looked up after the window.
#[cold]
#[inline(never)]
fn raise_slowly<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class) {
    if window::pass(k) && !send(k, thread, class) {
        k.get(thread).state = ThreadState::Faulted;
    }
}

/// Whether somebody is to be told of a thread's faults of a class.
pub fn is_handled<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class) -> bool {
    let t = k.get(thread);
    let cap = &t.bindings[Binding::fault(class) as usize].cap;
    cap.kind == Kind::Endpoint || t.fault_targets[class as usize].entry != 0
}

/// The running thread, which is about to leave the kernel, has used up the budget that it runs on. If somebody handles
/// that, the thread continues in its upcall once there is budget, or waits for the answer of its endpoint.
pub fn timeout<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let class = Class::Timeout;
    let Some(context) = k.get(thread).scheduling else { return };
    if !is_handled(k, thread, class) {
        return;
    }
    let is_own = account::own_context(k, thread) == Some(context);
    let syndrome = if is_own { timeout_cause::OWN } else { timeout_cause::CALLER };
    let address = k.get(context).consumed;
    let instruction = k.get(thread).registers.pc;
    let report = Report { class: Class::Timeout as u64, address, instruction, syndrome };
    k.get(thread).fault = report;
    if upcall(k, thread, class, &report) {
        // It may have been about to return from a system call.
        k.get(thread).full_restore = 1;
    } else {
        send(k, thread, class);
    }
}

/// Starts the upcall for this class, if one is set and none runs.
fn upcall<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, class: Class, report: &Report) -> bool {
    let t = k.get(thread);
    let target = t.fault_targets[class as usize];
    if target.entry == 0 {
        return false;
    }
    let Some(area) = Area::of(k, thread).filter(|area| !area.upcall_is_running()) else { return false };
    area.set_upcall_running(true);
    area.set_fault(*report);
    // The running thread may have changed it since it was last saved, at a switch.
    let pointer = k.arch().thread_pointer();
    k.get(thread).registers.thread_pointer = pointer;
    area.store_registers(k, thread);
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
    if cap.kind != Kind::Endpoint || !cap.allows(Rights::WRITE.union(Rights::CALL)) {
        return false;
    }
    let badge = cap.badge;
    // SAFETY: a live capability of this kind names such an object.
    let Some(endpoint) = (unsafe { Ref::<Endpoint>::at(cap.object) }) else { return false };
    t.badge = badge;
    t.may_grant = false;
    t.purpose = Purpose::Fault;
    t.slow |= slow::FAULT;
    rendezvous(k, thread, endpoint, None);
    true
}

/// Writes a fault message into the receiver's registers.
pub fn transfer<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    let t = k.get(sender);
    let report = t.fault;
    let foreign = report.class == Class::ForeignCall as u64;
    let arguments: [u64; 9] = core::array::from_fn(|i| t.registers.x[i]);
    let receiver_area = Area::of(k, receiver);
    let mut length = MESSAGE_WORDS;
    let x = &mut k.get(receiver).registers.x;
    x[2] = report.class;
    x[3] = report.address;
    x[4] = report.instruction;
    x[5] = report.syndrome;
    if foreign {
        x[6..10].copy_from_slice(&arguments[..4]);
        length = REGISTER_WORDS;
        if let Some(area) = receiver_area {
            length = FOREIGN_WORDS;
            for (i, word) in arguments[4..].iter().enumerate() {
                area.set_word(REGISTER_WORDS + i, *word);
            }
        }
    } else {
        x[6..10].fill(0);
    }
    x[1] = Tag::new(report.class, length).with(Tag::KERNEL).0;
}

/// The handler has answered a fault: the thread goes on, with all its registers, or stays stopped.
pub fn answer<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, handler: Ref<Thread>, tag: Tag) {
    if lets_go_on(tag) {
        answer_now(k, thread, handler, tag);
        scheduler::make_ready(k, thread);
    } else {
        let t = k.get(thread);
        forget(t);
        t.state = ThreadState::Faulted;
    }
}

/// Whether an answer lets the thread go on.
#[inline]
pub const fn lets_go_on(tag: Tag) -> bool {
    tag.label() == label::RESUME || (tag.label() == label::RESULT && tag.length() > 0)
}

/// A thread does not wait in a fault any more. If that told of a budget, and the thread has got a context without one
/// meanwhile, there is nothing to remember.
#[inline]
pub const fn forget(t: &mut Thread) {
    t.slow &= !slow::FAULT;
    if t.slow & slow::BUDGETED == 0 {
        t.slow &= !slow::REPORTED;
    }
}

/// Carries out an answer that lets the thread go on. Somebody else lets it run.
#[inline]
pub fn answer_now<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, handler: Ref<Thread>, tag: Tag) {
    let word = k.get(handler).registers.x[2];
    let t = k.get(thread);
    forget(t);
    if tag.label() == label::RESULT {
        t.registers.x[0] = word;
    }
}

/// `UpcallReturn`: the thread continues with the registers in its message area.
pub fn upcall_return<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
) -> Result<crate::entry::Outcome, tench_abi::Error> {
    let area = Area::of(k, thread).ok_or(tench_abi::Error::NoMessageArea)?;
    area.set_upcall_running(false);
    crate::thread::load_registers(k, thread, area);
    let pointer = k.get(thread).registers.thread_pointer;
    k.arch().set_thread_pointer(pointer);
    Ok(crate::entry::Outcome::Written)
}
