//! Operations on threads that pass a window: what they knew before it may be untrue after it.

use tench_abi::layout::{UNBIND, slot};
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::at;
use tench_kernel::{delete, space};

const CSPACE: u64 = at(slot::CSPACE);
const VSPACE: u64 = at(slot::VSPACE);

/// A machine with a suspended thread whose space's last capability is its binding, so that configuring it anew deletes
/// a node, which passes windows. Answers the thread's address.
fn thread_with_a_space_of_its_own() -> (Machine, u64) {
    let mut m = Machine::new();
    let (thread, node) = (m.make(Kind::Thread, 0), m.make(Kind::CapNode, 8));
    m.call(Operation::ThreadConfigure, &[thread, node, VSPACE, 0, 0]).ok();
    assert_eq!(m.call(Operation::Delete, &[0, node]).ok()[1], 0);
    m.check();
    (m, thread)
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "windows let nobody in")]
fn a_frame_that_shrinks_in_a_window_is_checked_again() {
    let (mut m, thread) = thread_with_a_space_of_its_own();
    let (large, small, aside) = (m.make(Kind::Frame, 21), m.make(Kind::Frame, 12), m.take_free());
    let mut done = false;
    m.host().hook = Some(Box::new(move |k| {
        if !std::mem::replace(&mut done, true) {
            let (from, to) = (space::lookup(k, large), space::destination(k, 0, aside));
            space::move_to(k, from.expect("there"), to.expect("empty")).expect("moved");
            let (from, to) = (space::lookup(k, small), space::destination(k, 0, large));
            space::move_to(k, from.expect("there"), to.expect("empty")).expect("moved");
        }
    }));
    let answer = m.call(Operation::ThreadConfigure, &[thread, CSPACE, VSPACE, large, 1 << 20]);
    assert_eq!(answer.err(), Error::InvalidArgument);
    m.check();
    let thread = m.thread_at(thread);
    assert_eq!(m.thread(thread).message_area, 0);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "windows let nobody in")]
fn a_thread_that_goes_in_a_window_is_configured_no_further() {
    let (mut m, thread) = thread_with_a_space_of_its_own();
    let mut done = false;
    m.host().hook = Some(Box::new(move |k| {
        if !std::mem::replace(&mut done, true) {
            let slot = space::lookup(k, thread).expect("there");
            delete::delete(k, slot).expect("deleted");
        }
    }));
    let answer = m.call(Operation::ThreadConfigure, &[thread, CSPACE, VSPACE, 0, 0]);
    assert_eq!(answer.err(), Error::InvalidCapability);
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
    assert_eq!(m.answer(server).ok()[2], 42);
    m.check();
}
