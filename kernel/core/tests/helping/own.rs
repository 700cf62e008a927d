//! A server's own work: signals and deadlines, for which its own scheduling context counts, too.

use tench_abi::{Kind, Operation, Tag};
use tench_kernel::thread::ThreadState;

use super::actors::{Actor, Stage};

#[test]
fn a_signal_to_a_server_runs_on_the_servers_own_time() {
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
    stage.reply_and_receive(server);
    assert!(stage.machine.results(server.thread).x[1] & Tag::NOTIFICATION != 0);
    // If another thread takes the signal, the server is no longer urgent.
    stage.machine.call_as(server.thread, Operation::Receive, &[server.endpoint, 0]);
    stage.call(low, server);
    stage.manage(Operation::Signal, &[notification]);
    assert_eq!(stage.priority(server), 90);
    stage.manage(Operation::TryReceive, &[notification, 0]);
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
    // The server is not urgent either if it takes the signal, but no message.
    stage.manage(Operation::Signal, &[notification]);
    assert_eq!(stage.priority(server), 90);
    stage.machine.call_as(server.thread, Operation::TryReceive, &[notification, 0]);
    stage.check();
    assert_eq!(stage.runs_on(server), (5, Some(low.time)));
}

#[test]
fn an_alarm_goes_off_while_the_server_works() {
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
        (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE | Tag::ALARM, stage.machine.host().time + ticks);
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
        stage.reply_and_receive(server);
        assert_eq!(stage.machine.thread(server.thread).blockers, 0);
    }
}

#[test]
fn an_alarm_is_as_urgent_as_the_server_and_not_as_its_caller() {
    for waits in [true, false] {
        let mut stage = Stage::new();
        let (server, low, other) = (stage.server(150, true), stage.actor(5), stage.actor(5));
        let sleepers: Vec<Actor> = (0..8).map(|_| stage.actor(6)).collect();
        let never = stage.make(Kind::Notification);
        let due = stage.machine.host().time + 1000;
        let until = |address, tag| {
            let mut x = [0; 13];
            (x[0], x[1], x[12]) = (address, Tag::DEADLINE | tag, due);
            x
        };
        for sleeper in sleepers {
            stage.machine.run(sleeper.thread);
            stage.machine.system_call(Operation::Receive as u64, &until(never, 0));
        }
        stage.hog(100);
        stage.call(other, server);
        if !waits {
            stage.call(low, server);
        }
        // The server replies to a client of low priority, and receives the next.
        stage.machine.run(server.thread);
        stage.machine.system_call(Operation::ReplyReceive as u64, &until(server.endpoint, Tag::ALARM));
        stage.check();
        if waits {
            stage.call(low, server);
        }
        assert_eq!(stage.runs_on(server), (5, Some(low.time)));
        stage.machine.host().look = 3;
        stage.machine.pass_time(1000);
        assert_eq!(
            stage.runs_on(server),
            (150, Some(server.time)),
            "it does not wait for those of low priority; {waits}"
        );
    }
}

#[test]
fn an_alarm_goes_off_while_the_server_does_what_was_sent_before_it_served() {
    let mut stage = Stage::new();
    let (server, low) = (stage.server(90, false), stage.actor(5));
    stage.hog(50);
    stage.cancel(server);
    stage.machine.call_as(low.thread, Operation::Send, &[server.endpoint, 0]);
    stage.serve(server, server.endpoint);
    let mut x = [0; 13];
    (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE | Tag::ALARM, stage.machine.host().time + 1000);
    stage.machine.run(server.thread);
    stage.machine.system_call(Operation::Receive as u64, &x);
    stage.check();
    assert_eq!(stage.runs_on(server), (5, Some(server.time)));
    stage.machine.pass_time(1000);
    assert_eq!(stage.runs_on(server), (90, Some(server.time)), "its own time has come");
    stage.reply_and_receive(server);
    assert_eq!(stage.machine.thread(server.thread).blockers, 0);
}

#[test]
fn a_deadline_that_is_no_alarm_is_forgotten_when_the_server_receives() {
    for queued in [false, true] {
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
        (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE, stage.machine.host().time + 1000);
        stage.machine.run(server.thread);
        stage.machine.system_call(Operation::ReplyReceive as u64, &x);
        stage.check();
        if !queued {
            stage.call(low, server);
        }
        stage.machine.pass_time(2000);
        stage.check();
        assert_eq!(stage.runs_on(server), (5, Some(low.time)), "queued: {queued}");
        assert!(stage.machine.current() == stage.hog);
    }
}

#[test]
fn an_alarm_survives_what_the_server_waits_for_meanwhile() {
    let mut stage = Stage::new();
    let (server, second, low) = (stage.server(90, true), stage.server(80, true), stage.actor(5));
    stage.cancel(server);
    let mut x = [0; 13];
    (x[0], x[1], x[12]) = (server.endpoint, Tag::DEADLINE | Tag::ALARM, stage.machine.host().time + 1000);
    stage.machine.run(server.thread);
    stage.machine.system_call(Operation::Receive as u64, &x);
    stage.call(low, server);
    stage.call(server, second);
    assert_eq!(stage.runs_on(second), (5, Some(low.time)));
    stage.machine.pass_time(1000);
    assert_eq!(stage.runs_on(second), (90, Some(server.time)), "whoever it waits for hurries, too");
    assert_eq!(stage.state(server), ThreadState::AwaitingReply(stage.reply(second)));
    // The alarm is deleted with its thread.
    stage.manage(Operation::Delete, &[0, server.capability]);
    stage.check();
}
