//! Operations on threads that pass a preemption point: facts established before it may be untrue after it.

use tench_abi::fault::{Class, Report};
use tench_abi::layout::{UNBIND, slot};
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::check::check;
use tench_arch_host::host::disturb;
use tench_arch_host::machine::at;
use tench_kernel::thread::{Binding, ThreadState};
use tench_kernel::{cspace, delete, scheduler};

const CSPACE: u64 = at(slot::CSPACE);
const VSPACE: u64 = at(slot::VSPACE);

/// Returns a machine and the address of a suspended thread whose CSpace's last capability is the thread's binding, so
/// that configuring the thread anew deletes a CNode, which passes preemption points.
fn thread_with_a_cspace_of_its_own() -> (Machine, u64) {
    let mut m = Machine::new();
    let (thread, node) = (m.make(Kind::Thread, 0), m.make(Kind::CapNode, 8));
    m.call(Operation::ThreadConfigure, &[thread, node, VSPACE, 0, 0]).ok();
    assert_eq!(m.call(Operation::Delete, &[0, node]).ok()[1], 0);
    m.check();
    (m, thread)
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_frame_that_shrinks_at_a_preemption_point_is_checked_again() {
    let (mut m, thread) = thread_with_a_cspace_of_its_own();
    let (large, small, spare) = (m.make(Kind::Frame, 21), m.make(Kind::Frame, 12), m.take_free());
    let mut done = false;
    m.host().hook = Some(Box::new(move |k| {
        if !std::mem::replace(&mut done, true) {
            disturb(k);
            let (from, to) = (cspace::lookup(k, large), cspace::destination(k, 0, spare));
            cspace::move_to(k, from.expect("there"), to.expect("empty")).expect("moved");
            let (from, to) = (cspace::lookup(k, small), cspace::destination(k, 0, large));
            cspace::move_to(k, from.expect("there"), to.expect("empty")).expect("moved");
        }
    }));
    let result = m.call(Operation::ThreadConfigure, &[thread, CSPACE, VSPACE, large, 1 << 20]);
    assert_eq!(result.err(), Error::InvalidArgument);
    m.check();
    let thread = m.thread_at(thread);
    assert_eq!(m.thread(thread).ipc_buffer, 0);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_thread_deleted_at_a_preemption_point_is_configured_no_further() {
    let (mut m, thread) = thread_with_a_cspace_of_its_own();
    let mut done = false;
    m.host().hook = Some(Box::new(move |k| {
        if !std::mem::replace(&mut done, true) {
            disturb(k);
            let slot = cspace::lookup(k, thread).expect("there");
            delete::delete(k, slot).expect("deleted");
        }
    }));
    let result = m.call(Operation::ThreadConfigure, &[thread, CSPACE, VSPACE, 0, 0]);
    assert_eq!(result.err(), Error::InvalidCapability);
    m.check();
}

#[test]
fn a_thread_can_unbind_and_bind_in_one_call() {
    let mut m = Machine::new();
    m.make_thread(10);
    let thread = m.free - 4;
    let notification = m.make(Kind::Notification, 0);
    m.call(Operation::ThreadBind, &[thread, UNBIND, UNBIND, notification]).ok();
    m.check();
    m.call(Operation::ThreadBind, &[thread, thread + 1, thread + 2, UNBIND]).ok();
    m.check();
    assert_eq!(m.call(Operation::ThreadBind, &[thread, thread + 1, 0, 0]).err(), Error::AlreadyBound);
}

#[test]
fn a_reply_object_that_is_named_for_one_receive_is_free_after_a_fast_call() {
    let mut m = Machine::new();
    m.fast = true;
    let server = m.make_thread(255);
    let (endpoint, reply) = (m.make(Kind::Endpoint, 0), m.make(Kind::Reply, 0));
    let client = m.first;
    m.run(server);
    m.call(Operation::Receive, &[endpoint, tench_abi::Tag::REPLY, 0, 0, 0, 0, 0, 0, 0, 0, 0, reply]);
    assert!(m.current() == client);
    m.call(Operation::Call, &[endpoint, 1, 42]);
    assert!(m.current() == server);
    assert_eq!(m.results(server).ok()[2], 42);
    m.check();
}

/// Returns a machine whose first thread, of priority 255, has its faults of a class sent to an endpoint at which no
/// thread waits, and the endpoint.
fn faulting(class: Class) -> (Machine, u64) {
    let mut m = Machine::new();
    let endpoint = m.make(Kind::Endpoint, 0);
    m.call(Operation::ThreadFaults, &[at(slot::THREAD), class as u64, endpoint, 0, 0]).ok();
    (m, endpoint)
}

/// A page fault.
const FAULT: Report = Report { class: Class::PageFault as u64, address: 0x5000, instruction: 0x1000, syndrome: 7 };

#[test]
fn a_fault_is_queued_after_a_preemption_point() {
    let (mut m, endpoint) = faulting(Class::PageFault);
    let first = m.first;
    m.host().hook = Some(Box::new(move |k| {
        assert!(k.current() == first && matches!(k.get(first).state, ThreadState::Ready), "nothing is written yet");
        check(k).expect("consistent");
    }));
    let points = m.kernel().state().statistics.preemption_points;
    m.fault(FAULT);
    m.check();
    assert_eq!(m.kernel().state().statistics.preemption_points, points + 1);
    assert!(matches!(m.thread(first).state, ThreadState::Sending(_)));
    assert_ne!(m.cap(endpoint).object, 0);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_handler_that_arrives_at_the_preemption_point_gets_the_fault() {
    let (mut m, endpoint) = faulting(Class::PageFault);
    let first = m.first;
    let handler = m.make_thread(255);
    let mut done = false;
    m.host().hook = Some(Box::new(move |k| {
        if !std::mem::replace(&mut done, true) {
            // The thread's turn comes at the preemption point, and there it begins to receive.
            scheduler::rotate(k);
        }
    }));
    m.fault(FAULT);
    assert!(
        m.current() == handler && m.thread(first).kernel_stack_pointer != 0,
        "the fault waits at the preemption point"
    );
    m.check();
    m.host().hook = None;
    m.call(Operation::Receive, &[endpoint, 0]);
    m.check();
    assert!(m.current() == handler, "nobody else is left");
    assert_eq!(m.results(handler).ok()[2..6], [FAULT.class, FAULT.address, FAULT.instruction, FAULT.syndrome]);
    assert!(matches!(m.thread(first).state, ThreadState::AwaitingReply(_)));
}

#[test]
fn a_fault_is_forgotten_if_its_thread_gets_other_registers_at_the_preemption_point() {
    let (mut m, endpoint) = faulting(Class::PageFault);
    let first = m.first;
    let other = m.make_thread(255);
    m.host().hook = Some(Box::new(scheduler::rotate));
    m.fault(FAULT);
    assert!(m.current() == other);
    m.host().hook = None;
    m.call(Operation::ThreadReadRegisters, &[at(slot::THREAD), 1]).ok();
    m.call(Operation::ThreadWriteRegisters, &[at(slot::THREAD), 1]).ok();
    m.check();
    assert_eq!(m.thread(first).kernel_stack_pointer, 0);
    m.run(first);
    assert_eq!(m.call(Operation::TryReceive, &[endpoint, 0]).err(), Error::WouldBlock, "no fault is queued");
    m.check();
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_fault_whose_endpoint_is_deleted_at_the_preemption_point_stops_the_thread() {
    let (mut m, endpoint) = faulting(Class::PageFault);
    let first = m.first;
    m.make_thread(1);
    let mut done = false;
    m.host().hook = Some(Box::new(move |k| {
        if !std::mem::replace(&mut done, true) {
            disturb(k);
            let bound = (&raw const k.get(first).bindings[Binding::fault(Class::PageFault) as usize]).addr();
            let slot = k.slot_at(bound).expect("a binding");
            delete::delete(k, slot).expect("deleted");
            let slot = cspace::lookup(k, endpoint).expect("there");
            delete::delete(k, slot).expect("deleted");
        }
    }));
    m.fault(FAULT);
    m.check();
    assert!(matches!(m.thread(first).state, ThreadState::Faulted));
}

/// A foreign system call by the instruction before the program counter.
const CALL: Report = Report { class: Class::ForeignCall as u64, address: 0, instruction: 0x1000, syndrome: 0 };

#[test]
fn a_foreign_call_is_made_again_unless_it_was_received() {
    let (mut m, endpoint) = faulting(Class::ForeignCall);
    let (first, handler) = (m.first, m.make_thread(1));
    let next = CALL.instruction + 4;
    let pc = |m: &mut Machine| m.thread(first).registers.pc;
    for is_received in [false, true] {
        m.thread(first).registers.pc = next;
        m.fault(CALL);
        assert_eq!((pc(&mut m), m.current()), (CALL.instruction, handler), "nobody has the call yet");
        if is_received {
            m.call(Operation::Receive, &[endpoint, 0]);
            assert_eq!(m.results(handler).ok()[4], CALL.instruction);
        }
        m.call(Operation::ThreadSuspend, &[at(slot::THREAD)]).ok();
        assert_eq!(pc(&mut m), if is_received { next } else { CALL.instruction });
        m.call(Operation::ThreadResume, &[at(slot::THREAD)]).ok();
        m.check();
        assert!(m.current() == first);
    }
}
