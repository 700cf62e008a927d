//! Chains of servers that call servers: a context is propagated along the chain of waiting threads, to its end and no
//! further.

use tench_abi::object::MAX_DEPTH;
use tench_abi::{Error, Kind, Operation};
use tench_kernel::helping::heights::MAX_HEIGHT;
use tench_kernel::thread::{ThreadState, blocker};

use super::actors::{Actor, Stage};
use super::{CHAIN, chain};

#[test]
fn a_chain_of_servers_runs_on_the_time_of_who_waits() {
    for length in [1, 2, 3, CHAIN] {
        let mut stage = Stage::new();
        let (low, servers, high) = chain(&mut stage, length, true);
        for server in &servers {
            assert_eq!(stage.runs_on(*server), (200, Some(high.time)), "chain of {length}");
        }
        assert!(stage.machine.current() == servers[length - 1].thread, "the last of {length} runs, not the hog");
        // The servers reply, one after the other; a server that has replied runs on its own context, the first on the
        // next client's.
        for server in servers.iter().rev() {
            assert!(stage.machine.current() == server.thread, "it is the server's turn");
            stage.reply_and_receive(*server);
            let expected = if *server == servers[0] { (200, Some(high.time)) } else { (10, Some(server.time)) };
            assert_eq!(stage.runs_on(*server), expected);
        }
        assert_eq!(stage.priority(low), 5);
        // The first server has received the high client's call when it replied to the low client.
        assert_eq!(stage.state(high), ThreadState::AwaitingReply(stage.reply(servers[0])));
        stage.reply_and_receive(servers[0]);
        assert!(stage.machine.current() == high.thread);
        assert_eq!(stage.runs_on(servers[0]), (10, Some(servers[0].time)));
    }
}

#[test]
fn beyond_a_limit_a_server_works_on_its_own_time_as_urgently_as_its_caller() {
    for own in [3, 10] {
        let mut stage = Stage::new();
        let low = stage.actor(5);
        let servers: Vec<Actor> =
            (0..CHAIN + 2).map(|n| stage.server(if n == CHAIN - 1 { own } else { 10 }, true)).collect();
        stage.call(low, servers[0]);
        for pair in servers.windows(2) {
            stage.call(pair[0], pair[1]);
        }
        assert_eq!(stage.runs_on(servers[CHAIN - 2]), (5, Some(low.time)));
        let last = servers[CHAIN - 1];
        let expected = (own.min(5) as i16, Some(last.time));
        assert_eq!(stage.runs_on(last), expected, "no more urgent than who asked");
        assert_eq!([CHAIN, CHAIN + 1].map(|n| stage.runs_on(servers[n])), [expected; 2], "it helps the others");
    }
}

/// The way in which a client with a chain of its own threads comes to the first of three servers, each of which calls
/// the next.
#[derive(Clone, Copy, Debug)]
struct Coming {
    /// Number of the client's threads, each of which waits for the next.
    own: usize,
    /// The first server works for another thread when the client comes, so the client waits at its endpoint.
    is_first_busy: bool,
    /// The other servers are busy, too, when they are called.
    are_others_busy: bool,
}

/// Lets a client come with a chain; then a client of high priority, which has to be able to help all servers.
fn brings_a_chain(coming: Coming) {
    let mut stage = Stage::new();
    let servers: Vec<Actor> = (0..3).map(|n| stage.server_of_depth(250, 2 - n)).collect();
    let (low, other) = (stage.actor(6), stage.actor(5));
    stage.hog(100);
    if coming.is_first_busy {
        stage.call(other, servers[0]);
    }
    let own: Vec<Actor> = (1..coming.own).map(|_| stage.server(250, true)).collect();
    let mut last = low;
    for next in own.iter().chain([&servers[0]]) {
        stage.call(last, *next);
        last = *next;
    }
    for pair in servers.windows(2) {
        if coming.are_others_busy {
            let other = stage.actor(4);
            stage.call(other, pair[1]);
        }
        stage.call(pair[0], pair[1]);
    }
    let high = stage.actor(200);
    stage.call(high, servers[0]);
    for server in &servers {
        assert_eq!(stage.runs_on(*server), (200, Some(high.time)), "{coming:?}");
    }
    assert!(stage.machine.current() == servers[2].thread, "{coming:?}: not the hog");
}

#[test]
fn a_caller_with_a_chain_keeps_no_server_from_helping_the_next() {
    for own in 1..=CHAIN + 2 {
        for [is_first_busy, are_others_busy] in [[false, false], [false, true], [true, false], [true, true]] {
            brings_a_chain(Coming { own, is_first_busy, are_others_busy });
        }
    }
}

/// Checks the case where the first server has declared no depth, and calls one that waits for no other.
#[test]
fn a_caller_with_a_chain_stops_helping() {
    let mut stage = Stage::new();
    let (low, own) = (stage.actor(5), (1..CHAIN).map(|_| stage.server(250, true)).collect::<Vec<_>>());
    let (first, second) = (stage.server(250, true), stage.server(250, true));
    stage.hog(100);
    let mut last = low;
    for next in own.iter().chain([&first]) {
        stage.call(last, *next);
        last = *next;
    }
    assert_eq!(stage.runs_on(first), (5, Some(low.time)));
    stage.call(first, second);
    assert_eq!(stage.runs_on(second), (5, Some(first.time)), "no more urgent than who asked");
    let high = stage.actor(200);
    stage.call(high, first);
    assert_eq!([first, second].map(|server| stage.runs_on(server)), [(200, Some(high.time)); 2]);
    // A thread that got its reply helps again when it waits again.
    stage.reply_and_receive(second);
    stage.reply_and_receive(first);
    assert_eq!(stage.runs_on(own[CHAIN - 2]), (5, Some(low.time)));
}

/// Makes a chain of threads each of which waits for the next; the last waits at an endpoint.
fn chain_to(stage: &mut Stage, length: usize, endpoint: u64) {
    let own: Vec<_> = (1..length).map(|_| stage.server(250, true)).collect();
    let mut last = stage.actor(5);
    for next in own {
        stage.call(last, next);
        last = next;
    }
    stage.machine.call_as(last.thread, Operation::Call, &[endpoint, 0]);
    stage.check();
}

#[test]
fn a_caller_with_a_chain_before_a_thread_serves_does_not_limit_the_thread() {
    let mut stage = Stage::new();
    let second = stage.server_of_depth(250, 1);
    let (first, others) = (stage.server(250, false), [4, 4].map(|priority| stage.actor(priority)));
    stage.cancel(first);
    chain_to(&mut stage, CHAIN - 1, first.endpoint);
    stage.manage(Operation::ThreadServe, &[first.capability, first.endpoint, 2]);
    stage.reply_and_receive(first);
    stage.reply_and_receive(first);
    // All threads that came then are served.
    stage.call(others[0], first);
    chain_to(&mut stage, CHAIN - 1, first.endpoint);
    stage.call(others[1], second);
    stage.call(first, second);
    let high = stage.actor(200);
    stage.call(high, first);
    assert_eq!(stage.runs_on(second), (200, Some(high.time)));
}

#[test]
fn a_waiter_of_a_server_without_depth_exceeds_the_height_that_the_next_allows() {
    let mut stage = Stage::new();
    let (first, other) = (stage.server(250, true), stage.actor(4));
    stage.call(other, first);
    chain_to(&mut stage, CHAIN, first.endpoint);
    assert_eq!(stage.machine.thread(first.thread).height, MAX_HEIGHT);
    for depth in 0..=MAX_DEPTH {
        stage.manage(Operation::ThreadServe, &[first.capability, 0, 0]);
        stage.manage(Operation::ThreadServe, &[first.capability, first.endpoint, depth]);
        assert_eq!(stage.machine.thread(first.thread).height, MAX_HEIGHT);
    }
}

/// Checks a server that was set aside: its caller raises its height too far meanwhile, then it becomes the current
/// caller again.
#[test]
fn a_thread_that_calls_again_helps_again() {
    let mut stage = Stage::new();
    let (first, second) = (stage.server_of_depth(250, 1), stage.server_of_depth(250, 0));
    let deferred = stage.make(Kind::Reply);
    stage.hog(100);
    // The client's last thread, which waits for the first server and serves an endpoint itself.
    let client = stage.server_of_depth(6, 1);
    stage.cancel(client);
    stage.call(client, first);
    stage.call(first, second);
    stage.receive_with(second, Operation::Receive, deferred);
    chain_to(&mut stage, 3, client.endpoint);
    assert_eq!(stage.machine.thread(first.thread).height, 4);
    let two = stage.actor(4);
    stage.call(two, second);
    stage.manage(Operation::Delete, &[0, deferred]);
    let high = stage.actor(200);
    stage.call(high, first);
    assert_eq!(stage.runs_on(second), (200, Some(high.time)));
}

#[test]
fn a_depth_is_one_of_three() {
    let mut stage = Stage::new();
    let (actor, endpoint) = (stage.actor(10), stage.make(Kind::Endpoint));
    for refused in [MAX_DEPTH + 1, 255, 256, u64::MAX] {
        let result = stage.try_to(Operation::ThreadServe, &[actor.capability, endpoint, refused]);
        assert_eq!(result.err(), Error::InvalidArgument);
    }
    for depth in 0..=MAX_DEPTH {
        stage.manage(Operation::ThreadServe, &[actor.capability, endpoint, depth]);
        stage.manage(Operation::ThreadServe, &[actor.capability, 0, 0]);
    }
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
fn a_context_that_goes_is_taken_from_the_whole_chain() {
    // Regression test: the first reply of a chain on donated time once wrote into the deleted context's memory, which
    // had been reused.
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
        // The next clients' contexts serve the remaining work.
        for server in [second, first] {
            let next = stage.actor(60);
            stage.call(next, server);
            assert_eq!(stage.runs_on(server), (60, Some(next.time)));
            stage.reply_and_receive(server);
            stage.reply_and_receive(server);
            assert!(stage.machine.current() == next.thread);
            stage.manage(Operation::ThreadSuspend, &[next.capability]);
        }
        assert_eq!((stage.state(low), stage.runs_on(low)), (ThreadState::Ready, (-1, None)));
    }
}

#[test]
fn a_suspended_thread_helps_nobody() {
    let mut stage = Stage::new();
    let (server, low, high) = (stage.server(10, true), stage.actor(5), stage.actor(200));
    stage.call(low, server);
    stage.call(high, server);
    stage.set_suspended(high, true);
    assert_eq!(stage.priority(server), 5, "it falls at once");
    stage.reply_and_receive(server);
    assert_eq!(stage.runs_on(server), (10, Some(server.time)), "it works for who is suspended on its own time");
    stage.set_suspended(high, false);
    assert_eq!(stage.runs_on(server), (200, Some(high.time)));
    // A suspended server does not run, and helps nobody.
    let second = stage.server(20, true);
    stage.call(server, second);
    assert_eq!(stage.runs_on(second), (200, Some(high.time)));
    stage.set_suspended(server, true);
    assert_eq!((stage.priority(server), stage.runs_on(second)), (-1, (20, Some(second.time))));
    stage.set_suspended(server, false);
    assert_eq!((stage.priority(server), stage.priority(second)), (200, 200));
}

#[test]
fn a_ring_of_threads_that_wait_for_each_other_ends() {
    let mut stage = Stage::new();
    let (a, b) = (stage.server(10, true), stage.server(20, true));
    stage.cancel(a);
    stage.call_until(a, b, 1000);
    stage.call(b, a);
    assert!(stage.machine.thread(b.thread).blockers & blocker::HELPLESS != 0);
    let high = stage.actor(200);
    stage.call_until(high, a, 500);
    assert_eq!((stage.priority(a), stage.priority(b)), (200, 200));
    stage.machine.pass_time(500);
    assert_eq!((stage.priority(a), stage.priority(b)), (10, 10), "nothing goes round");
    stage.machine.pass_time(500);
    assert_eq!(stage.state(a), ThreadState::Ready);
    stage.check();
    // A thread that waits for itself.
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
    assert!(
        stage.machine.thread(a.thread).blockers & blocker::HELPLESS != 0,
        "who begins to serve while it waits helps no more"
    );
    assert_eq!((stage.priority(a), stage.priority(b)), (200, 10), "the other comes first");
    stage.manage(Operation::ThreadSuspend, &[high.capability]);
    assert_eq!((stage.priority(a), stage.priority(b)), (10, 10));
}
