//! Receiving with a named reply object: equal results with and without the fast path.

use tench_abi::layout::slot;
use tench_abi::{Error, Kind, Operation, Rights, Tag};
use tench_arch_host::machine::at;
use tench_arch_host::{Machine, ResultRegisters};
use tench_kernel::object::Ref;
use tench_kernel::thread::{Thread, ThreadState};

/// Threads that share all capabilities, an endpoint, and a reply object that is bound to no thread.
struct Stage {
    machine: Machine,
    server: Ref<Thread>,
    other: Ref<Thread>,
    client: Ref<Thread>,
    endpoint: u64,
    /// Endpoint at which the second server receives.
    elsewhere: u64,
    reply: u64,
}

/// Plays with and without the fast path.
fn both(play: fn(Stage)) {
    for fast in [true, false] {
        let mut machine = Machine::new();
        machine.fast = fast;
        machine.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 255, 255, 0]).ok();
        let [server, other, client] = [50, 50, 40].map(|priority| machine.make_thread(priority));
        let [endpoint, elsewhere] = [0; 2].map(|_| machine.make(Kind::Endpoint, 0));
        let reply = machine.make(Kind::Reply, 0);
        play(Stage { machine, server, other, client, endpoint, elsewhere, reply });
    }
}

impl Stage {
    /// Makes a thread receive with a reply object.
    fn receive(&mut self, thread: Ref<Thread>, endpoint: u64, reply: u64) -> ResultRegisters {
        let mut x = [0; 13];
        (x[0], x[1], x[11]) = (endpoint, Tag::REPLY, reply);
        self.machine.run(thread);
        let result = self.machine.system_call(Operation::Receive as u64, &x);
        self.machine.check();
        result
    }

    fn receives(&mut self, thread: Ref<Thread>) -> bool {
        matches!(self.machine.thread(thread).state, ThreadState::Receiving(_))
    }
}

#[test]
fn a_reply_object_with_which_somebody_waits_is_in_use() {
    both(|mut stage| {
        stage.receive(stage.server, stage.endpoint, stage.reply);
        assert!(stage.receives(stage.server));
        assert_eq!(stage.receive(stage.other, stage.elsewhere, stage.reply).err(), Error::ReplyInUse);
        assert!(!stage.receives(stage.other));
    });
}

#[test]
fn a_reply_object_is_free_for_others_after_the_reply() {
    both(|mut stage| {
        stage.receive(stage.server, stage.endpoint, stage.reply);
        stage.machine.call_as(stage.client, Operation::Call, &[stage.endpoint, Tag::new(7, 0).0]);
        stage.machine.check();
        assert_eq!(stage.receive(stage.other, stage.elsewhere, stage.reply).err(), Error::ReplyInUse);
        stage.machine.call_as(stage.server, Operation::Reply, &[stage.reply, 0]).ok();
        assert!(!stage.machine.waits(stage.client));
        stage.receive(stage.other, stage.elsewhere, stage.reply);
        assert!(stage.receives(stage.other));
    });
}

#[test]
fn naming_a_reply_object_takes_the_right_to_reply() {
    both(|mut stage| {
        let weaker = stage.machine.take_free();
        stage.machine.call(Operation::Mint, &[0, stage.reply, 0, weaker, Rights::READ.bits().into(), 0]).ok();
        assert_eq!(stage.receive(stage.server, stage.endpoint, weaker).err(), Error::MissingRights);
        assert!(!stage.receives(stage.server));
    });
}

#[test]
fn a_signal_that_came_before_is_received_first() {
    both(|mut stage| {
        let notification = stage.machine.make(Kind::Notification, 0);
        let server = stage.machine.free;
        let thread = stage.machine.make_thread(50);
        stage.machine.call(Operation::ThreadBind, &[server, 0, 0, notification]).ok();
        stage.machine.call(Operation::Signal, &[notification]).ok();
        let result = stage.receive(thread, stage.endpoint, stage.reply);
        assert!(!stage.receives(thread));
        assert_eq!(result.x[1], Tag::NOTIFICATION);
        // Without a signal, it waits.
        stage.receive(thread, stage.endpoint, stage.reply);
        assert!(stage.receives(thread));
    });
}

/// Sets a caller of priority 40 aside and replies to it with the next receive, while a thread of this priority is
/// ready.
fn reply_beside(mut stage: Stage, priority: u64, runs_at_once: bool) {
    let Stage { server, other, client, endpoint, elsewhere, reply, .. } = stage;
    stage.machine.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 1, 255, 0]).ok();
    stage.machine.call_as(server, Operation::Receive, &[endpoint, 0]);
    stage.machine.call_as(client, Operation::Call, &[endpoint, Tag::new(7, 0).0]);
    stage.receive(server, endpoint, reply);
    stage.machine.call_as(other, Operation::Send, &[endpoint, Tag::new(8, 0).0]);
    stage.machine.call_as(other, Operation::Receive, &[elsewhere, 0]);
    stage.machine.run(server);
    let beside = stage.machine.make_thread(priority);
    stage.machine.call_as(server, Operation::ReplyReceive, &[endpoint, Tag::new(9, 1).0, 77]);
    stage.machine.check();
    let x = stage.machine.thread(client).registers.x;
    assert_eq!((x[0], x[1], x[2], x[3]), (0, Tag::new(9, 1).0, 77, 0));
    assert!(stage.machine.current() == if runs_at_once { client } else { beside });
    assert!(stage.receives(server));
    // The other reply object is free.
    stage.receive(client, elsewhere, reply);
    assert!(stage.receives(client));
}

#[test]
fn a_deferred_caller_gets_its_reply_in_turn() {
    both(|stage| reply_beside(stage, 30, true));
    both(|stage| reply_beside(stage, 40, false));
    both(|stage| reply_beside(stage, 45, false));
}

#[test]
fn a_reply_object_that_is_bound_is_in_use_even_if_nobody_waits_with_it() {
    both(|mut stage| {
        // The thread comes first, then its context and its reply object.
        let reply = stage.machine.free + 2;
        let owner = stage.machine.make_thread(50);
        assert!(stage.machine.thread(owner).bound_reply.is_some() && !stage.receives(owner));
        assert_eq!(stage.receive(stage.other, stage.elsewhere, reply).err(), Error::ReplyInUse);
        assert!(!stage.receives(stage.other));
    });
}

#[test]
fn capabilities_are_sent_only_with_the_right_to_grant() {
    both(|mut stage| {
        let m = &mut stage.machine;
        let weak = m.take_free();
        let rights = (Rights::WRITE | Rights::CALL).bits();
        m.call(Operation::Mint, &[0, stage.endpoint, 0, weak, rights.into(), 0]).ok();
        let sender = m.first;
        m.buffer(sender).send_caps[0] = stage.elsewhere as u32;
        stage.receive(stage.server, stage.endpoint, stage.reply);
        let m = &mut stage.machine;
        m.run(sender);
        for operation in [Operation::Call, Operation::Send] {
            assert_eq!(m.call(operation, &[weak, Tag::new(0, 0).with_caps(1).0]).err(), Error::MissingRights);
            assert!(m.current() == sender);
            m.check();
        }
    });
}
