//! Threads: what their buffers and registers may contain, when their upcalls run, and what is left when a binding, a
//! wait or a thread ends.

use tench_abi::fault::{Class, Report, STEP_CLASS, write};
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::{Error, Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_arch_host::host::Host;
use tench_arch_host::machine::{RAM, at};
use tench_kernel::Arch;
use tench_kernel::object::Ref;
use tench_kernel::scheduler;
use tench_kernel::thread::{Thread, ThreadState, blocker};

/// The bits of a processor's flags that hold the condition.
const CONDITION: u64 = 0xf000_0000;
/// Address of the code that handles faults.
const ENTRY: u64 = 0x20_0000;

/// Returns a machine with a second thread, stopped, which has a buffer, and the address of that thread.
fn begin() -> (Machine, Ref<Thread>, u64) {
    let mut m = Machine::new();
    let address = m.free;
    let thread = m.make_thread(255);
    m.call(Operation::ThreadSuspend, &[address]).ok();
    assert_eq!(m.thread_at(address), thread);
    (m, thread, address)
}

fn fault() -> Report {
    Report { class: Class::PageFault as u64, address: 0x1000, instruction: 4, syndrome: 0x9200_0046 }
}

#[test]
fn registers_that_a_program_writes_have_no_privilege() {
    let (mut m, thread, address) = begin();
    let first = m.first;
    m.buffer(first).registers.flags = u64::MAX;
    m.call(Operation::ThreadWriteRegisters, &[address, 0]).ok();
    assert_eq!(m.thread(thread).registers.flags, CONDITION);
    m.buffer(first).registers.flags = u64::MAX;
    m.call(Operation::UpcallReturn, &[]);
    assert_eq!(m.thread(first).registers.flags, CONDITION);
    m.check();
}

#[test]
fn an_upcall_is_not_interrupted_by_an_upcall() {
    let (mut m, thread, address) = begin();
    m.call(Operation::ThreadFaults, &[address, Class::PageFault as u64, 0, ENTRY, 0]).ok();
    m.call(Operation::ThreadResume, &[address]).ok();
    m.run(thread);
    m.fault(fault());
    assert_eq!(m.thread(thread).registers.pc, ENTRY);
    assert!(m.current() == thread && m.buffer(thread).upcall_running == 1);
    m.fault(fault());
    assert_eq!(m.thread(thread).state, ThreadState::Faulted, "nobody else handles it");
    m.check();
}

#[test]
fn a_buffer_lies_in_its_frame() {
    let (mut m, _, address) = begin();
    let frame = m.take_free();
    m.retype(RAM, Kind::Frame, 12, 1, frame).ok();
    let mut configure = |offset: u64| {
        let result = m.call(Operation::ThreadConfigure, &[address, at(slot::CSPACE), at(slot::VSPACE), frame, offset]);
        m.check();
        result.error()
    };
    let size = PAGE_SIZE as u64;
    assert_eq!(configure(size / 2), None);
    assert_eq!(configure(size / 2 + 8), Some(Error::Misaligned));
    assert_eq!(configure(size), Some(Error::InvalidArgument));
    assert_eq!(configure(2 * size), Some(Error::InvalidArgument));
}

/// Makes a thread whose bindings are objects that nothing else uses. Returns it, and the addresses of these objects:
/// its CSpace, address space, buffer, context, reply object, notification and the endpoint that it serves.
fn bound(m: &mut Machine) -> (Ref<Thread>, [u64; 7]) {
    let address = m.make(Kind::Thread, 0);
    let cspace = m.make(Kind::CapNode, 4);
    let (root, frame) = (m.make(Kind::PageTable, 0), m.make(Kind::Frame, 12));
    let (time, reply) = (m.make(Kind::SchedulingContext, 0), m.make(Kind::Reply, 0));
    let (notification, endpoint) = (m.make(Kind::Notification, 0), m.make(Kind::Endpoint, 0));
    m.call(Operation::SchedulingConfigure, &[time, 255, 255, 0]).ok();
    m.call(Operation::ThreadConfigure, &[address, cspace, root, frame, 0]).ok();
    m.call(Operation::ThreadBind, &[address, time, reply, notification]).ok();
    m.call(Operation::ThreadServe, &[address, endpoint, 1]).ok();
    m.check();
    (m.thread_at(address), [cspace, root, frame, time, reply, notification, endpoint])
}

#[test]
fn what_is_revoked_is_bound_to_nobody() {
    for which in 0..7 {
        let mut m = Machine::new();
        let (_, objects) = bound(&mut m);
        m.call(Operation::Revoke, &[0, objects[which]]).ok();
        m.check();
        m.call(Operation::Delete, &[0, objects[which]]).ok();
        m.check();
    }
}

#[test]
fn who_runs_leaves_an_address_space_that_is_revoked() {
    let mut m = Machine::new();
    let (root, thread, time) =
        (m.make(Kind::PageTable, 0), m.make(Kind::Thread, 0), m.make(Kind::SchedulingContext, 0));
    m.call(Operation::SchedulingConfigure, &[time, 255, 255, 0]).ok();
    m.call(Operation::ThreadConfigure, &[thread, at(slot::CSPACE), root, 0, 0]).ok();
    m.call(Operation::ThreadBind, &[thread, time, 0, 0]).ok();
    m.call(Operation::ThreadResume, &[thread]).ok();
    let thread = m.thread_at(thread);
    m.run(thread);
    m.check();
    m.call(Operation::Revoke, &[0, root]).ok();
    m.check();
}

#[test]
fn a_signal_that_came_before_the_notification_was_bound_is_known() {
    let mut m = Machine::new();
    let (thread, notification) = (m.make(Kind::Thread, 0), m.make(Kind::Notification, 0));
    m.call(Operation::Signal, &[notification]).ok();
    m.call(Operation::ThreadBind, &[thread, 0, 0, notification]).ok();
    m.check();
}

#[test]
fn an_object_is_bound_to_one_thread() {
    let mut m = Machine::new();
    let (_, objects) = bound(&mut m);
    let other = m.make(Kind::Thread, 0);
    for (argument, object) in [(1, objects[3]), (2, objects[4]), (3, objects[5])] {
        let mut arguments = [other, 0, 0, 0];
        arguments[argument] = object;
        assert_eq!(m.call(Operation::ThreadBind, &arguments).err(), Error::AlreadyBound);
        m.check();
    }
}

#[test]
fn who_ends_gives_back_the_reply_object_that_was_received_with() {
    let (mut m, thread, address) = begin();
    let (endpoint, reply) = (m.make(Kind::Endpoint, 0), m.make(Kind::Reply, 0));
    m.call(Operation::ThreadResume, &[address]).ok();
    let first = m.first;
    m.run(thread);
    let mut x = [0; 13];
    (x[0], x[1], x[11]) = (endpoint, Tag::REPLY, reply);
    m.system_call(Operation::Receive as u64, &x);
    m.check();
    m.run(first);
    m.call(Operation::Delete, &[0, address]).ok();
    m.check();
}

/// The places where threads wait, or are ready.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Ready,
    Receiving,
    Waiting,
    Calling,
}

#[test]
fn those_who_wait_leave_in_any_order() {
    for place in [Place::Ready, Place::Receiving, Place::Waiting, Place::Calling] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut m = Machine::new();
            let (endpoint, notification) = (m.make(Kind::Endpoint, 0), m.make(Kind::Notification, 0));
            let threads = [0; 3].map(|_| (m.free, m.make_thread(100)));
            let server = m.make_thread(100);
            if place == Place::Calling {
                m.call_as(server, Operation::Receive, &[endpoint, 0]);
            }
            for (_, thread) in threads {
                match place {
                    Place::Ready => {}
                    Place::Receiving => _ = m.call_as(thread, Operation::Receive, &[endpoint, 0]),
                    Place::Waiting => _ = m.call_as(thread, Operation::Receive, &[notification, 0]),
                    Place::Calling => _ = m.call_as(thread, Operation::Call, &[endpoint, 0]),
                }
                m.check();
            }
            let first = m.first;
            m.run(first);
            for i in order {
                m.call(Operation::ThreadSuspend, &[threads[i].0]);
                m.check();
            }
        }
    }
}

#[test]
fn a_signal_is_taken_without_a_wait() {
    let mut m = Machine::new();
    let notification = m.make(Kind::Notification, 0);
    m.call(Operation::Signal, &[notification]).ok();
    m.call(Operation::Receive, &[notification, 0]);
    m.check();
}

#[test]
fn no_mark_is_left_when_the_last_object_is_gone() {
    let mut m = Machine::new();
    let address = m.take_free();
    m.call(Operation::UntypedRetype, &[RAM, Kind::Endpoint as u64, 0, 1, 4096, 0, address]).ok();
    m.check();
    m.call(Operation::Delete, &[0, address]).ok();
    m.check();
}

#[test]
fn a_resumed_thread_of_higher_priority_runs_at_once() {
    for fast in [false, true] {
        for (priority, runs) in [(254, true), (255, false)] {
            let (mut m, thread, address) = begin();
            m.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), priority, 255, 0]).ok();
            let first = m.first;
            m.buffer(first).registers.pc = 0x1234;
            m.fast = fast;
            assert!(m.call(Operation::ThreadWriteRegisters, &[address, 1]).error().is_none());
            m.check();
            assert_eq!(m.current() == thread, runs, "fast: {fast}");
            assert_eq!((m.thread(thread).registers.pc, m.thread(thread).full_restore), (0x1234, 1));
        }
    }
}

#[test]
fn a_thread_that_is_stopped_while_it_waits_finds_its_call_aborted() {
    for fast in [false, true] {
        for kind in [Kind::Endpoint, Kind::Notification] {
            let (mut m, thread, address) = begin();
            let first = m.first;
            let source = m.make(kind, 0);
            m.call(Operation::ThreadResume, &[address]).ok();
            m.call_as(thread, Operation::Receive, &[source, 0]);
            m.run(first);
            m.fast = fast;
            m.call(Operation::ThreadReadRegisters, &[address, 1]).ok();
            m.check();
            assert_eq!(m.buffer(first).registers.x[..2], [Error::Aborted as u64, 0], "fast: {fast}");
            assert_eq!(m.thread(thread).state, ThreadState::Suspended);
        }
    }
}

#[test]
fn a_server_whose_caller_is_stopped_loses_its_help_at_once() {
    for fast in [false, true] {
        let mut m = Machine::new();
        let (endpoint, server, address) = (m.make(Kind::Endpoint, 0), m.make_thread(50), m.free);
        let caller = m.make_thread(200);
        m.call_as(server, Operation::Receive, &[endpoint, 0]);
        let first = m.first;
        m.run(first);
        m.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 100, 255, 0]);
        assert_eq!(m.current(), caller);
        m.call(Operation::Call, &[endpoint, 0]);
        assert_eq!(m.current(), server);
        m.fast = fast;
        m.call(Operation::ThreadReadRegisters, &[address, 1]);
        m.check();
        assert_eq!(m.current(), first, "fast: {fast}");
        assert_eq!(m.buffer(server).registers.x[0], Error::Aborted as u64);
    }
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn registers_that_are_written_end_an_unfinished_operation() {
    for fast in [false, true] {
        let mut m = Machine::new();
        let (first, other) = (m.first, m.make_thread(255));
        m.host().hook = Some(Box::new(scheduler::rotate));
        m.call(Operation::ThreadQuery, &[at(slot::THREAD)]);
        m.host().hook = None;
        assert!(m.current() == other && m.thread(first).kernel_stack_pointer != 0, "it waits at a preemption point");
        m.fast = fast;
        m.call(Operation::ThreadReadRegisters, &[at(slot::THREAD), 1]).ok();
        assert_ne!(m.thread(first).kernel_stack_pointer, 0, "it can still go on with its operation");
        m.call(Operation::ThreadWriteRegisters, &[at(slot::THREAD), 1]).ok();
        assert_eq!(m.thread(first).kernel_stack_pointer, 0, "fast: {fast}");
        m.check();
    }
}

/// Returns a machine with two threads that are ready, of which the first is to make a step and runs, and the address of
/// that one.
fn begin_step() -> (Machine, Ref<Thread>, Ref<Thread>, u64) {
    let (mut m, thread, address) = begin();
    let other = m.make_thread(255);
    m.buffer(m.first).registers.pc = 400;
    m.call(Operation::ThreadWriteRegisters, &[address, write::RESUME | write::STEP]).ok();
    assert!(!m.host().steps, "nobody runs who makes one");
    m.run(thread);
    assert!(m.host().steps && m.thread(thread).registers.flags & Host::STEP_FLAG != 0);
    (m, thread, other, address)
}

#[test]
fn a_step_ends_in_an_exception() {
    let (mut m, thread, _, address) = begin_step();
    assert!(m.step());
    assert!(!m.host().steps && m.thread(thread).blockers & blocker::STEP == 0);
    assert_eq!(m.thread(thread).state, ThreadState::Faulted);
    assert_eq!(m.thread(thread).fault.syndrome >> 26, STEP_CLASS);
    m.call(Operation::ThreadResume, &[address]).ok();
    m.run(thread);
    assert!(!m.host().steps, "it was to make one step");
    m.check();
}

#[test]
fn a_step_begins_when_its_thread_is_chosen() {
    let (mut m, thread, address) = begin();
    m.call(Operation::ThreadWriteRegisters, &[address, write::RESUME | write::STEP]).ok();
    m.call(Operation::Yield, &[]);
    assert_eq!(m.current(), thread);
    m.check();
}

#[test]
fn a_thread_that_runs_while_steps_are_on_goes_on() {
    let (mut m, thread, other, _) = begin_step();
    m.run(other);
    assert!(m.host().steps, "nobody has switched them off");
    assert!(!m.step());
    assert!(!m.host().steps && m.current() == other);
    assert_eq!(m.thread(other).state, ThreadState::Ready);
    m.run(thread);
    assert!(m.host().steps && m.step(), "the step is still to be made");
    m.check();
}

#[test]
fn a_step_outlives_waiting_on_every_path() {
    for fast in [false, true] {
        let (mut m, thread, other, address) = begin_step();
        m.fast = fast;
        m.run(other);
        let endpoint = m.make(Kind::Endpoint, 0);
        m.run(thread);
        m.call(Operation::Receive, &[endpoint, 0]);
        assert!(matches!(m.thread(thread).state, ThreadState::Receiving(_)));
        m.run(other);
        m.call(Operation::Call, &[endpoint, Tag::new(1, 1).0]);
        m.run(thread);
        assert!(m.thread(thread).blockers & blocker::STEP != 0 && m.step(), "fast: {fast}, {address}");
        m.check();
    }
}

#[test]
fn a_step_whose_handler_is_busy_is_told_after_a_suspension() {
    let (mut m, thread, _, address) = begin_step();
    m.run(m.first);
    let endpoint = m.make(Kind::Endpoint, 0);
    m.call(Operation::ThreadFaults, &[address, Class::Exception as u64, endpoint, 0, 0]).ok();
    m.run(thread);
    assert!(m.step());
    for _ in 0..2 {
        assert!(matches!(m.thread(thread).state, ThreadState::Sending(_)));
        m.call(Operation::ThreadSuspend, &[address]).ok();
        m.call(Operation::ThreadResume, &[address]).ok();
        m.run(thread);
        assert!(m.host().steps && m.step(), "nobody has been told of it");
    }
    // The handler has received it, so it is over.
    m.call(Operation::TryReceive, &[endpoint, 0]);
    m.call(Operation::ThreadSuspend, &[address]).ok();
    m.call(Operation::ThreadResume, &[address]).ok();
    m.run(thread);
    assert!(!m.host().steps && m.thread(thread).blockers & blocker::STEP == 0);
    m.check();
}

#[test]
fn a_step_does_not_pass_to_the_server_that_a_thread_calls() {
    for [fast, faults] in [[false, false], [false, true], [true, false], [true, true]] {
        let (mut m, thread, server, address) = begin_step();
        m.fast = fast;
        let endpoint = m.make(Kind::Endpoint, 0);
        m.run(m.first);
        m.call(Operation::ThreadFaults, &[address, Class::PageFault as u64, endpoint, 0, 0]).ok();
        m.call_as(server, Operation::Receive, &[endpoint, 0]);
        assert!(matches!(m.thread(server).state, ThreadState::Receiving(_)));
        m.run(thread);
        if faults {
            m.fault(fault());
        } else {
            m.call(Operation::Call, &[endpoint, Tag::new(1, 1).0]);
        }
        assert!(matches!(m.thread(thread).state, ThreadState::AwaitingReply(_)));
        m.run(server);
        assert_eq!(m.thread(server).blockers & blocker::STEP, 0, "fast: {fast}, faults: {faults}");
        assert!(!m.step(), "the server goes on");
        m.call(Operation::ReplyReceive, &[endpoint, Tag::new(0, 0).0]);
        m.run(thread);
        assert!(m.host().steps && m.step(), "the step is still to be made");
        assert!(matches!(m.thread(server).state, ThreadState::Receiving(_)));
        m.check();
    }
}

#[test]
fn register_transfer_knows_its_flags() {
    let (mut m, _, address) = begin();
    for flags in [4, 7, 1 << 32, u64::MAX] {
        assert_eq!(m.call(Operation::ThreadWriteRegisters, &[address, flags]).err(), Error::InvalidArgument);
    }
    m.call(Operation::ThreadWriteRegisters, &[address, write::STEP]).ok();
    assert_eq!(m.call(Operation::ThreadReadRegisters, &[address, 2]).err(), Error::InvalidArgument);
}
