//! The floating-point unit on the paths of messages.

use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_kernel::float;
use tench_kernel::thread::blocker;

/// Arguments of an operation of a server at an endpoint with a named reply object.
fn with_reply(endpoint: u64, reply: u64) -> [u64; 13] {
    let mut registers = [0; 13];
    registers[..2].copy_from_slice(&[endpoint, Tag::new(0, 0).with(Tag::REPLY).0]);
    registers[11] = reply;
    registers
}

/// An event between the program's use of the unit and the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    /// The program waits for a signal between its use of the unit and its call.
    Wait,
    /// Another program uses the unit while the server works.
    OtherUse,
}

/// Lets a server with a named reply object serve a program that has used the unit. Returns whether the program may
/// still use the unit.
fn served(is_fast: bool, event: Event) -> bool {
    let mut m = Machine::new();
    let (server, signaller, program) = (m.make_thread(255), m.make_thread(10), m.first);
    let (endpoint, notification, reply) =
        (m.make(Kind::Endpoint, 0), m.make(Kind::Notification, 0), m.make(Kind::Reply, 0));
    m.run(server);
    m.system_call(Operation::Receive as u64, &with_reply(endpoint, reply));
    m.run(program);
    float::trap(m.kernel());
    if event == Event::Wait {
        m.call(Operation::Receive, &[notification, 0]);
        m.run(signaller);
        m.call(Operation::Signal, &[notification]);
    }
    m.run(program);
    m.fast = is_fast;
    m.call(Operation::Call, &[endpoint, 0]);
    assert_eq!(m.current(), server);
    m.check();
    if event == Event::OtherUse {
        m.run(signaller);
        float::trap(m.kernel());
        m.run(server);
        float::stop(m.kernel());
    }
    m.system_call(Operation::ReplyReceive as u64, &with_reply(endpoint, reply));
    assert_eq!(m.current(), program);
    m.check();
    m.thread(program).blockers & blocker::FLOAT != 0
}

#[test]
fn a_program_has_the_unit_after_its_call_as_before() {
    assert!(served(true, Event::Nothing), "without a trap");
    for is_fast in [false, true] {
        assert!(!served(is_fast, Event::Wait), "fast: {is_fast}");
        assert!(!served(is_fast, Event::OtherUse), "fast: {is_fast}");
    }
}

/// Returns the first register of the running thread, and whether the unit was on.
fn register(m: &mut Machine) -> ([u64; 2], bool) {
    let was_on = m.host().float().is_some();
    if !was_on {
        float::trap(m.kernel());
    }
    (m.host().float().expect("on").registers[0], was_on)
}

#[test]
fn two_users_of_the_unit_call_and_reply_with_their_own_registers() {
    for is_fast in [false, true] {
        let mut m = Machine::new();
        let (server, program) = (m.make_thread(255), m.first);
        let endpoint = m.make(Kind::Endpoint, 0);
        m.run(server);
        m.call(Operation::Receive, &[endpoint, 0]);
        m.fast = is_fast;
        m.run(program);
        for round in 0..4 {
            // Each counts the rounds in its register, the server in hundreds. The first use traps.
            let count = |m: &mut Machine, unit: u64| {
                let stays = is_fast && round > 0;
                assert_eq!(register(m), ([unit * round, 0], stays), "fast: {is_fast}, round {round}");
                m.host().float().expect("on").registers[0] = [unit * (round + 1), 0];
                m.check();
            };
            count(&mut m, 1);
            m.call(Operation::Call, &[endpoint, 0]);
            assert_eq!(m.current(), server);
            count(&mut m, 100);
            m.call(Operation::ReplyReceive, &[endpoint, 0]);
            assert_eq!(m.current(), program);
        }
    }
}
