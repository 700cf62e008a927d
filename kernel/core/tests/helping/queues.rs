//! Queues of senders at an endpoint: which of them helps, and for how long.

use tench_abi::{Error, Kind, Operation, Rights};
use tench_kernel::thread::ThreadState;

use super::actors::{Actor, Stage};
use super::{ENDS, chain};

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
    // They are received in the order of their priorities, and of their arrival among equals.
    let mut expected: Vec<usize> = (0..many.len()).collect();
    expected.sort_by_key(|n| (std::cmp::Reverse(n % 3), *n));
    for n in expected {
        stage.reply_and_receive(server);
        assert_eq!(stage.state(many[n]), ThreadState::AwaitingReply(stage.reply(server)), "client {n}");
    }
}

#[test]
fn a_caller_that_leaves_the_queue_helps_no_more() {
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
    stage.reply_and_receive(server);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)));
    stage.reply_and_receive(server);
    assert!(stage.machine.current() == high.thread);
    assert_eq!(stage.runs_on(server), (-1, None));
}

#[test]
fn senders_wait_by_priority_and_equals_in_turn() {
    for served in [false, true] {
        let mut stage = Stage::new();
        let (server, busy) = (stage.server(10, served), stage.actor(7));
        let [low, high, equal, raised] = [5, 200, 200, 1].map(|priority| stage.actor(priority));
        for client in [busy, low, high, equal, raised] {
            stage.call(client, server);
        }
        assert!([low, high, equal, raised].iter().all(|actor| matches!(stage.state(*actor), ThreadState::Sending(_))));
        // It came last of the three.
        stage.manage(Operation::SchedulingConfigure, &[raised.time, 200, 200, 0]);
        for next in [high, equal, raised, low] {
            stage.reply_and_receive(server);
            assert!(matches!(stage.state(next), ThreadState::AwaitingReply(_)), "served: {served}");
        }
    }
}

#[test]
fn binding_a_thread_to_an_endpoint_is_checked() {
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
