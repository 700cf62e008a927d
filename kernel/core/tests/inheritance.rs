//! Priority inheritance: who runs while somebody of high priority waits.

#[path = "inherit/actors.rs"]
mod actors;
mod common;
#[path = "inherit/random.rs"]
mod random;

use actors::{Actor, Stage};
use tench_abi::{Error, Kind, Operation, Rights, Tag};
use tench_kernel::inherit::{FEW, LINKS, WAITING};
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

#[test]
fn a_chain_of_servers_runs_at_the_priority_of_who_waits() {
    for length in [1, 2, 3, LINKS] {
        let mut stage = Stage::new();
        let (low, servers, high) = chain(&mut stage, length, true);
        for server in &servers {
            assert_eq!(stage.priority(*server), 200, "chain of {length}");
        }
        let last = servers[length - 1];
        assert!(stage.machine.current() == last.thread, "the last of {length} runs, not the hog");
        // They answer, one after the other: each has the high client's priority until it has answered the low one.
        for server in servers.iter().rev() {
            assert!(stage.machine.current() == server.thread, "it is the server's turn");
            stage.answer(*server);
            let expected = if *server == servers[0] { 200 } else { 10 };
            assert_eq!(stage.priority(*server), expected);
        }
        assert_eq!(stage.priority(low), 5);
        // The first has received the high client's call with the answer to the low one.
        assert_eq!(stage.state(high), ThreadState::AwaitingReply(stage.reply(servers[0])));
        stage.answer(servers[0]);
        assert!(stage.machine.current() == high.thread);
        assert_eq!(stage.priority(servers[0]), 10);
        assert_eq!(stage.machine.thread(servers[0].thread).slow & slow::INHERITS, 0);
    }
}

#[test]
fn without_service_the_chain_starves() {
    for length in [1, 3] {
        let mut stage = Stage::new();
        let (_, servers, high) = chain(&mut stage, length, false);
        assert!(servers.iter().all(|server| stage.priority(*server) == 10));
        assert!(stage.machine.current() == stage.hog, "the hog runs");
        assert!(matches!(stage.state(high), ThreadState::Sending(_)));
    }
}

#[test]
fn the_ninth_link_is_not_reached_until_something_happens_there() {
    let mut stage = Stage::new();
    let (_, servers, _) = chain(&mut stage, LINKS + 1, true);
    assert!(servers[..LINKS].iter().all(|server| stage.priority(*server) == 200));
    let (eighth, ninth) = (servers[LINKS - 1], servers[LINKS]);
    assert_eq!(stage.priority(ninth), 10);
    assert!(stage.machine.thread(eighth.thread).slow & slow::CUT != 0);
    assert!(stage.machine.current() == stage.hog);
    // Once the ninth runs, its answer lets the eighth go on at once.
    stage.answer(ninth);
    assert!(stage.machine.current() == eighth.thread);
    stage.call(eighth, ninth);
    assert_eq!(stage.priority(ninth), 200, "a call of the eighth reaches it");
    assert_eq!(stage.machine.thread(eighth.thread).slow & slow::CUT, 0);
}

#[test]
fn a_server_that_is_busy_on_the_fast_path_inherits() {
    for passive in [false, true] {
        let mut stage = Stage::new();
        stage.machine.fast = true;
        let server = stage.server(90, true);
        let (low, high) = (stage.actor(5), stage.actor(200));
        stage.hog(100);
        if passive {
            stage.take_time(server);
        }
        stage.call(low, server);
        assert_eq!(stage.priority(server), if passive { 5 } else { 90 });
        stage.call(high, server);
        assert_eq!(stage.priority(server), 200);
        assert!(stage.machine.current() == server.thread);
        stage.answer(server);
        assert_eq!((stage.priority(server), stage.priority(low)), (200, 5));
        stage.answer(server);
        assert!(stage.machine.current() == high.thread);
        assert_eq!(stage.priority(server), if passive { -1 } else { 90 });
        // Whoever is preferred to nobody takes the fast path again.
        stage.call(low, server);
        let t = stage.machine.thread(server.thread);
        assert_eq!((t.inherited, t.slow), (0, 0));
    }
}

#[test]
fn a_caller_lends_its_priority_to_a_server_that_waits_with_less() {
    let mut stage = Stage::new();
    let server = stage.server(10, false);
    let high = stage.actor(200);
    stage.hog(100);
    stage.call(high, server);
    assert!(stage.machine.current() == server.thread);
    assert_eq!(stage.priority(server), 200);
    stage.answer(server);
    assert_eq!((stage.priority(server), stage.machine.current()), (10, high.thread));
}

/// How somebody stops waiting.
const ENDS: [fn(&mut Stage, Actor); 3] = [
    |stage, actor| {
        let deadline = stage.machine.thread(actor.thread).deadline;
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
fn who_stops_waiting_gives_no_priority_any_more() {
    for end in ENDS {
        // In the queue, and as the caller.
        for queued in [true, false] {
            let mut stage = Stage::new();
            let (server, low, high) = (stage.server(10, true), stage.actor(5), stage.actor(200));
            if queued {
                stage.call(low, server);
            }
            stage.call_until(high, server, 1000);
            assert_eq!(stage.priority(server), 200);
            end(&mut stage, high);
            assert_eq!(stage.priority(server), 10);
            stage.check();
        }
    }
}

#[test]
fn of_two_who_leave_the_other_still_counts() {
    for (end, first, then) in ENDS.iter().flat_map(|end| [(end, 200, 150), (end, 150, 200)]) {
        let mut stage = Stage::new();
        let (server, low) = (stage.server(10, true), stage.actor(5));
        let (one, two) = (stage.actor(first), stage.actor(then));
        stage.call(low, server);
        stage.call_until(one, server, 1000);
        stage.call_until(two, server, 2000);
        assert_eq!(stage.priority(server), 200);
        end(&mut stage, one);
        assert_eq!(stage.priority(server), then as i32);
        end(&mut stage, two);
        assert_eq!(stage.priority(server), 10);
        stage.check();
    }
}

#[test]
fn who_is_parked_gives_nothing_from_the_next_answer_on() {
    let mut stage = Stage::new();
    let (server, low, high) = (stage.server(10, true), stage.actor(5), stage.actor(200));
    stage.call(low, server);
    stage.call(high, server);
    stage.park(high, true);
    assert_eq!(stage.priority(server), 200, "it falls when it answers");
    stage.answer(server);
    assert_eq!(stage.priority(server), 10, "though it has received the call of who is parked");
    stage.park(high, false);
    assert_eq!(stage.priority(server), 200);
    // A server that is parked itself keeps what it has inherited, and passes it on.
    let second = stage.server(20, true);
    stage.park(server, true);
    assert_eq!(stage.priority(server), -1);
    stage.park(server, false);
    stage.call(server, second);
    assert_eq!((stage.priority(server), stage.priority(second)), (200, 200));
}

#[test]
fn a_change_of_the_waiters_priority_is_passed_on() {
    let mut stage = Stage::new();
    let (first, second) = (stage.server(10, true), stage.server(20, true));
    let (low, client) = (stage.actor(5), stage.actor(50));
    stage.call(low, first);
    stage.call(first, second);
    stage.call(client, first);
    assert_eq!((stage.priority(first), stage.priority(second)), (50, 50));
    stage.configure(client, 210);
    assert_eq!((stage.priority(first), stage.priority(second)), (210, 210));
    stage.configure(client, 40);
    assert_eq!((stage.priority(first), stage.priority(second)), (210, 210), "they fall when they answer");
    stage.answer(second);
    assert_eq!((stage.priority(first), stage.priority(second)), (210, 20));
    stage.answer(first);
    assert_eq!(stage.priority(first), 40);
    // And the servers' own: lower than what it made superfluous, and higher than what was inherited.
    stage.configure(first, 90);
    assert_eq!((stage.priority(first), stage.machine.thread(first.thread).inherited), (90, 0));
    stage.configure(first, 30);
    assert_eq!((stage.priority(first), stage.machine.thread(first.thread).inherited), (40, 40));
    stage.take_time(first);
    assert_eq!((stage.priority(first), stage.machine.thread(first.thread).inherited), (-1, 40));
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
    assert_eq!(stage.priority(second), 20, "nobody waits for it through the deleted one");
    assert!(matches!(stage.state(high), ThreadState::Sending(_)), "another can receive there");
    let heir = stage.actor(15);
    stage.serve(heir, first.endpoint);
    assert_eq!(stage.priority(heir), 200, "and inherits");
    // The endpoint goes, with the binding.
    stage.manage(Operation::Revoke, &[0, first.endpoint]);
    stage.manage(Operation::Delete, &[0, first.endpoint]);
    assert_eq!(stage.priority(heir), 15);
    assert_eq!(stage.machine.answer(high.thread).err(), Error::Aborted);
    assert!(stage.machine.thread(heir.thread).served.is_none());
    // A server that has gone on waiting, and its reply object goes.
    let third = stage.server(30, true);
    stage.call(high, third);
    assert_eq!(stage.priority(third), 200);
    stage.manage(Operation::Revoke, &[0, third.reply]);
    assert_eq!(stage.priority(third), 30, "nothing binds the caller to it any more");
    stage.check();
}

#[test]
fn a_ring_of_threads_that_wait_for_each_other_ends() {
    let mut stage = Stage::new();
    let (a, b) = (stage.server(10, true), stage.server(20, true));
    stage.cancel(a);
    stage.call_until(a, b, 1000);
    stage.call(b, a);
    assert_eq!((stage.priority(a), stage.priority(b)), (20, 20));
    let high = stage.actor(200);
    stage.call_until(high, a, 500);
    assert_eq!((stage.priority(a), stage.priority(b)), (200, 200));
    // What they have goes round until the ring is broken.
    stage.machine.pass_time(500);
    stage.check();
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
fn what_went_round_in_a_ring_is_not_lent_with_the_time() {
    let mut stage = Stage::new();
    let (a, b, passive) = (stage.server(10, true), stage.server(20, true), stage.server(30, false));
    let (low, high) = (stage.actor(5), stage.actor(200));
    stage.take_time(passive);
    stage.call(low, passive);
    // The ring: one is the other's caller, and that waits at the endpoint which the one serves.
    stage.cancel(a);
    stage.call(a, b);
    stage.call(b, a);
    stage.call_until(high, a, 500);
    stage.machine.pass_time(500);
    assert_eq!(stage.state(high), ThreadState::Ready);
    assert_eq!((stage.priority(a), stage.priority(b)), (200, 200));
    // It ends when a third receives there, who runs on the time of whoever it has received.
    stage.answer(Actor { endpoint: a.endpoint, ..passive });
    assert_eq!(stage.state(b), ThreadState::AwaitingReply(stage.reply(passive)));
    assert_eq!((stage.priority(a), stage.priority(passive)), (10, 20));
    assert_eq!(stage.machine.thread(b.thread).inherited, 10, "from its caller");
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
fn a_handler_of_faults_inherits_from_who_faulted() {
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
        assert_eq!(stage.priority(handler), 200);
        assert!(stage.machine.current() == handler.thread);
        stage.answer(handler);
        stage.answer(handler);
        assert_eq!((stage.priority(handler), stage.machine.current()), (10, high.thread));
    }
}

#[test]
fn a_call_laid_aside_gives_nothing() {
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
    assert_eq!(stage.priority(server), 10);
    assert!(matches!(stage.state(high), ThreadState::AwaitingReply(_)));
}

#[test]
fn of_many_the_first_count_and_what_it_had_stays() {
    let mut stage = Stage::new();
    let (server, low, high) = (stage.server(10, true), stage.actor(5), stage.actor(200));
    let many: Vec<Actor> = (0..WAITING as u64 + 6).map(|n| stage.extra(20 + n % 3)).collect();
    stage.call(low, server);
    for actor in &many {
        stage.call(*actor, server);
    }
    assert_eq!(stage.priority(server), 22);
    stage.call_until(high, server, 1000);
    assert_eq!(stage.priority(server), 200);
    stage.machine.pass_time(1000);
    assert_eq!(stage.priority(server), 200, "who waits behind the others could have it");
    for _ in 0..5 {
        stage.answer(server);
        assert_eq!(stage.priority(server), 200);
    }
    stage.answer(server);
    assert_eq!(stage.priority(server), 22, "all that wait were looked at");
    // Another serves them: the first inherits from its caller alone.
    let late = stage.actor(15);
    stage.manage(Operation::ThreadServe, &[server.capability, 0]);
    assert_eq!(stage.priority(server), 20 + 5 % 3);
    stage.serve(late, server.endpoint);
    assert_eq!(stage.priority(late), 22);
    // Its time goes: only a few are looked at, and it keeps what it had.
    stage.configure(late, 120);
    assert_eq!(stage.machine.thread(late.thread).inherited, 0);
    stage.take_time(late);
    assert_eq!(stage.machine.thread(late.thread).inherited, 120, "more than {FEW} wait");
    stage.check();
}

#[test]
fn a_server_falls_back_among_its_equals_with_a_slice() {
    let mut stage = Stage::new();
    let (server, equal) = (stage.server(50, true), stage.actor(50));
    stage.manage(Operation::SchedulingConfigure, &[server.time, 50, 50, 100]);
    let high = stage.actor(60);
    stage.call(high, server);
    stage.machine.pass_time(1000);
    assert!(stage.machine.current() == server.thread, "it has no equals at the priority that it has inherited");
    tench_kernel::thread::control::suspend(&mut stage.machine.kernel(), high.thread);
    stage.machine.reschedule();
    assert!(stage.machine.current() == server.thread, "it goes on before its equals");
    stage.machine.pass_time(100);
    assert!(stage.machine.current() == equal.thread, "its slice is over");
    stage.check();
}
