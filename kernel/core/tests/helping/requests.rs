//! Requests: on whose time a server works for a caller that waits, and how urgent the work is when the caller does not
//! wait, or can no longer help.

use tench_abi::fault::Class;
use tench_abi::{Error, Kind, Operation, Rights};
use tench_kernel::helping::UNCAPPED;
use tench_kernel::helping::heights::MAX_HEIGHT;
use tench_kernel::thread::ThreadState;

use super::ENDS;
use super::actors::Stage;

#[test]
fn a_server_of_high_priority_works_at_its_clients() {
    for fast in [false, true] {
        let mut stage = Stage::new();
        stage.machine.fast = fast;
        let (server, low) = (stage.server(250, true), stage.actor(5));
        stage.hog(100);
        stage.call(low, server);
        assert_eq!(stage.runs_on(server), (5, Some(low.time)));
        stage.machine.reschedule();
        assert!(stage.machine.current() == stage.hog, "the hog comes before what is done for the low one");
        stage.reply_and_receive(server);
        assert_eq!(stage.runs_on(server), (250, Some(server.time)));
    }
}

#[test]
fn an_abandoned_request_is_finished_on_own_time_as_urgently_as_it_was() {
    for end in ENDS {
        for (client, expected) in [(30, 30), (200, 90)] {
            let mut stage = Stage::new();
            let (server, caller) = (stage.server(90, true), stage.actor(client));
            stage.call_until(caller, server, 1000);
            end(&mut stage, caller);
            assert_eq!(stage.runs_on(server), (expected, Some(server.time)));
            stage.check();
            // A thread that waits behind the request helps.
            let high = stage.actor(150);
            stage.call_until(high, server, 500);
            assert_eq!(stage.runs_on(server), (150, Some(high.time)));
            stage.machine.pass_time(500);
            assert_eq!(stage.priority(server), expected);
            // After the next receive nothing of that is left.
            stage.reply_and_receive(server);
            assert_eq!(stage.runs_on(server), (90, Some(server.time)));
            assert_eq!(stage.machine.thread(server.thread).cap, UNCAPPED);
        }
    }
}

#[test]
fn nothing_is_sent_to_a_server() {
    for (busy, operation) in [(false, Operation::Send), (true, Operation::Send), (false, Operation::TrySend)] {
        let mut stage = Stage::new();
        let (server, low, other) = (stage.server(250, true), stage.actor(5), stage.actor(7));
        if busy {
            stage.call(other, server);
        }
        let before = stage.state(server);
        stage.machine.call_as(low.thread, operation, &[server.endpoint, 0]);
        stage.check();
        assert_eq!(stage.machine.results(low.thread).x[0], Error::CallsOnly as u64, "{operation:?}, busy: {busy}");
        assert_eq!((stage.state(low), stage.state(server)), (ThreadState::Ready, before));
        // When no thread serves the endpoint any more, messages may wait there.
        stage.serve(server, 0);
        stage.machine.call_as(low.thread, Operation::Send, &[server.endpoint, 0]);
        stage.check();
        assert_eq!(stage.state(low) == ThreadState::Ready, !busy);
    }
}

#[test]
fn a_message_sent_before_a_thread_served_has_the_senders_priority() {
    let mut stage = Stage::new();
    let (server, low) = (stage.server(250, false), stage.actor(5));
    stage.hog(100);
    stage.cancel(server);
    stage.machine.call_as(low.thread, Operation::Send, &[server.endpoint, 0]);
    stage.check();
    stage.serve(server, server.endpoint);
    stage.machine.call_as(server.thread, Operation::Receive, &[server.endpoint, 0]);
    stage.check();
    assert_eq!(stage.runs_on(server), (5, Some(server.time)));
    stage.machine.reschedule();
    assert!(stage.machine.current() == stage.hog, "the hog comes before what was sent");
    let high = stage.actor(200);
    stage.call(high, server);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)), "who waits behind it helps");
    stage.reply_and_receive(server);
    stage.reply_and_receive(server);
    assert_eq!(stage.runs_on(server), (250, Some(server.time)));
    assert_eq!(stage.machine.thread(server.thread).cap, UNCAPPED);
}

/// Checks the urgency of a timeout fault of a server that continues the request of a client of low priority.
#[test]
fn the_timeout_fault_of_a_server_has_the_priority_of_its_work() {
    let mut stage = Stage::new();
    let (handler, server, low) = (stage.server(250, true), stage.server(200, true), stage.actor(5));
    stage.configure(server, 200);
    stage.manage(Operation::SchedulingReserve, &[server.time, 100, 10_000, 0]);
    stage.manage(Operation::ThreadFaults, &[server.capability, Class::Timeout as u64, handler.endpoint, 0, 0]);
    stage.call(low, server);
    stage.manage(Operation::ThreadSuspend, &[low.capability]);
    assert_eq!(stage.runs_on(server), (5, Some(server.time)));
    stage.machine.run(server.thread);
    stage.machine.pass_time(200);
    stage.machine.reschedule();
    stage.check();
    assert_eq!(stage.state(server), ThreadState::AwaitingReply(stage.reply(handler)));
    assert_eq!(stage.runs_on(handler), (5, Some(handler.time)));
}

#[test]
fn a_message_to_a_thread_that_serves_nobody_changes_no_priority() {
    let mut stage = Stage::new();
    let (task, low) = (stage.server(250, false), stage.actor(5));
    stage.machine.call_as(low.thread, Operation::Send, &[task.endpoint, 0]);
    stage.check();
    assert_eq!(stage.runs_on(task), (250, Some(task.time)));
}

#[test]
fn the_timeout_fault_of_a_client_has_the_clients_priority_at_a_server() {
    let mut stage = Stage::new();
    let (server, low) = (stage.server(250, true), stage.actor(5));
    stage.configure(low, 5);
    stage.manage(Operation::SchedulingReserve, &[low.time, 100, 10_000, 0]);
    stage.manage(Operation::ThreadFaults, &[low.capability, Class::Timeout as u64, server.endpoint, 0, 0]);
    stage.machine.run(low.thread);
    stage.machine.pass_time(200);
    stage.machine.reschedule();
    stage.check();
    assert_eq!(stage.state(low), ThreadState::AwaitingReply(stage.reply(server)));
    assert_eq!(stage.runs_on(server), (5, Some(server.time)));
    stage.reply_and_receive(server);
    assert_eq!(stage.runs_on(server), (250, Some(server.time)));
}

#[test]
fn work_on_limited_time_continues_when_no_other_thread_runs() {
    for end in ENDS {
        let mut stage = Stage::new();
        let (server, caller) = (stage.server(250, true), stage.actor(180));
        stage.hog(1);
        stage.manage(Operation::SchedulingReserve, &[caller.time, 100, 10_000, 0]);
        stage.call_until(caller, server, 1000);
        assert_eq!(stage.runs_on(server), (180, Some(caller.time)));
        end(&mut stage, caller);
        assert_eq!(stage.runs_on(server), (0, Some(server.time)));
        stage.check();
        stage.machine.reschedule();
        assert!(stage.machine.current() == stage.hog, "everybody comes before what nobody pays for");
        // The thread that waits behind it pays.
        let next = stage.actor(30);
        stage.call(next, server);
        assert_eq!(stage.runs_on(server), (30, Some(next.time)));
        stage.reply_and_receive(server);
        stage.reply_and_receive(server);
        assert_eq!(stage.runs_on(server), (250, Some(server.time)));
    }
}

#[test]
fn work_that_a_limited_thread_leaves_at_the_end_of_a_chain_has_neither_budget_nor_priority() {
    let mut stage = Stage::new();
    let caller = stage.actor(180);
    stage.manage(Operation::SchedulingReserve, &[caller.time, 1000, 10_000, 0]);
    let servers: Vec<_> = (0..=MAX_HEIGHT).map(|_| stage.server(250, true)).collect();
    let mut waiter = caller;
    for server in &servers {
        stage.call(waiter, *server);
        waiter = *server;
    }
    let (helped, others) = servers.split_at(usize::from(MAX_HEIGHT) - 1);
    assert!(helped.iter().all(|server| stage.runs_on(*server) == (180, Some(caller.time))));
    assert!(others.iter().all(|server| stage.runs_on(*server) == (0, Some(others[0].time))));
}

#[test]
fn the_last_received_caller_helps() {
    let mut stage = Stage::new();
    let server = stage.server(10, true);
    let deferred = stage.make(Kind::Reply);
    let high = stage.actor(200);
    stage.machine.run(high.thread);
    stage.machine.call(Operation::Call, &[server.endpoint, 0]);
    assert_eq!(stage.priority(server), 200);
    stage.reply_and_receive(server);
    // The next caller goes to another reply object.
    stage.cancel(server);
    stage.receive_with(server, Operation::Receive, deferred);
    stage.call(high, server);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)));
    assert!(matches!(stage.state(high), ThreadState::AwaitingReply(_)));
    // The caller is set aside: the next one comes to the bound reply object, and the first no longer helps.
    let low = stage.actor(5);
    stage.machine.run(server.thread);
    stage.machine.call(Operation::Receive, &[server.endpoint, 0]);
    assert_eq!(stage.runs_on(server), (10, Some(server.time)));
    stage.call(low, server);
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
    // Replying to it does not affect the work for the other caller.
    stage.machine.run(server.thread);
    stage.machine.call(Operation::Reply, &[deferred, 0]);
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
    assert!(matches!(stage.state(high), ThreadState::Ready));
}

#[test]
fn callers_received_without_the_call_right_are_deferred() {
    let mut stage = Stage::new();
    let (server, high) = (stage.server(10, true), stage.actor(200));
    let deferred = stage.make(Kind::Reply);
    let named = stage.arrange(|machine| {
        let to = machine.take_free();
        machine.call(Operation::Mint, &[0, deferred, 0, to, Rights::WRITE.bits().into(), 0]).ok();
        to
    });
    stage.cancel(server);
    for (reply, expected) in [(named, (10, Some(server.time))), (deferred, (200, Some(high.time)))] {
        stage.receive_with(server, Operation::Receive, reply);
        stage.call(high, server);
        assert_eq!(stage.runs_on(server), expected);
        stage.machine.run(server.thread);
        stage.machine.call(Operation::Reply, &[deferred, 0]);
        stage.check();
    }
}

#[test]
fn a_server_that_replies_and_defers_the_next_caller_is_not_helped() {
    for fast in [false, true] {
        let mut stage = Stage::new();
        stage.machine.fast = fast;
        let (server, high) = (stage.server(10, true), stage.actor(200));
        let reply = stage.make(Kind::Reply);
        let deferring = stage.arrange(|machine| {
            let to = machine.take_free();
            machine.call(Operation::Mint, &[0, reply, 0, to, Rights::WRITE.bits().into(), 0]).ok();
            to
        });
        stage.cancel(server);
        stage.receive_with(server, Operation::Receive, reply);
        stage.call(high, server);
        assert_eq!(stage.runs_on(server), (200, Some(high.time)));
        stage.receive_with(server, Operation::ReplyReceive, deferring);
        stage.call(high, server);
        assert_eq!(stage.runs_on(server), (10, Some(server.time)), "fast: {fast}");
    }
}

#[test]
fn a_faulted_thread_helps_its_handler() {
    for fast in [false, true] {
        let mut stage = Stage::new();
        stage.machine.fast = fast;
        let handler = stage.server(10, true);
        let (low, high) = (stage.actor(5), stage.actor(200));
        stage.hog(100);
        for actor in [low, high] {
            stage.manage(Operation::ThreadFaults, &[actor.capability, 0, handler.endpoint, 0, 0]);
            stage.machine.run(actor.thread);
            stage.machine.fault(tench_abi::fault::Report { class: 0, address: 0, instruction: 4, syndrome: 0 });
            stage.check();
        }
        assert_eq!(stage.runs_on(handler), (200, Some(high.time)));
        assert!(stage.machine.current() == handler.thread);
        stage.reply_and_receive(handler);
        stage.reply_and_receive(handler);
        assert_eq!((stage.priority(handler), stage.machine.current()), (10, high.thread));
    }
}

#[test]
fn the_end_of_a_server_or_its_endpoint() {
    let mut stage = Stage::new();
    let (first, second) = (stage.server(10, true), stage.server(20, true));
    let (low, high) = (stage.actor(5), stage.actor(200));
    stage.call(low, first);
    stage.call(first, second);
    stage.call_until(high, first, 1000);
    stage.manage(Operation::Delete, &[0, first.capability]);
    assert_eq!(stage.runs_on(second), (20, Some(second.time)), "nobody waits for it through the deleted one");
    assert!(matches!(stage.state(high), ThreadState::Sending(_)), "another can receive there");
    let successor = stage.actor(15);
    stage.serve(successor, first.endpoint);
    assert_eq!(stage.priority(successor), 200, "and is helped");
    // Deleting the endpoint removes the binding.
    stage.manage(Operation::Revoke, &[0, first.endpoint]);
    stage.manage(Operation::Delete, &[0, first.endpoint]);
    assert_eq!(stage.priority(successor), 15);
    assert_eq!(stage.machine.results(high.thread).err(), Error::Aborted);
    assert!(stage.machine.thread(successor.thread).served.is_none());
    // A server's reply object is deleted, with the caller in it.
    let third = stage.server(30, true);
    stage.call(high, third);
    assert_eq!(stage.priority(third), 200);
    stage.manage(Operation::Revoke, &[0, third.reply]);
    assert_eq!(stage.runs_on(third), (30, Some(third.time)), "nothing binds the caller to it any more");
    stage.check();
}

#[test]
fn the_authority_over_priorities_does_not_depend_on_donated_time() {
    let mut stage = Stage::new();
    let (server, client) = (stage.server(50, true), stage.actor(200));
    stage.manage(Operation::SchedulingConfigure, &[server.time, 50, 60, 0]);
    stage.call(client, server);
    assert_eq!(stage.priority(server), 200);
    let configure = |stage: &mut Stage, priority| {
        stage.machine.call_as(server.thread, Operation::SchedulingConfigure, &[server.time, priority, priority, 0])
    };
    assert_eq!(configure(&mut stage, 61).err(), Error::PriorityTooHigh, "the client's ceiling is the client's");
    configure(&mut stage, 60).ok();
    stage.take_time(server);
    assert_eq!(configure(&mut stage, 1).err(), Error::PriorityTooHigh, "a server without time of its own gives none");
}

#[test]
fn a_slice_is_that_of_the_time_it_is_part_of() {
    let mut stage = Stage::new();
    let (server, equal, client) = (stage.server(50, true), stage.actor(40), stage.actor(40));
    stage.manage(Operation::SchedulingConfigure, &[client.time, 40, 40, 100]);
    stage.call(client, server);
    assert!(stage.machine.current() == server.thread || stage.machine.current() == equal.thread);
    stage.machine.run(server.thread);
    stage.machine.call(Operation::Yield, &[]);
    assert!(stage.machine.current() == equal.thread);
    stage.machine.call(Operation::Yield, &[]);
    assert!(stage.machine.current() == server.thread);
    stage.machine.pass_time(100);
    assert!(stage.machine.current() == equal.thread, "the client's slice is over");
    stage.check();
}
