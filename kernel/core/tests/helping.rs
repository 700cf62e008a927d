//! Helping: on whose time a thread runs, and at which priority, while somebody waits for it.
//!
//! Whether everybody runs on what follows from scratch is checked after each step (`check_helping`). Here is what that comes to.

#[path = "helping/actors.rs"]
mod actors;
mod common;
#[path = "helping/random.rs"]
mod random;

use actors::{Actor, Stage};
use tench_abi::fault::Class;
use tench_abi::{Error, Kind, Operation, Rights, Tag};
use tench_kernel::helping::{COPIES, UNCAPPED};
use tench_kernel::thread::{ThreadState, slow};

/// A low client calls the first of `length` servers, each of which calls the next; then a high client calls the first.
fn chain(stage: &mut Stage, length: usize, served: bool) -> (Actor, Vec<Actor>, Actor) {
    let servers: Vec<Actor> = (0..length).map(|_| stage.server(10, served)).collect();
    let (low, high) = (stage.actor(5), stage.actor(200));
    stage.hog(100);
    stage.call(low, servers[0]);
    for pair in servers.windows(2) {
        stage.call(pair[0], pair[1]);
    }
    stage.call(high, servers[0]);
    (low, servers, high)
}

/// Servers that a context is copied to, one calling the other.
const CHAIN: usize = COPIES as usize;

#[test]
fn a_chain_of_servers_runs_on_the_time_of_who_waits() {
    for length in [1, 2, 3, CHAIN] {
        let mut stage = Stage::new();
        let (low, servers, high) = chain(&mut stage, length, true);
        for server in &servers {
            assert_eq!(stage.runs_on(*server), (200, Some(high.time)), "chain of {length}");
        }
        assert!(stage.machine.current() == servers[length - 1].thread, "the last of {length} runs, not the hog");
        // They answer, one after the other; whoever has answered runs on its own time, the first on the next client's.
        for server in servers.iter().rev() {
            assert!(stage.machine.current() == server.thread, "it is the server's turn");
            stage.answer(*server);
            let expected = if *server == servers[0] { (200, Some(high.time)) } else { (10, Some(server.time)) };
            assert_eq!(stage.runs_on(*server), expected);
        }
        assert_eq!(stage.priority(low), 5);
        // The first has received the high client's call with the answer to the low one.
        assert_eq!(stage.state(high), ThreadState::AwaitingReply(stage.reply(servers[0])));
        stage.answer(servers[0]);
        assert!(stage.machine.current() == high.thread);
        assert_eq!(stage.runs_on(servers[0]), (10, Some(servers[0].time)));
    }
}

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
        stage.answer(server);
        assert_eq!(stage.runs_on(server), (250, Some(server.time)));
    }
}

#[test]
fn without_service_nobody_helps_from_the_queue() {
    for length in [1, 3] {
        let mut stage = Stage::new();
        let (low, servers, high) = chain(&mut stage, length, false);
        assert!(servers.iter().all(|server| stage.runs_on(*server) == (5, Some(low.time))));
        assert!(stage.machine.current() == stage.hog, "the hog runs");
        assert!(matches!(stage.state(high), ThreadState::Sending(_)));
    }
}

#[test]
fn beyond_a_limit_a_server_works_on_its_own_time_as_urgently_as_its_caller() {
    for own in [3, 10] {
        let mut stage = Stage::new();
        let low = stage.actor(5);
        let servers: Vec<Actor> =
            (0..CHAIN + 2).map(|n| stage.server(if n == CHAIN { own } else { 10 }, true)).collect();
        stage.call(low, servers[0]);
        for pair in servers.windows(2) {
            stage.call(pair[0], pair[1]);
        }
        assert_eq!(stage.runs_on(servers[CHAIN - 1]), (5, Some(low.time)));
        let last = servers[CHAIN];
        assert_eq!(stage.runs_on(last), (own.min(5) as i16, Some(last.time)), "no more urgent than who asked");
        assert_eq!(stage.runs_on(servers[CHAIN + 1]), (own.min(5) as i16, Some(last.time)), "which helps the next");
    }
}

#[test]
fn the_first_in_the_queue_helps_however_many_wait() {
    let mut stage = Stage::new();
    let (server, low, high) = (stage.server(10, true), stage.actor(5), stage.actor(200));
    let many: Vec<Actor> = (0..70).map(|n| stage.extra(20 + n % 3)).collect();
    stage.call(low, server);
    for actor in &many {
        stage.call(*actor, server);
    }
    assert_eq!(stage.priority(server), 22);
    stage.call_until(high, server, 1000);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)));
    stage.machine.pass_time(1000);
    assert_eq!(stage.priority(server), 22, "it is no longer helped by who has given up");
    // They are received in the order of their priorities, and among equals as they came.
    let mut expected: Vec<usize> = (0..many.len()).collect();
    expected.sort_by_key(|n| (std::cmp::Reverse(n % 3), *n));
    for n in expected {
        stage.answer(server);
        assert_eq!(stage.state(many[n]), ThreadState::AwaitingReply(stage.reply(server)), "client {n}");
    }
}

/// How somebody stops waiting.
const ENDS: [fn(&mut Stage, Actor); 3] = [
    |stage, actor| {
        let deadline = stage.machine.thread(actor.thread).timer.key;
        let now = stage.machine.host().time;
        stage.machine.pass_time(deadline - now);
    },
    |stage, actor| {
        stage.manage(Operation::Delete, &[0, actor.capability]);
    },
    |stage, actor| {
        stage.manage(Operation::ThreadSuspend, &[actor.capability]);
    },
];

#[test]
fn who_stops_waiting_in_the_queue_helps_no_more() {
    for (end, first, then) in ENDS.iter().flat_map(|end| [(end, 200, 150), (end, 150, 200)]) {
        let mut stage = Stage::new();
        let (server, low) = (stage.server(10, true), stage.actor(5));
        let (one, two) = (stage.actor(first), stage.actor(then));
        stage.call(low, server);
        stage.call_until(one, server, 1000);
        stage.call_until(two, server, 2000);
        assert_eq!(stage.priority(server), 200);
        end(&mut stage, one);
        assert_eq!(stage.runs_on(server), (then as i16, Some(two.time)));
        end(&mut stage, two);
        assert_eq!(stage.runs_on(server), (5, Some(low.time)));
        stage.check();
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
            // Somebody who waits behind it helps.
            let high = stage.actor(150);
            stage.call_until(high, server, 500);
            assert_eq!(stage.runs_on(server), (150, Some(high.time)));
            stage.machine.pass_time(500);
            assert_eq!(stage.priority(server), expected);
            // When it receives again, nothing of that is left.
            stage.answer(server);
            assert_eq!(stage.runs_on(server), (90, Some(server.time)));
            assert_eq!(stage.machine.thread(server.thread).cap, UNCAPPED);
        }
    }
}

#[test]
fn what_is_sent_to_a_server_is_no_more_urgent_than_the_sender() {
    for queued in [false, true] {
        let mut stage = Stage::new();
        let (server, low, other) = (stage.server(250, true), stage.actor(5), stage.actor(7));
        stage.hog(100);
        if queued {
            stage.call(other, server);
        }
        stage.machine.call_as(low.thread, Operation::Send, &[server.endpoint, 0]);
        stage.check();
        if queued {
            stage.answer(server);
        }
        assert_eq!(stage.runs_on(server), (5, Some(server.time)), "queued: {queued}");
        stage.machine.reschedule();
        assert!(stage.machine.current() == stage.hog, "the hog comes before what was sent");
        let high = stage.actor(200);
        stage.call(high, server);
        assert_eq!(stage.runs_on(server), (200, Some(high.time)), "who waits behind it helps");
        stage.answer(server);
        stage.answer(server);
        assert_eq!(stage.runs_on(server), (250, Some(server.time)));
        assert_eq!(stage.machine.thread(server.thread).cap, UNCAPPED);
    }
}

#[test]
fn what_is_sent_to_a_thread_that_serves_nobody_is_its_own_affair() {
    let mut stage = Stage::new();
    let (task, low) = (stage.server(250, false), stage.actor(5));
    stage.machine.call_as(low.thread, Operation::Send, &[task.endpoint, 0]);
    stage.check();
    assert_eq!(stage.runs_on(task), (250, Some(task.time)));
}

#[test]
fn a_receives_deadline_is_an_alarm_while_the_server_does_what_it_was_sent() {
    for queued in [false, true] {
        let mut stage = Stage::new();
        let (server, low) = (stage.server(90, true), stage.actor(5));
        stage.hog(50);
        stage.cancel(server);
        let send = |stage: &mut Stage| {
            stage.machine.call_as(low.thread, Operation::Send, &[server.endpoint, 0]);
            stage.check();
        };
        if queued {
            send(&mut stage);
        }
        let mut x = [0; 13];
        (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE, stage.machine.host().time + 1000);
        stage.machine.run(server.thread);
        stage.machine.system_call(Operation::Receive as u64, &x);
        stage.check();
        if !queued {
            send(&mut stage);
        }
        assert_eq!(stage.runs_on(server), (5, Some(server.time)), "queued: {queued}");
        stage.machine.pass_time(1000);
        assert_eq!(stage.runs_on(server), (90, Some(server.time)), "its own time has come");
        stage.answer(server);
        assert_eq!(stage.machine.thread(server.thread).slow, 0);
    }
}

#[test]
fn that_somebodys_time_is_used_up_is_no_more_urgent_for_a_server_than_he_is() {
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
    stage.answer(server);
    assert_eq!(stage.runs_on(server), (250, Some(server.time)));
}

#[test]
fn what_was_begun_on_limited_time_goes_on_at_no_more_than_its_ceiling() {
    let mut stage = Stage::new();
    let (server, caller) = (stage.server(250, true), stage.actor(180));
    stage.manage(Operation::SchedulingConfigure, &[caller.time, 180, 100, 0]);
    stage.manage(Operation::SchedulingReserve, &[caller.time, 100, 10_000, 0]);
    stage.call(caller, server);
    assert_eq!(stage.runs_on(server), (180, Some(caller.time)));
    stage.manage(Operation::ThreadSuspend, &[caller.capability]);
    assert_eq!(stage.runs_on(server), (100, Some(server.time)));
}

#[test]
fn a_server_without_time_goes_on_when_the_next_waits() {
    let mut stage = Stage::new();
    let (server, low, high) = (stage.server(10, true), stage.actor(5), stage.actor(200));
    stage.take_time(server);
    stage.call(low, server);
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
    stage.manage(Operation::ThreadSuspend, &[low.capability]);
    assert_eq!(stage.runs_on(server), (-1, None));
    stage.call(high, server);
    assert!(stage.machine.current() == server.thread, "it finishes the first request on the next client's time");
    stage.answer(server);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)));
    stage.answer(server);
    assert!(stage.machine.current() == high.thread);
    assert_eq!(stage.runs_on(server), (-1, None));
}

#[test]
fn who_is_suspended_helps_nobody() {
    let mut stage = Stage::new();
    let (server, low, high) = (stage.server(10, true), stage.actor(5), stage.actor(200));
    stage.call(low, server);
    stage.call(high, server);
    stage.park(high, true);
    assert_eq!(stage.priority(server), 5, "it falls at once");
    stage.answer(server);
    assert_eq!(stage.runs_on(server), (10, Some(server.time)), "it works for who is parked on its own time");
    stage.park(high, false);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)));
    // A server that is parked itself does not run, and helps nobody.
    let second = stage.server(20, true);
    stage.call(server, second);
    assert_eq!(stage.runs_on(second), (200, Some(high.time)));
    stage.park(server, true);
    assert_eq!((stage.priority(server), stage.runs_on(second)), (-1, (20, Some(second.time))));
    stage.park(server, false);
    assert_eq!((stage.priority(server), stage.priority(second)), (200, 200));
}

#[test]
fn a_change_of_a_priority_reaches_the_end_of_the_chain() {
    let mut stage = Stage::new();
    let (first, second) = (stage.server(10, true), stage.server(20, true));
    let (low, client) = (stage.actor(5), stage.actor(50));
    stage.call(low, first);
    stage.call(first, second);
    stage.call(client, first);
    for priority in [50, 210, 40] {
        stage.configure(client, priority);
        assert_eq!((stage.priority(first), stage.priority(second)), (priority as i16, priority as i16));
    }
    stage.configure(client, 3);
    assert_eq!(stage.runs_on(second), (5, Some(low.time)), "then the caller is more urgent");
    stage.manage(Operation::ThreadBind, &[low.capability, tench_abi::layout::UNBIND, 0, 0]);
    assert_eq!(
        stage.runs_on(second),
        (5, Some(first.time)),
        "its context is gone, and how urgent it was is remembered"
    );
}

#[test]
fn what_is_signalled_to_a_server_makes_its_own_time_count() {
    let mut stage = Stage::new();
    let (server, low) = (stage.server(90, true), stage.actor(5));
    stage.hog(50);
    let notification = stage.make(Kind::Notification);
    stage.cancel(server);
    stage.manage(Operation::ThreadBind, &[server.capability, 0, 0, notification]);
    stage.machine.call_as(server.thread, Operation::Receive, &[server.endpoint, 0]);
    stage.call(low, server);
    assert!(stage.machine.current() == stage.hog);
    stage.manage(Operation::Signal, &[notification]);
    assert_eq!(stage.runs_on(server), (90, Some(server.time)));
    assert!(stage.machine.current() == server.thread, "it finishes the request, and then has the signal");
    stage.answer(server);
    assert!(stage.machine.answer(server.thread).x[1] & Tag::NOTIFICATION != 0);
    // If somebody else takes the signal, the hurry is over.
    stage.machine.call_as(server.thread, Operation::Receive, &[server.endpoint, 0]);
    stage.call(low, server);
    stage.manage(Operation::Signal, &[notification]);
    assert_eq!(stage.priority(server), 90);
    stage.manage(Operation::TryReceive, &[notification, 0]);
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
    // So it is if the server takes it, but no message.
    stage.manage(Operation::Signal, &[notification]);
    assert_eq!(stage.priority(server), 90);
    stage.machine.call_as(server.thread, Operation::TryReceive, &[notification, 0]);
    stage.check();
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
}

#[test]
fn a_receives_deadline_is_an_alarm_while_the_server_works() {
    for (queued, ticks) in [(false, 1000), (true, 1000), (true, 0)] {
        let mut stage = Stage::new();
        let (server, low, other) = (stage.server(90, true), stage.actor(5), stage.actor(5));
        stage.hog(50);
        if queued {
            stage.call(other, server);
            stage.call(low, server);
        } else {
            stage.cancel(server);
        }
        let mut x = [0; 13];
        (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE, stage.machine.host().time + ticks);
        stage.machine.run(server.thread);
        stage.machine.system_call(Operation::ReplyReceive as u64, &x);
        stage.check();
        if !queued {
            stage.call(low, server);
        }
        assert_eq!(stage.runs_on(server), (5, Some(low.time)));
        stage.machine.pass_time(ticks);
        assert_eq!(stage.runs_on(server), (90, Some(server.time)), "its own time has come");
        assert_eq!(stage.state(server), ThreadState::Ready);
        stage.check();
        stage.answer(server);
        assert_eq!(stage.machine.thread(server.thread).slow, 0);
    }
}

#[test]
fn an_alarm_survives_what_the_server_waits_for_meanwhile() {
    let mut stage = Stage::new();
    let (server, second, low) = (stage.server(90, true), stage.server(80, true), stage.actor(5));
    stage.cancel(server);
    let mut x = [0; 13];
    (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE, stage.machine.host().time + 1000);
    stage.machine.run(server.thread);
    stage.machine.system_call(Operation::Receive as u64, &x);
    stage.call(low, server);
    stage.call(server, second);
    assert_eq!(stage.runs_on(second), (5, Some(low.time)));
    stage.machine.pass_time(1000);
    assert_eq!(stage.runs_on(second), (90, Some(server.time)), "whoever it waits for hurries, too");
    assert_eq!(stage.state(server), ThreadState::AwaitingReply(stage.reply(second)));
    // It goes with its thread.
    stage.manage(Operation::Delete, &[0, server.capability]);
    stage.check();
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
    // The endpoint goes, with the binding.
    stage.manage(Operation::Revoke, &[0, first.endpoint]);
    stage.manage(Operation::Delete, &[0, first.endpoint]);
    assert_eq!(stage.priority(successor), 15);
    assert_eq!(stage.machine.answer(high.thread).err(), Error::Aborted);
    assert!(stage.machine.thread(successor.thread).served.is_none());
    // A server's reply object goes, with the caller in it.
    let third = stage.server(30, true);
    stage.call(high, third);
    assert_eq!(stage.priority(third), 200);
    stage.manage(Operation::Revoke, &[0, third.reply]);
    assert_eq!(stage.runs_on(third), (30, Some(third.time)), "nothing binds the caller to it any more");
    stage.check();
}

#[test]
fn a_ring_of_threads_that_wait_for_each_other_ends() {
    let mut stage = Stage::new();
    let (a, b) = (stage.server(10, true), stage.server(20, true));
    stage.cancel(a);
    stage.call_until(a, b, 1000);
    stage.call(b, a);
    assert!(stage.machine.thread(b.thread).slow & slow::CIRCULAR != 0);
    let high = stage.actor(200);
    stage.call_until(high, a, 500);
    assert_eq!((stage.priority(a), stage.priority(b)), (200, 200));
    stage.machine.pass_time(500);
    assert_eq!((stage.priority(a), stage.priority(b)), (10, 10), "nothing goes round");
    stage.machine.pass_time(500);
    assert_eq!(stage.state(a), ThreadState::Ready);
    stage.check();
    // One that waits for itself.
    let alone = stage.server(30, true);
    stage.cancel(alone);
    stage.call_until(alone, alone, 10_000);
    assert_eq!(stage.priority(alone), 30);
    stage.machine.pass_time(20_000);
    assert_eq!((stage.state(alone), stage.priority(alone)), (ThreadState::Ready, 30));
}

#[test]
fn a_ring_that_is_closed_by_serving() {
    let mut stage = Stage::new();
    let (a, b) = (stage.server(10, false), stage.server(20, true));
    stage.cancel(a);
    stage.call(a, b);
    stage.call(b, a);
    let high = stage.actor(200);
    stage.call(high, a);
    assert_eq!((stage.priority(a), stage.priority(b)), (10, 10));
    stage.serve(a, a.endpoint);
    assert!(stage.machine.thread(b.thread).slow & slow::CIRCULAR != 0);
    assert_eq!((stage.priority(a), stage.priority(b)), (200, 200));
    stage.manage(Operation::ThreadSuspend, &[high.capability]);
    assert_eq!((stage.priority(a), stage.priority(b)), (10, 10));
}

#[test]
fn a_context_that_goes_is_taken_from_the_whole_chain() {
    // What the first reply of a chain on lent time once wrote into: memory that was something else by then.
    for fast in [false, true] {
        let mut stage = Stage::new();
        stage.machine.fast = fast;
        let (first, second) = (stage.server(10, true), stage.server(20, true));
        stage.take_time(first);
        stage.take_time(second);
        let low = stage.actor(50);
        stage.call(low, first);
        stage.call(first, second);
        assert_eq!(stage.runs_on(second), (50, Some(low.time)));
        stage.manage(Operation::Revoke, &[0, low.time]);
        stage.manage(Operation::Delete, &[0, low.time]);
        for actor in [low, first, second] {
            assert_eq!(stage.runs_on(actor), (-1, None));
        }
        // The next clients' time serves what is still to be done.
        for server in [second, first] {
            let next = stage.actor(60);
            stage.call(next, server);
            assert_eq!(stage.runs_on(server), (60, Some(next.time)));
            stage.answer(server);
            stage.answer(server);
            assert!(stage.machine.current() == next.thread);
            stage.manage(Operation::ThreadSuspend, &[next.capability]);
        }
        assert_eq!((stage.state(low), stage.runs_on(low)), (ThreadState::Ready, (-1, None)));
    }
}

#[test]
fn who_may_give_priorities_does_not_depend_on_whose_time_it_is() {
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
fn what_is_bound() {
    let mut stage = Stage::new();
    let (server, other) = (stage.server(10, true), stage.actor(20));
    let endpoint = stage.make(Kind::Endpoint);
    let serve =
        |stage: &mut Stage, actor: Actor, endpoint| stage.try_to(Operation::ThreadServe, &[actor.capability, endpoint]);
    assert_eq!(serve(&mut stage, server, endpoint).err(), Error::AlreadyBound);
    assert_eq!(serve(&mut stage, other, server.endpoint).err(), Error::AlreadyBound);
    assert_eq!(serve(&mut stage, other, server.reply).err(), Error::WrongType);
    let empty = stage.machine.take_free();
    assert_eq!(serve(&mut stage, other, empty).err(), Error::InvalidCapability);
    let weak = stage.machine.take_free();
    stage.manage(Operation::Mint, &[0, endpoint, 0, weak, Rights::WRITE.bits().into(), 0]);
    assert_eq!(serve(&mut stage, other, weak).err(), Error::MissingRights);
    serve(&mut stage, other, endpoint).ok();
    let high = stage.actor(200);
    stage.machine.call_as(high.thread, Operation::Call, &[endpoint, 0]);
    assert_eq!(stage.priority(other), 200);
    serve(&mut stage, other, 0).ok();
    assert_eq!(stage.priority(other), 20);
    serve(&mut stage, other, 0).ok();
    serve(&mut stage, server, 0).ok();
    serve(&mut stage, server, endpoint).ok();
    assert_eq!(stage.priority(server), 200);
    stage.check();
}

#[test]
fn who_has_faulted_helps_the_handler() {
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
        stage.answer(handler);
        stage.answer(handler);
        assert_eq!((stage.priority(handler), stage.machine.current()), (10, high.thread));
    }
}

#[test]
fn whoever_was_received_last_helps() {
    let mut stage = Stage::new();
    let server = stage.server(10, true);
    let aside = stage.make(Kind::Reply);
    let high = stage.actor(200);
    stage.machine.run(high.thread);
    stage.machine.call(Operation::Call, &[server.endpoint, 0]);
    assert_eq!(stage.priority(server), 200);
    stage.answer(server);
    // The next goes to another reply object.
    let mut x = [0; 13];
    (x[0], x[1], x[11]) = (server.endpoint, Tag::REPLY, aside);
    stage.cancel(server);
    stage.machine.run(server.thread);
    stage.machine.system_call(Operation::Receive as u64, &x);
    stage.call(high, server);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)));
    assert!(matches!(stage.state(high), ThreadState::AwaitingReply(_)));
    // He is laid aside: the next comes to the bound one, and he helps no more.
    let low = stage.actor(5);
    stage.machine.run(server.thread);
    stage.machine.call(Operation::Receive, &[server.endpoint, 0]);
    assert_eq!(stage.runs_on(server), (10, Some(server.time)));
    stage.call(low, server);
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
    // Answering him does not concern what is done for the other.
    stage.machine.run(server.thread);
    stage.machine.call(Operation::Reply, &[aside, 0]);
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
    assert!(matches!(stage.state(high), ThreadState::Ready));
}

#[test]
fn who_is_received_without_call_is_laid_aside() {
    let mut stage = Stage::new();
    let (server, high) = (stage.server(10, true), stage.actor(200));
    let aside = stage.make(Kind::Reply);
    let named = stage.arrange(|machine| {
        let to = machine.take_free();
        machine.call(Operation::Mint, &[0, aside, 0, to, Rights::WRITE.bits().into(), 0]).ok();
        to
    });
    stage.cancel(server);
    let mut x = [0; 13];
    for (reply, expected) in [(named, (10, Some(server.time))), (aside, (200, Some(high.time)))] {
        (x[0], x[1], x[11]) = (server.endpoint, Tag::REPLY, reply);
        stage.machine.run(server.thread);
        stage.machine.system_call(Operation::Receive as u64, &x);
        stage.call(high, server);
        assert_eq!(stage.runs_on(server), expected);
        stage.machine.run(server.thread);
        stage.machine.call(Operation::Reply, &[aside, 0]);
        stage.check();
    }
}

#[test]
fn senders_wait_in_turn_where_nobody_serves_and_by_priority_where_somebody_does() {
    for served in [false, true] {
        let mut stage = Stage::new();
        let (server, busy) = (stage.server(10, served), stage.actor(7));
        let (low, high) = (stage.actor(5), stage.actor(200));
        for client in [busy, low, high] {
            stage.call(client, server);
        }
        let waits = |stage: &mut Stage, actor| matches!(stage.state(actor), ThreadState::Sending(_));
        assert!(waits(&mut stage, low) && waits(&mut stage, high));
        // Whoever is served later stays behind them.
        if !served {
            stage.serve(server, server.endpoint);
            let higher = stage.actor(220);
            stage.call(higher, server);
            assert!(waits(&mut stage, higher));
        }
        stage.answer(server);
        let first = if served { high } else { low };
        assert!(matches!(stage.state(first), ThreadState::AwaitingReply(_)), "served: {served}");
        stage.answer(server);
        let second = if served { low } else { high };
        assert!(matches!(stage.state(second), ThreadState::AwaitingReply(_)), "served: {served}");
    }
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
