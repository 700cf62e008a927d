//! Tests of what callers and servers cannot gain by helping: priority, time, a deadline that does not expire, memory,
//! other messages' words.

use tench::abi::fault::Registers;
use tench::abi::layout::slot;
use tench::abi::object::ThreadState;
use tench::abi::{Kind, Operation, Tag};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, CapAddress, Endpoint, Error, Frame, Instant, Message, SchedulingContext, Thread, Untyped, Wait};

use super::{CLIENT, HOG, SERVER, Serving};
use crate::assembly;
use crate::case::{Case, Outcome};
use crate::space::{self, RW};
use crate::stage::{HIGH, LOW, Stage, identify};
use crate::worker::{Equipment, MOMENT, Worker, patience, pause, soon};

pub const CASES: &[Case] = &[
    Case::new("HLP0020", "nobody gives a priority that his own context cannot, whoever calls him", authority),
    Case::new("HLP0021", "a caller's deadline holds, whether or not the server has time of its own", deadline),
    Case::new("HLP0022", "a server that works for ever takes its client's budget, and no more", endless),
    Case::new(
        "HLP0023",
        "a context that goes during a call is forgotten, and its memory is not written to",
        context_gone,
    ),
    Case::new("HLP0024", "so is one that a chain of servers runs on", context_gone_from_chain),
    Case::new("HLP0025", "of a message whose buffer goes while it waits the words in registers arrive", buffer_gone),
    Case::new("HLP0026", "many deadlines at one time delay nobody of a higher priority", many_deadlines),
    Case::new("HLP0027", "a server is called, and nothing is sent to it that nobody would pay for", sent),
    Case::new("HLP0028", "what a limited client leaves behind takes time only that nobody else wants", given_up),
    Case::new("HLP0029", "who brings a chain of threads keeps no server from helping the next for others", chained),
];

/// Spawns a server, with a scheduling context of its own or not, that waits for its first message and then runs `body`.
fn server<F, T>(stage: &mut Stage, priority: Option<u64>, body: F) -> Outcome<Worker<T>>
where
    F: FnOnce() -> T + Copy + 'static,
    T: Copy + 'static,
{
    let worker = stage.spawn_with(Equipment { priority, ..Equipment::at(0) }, body)?;
    if priority.is_none() {
        let setup = stage.make::<SchedulingContext>(0)?;
        setup.configure(HIGH, HIGH, 0, None)?;
        worker.thread.bind(Bindings { scheduling: Binding::To(setup), ..Bindings::KEEP })?;
        worker.thread.bind(Bindings { scheduling: Binding::Unbind, ..Bindings::KEEP })?;
    } else {
        pause(stage)?;
    }
    equal!(worker.state()?, ThreadState::Receiving);
    Ok(worker)
}

fn authority(stage: &mut Stage) -> Outcome {
    for priority in [None, Some(LOW)] {
        let (endpoint, spoils) = (stage.endpoint()?, stage.make::<SchedulingContext>(0)?);
        let server = server(stage, priority, move || -> Result<[Result<(), Error>; 2], Error> {
            endpoint.receive(Wait::FOREVER)?;
            let tries = [spoils.configure(0, HIGH, 0, None), spoils.configure(HIGH, 0, 0, None)];
            tench::sys::ipc::BOUND_REPLY.reply(&Message::new(1))?;
            Ok(tries)
        })?;
        let client = stage.spawn(move || endpoint.call(&Message::new(1)).map(drop))?;
        equal!(client.join()?, Ok(()));
        if priority.is_none() {
            // The server has replied, and cannot go on without time.
            let own = stage.make::<SchedulingContext>(0)?;
            own.configure(HIGH, 0, 0, None)?;
            server.thread.bind(Bindings { scheduling: Binding::To(own), ..Bindings::KEEP })?;
        }
        equal!(server.join()?, Ok([Err(Error::PriorityTooHigh); 2]));
        equal!((spoils.query()?.priority, spoils.query()?.ceiling), (0, 0));
    }
    Ok(())
}

fn deadline(stage: &mut Stage) -> Outcome {
    for priority in [None, Some(LOW)] {
        let (endpoint, never) = (stage.endpoint()?, stage.notification()?);
        server(stage, priority, move || -> Result<u64, Error> {
            endpoint.receive(Wait::FOREVER)?;
            never.wait()
        })?;
        let caller = stage.spawn(move || {
            let deadline = soon();
            let result = endpoint.call_with(&Message::new(1), Wait::until(deadline)).map(drop);
            (result, Instant::now().since(deadline))
        })?;
        let (result, late) = caller.join()?;
        equal!(result, Err(Error::TimedOut));
        check!(late < MOMENT / 10);
    }
    Ok(())
}

fn endless(stage: &mut Stage) -> Outcome {
    const BUDGET: u64 = MOMENT / 50;
    const MOMENTS: u64 = 40;
    let (endpoint, rounds) = (stage.endpoint()?, stage.word(0)?);
    let server: Serving = server(stage, Some(SERVER), move || {
        endpoint.receive(Wait::FOREVER)?;
        loop {
            core::hint::spin_loop();
        }
    })?;
    server.thread.serve(endpoint, 0)?;
    let hog = stage.spawn_with(Equipment::at(HOG), move || {
        loop {
            rounds.fetch_add();
        }
    })?;
    let client = stage.spawn_with(Equipment { start: false, ..Equipment::at(CLIENT) }, move || {
        endpoint.call(&Message::new(1)).map(drop)
    })?;
    client.scheduling.reserve(BUDGET, MOMENT, None)?;
    // A second client of this kind waits too, and helps as far as it may.
    let other = stage.spawn_with(Equipment { start: false, ..Equipment::at(CLIENT + 1) }, move || {
        endpoint.call(&Message::new(1)).map(drop)
    })?;
    other.scheduling.reserve(BUDGET, MOMENT, None)?;
    let start = Instant::now();
    client.thread.resume()?;
    pause(stage)?;
    other.thread.resume()?;
    for _ in 1..MOMENTS {
        pause(stage)?;
    }
    let passed = Instant::now().since(start);
    equal!((client.state()?, other.state()?), (ThreadState::AwaitingReply, ThreadState::Sending));
    for helper in [client.scheduling, other.scheduling] {
        let consumed = helper.query()?.consumed;
        check!(consumed > BUDGET && consumed <= (passed / MOMENT + 2) * BUDGET);
    }
    check!(hog.scheduling.query()?.consumed > passed * 9 / 10);
    Ok(())
}

fn given_up(stage: &mut Stage) -> Outcome {
    const BUDGET: u64 = MOMENT / 50;
    const MOMENTS: u64 = 40;
    let (endpoint, rounds, replies) = (stage.endpoint()?, stage.word(0)?, stage.word(0)?);
    let server: Serving = server(stage, Some(SERVER), move || {
        loop {
            endpoint.receive(Wait::FOREVER)?;
            // Ten times as long as the client's budget lasts.
            let until = Instant::now().after(10 * BUDGET);
            while Instant::now() < until {}
            replies.fetch_add();
            // A client that gave up gets no reply.
            let _ = tench::sys::ipc::BOUND_REPLY.reply(&Message::new(1));
        }
    })?;
    server.thread.serve(endpoint, 0)?;
    let hog = stage.spawn_with(Equipment::at(HOG), move || {
        loop {
            rounds.fetch_add();
        }
    })?;
    let client =
        stage.spawn_with(Equipment { start: false, ..Equipment::at(CLIENT) }, move || -> Result<(), Error> {
            loop {
                let brief = Instant::now().after(BUDGET / 10);
                let _ = endpoint.call_with(&Message::new(1), Wait::until(brief));
            }
        })?;
    client.scheduling.reserve(BUDGET, MOMENT, None)?;
    let start = Instant::now();
    client.thread.resume()?;
    for _ in 0..MOMENTS {
        pause(stage)?;
    }
    let passed = Instant::now().since(start);
    let paid = client.scheduling.query()?.consumed;
    check!(paid > BUDGET && paid <= (passed / MOMENT + 2) * BUDGET);
    check!(hog.scheduling.query()?.consumed > passed * 9 / 10);
    // When the hog is suspended, the abandoned work is finished.
    hog.thread.suspend()?;
    client.thread.suspend()?;
    let before = replies.get();
    pause(stage)?;
    check!(replies.get() > before);
    equal!((server.state()?, server.thread.query()?.priority), (ThreadState::Receiving, SERVER));
    Ok(())
}

/// Threads of a client that call each other before the last calls a server: as many as may help.
const CHAIN: usize = 4;

fn chained(stage: &mut Stage) -> Outcome {
    let (first, second) = (stage.endpoint()?, stage.endpoint()?);
    // Both serve for ever; the second takes longer.
    let serving: Serving = server(stage, Some(SERVER), move || {
        loop {
            second.receive(Wait::FOREVER)?;
            let until = Instant::now().after(2 * MOMENT);
            while Instant::now() < until {}
            tench::sys::ipc::BOUND_REPLY.reply(&Message::new(1))?;
        }
    })?;
    serving.thread.serve(second, 0)?;
    let serving: Serving = server(stage, Some(SERVER), move || {
        loop {
            first.receive(Wait::FOREVER)?;
            second.call(&Message::new(1))?;
            tench::sys::ipc::BOUND_REPLY.reply(&Message::new(1))?;
        }
    })?;
    serving.thread.serve(first, 1)?;
    let mut next = first;
    for _ in 1..CHAIN {
        let own = stage.endpoint()?;
        let serving: Serving = server(stage, Some(SERVER), move || {
            own.receive(Wait::FOREVER)?;
            next.call(&Message::new(1)).map(drop)
        })?;
        serving.thread.serve(own, 0)?;
        next = own;
    }
    stage.spawn(move || next.call(&Message::new(1)).map(drop))?;
    pause(stage)?;
    stage.spawn_with(Equipment::at(HOG), || {
        loop {
            core::hint::spin_loop();
        }
    })?;
    let client = stage.spawn_with(Equipment::at(CLIENT), move || {
        first.call_with(&Message::new(1), Wait::until(patience())).map(drop)
    })?;
    equal!(client.join()?, Ok(()));
    Ok(())
}

/// Lets a client whose scheduling context lies in memory of its own call the first of `length` servers without time,
/// each of which calls the next. During the call the context is deleted, and its memory becomes a frame, into which the
/// kernel may not write any more.
fn lose_context(stage: &mut Stage, length: usize, unbind: bool) -> Outcome {
    let endpoints = [stage.endpoint()?, stage.endpoint()?, stage.endpoint()?];
    let mut servers = [None; 3];
    for index in (0..length).rev() {
        let (own, next) = (endpoints[index], (index + 1 < length).then(|| endpoints[index + 1]));
        let never = stage.notification()?;
        servers[index] = Some(server(stage, None, move || -> Result<u64, Error> {
            own.receive(Wait::FOREVER)?;
            match next {
                Some(next) => next.call(&Message::new(1)).map(|reply| reply.label()),
                None => never.wait(),
            }
        })?);
    }
    let memory = stage.make::<Untyped>(12)?;
    let slot = stage.slot();
    let context = memory.retype::<SchedulingContext>(0, slot)?;
    context.configure(HIGH, HIGH, 0, None)?;
    let first = endpoints[0];
    let equipment = Equipment { priority: None, start: false, ..Equipment::at(0) };
    let client = stage.spawn_with(equipment, move || first.call(&Message::new(1)).map(|reply| reply.label()))?;
    client.thread.bind(Bindings { scheduling: Binding::To(context), ..Bindings::KEEP })?;
    client.thread.resume()?;
    equal!(client.state()?, ThreadState::AwaitingReply);
    if unbind {
        client.thread.bind(Bindings { scheduling: Binding::Unbind, ..Bindings::KEEP })?;
    }
    memory.revoke()?;
    let frame = memory.retype::<Frame>(12, slot)?;
    let tables = stage.tables()?;
    stage.map(frame, tables.level3, 0, RW)?;
    for server in servers.into_iter().flatten().rev() {
        equal!(server.thread.query()?.priority, 0);
        server.reply.reply(&Message::new(9))?;
    }
    let is_clean = (0..512).all(|word| space::read(space::BASE + 8 * word) == 0);
    check!(is_clean);
    equal!((client.state()?, client.thread.query()?.priority), (ThreadState::Ready, 0));
    let another = stage.make::<SchedulingContext>(0)?;
    another.configure(HIGH, HIGH, 0, None)?;
    client.thread.bind(Bindings { scheduling: Binding::To(another), ..Bindings::KEEP })?;
    equal!(client.join()?, Ok(9));
    Ok(())
}

fn context_gone(stage: &mut Stage) -> Outcome {
    lose_context(stage, 1, false)?;
    stage.clear()?;
    lose_context(stage, 1, true)
}

fn context_gone_from_chain(stage: &mut Stage) -> Outcome {
    lose_context(stage, 3, false)?;
    stage.clear()?;
    lose_context(stage, 3, true)
}

/// Content of the first message, which the sender of the second must not see.
const SECRET: u64 = 0x5ec2_e700;

/// Spawns a sender of twenty words.
fn sender(stage: &mut Stage, endpoint: Cap<Endpoint>, word: u64) -> Outcome<Worker<Result<(), Error>>> {
    stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
        endpoint.send(&Message::with_words(1, &[word; 20]), Wait::FOREVER)
    })
}

fn buffer_gone(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    sender(stage, endpoint, SECRET)?.thread.resume()?;
    equal!(endpoint.receive(Wait::until(patience()))?.words(), &[SECRET; 20]);
    let (memory, slot) = (stage.make::<Untyped>(12)?, stage.slot());
    let frame = memory.retype::<Frame>(12, slot)?;
    let second = sender(stage, endpoint, 1)?;
    second.thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), Some((frame, 0)))?;
    second.thread.resume()?;
    equal!(second.state()?, ThreadState::Sending);
    memory.revoke()?;
    equal!(identify(slot)?.kind, Kind::Null);
    equal!(endpoint.receive(Wait::until(patience()))?.words(), &[1; 8]);
    equal!(second.join()?, Ok(()));
    Ok(())
}

/// Spawns a thread that executes what `registers` say. No capability to its context is left; the context's slot `spare`
/// is empty again.
fn sleeper(stage: &mut Stage, registers: &mut Registers, spare: CapAddress) -> Outcome<Cap<Thread>> {
    let thread = stage.make::<Thread>(0)?;
    let context = stage.pool.retype::<SchedulingContext>(0, spare)?;
    context.configure(LOW, 0, 0, None)?;
    thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), None)?;
    thread.bind(Bindings { scheduling: Binding::To(context), ..Bindings::KEEP })?;
    context.delete()?;
    registers.x[19] = u64::from(thread.address().0);
    // SAFETY: the thread is new; it makes two system calls, and needs no stack.
    unsafe { thread.write_registers(registers, true) }?;
    Ok(thread)
}

fn many_deadlines(stage: &mut Stage) -> Outcome {
    /// Number of sleepers: as many as there are slots for.
    const SLEEPERS: usize = 220;
    /// Ticks for which the high-priority thread may be kept from running: three and a half microseconds.
    const LONGEST: u64 = 220;
    let (never, spare) = (stage.notification()?, stage.slot());
    let deadline = Instant::now().after(150 * MOMENT);
    let mut registers = Registers::ZERO;
    registers.pc = assembly::once as *const () as u64;
    registers.x[0] = u64::from(never.address().0);
    registers.x[1] = Tag::DEADLINE;
    registers.x[10] = Operation::Receive as u64;
    registers.x[12] = deadline.ticks();
    registers.x[20] = Operation::ThreadSuspend as u64;
    let mut sleepers = [None; SLEEPERS];
    for slot in &mut sleepers {
        *slot = Some(sleeper(stage, &mut registers, spare)?);
    }
    pause(stage)?;
    check!(Instant::now() < deadline);
    let observer = stage.spawn_with(Equipment::at(180), move || {
        let (mut last, mut longest) = (Instant::now(), 0);
        while last < deadline.after(20 * MOMENT) {
            let now = Instant::now();
            longest = now.since(last).max(longest);
            last = now;
        }
        longest
    })?;
    let longest = observer.join()?;
    tench::println!(
        "note: helping: {SLEEPERS} deadlines kept one of high priority from running for {longest} ticks at most"
    );
    check!(longest <= LONGEST);
    for _ in 0..5 {
        pause(stage)?;
    }
    for sleeper in sleepers.into_iter().flatten() {
        equal!(sleeper.query()?.state, ThreadState::Suspended);
    }
    Ok(())
}

/// Tests that a server refuses sends without a call, both while it waits and while it works for a caller.
fn sent(stage: &mut Stage) -> Outcome {
    let (endpoint, rounds) = (stage.endpoint()?, stage.word(0)?);
    let server: Serving = server(stage, Some(CLIENT), move || {
        endpoint.receive(Wait::FOREVER)?;
        loop {
            rounds.fetch_add();
        }
    })?;
    server.thread.serve(endpoint, 0)?;
    pause(stage)?;
    refused!(endpoint.send(&Message::new(1), Wait::FOREVER), CallsOnly);
    refused!(endpoint.try_send(&Message::new(1)), CallsOnly);
    equal!(server.state()?, ThreadState::Receiving);
    let client = stage.spawn_with(Equipment::at(SERVER), move || endpoint.call(&Message::new(1)).map(drop))?;
    pause(stage)?;
    equal!((server.state()?, server.thread.query()?.priority), (ThreadState::Ready, SERVER));
    check!(rounds.get() > 0);
    // No send waits behind the server's work either.
    refused!(endpoint.send(&Message::new(1), Wait::until(patience())), CallsOnly);
    equal!(client.state()?, ThreadState::AwaitingReply);
    Ok(())
}
