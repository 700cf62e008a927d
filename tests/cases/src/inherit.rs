//! Priority inheritance: who runs while a server that somebody waits for is busy for somebody else.
//!
//! ```text
//!   high (114) ─┐                                    hog (112): never waits
//!               ├──► outer server (105) ──► inner server (105): works
//!   low  (110) ─┘    busy for the low one
//! ```
//! Without inheritance the high client waits for as long as the hog runs. Each case that shows that it does not has a sister that
//! shows that it would. The main thread (120) runs before all of them.

use tench::abi::fault::{Class, answer};
use tench::abi::object::ThreadState;
use tench::println;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Endpoint, Error, Instant, Message, Rights, SchedulingContext, Wait, time};

use crate::assembly;
use crate::case::{Case, Outcome};
use crate::stage::{HIGH, LOW, PRIORITY, Stage};
use crate::worker::{Equipment, MOMENT, Shared, Worker, pause};

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "INH0001",
        "a high client is answered by busy servers with time of their own, whatever a hog does",
        active,
    ),
    Case::new("INH0002", "the same servers without service starve it", active_starve),
    Case::new(
        "INH0003",
        "a high client is answered by busy servers on their callers' time, whatever a hog does",
        passive,
    ),
    Case::new("INH0004", "the same servers without service starve it", passive_starve),
    Case::new("INH0005", "a busy handler of faults runs at the priority of who faults next", handler),
    Case::new("INH0006", "the same handler without service starves it", handler_starves),
    Case::new("INH0007", "a thread serves one endpoint, and an endpoint has one thread", binding),
    Case::new("INH0008", "a server falls back when who waits gives up, is suspended or is deleted", falling_back),
    Case::new("INH0009", "a change of the priority of who waits is passed on", changed),
    Case::new("INH0010", "a server stops inheriting when its endpoint goes", endpoint_gone),
];

/// Priorities beside the main thread's.
const SERVER: u64 = LOW - 5;
const HOG: u64 = LOW + 2;
const CLIENT: u64 = LOW + 4;
/// Rounds of the inner server's work for each request.
const ROUNDS: u64 = 20_000;
/// Instructions that a high client's call may take beyond two requests' work.
const ALLOWANCE: u64 = 20_000;

/// What the servers are like.
#[derive(Clone, Copy)]
struct Shape {
    /// Without time of their own.
    passive: bool,
    /// They say what they serve.
    serves: bool,
}

/// A server for ever.
type Serving = Worker<Result<(), Error>>;

/// A server of an endpoint that waits for its first message.
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
        worker.thread.serve(Some(endpoint))?;
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

/// Answers every request after some work.
fn answer_all(endpoint: Cap<Endpoint>, gate: Shared, label: u64) -> Result<(), Error> {
    let mut received = endpoint.receive(Wait::FOREVER)?;
    loop {
        work(gate);
        received = endpoint.reply_receive(&Message::with_words(label, &[received.badge()]), Wait::FOREVER)?;
    }
}

/// Answers every request with what another endpoint answers.
fn forward_all(endpoint: Cap<Endpoint>, next: Cap<Endpoint>) -> Result<(), Error> {
    endpoint.receive(Wait::FOREVER)?;
    loop {
        let answer = next.call(&Message::new(2))?;
        endpoint.reply_receive(&Message::new(answer.label()), Wait::FOREVER)?;
    }
}

/// What a high client found: instructions that its request took, and rounds of the hog meanwhile.
type Found = Worker<Result<(u64, u64), Error>>;

/// A low client asks and is being served; a hog and a high client begin, which asks, too. `ask` makes the request of either.
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

/// The chain of two servers, and the high client's call of it. Answers what a call takes if nobody else is there, too.
fn chain(stage: &mut Stage, shape: Shape) -> Outcome<(Found, u64, Shared)> {
    let (outer, inner) = (stage.endpoint()?, stage.endpoint()?);
    let (gate, rounds) = (stage.word(0)?, stage.word(1)?);
    server(stage, shape, inner, move || answer_all(inner, gate, 7))?;
    server(stage, shape, outer, move || forward_all(outer, inner))?;
    gate.set(1);
    let begin = time::instructions();
    equal!(outer.call(&Message::new(1))?.label(), 7);
    let alone = time::instructions() - begin;
    let high = contend(stage, gate, rounds, move || outer.call(&Message::new(1)).map(drop))?;
    Ok((high, alone, rounds))
}

fn answered(stage: &mut Stage, passive: bool) -> Outcome {
    let (high, alone, _) = chain(stage, Shape { passive, serves: true })?;
    let (instructions, rounds) = high.join()??;
    equal!(rounds, 0);
    println!("note: inherit: {alone} instructions alone, {instructions} behind the low client and beside the hog");
    // What was left of the low client's request, and its own.
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
    answered(stage, false)
}

fn active_starve(stage: &mut Stage) -> Outcome {
    starves(stage, false)
}

fn passive(stage: &mut Stage) -> Outcome {
    answered(stage, true)
}

fn passive_starve(stage: &mut Stage) -> Outcome {
    starves(stage, true)
}

/// The high client's foreign system call, for which the handler works that is busy with the low one's.
fn faults(stage: &mut Stage, serves: bool) -> Outcome<(Found, Shared)> {
    let (endpoint, gate, rounds) = (stage.endpoint()?, stage.word(0)?, stage.word(1)?);
    server(stage, Shape { passive: false, serves }, endpoint, move || answer_all(endpoint, gate, answer::RESULT))?;
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
    first.thread.serve(Some(one))?;
    refused!(first.thread.serve(Some(two)), AlreadyBound);
    refused!(second.thread.serve(Some(one)), AlreadyBound);
    let weak = stage.mint(two, Rights::all().difference(Rights::READ), 0)?;
    refused!(second.thread.serve(Some(weak)), MissingRights);
    refused!(second.thread.serve(Some(Cap::new(first.reply.address()))), WrongType);
    let empty = Cap::new(stage.slot());
    refused!(second.thread.serve(Some(empty)), InvalidCapability);
    second.thread.serve(Some(two))?;
    first.thread.serve(None)?;
    first.thread.serve(None)?;
    first.thread.serve(Some(one))?;
    // The endpoint lives as long as a thread serves it, and can be served by another when that has gone.
    first.thread.delete()?;
    second.thread.serve(None)?;
    second.thread.serve(Some(one))?;
    Ok(())
}

/// A server that is busy for a low client until the gate opens.
fn busy(stage: &mut Stage) -> Outcome<(Cap<Endpoint>, Serving)> {
    let (endpoint, gate) = (stage.endpoint()?, stage.word(0)?);
    let shape = Shape { passive: false, serves: true };
    let server = server(stage, shape, endpoint, move || answer_all(endpoint, gate, 7))?;
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
    equal!(server.thread.query()?.priority, CLIENT);
    // Its own counts if that is higher; and what waits if that falls.
    server.scheduling.configure(PRIORITY - 1, PRIORITY - 1, 0, None)?;
    equal!(server.thread.query()?.priority, PRIORITY - 1);
    server.scheduling.configure(SERVER, SERVER, 0, None)?;
    equal!(server.thread.query()?.priority, LOW + 3);
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
