//! Rings of threads that wait for each other, and that arise without any thread beginning to wait: a caller that was
//! set aside becomes the current caller again, because the server loses the reply object with which it received later.

use std::sync::mpsc;
use std::time::Duration;

use tench_abi::fault::Class;
use tench_abi::{Kind, Operation};
use tench_kernel::thread::ThreadState;

use super::actors::Stage;

/// The way in which a server loses the reply object with which it has received last.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Deleted,
    Bound,
    Received,
}

/// Lets a server set its caller aside, and then wait for that caller at the endpoint that the caller serves; the
/// server's context has the higher priority. When the caller becomes current again, each helps the other.
fn ring(loss: Loss, urgent: bool) {
    let mut stage = Stage::new();
    let (server, caller, third) = (stage.server(100, true), stage.actor(50), stage.server(100, false));
    let back = stage.make(Kind::Endpoint);
    stage.serve(caller, back);
    let (deferred, notification) = (stage.make(Kind::Reply), stage.make(Kind::Notification));
    stage.cancel(server);
    stage.manage(Operation::ThreadBind, &[server.capability, 0, 0, notification]);
    stage.machine.call_as(server.thread, Operation::Receive, &[server.endpoint, 0]);
    stage.call(caller, server);
    stage.receive_with(server, Operation::Receive, deferred);
    stage.cancel(server);
    stage.machine.call_as(server.thread, Operation::Call, &[back, 0]);
    stage.check();
    assert!(matches!(stage.state(server), ThreadState::Sending(_)));
    if urgent {
        stage.manage(Operation::Signal, &[notification]);
    }
    match loss {
        Loss::Deleted => stage.manage(Operation::Delete, &[0, deferred]),
        Loss::Bound => {
            let idle = stage.actor(20);
            stage.manage(Operation::ThreadBind, &[idle.capability, 0, tench_abi::layout::UNBIND, 0]);
            stage.manage(Operation::ThreadBind, &[idle.capability, 0, deferred, 0]);
        }
        Loss::Received => {
            stage.cancel(third);
            stage.receive_with(third, Operation::Receive, deferred);
        }
    }
    stage.check();
}

/// Makes a ring of `length` threads, each of which is the caller of the next; the last waits at the endpoint that the
/// first serves. The first has a lower priority than the others, and the last has a signal of its own.
fn long_ring(length: usize) {
    let mut stage = Stage::new();
    let first = stage.server(10, true);
    let others: Vec<_> = (1..length).map(|_| stage.server(50, true)).collect();
    let last = others[length - 2];
    let notification = stage.make(Kind::Notification);
    stage.cancel(last);
    stage.manage(Operation::ThreadBind, &[last.capability, 0, 0, notification]);
    stage.machine.call_as(last.thread, Operation::Receive, &[last.endpoint, 0]);
    stage.cancel(first);
    stage.call(first, others[0]);
    for pair in others.windows(2) {
        stage.call(pair[0], pair[1]);
    }
    stage.call(last, first);
    stage.manage(Operation::Signal, &[notification]);
    stage.check();
}

/// Lets a thread report its used-up budget to a handler, which it then no longer helps. It helps again as soon as it
/// runs on another context, because the handler itself waits at the endpoint that the thread serves.
fn report_ring(urgent: bool) {
    let mut stage = Stage::new();
    let (handler, client) = (stage.server(100, true), stage.actor(50));
    let (back, notification) = (stage.make(Kind::Endpoint), stage.make(Kind::Notification));
    stage.serve(client, back);
    stage.cancel(handler);
    stage.manage(Operation::ThreadBind, &[handler.capability, 0, 0, notification]);
    stage.machine.call_as(handler.thread, Operation::Receive, &[handler.endpoint, 0]);
    stage.manage(Operation::SchedulingReserve, &[client.time, 100, 10_000, 0]);
    stage.manage(Operation::ThreadFaults, &[client.capability, Class::Timeout as u64, handler.endpoint, 0, 0]);
    stage.machine.run(client.thread);
    stage.machine.pass_time(200);
    stage.machine.reschedule();
    stage.check();
    assert_eq!(stage.state(client), ThreadState::AwaitingReply(stage.reply(handler)));
    if urgent {
        stage.manage(Operation::Signal, &[notification]);
    }
    stage.machine.call_as(handler.thread, Operation::Call, &[back, 0]);
    stage.check();
}

/// Runs works that have to end. Returns those that do not, or that panic.
fn endless(works: impl IntoIterator<Item = (String, Box<dyn FnOnce() + Send>)>) -> Vec<String> {
    let wrong = works.into_iter().filter_map(|(what, work)| {
        let (sender, receiver) = mpsc::channel();
        let work = std::thread::spawn(move || {
            work();
            let _ = sender.send(());
        });
        match receiver.recv_timeout(Duration::from_secs(5)) {
            Ok(()) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => Some(format!("the kernel does not come back: {what}")),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let why = work.join().err().and_then(|why| why.downcast::<String>().ok()).unwrap_or_default();
                Some(format!("{what}: {why}"))
            }
        }
    });
    wrong.collect()
}

#[test]
fn a_caller_who_comes_back_closes_no_ring() {
    let cases = [Loss::Deleted, Loss::Bound, Loss::Received].into_iter().flat_map(|loss| [(loss, false), (loss, true)]);
    let works = cases.map(|(loss, urgent)| {
        let work: Box<dyn FnOnce() + Send> = Box::new(move || ring(loss, urgent));
        (format!("{loss:?}, urgent: {urgent}"), work)
    });
    assert_eq!(endless(works), Vec::<String>::new());
}

#[test]
fn a_long_ring_is_resolved_in_the_end() {
    let works = (2..16).map(|length| {
        let work: Box<dyn FnOnce() + Send> = Box::new(move || long_ring(length));
        (format!("{length} threads"), work)
    });
    assert_eq!(endless(works), Vec::<String>::new());
}

#[test]
fn a_budget_report_closes_no_cycle() {
    let works = [false, true].map(|urgent| {
        let work: Box<dyn FnOnce() + Send> = Box::new(move || report_ring(urgent));
        (format!("urgent: {urgent}"), work)
    });
    assert_eq!(endless(works), Vec::<String>::new());
}

/// Checks threads that wait at endpoints that no thread serves, each of which then begins to serve the endpoint at
/// which the next waits.
#[test]
fn a_thread_that_starts_to_serve_while_it_waits_makes_no_long_chain() {
    for length in [3, 8] {
        let mut stage = Stage::new();
        let endpoints: Vec<_> = (0..=length).map(|_| stage.make(Kind::Endpoint)).collect();
        let threads: Vec<_> = (0..=length).map(|_| stage.actor(50)).collect();
        for (thread, endpoint) in threads.iter().zip(&endpoints) {
            stage.machine.call_as(thread.thread, Operation::Call, &[*endpoint, 0]);
            stage.check();
        }
        for (server, endpoint) in threads[1..].iter().zip(&endpoints) {
            stage.serve(*server, *endpoint);
        }
        assert!(
            threads.iter().all(|thread| stage.machine.thread(thread.thread).height <= 1),
            "each waits without helping"
        );
    }
}
