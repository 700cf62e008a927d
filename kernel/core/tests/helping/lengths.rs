//! The amount of work that is done at once with interrupts off: at most as much as a context has copies, however many
//! threads wait for each other.

use tench_abi::{Kind, Operation};
use tench_kernel::object::Ref;

use super::actors::{Actor, Stage};
use super::{CHAIN, chain};

/// Returns for each actor the context on which it runs, its height, and its priority.
fn standings(stage: &mut Stage, actors: &[Actor]) -> Vec<(Option<usize>, u8, i16)> {
    let one = |actor: &Actor| {
        let t = stage.machine.thread(actor.thread);
        (t.scheduling.map(Ref::address), t.height, t.priority)
    };
    actors.iter().map(one).collect()
}

#[test]
fn the_end_of_a_wait_changes_few_heights_at_once() {
    for length in [8, 12, 16] {
        let mut stage = Stage::new();
        let (low, servers, high) = chain(&mut stage, length, true);
        stage.cancel(high);
        let before = standings(&mut stage, &servers);
        let points = stage.machine.kernel().state().statistics.preemption_points;
        stage.cancel(low);
        let after = standings(&mut stage, &servers);
        let changed = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        let passed = stage.machine.kernel().state().statistics.preemption_points - points;
        assert!(
            changed <= 2 * CHAIN + 2 || passed > 0,
            "{changed} of {length} threads change, and {passed} preemption points are passed"
        );
    }
}

/// Checks a server that replies to the caller of its own caller, in that caller's reply object, and receives with this
/// object: no thread helps the server any more.
#[test]
fn a_server_that_takes_its_callers_reply_object_has_no_height() {
    let mut stage = Stage::new();
    let (worker, server) = (stage.server(10, false), stage.server(20, false));
    let [first, second] = [30, 30].map(|priority| stage.actor(priority));
    let [one, other] = [(); 2].map(|()| stage.make(Kind::Reply));
    stage.call(first, worker);
    stage.receive_with(worker, Operation::Receive, one);
    stage.call(second, worker);
    stage.take_time(worker);
    stage.cancel(server);
    stage.receive_with(server, Operation::Receive, other);
    stage.call(worker, server);
    assert_eq!(stage.machine.thread(server.thread).height, 2);
    stage.receive_with(server, Operation::ReplyReceive, one);
    assert_eq!(stage.machine.thread(server.thread).height, 0);
}

/// Checks a server that continues the request of a client that gave up, and then loses its own context: the server for
/// which it waits stays as urgent as the client was.
#[test]
fn work_for_a_caller_keeps_its_priority_when_the_server_between_has_no_time() {
    let mut stage = Stage::new();
    let (first, second, low) = (stage.server(200, true), stage.server(200, true), stage.actor(5));
    stage.call(low, first);
    stage.manage(Operation::ThreadSuspend, &[low.capability]);
    stage.call(first, second);
    assert_eq!(stage.runs_on(second), (5, Some(first.time)));
    stage.take_time(first);
    assert_eq!(stage.runs_on(second), (5, Some(second.time)));
}

/// Checks a client that gives up, followed by the server that continued its request and called another server: that
/// other server stays as urgent as the client was.
#[test]
fn work_for_a_caller_keeps_its_priority_through_two_servers() {
    let mut stage = Stage::new();
    let (first, second, low) = (stage.server(90, true), stage.server(200, true), stage.actor(5));
    stage.call(low, first);
    stage.manage(Operation::ThreadSuspend, &[low.capability]);
    assert_eq!(stage.priority(first), 5);
    stage.call_until(first, second, 1000);
    assert_eq!(stage.priority(second), 5);
    stage.machine.pass_time(1000);
    stage.check();
    assert_eq!(stage.priority(second), 5, "it is nobody's request but the low one's");
}
