//! Tests of helping: on whose time and with which priority a server runs while a client waits for it.
//!
//! ```text
//!   high (114) ─┐                                    hog (112): never waits
//!               ├──► outer server (105) ──► inner server (105): works
//!   low  (110) ─┘    busy for the low one
//! ```
//! If the high client did not help, it would wait for as long as the hog runs. Each case that shows that it does not
//! wait has a sister that shows that it would. The main thread (120) runs before all of them. What clients and servers
//! cannot gain by helping is in [`attacks`].

pub mod attacks;

use tench::abi::fault::{Class, reply};
use tench::abi::object::ThreadState;
use tench::println;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Endpoint, Error, Instant, Message, Notification, Rights, SchedulingContext, Wait, time};

use crate::assembly;
use crate::case::{Case, Outcome};
use crate::stage::{HIGH, LOW, PRIORITY, Stage};
use crate::worker::{Equipment, MOMENT, Shared, Worker, pause};

pub const CASES: &[Case] = &[
    Case::new(
        "HLP0001",
        "a high client gets replies from busy servers with time of their own, whatever a hog does",
        active,
    ),
    Case::new("HLP0002", "the same servers without service starve it", active_starve),
    Case::new(
        "HLP0003",
        "a high client gets replies from busy servers on their callers' time, whatever a hog does",
        passive,
    ),
    Case::new("HLP0004", "the same servers without service starve it", passive_starve),
    Case::new("HLP0005", "a busy handler of faults is helped by who faults next", handler),
    Case::new("HLP0006", "the same handler without service starves it", handler_starves),
    Case::new("HLP0007", "a thread serves one endpoint, and an endpoint has one thread", binding),
    Case::new("HLP0008", "who gives up, is suspended or is deleted helps no more", falling_back),
    Case::new("HLP0009", "a server works at what its first waiter has now, and not at its own", changed),
    Case::new("HLP0010", "who waited at an endpoint that goes helps no more", endpoint_gone),
    Case::new("HLP0011", "a server of high priority works at its client's", at_clients),
    Case::new("HLP0012", "what a client has left behind is finished at no higher a priority than his", left_behind),
    Case::new("HLP0013", "a signal to a server makes its own priority count, until it receives", signalled),
    Case::new("HLP0014", "an alarm makes it count while the server works", alarmed),
    Case::new("HLP0015", "two servers that call each other wait, and the end of one frees the other", ring),
    Case::new("HLP0016", "a deadline that is no alarm does not make a server's own priority count", not_alarmed),
];

/// Priorities beside the main thread's.
const SERVER: u64 = LOW - 5;
const HOG: u64 = LOW + 2;
const CLIENT: u64 = LOW + 4;
/// Rounds of the inner server's work for each request.
const ROUNDS: u64 = 20_000;
/// Instructions that a high client's call may take beyond two requests' work.
const ALLOWANCE: u64 = 20_000;

/// Properties of the servers.
#[derive(Clone, Copy)]
struct Shape {
    /// Set if the servers have no time of their own.
    passive: bool,
    /// Set if the servers declare the endpoints that they serve.
    serves: bool,
}

/// A server that runs for ever.
type Serving = Worker<Result<(), Error>>;

/// Spawns a server of an endpoint that waits for its first message.
fn server<F>(stage: &mut Stage, shape: Shape, endpoint: Cap<Endpoint>, body: F) -> Outcome<Serving>
where
    F: FnOnce() -> Result<(), Error> + Copy + 'static,
{
    let priority = (!shape.passive).then_some(SERVER);
    let worker = stage.spawn_with(Equipment { priority, ..Equipment::at(0) }, body)?;
    if shape.passive {
        let setup = stage.make::<SchedulingContext>(0)?;
        setup.configure(HIGH, HIGH, 0, None)?;
        worker.thread.bind(Bindings { scheduling: Binding::To(setup), ..Bindings::KEEP })?;
        worker.thread.bind(Bindings { scheduling: Binding::Unbind, ..Bindings::KEEP })?;
    } else {
        pause(stage)?;
    }
    equal!(worker.state()?, ThreadState::Receiving);
    if shape.serves {
        worker.thread.serve(endpoint, 0)?;
    }
    Ok(worker)
}

/// Waits for the gate, and works.
fn work(gate: Shared) {
    while gate.get() == 0 {
        core::hint::spin_loop();
    }
    for _ in 0..ROUNDS {
        core::hint::spin_loop();
    }
}

/// Replies to every request after some work.
fn reply_to_all(endpoint: Cap<Endpoint>, gate: Shared, label: u64) -> Result<(), Error> {
    let mut received = endpoint.receive(Wait::FOREVER)?;
    loop {
        work(gate);
        received = endpoint.reply_receive(&Message::with_words(label, &[received.badge()]), Wait::FOREVER)?;
    }
}

/// Replies to every request with another endpoint's reply.
fn forward_all(endpoint: Cap<Endpoint>, next: Cap<Endpoint>) -> Result<(), Error> {
    endpoint.receive(Wait::FOREVER)?;
    loop {
        let reply = next.call(&Message::new(2))?;
        endpoint.reply_receive(&Message::new(reply.label()), Wait::FOREVER)?;
    }
}

/// A high client, which returns the instructions that its request took, and the rounds of the hog meanwhile.
type Found = Worker<Result<(u64, u64), Error>>;

/// Lets a low client's request be served; then a hog and a high client begin, which makes a request too. `ask` makes
/// the request of either.
fn contend<F>(stage: &mut Stage, gate: Shared, rounds: Shared, ask: F) -> Outcome<Found>
where
    F: Fn() -> Result<(), Error> + Copy + 'static,
{
    gate.set(0);
    let low = stage.spawn_with(Equipment::at(LOW), ask)?;
    pause(stage)?;
    equal!(low.state()?, ThreadState::AwaitingReply);
    rounds.set(0);
    stage.spawn_with(Equipment::at(HOG), move || {
        loop {
            rounds.fetch_add();
        }
    })?;
    let high = stage.spawn_with(Equipment::at(CLIENT), move || {
        let begin = time::instructions();
        ask()?;
        Ok((time::instructions() - begin, rounds.get()))
    })?;
    // As long as the main thread runs, none of them does.
    gate.set(1);
    Ok(high)
}

/// Makes the chain of two servers, and the high client's call of it. Returns also the instructions of a call without
/// competition.
fn chain(stage: &mut Stage, shape: Shape) -> Outcome<(Found, u64, Shared)> {
    let (outer, inner) = (stage.endpoint()?, stage.endpoint()?);
    let (gate, rounds) = (stage.word(0)?, stage.word(1)?);
    server(stage, shape, inner, move || reply_to_all(inner, gate, 7))?;
    server(stage, shape, outer, move || forward_all(outer, inner))?;
    gate.set(1);
    let begin = time::instructions();
    equal!(outer.call(&Message::new(1))?.label(), 7);
    let alone = time::instructions() - begin;
    let high = contend(stage, gate, rounds, move || outer.call(&Message::new(1)).map(drop))?;
    Ok((high, alone, rounds))
}

fn calls_busy_servers(stage: &mut Stage, passive: bool) -> Outcome {
    let (high, alone, _) = chain(stage, Shape { passive, serves: true })?;
    let (instructions, rounds) = high.join()??;
    equal!(rounds, 0);
    println!("note: helping: {alone} instructions alone, {instructions} behind the low client and beside the hog");
    // The call took the rest of the low client's request, and its own.
    check!(alone > ROUNDS && instructions > alone && instructions < 2 * alone + ALLOWANCE);
    Ok(())
}

fn starves(stage: &mut Stage, passive: bool) -> Outcome {
    let (high, alone, rounds) = chain(stage, Shape { passive, serves: false })?;
    let begin = time::instructions();
    while time::instructions() - begin < 4 * (2 * alone + ALLOWANCE) {
        pause(stage)?;
    }
    equal!(high.state()?, ThreadState::Sending);
    check!(rounds.get() > ROUNDS);
    Ok(())
}

fn active(stage: &mut Stage) -> Outcome {
    calls_busy_servers(stage, false)
}

fn active_starve(stage: &mut Stage) -> Outcome {
    starves(stage, false)
}

fn passive(stage: &mut Stage) -> Outcome {
    calls_busy_servers(stage, true)
}

fn passive_starve(stage: &mut Stage) -> Outcome {
    starves(stage, true)
}

/// Makes the high client's foreign system call, whose handler is busy with the low one's.
fn faults(stage: &mut Stage, serves: bool) -> Outcome<(Found, Shared)> {
    let (endpoint, gate, rounds) = (stage.endpoint()?, stage.word(0)?, stage.word(1)?);
    server(stage, Shape { passive: false, serves }, endpoint, move || reply_to_all(endpoint, gate, reply::RESULT))?;
    let high = contend(stage, gate, rounds, move || {
        tench::thread::current_thread().faults_to(Class::ForeignCall, Some(endpoint))?;
        // SAFETY: the handler changes nothing but the result.
        let _ = unsafe { assembly::foreign(1, 2, 3) };
        Ok(())
    })?;
    Ok((high, rounds))
}

fn handler(stage: &mut Stage) -> Outcome {
    let (high, _) = faults(stage, true)?;
    let (instructions, rounds) = high.join()??;
    equal!(rounds, 0);
    check!(instructions > ROUNDS);
    Ok(())
}

fn handler_starves(stage: &mut Stage) -> Outcome {
    let (high, rounds) = faults(stage, false)?;
    for _ in 0..10 {
        pause(stage)?;
    }
    equal!(high.state()?, ThreadState::Sending);
    check!(rounds.get() > ROUNDS);
    Ok(())
}

fn binding(stage: &mut Stage) -> Outcome {
    let (one, two) = (stage.endpoint()?, stage.endpoint()?);
    let idle = || Equipment { start: false, ..Equipment::at(LOW) };
    let (first, second) = (stage.spawn_with(idle(), || ())?, stage.spawn_with(idle(), || ())?);
    first.thread.serve(one, 0)?;
    refused!(first.thread.serve(two, 0), AlreadyBound);
    refused!(second.thread.serve(one, 0), AlreadyBound);
    let weak = stage.mint(two, Rights::all().difference(Rights::READ), 0)?;
    refused!(second.thread.serve(weak, 0), MissingRights);
    refused!(second.thread.serve(Cap::new(first.reply.address()), 0), WrongType);
    let empty = Cap::new(stage.slot());
    refused!(second.thread.serve(empty, 0), InvalidCapability);
    second.thread.serve(two, 0)?;
    first.thread.stop_serving()?;
    first.thread.stop_serving()?;
    first.thread.serve(one, 0)?;
    // The endpoint lives as long as a thread serves it, and can be served by another when that thread is deleted.
    first.thread.delete()?;
    second.thread.stop_serving()?;
    second.thread.serve(one, 0)?;
    Ok(())
}

/// Makes a server that is busy for a low client until the gate opens.
fn busy(stage: &mut Stage) -> Outcome<(Cap<Endpoint>, Serving)> {
    let (endpoint, gate) = (stage.endpoint()?, stage.word(0)?);
    let shape = Shape { passive: false, serves: true };
    let server = server(stage, shape, endpoint, move || reply_to_all(endpoint, gate, 7))?;
    stage.spawn_with(Equipment::at(LOW), move || endpoint.call(&Message::new(1)).map(drop))?;
    pause(stage)?;
    equal!(server.thread.query()?.priority, LOW);
    Ok((endpoint, server))
}

fn falling_back(stage: &mut Stage) -> Outcome {
    let (endpoint, server) = busy(stage)?;
    let timed = stage.spawn_with(Equipment::at(CLIENT), move || {
        endpoint.call_with(&Message::new(1), Wait::until(Instant::now().after(4 * MOMENT))).map(drop)
    })?;
    pause(stage)?;
    equal!(server.thread.query()?.priority, CLIENT);
    equal!(timed.join()?, Err(Error::TimedOut));
    equal!(server.thread.query()?.priority, LOW);
    let call = move || endpoint.call(&Message::new(1)).map(drop);
    let high = stage.spawn_with(Equipment::at(HOG), call)?;
    pause(stage)?;
    equal!(server.thread.query()?.priority, HOG);
    let higher = stage.spawn_with(Equipment::at(CLIENT), call)?;
    pause(stage)?;
    equal!(server.thread.query()?.priority, CLIENT);
    higher.thread.suspend()?;
    equal!(server.thread.query()?.priority, HOG);
    high.thread.delete()?;
    equal!(server.thread.query()?.priority, LOW);
    Ok(())
}

fn changed(stage: &mut Stage) -> Outcome {
    let (endpoint, server) = busy(stage)?;
    let waiter = stage.spawn_with(Equipment::at(LOW + 1), move || endpoint.call(&Message::new(1)).map(drop))?;
    pause(stage)?;
    equal!(server.thread.query()?.priority, LOW + 1);
    waiter.scheduling.configure(CLIENT, CLIENT, 0, None)?;
    equal!(server.thread.query()?.priority, CLIENT);
    waiter.scheduling.configure(LOW + 3, LOW + 3, 0, None)?;
    equal!(server.thread.query()?.priority, LOW + 3);
    // The server's own priority does not count while it works for a client.
    server.scheduling.configure(PRIORITY - 1, PRIORITY - 1, 0, None)?;
    equal!(server.thread.query()?.priority, LOW + 3);
    waiter.scheduling.configure(LOW - 1, LOW - 1, 0, None)?;
    equal!(server.thread.query()?.priority, LOW);
    Ok(())
}

fn endpoint_gone(stage: &mut Stage) -> Outcome {
    let (endpoint, server) = busy(stage)?;
    let call = move || endpoint.call(&Message::new(1)).map(drop);
    let waiter = stage.spawn_with(Equipment::at(CLIENT), call)?;
    pause(stage)?;
    equal!(server.thread.query()?.priority, CLIENT);
    endpoint.revoke()?;
    equal!(server.thread.query()?.priority, LOW);
    endpoint.delete()?;
    equal!(waiter.join()?, Err(Error::Aborted));
    equal!(server.state()?, ThreadState::Ready);
    Ok(())
}

/// Priority above the hog and the clients, and below the main thread.
const URGENT: u64 = CLIENT + 2;

/// A server of that priority that is busy for a low client until the gate opens, beside a hog that counts.
struct Beside {
    server: Serving,
    client: Worker<Result<u64, Error>>,
    gate: Shared,
    rounds: Shared,
    notification: Cap<Notification>,
}

/// Makes such a server, which receives its first request with a deadline `moments` away.
fn beside(stage: &mut Stage, until: fn(Instant) -> Wait, moments: u64) -> Outcome<Beside> {
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    let (gate, rounds) = (stage.word(0)?, stage.word(1)?);
    let server = stage.spawn_with(Equipment { start: false, ..Equipment::at(URGENT) }, move || {
        endpoint.receive(until(Instant::now().after(moments * MOMENT)))?;
        loop {
            work(gate);
            endpoint.reply_receive(&Message::new(7), Wait::FOREVER)?;
        }
    })?;
    server.thread.bind(Bindings { notification: Binding::To(notification), ..Bindings::KEEP })?;
    server.thread.serve(endpoint, 0)?;
    server.thread.resume()?;
    pause(stage)?;
    let client =
        stage.spawn_with(Equipment::at(LOW), move || endpoint.call(&Message::new(1)).map(|reply| reply.label()))?;
    pause(stage)?;
    equal!((client.state()?, server.thread.query()?.priority), (ThreadState::AwaitingReply, LOW));
    stage.spawn_with(Equipment::at(HOG), move || {
        loop {
            rounds.fetch_add();
        }
    })?;
    Ok(Beside { server, client, gate, rounds, notification })
}

/// A deadline far away, in moments.
const LATER: u64 = 1000;

fn at_clients(stage: &mut Stage) -> Outcome {
    let Beside { server, client, gate, rounds, .. } = beside(stage, Wait::alarm, LATER)?;
    gate.set(1);
    let before = rounds.get();
    for _ in 0..20 {
        pause(stage)?;
    }
    // The work takes a small part of that time, but the hog runs before the low client's request.
    equal!((client.state()?, server.thread.query()?.priority), (ThreadState::AwaitingReply, LOW));
    check!(rounds.get() > before + ROUNDS);
    client.scheduling.configure(CLIENT, CLIENT, 0, None)?;
    equal!(client.join()?, Ok(7));
    equal!((server.state()?, server.thread.query()?.priority), (ThreadState::Receiving, URGENT));
    Ok(())
}

fn left_behind(stage: &mut Stage) -> Outcome {
    let Beside { server, client, gate, rounds, .. } = beside(stage, Wait::alarm, LATER)?;
    client.thread.delete()?;
    equal!(server.thread.query()?.priority, LOW);
    gate.set(1);
    let before = (rounds.get(), server.scheduling.query()?.consumed);
    pause(stage)?;
    check!(rounds.get() > before.0);
    equal!((server.state()?, server.scheduling.query()?.consumed), (ThreadState::Ready, before.1));
    Ok(())
}

/// Checks that the server's own priority counts until it receives; then its work for the client is done.
fn counts(stage: &mut Stage, beside: &Beside) -> Outcome {
    equal!(beside.server.thread.query()?.priority, URGENT);
    beside.gate.set(1);
    for _ in 0..3 {
        pause(stage)?;
    }
    equal!((beside.server.state()?, beside.server.thread.query()?.priority), (ThreadState::Receiving, URGENT));
    // The client has got its reply, and cannot run beside the hog.
    equal!((beside.client.state()?, beside.client.has_ended()), (ThreadState::Ready, false));
    Ok(())
}

fn signalled(stage: &mut Stage) -> Outcome {
    let beside = beside(stage, Wait::alarm, LATER)?;
    beside.notification.signal()?;
    // The server receives the signal, and then waits for the next message.
    counts(stage, &beside)
}

fn alarmed(stage: &mut Stage) -> Outcome {
    let beside = beside(stage, Wait::alarm, 8)?;
    equal!(beside.server.thread.query()?.priority, LOW);
    for _ in 0..8 {
        pause(stage)?;
    }
    counts(stage, &beside)
}

fn not_alarmed(stage: &mut Stage) -> Outcome {
    let beside = beside(stage, Wait::until, 8)?;
    for _ in 0..16 {
        pause(stage)?;
    }
    equal!((beside.server.state()?, beside.server.thread.query()?.priority), (ThreadState::Ready, LOW));
    Ok(())
}

fn ring(stage: &mut Stage) -> Outcome {
    let (one, two) = (stage.endpoint()?, stage.endpoint()?);
    // To serve its caller, each of them calls the other.
    let start = |stage: &mut Stage, own: Cap<Endpoint>, other: Cap<Endpoint>| -> Outcome<Serving> {
        let worker = stage.spawn(move || {
            own.receive(Wait::FOREVER)?;
            let result = other.call(&Message::new(1)).map(drop);
            own.reply_receive(&Message::new(2), Wait::FOREVER)?;
            result
        })?;
        worker.thread.serve(own, 0)?;
        Ok(worker)
    };
    let (first, second) = (start(stage, one, two)?, start(stage, two, one)?);
    let client = stage.spawn_with(Equipment::at(LOW), move || one.call(&Message::new(1)).map(|reply| reply.label()))?;
    pause(stage)?;
    equal!((first.state()?, second.state()?), (ThreadState::AwaitingReply, ThreadState::Sending));
    equal!(client.state()?, ThreadState::AwaitingReply);
    let higher =
        stage.spawn_with(Equipment::at(CLIENT), move || one.call(&Message::new(1)).map(|reply| reply.label()))?;
    pause(stage)?;
    equal!((first.state()?, higher.state()?), (ThreadState::AwaitingReply, ThreadState::Sending));
    second.thread.delete()?;
    second.reply.delete()?;
    // The first server is notified, replies, and receives the next request.
    equal!(client.join()?, Ok(2));
    Ok(())
}
