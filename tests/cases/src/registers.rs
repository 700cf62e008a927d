//! Tests that registers survive whatever happens to a thread.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use tench::abi::fault::{Class, FloatRegisters, ForeignCall, Registers, Report, STEP_CLASS, reply};
use tench::abi::object::ThreadState;
use tench::abi::{Operation, Tag};
use tench::sys::{Cap, Endpoint, Error, Message, Received, Thread, Wait, block, ipc::BOUND_REPLY, thread::yield_now};

use crate::assembly::{self, dump_vectors, fill_vectors, probe};
use crate::case::{Case, Failure, Outcome};
use crate::stage::{HIGH, LOW, Stage};
use crate::worker::{Equipment, MOMENT, patience, pause};

pub const CASES: &[Case] = &[
    Case::new(
        "REG0001",
        "a system call preserves x19 to x30, stack and thread pointer, and clears the rest",
        null_call,
    ),
    Case::new("REG0002", "a call and its reply preserve x19 to x30, stack and thread pointer", call),
    Case::new("REG0003", "a fault preserves every register when it is resumed", fault),
    Case::new("REG0004", "a foreign system call preserves every register but its result", foreign),
    Case::new("REG0005", "interrupts preserve every register", interrupts),
    Case::new("REG0006", "a new thread's vector registers are zero", vectors_begin),
    Case::new("REG0007", "vector registers survive system calls and switches", vectors_switch),
    Case::new("REG0008", "vector registers survive preemption", vectors_preempted),
    Case::new("REG0009", "vector registers survive a fault", vectors_fault),
    Case::new("REG0010", "a deleted thread's vector registers reach nobody", vectors_deleted),
    Case::new("REG0011", "a foreign system call that nobody has received is made again", foreign_again),
    Case::new(
        "REG0012",
        "vector registers survive calls and faults that a user of vector registers serves",
        vectors_served,
    ),
    Case::new(
        "REG0013",
        "a fault's handler reads the thread's registers, general and vector, and gives it others",
        exchanged,
    ),
    Case::new("REG0014", "a thread makes single steps, over calls and faults too, until it is let go", stepped),
    Case::new("REG0015", "while a thread makes single steps, others run as if it did not", stepped_alone),
];

/// `x0` to `x30` and the thread pointer.
pub type Given = [u64; 32];
/// `x0` to `x30` and the thread pointer, then flags and the change of the stack pointer.
pub type Found = [u64; 34];

/// Kind of instruction that `probe` executes.
pub const CALL: u64 = 0;
pub const FOREIGN: u64 = 1;
pub const LOAD: u64 = 2;
const FOREVER: u64 = 3;
pub const SLIDE: u64 = 4;

/// Returns different values for all registers.
pub fn pattern(seed: u64) -> Given {
    core::array::from_fn(|index| seed.wrapping_mul(0x0101_0101_0101_0101) ^ (index as u64) << 32 | index as u64)
}

/// Runs `probe`.
pub fn run(given: &Given, kind: u64) -> Found {
    let mut found = [0; 34];
    let (from, to) = (core::ptr::from_ref(given), core::ptr::from_mut(&mut found));
    // SAFETY: both arrays are as long as `probe` says, and the case handles what happens.
    unsafe { probe(from.expose_provenance() as u64, to.expose_provenance() as u64, kind) };
    core::hint::black_box(found)
}

fn null_call(_: &mut Stage) -> Outcome {
    for operation in [Operation::Yield as u64, 10, Operation::Signal as u64, Operation::Identify as u64] {
        let mut given = pattern(3);
        given[10] = operation;
        let found = run(&given, CALL);
        equal!(found[19..32], given[19..32]);
        equal!(found[33], 0);
        equal!(found[1..19], [0; 18]);
    }
    Ok(())
}

fn call(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    stage.spawn(move || -> Result<(), tench::sys::Error> {
        let mut words = endpoint.receive_words()?;
        loop {
            let [a, b, ..] = words.words;
            // The second reply takes the slow path, because it is longer.
            let reply = Message::with_words(5, &[a + 1, b + 1, 0, 0, 0, 0, 0, 0, 0][..a as usize]);
            words = endpoint.reply_receive(&reply, Wait::FOREVER).map(|received| tench::sys::Words {
                tag: received.tag(),
                badge: received.badge(),
                words: core::array::from_fn(|index| received.word(index)),
            })?;
        }
    })?;
    for length in [2, 9] {
        let mut given = pattern(7);
        given[0] = u64::from(endpoint.address().0);
        given[1] = Tag::new(4, 2).0;
        (given[2], given[3]) = (length, 50);
        given[10] = Operation::Call as u64;
        let found = run(&given, CALL);
        equal!(found[19..32], given[19..32]);
        equal!(found[33], 0);
        equal!(found[..4], [0, Tag::new(5, length as usize).0, length + 1, 51]);
        equal!(found[4..19], [0; 15]);
    }
    Ok(())
}

fn fault(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
        let mut given = pattern(11);
        given[0] = crate::space::BASE;
        (given, run(&given, LOAD))
    })?;
    worker.thread.faults_to(Class::PageFault, Some(endpoint))?;
    worker.thread.resume()?;
    let received = endpoint.receive(Wait::until(patience()))?;
    check!(received.is_fault());
    equal!(received.word(1), crate::space::BASE);
    // The page is mapped, and the load is retried.
    let tables = stage.tables()?;
    let frame = stage.make(12)?;
    stage.map(frame, tables.level3, 0, crate::space::RW)?;
    BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    let (given, found) = worker.join()?;
    equal!(found[..32], given);
    equal!(found[32..], [0x1000_0000, 0]);
    Ok(())
}

fn foreign(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
        let given = pattern(13);
        let first = run(&given, FOREIGN);
        let second = run(&given, FOREIGN);
        (given, first == extended(&given), second[0], second[1..] == extended(&given)[1..])
    })?;
    worker.thread.faults_to(Class::ForeignCall, Some(endpoint))?;
    worker.thread.resume()?;
    let received = endpoint.receive(Wait::until(patience()))?;
    let given = pattern(13);
    equal!(received.words().len(), 8);
    let call = foreign_call(&received);
    equal!((call.number, &call.arguments[..], call.immediate), (given[8], &given[..6], 7));
    endpoint.reply_receive(&Message::new(reply::RESUME), Wait::until(patience()))?;
    BOUND_REPLY.reply(&Message::with_words(reply::RESULT, &[0x1234]))?;
    equal!(worker.join()?, (given, true, 0x1234, true));
    Ok(())
}

/// Returns the foreign system call that a message carries.
fn foreign_call(received: &Received) -> ForeignCall {
    ForeignCall::of_message(received.tag().label(), &core::array::from_fn(|i| received.word(i)))
}

fn foreign_again(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, || {
        [(); 3].map(|()| run(&pattern(13), FOREIGN)[0])
    })?;
    worker.thread.faults_to(Class::ForeignCall, Some(endpoint))?;
    worker.thread.resume()?;
    let made = |endpoint: Cap<Endpoint>| -> Outcome {
        let received = endpoint.try_receive(Wait::FOREVER)?;
        let call = foreign_call(&received);
        equal!((call.number, &call.arguments[..]), (pattern(13)[8], &pattern(13)[..6]));
        Ok(())
    };
    // It waits for the handler, and is suspended.
    equal!(worker.state()?, ThreadState::Sending);
    worker.thread.suspend()?;
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    worker.thread.resume()?;
    made(endpoint)?;
    BOUND_REPLY.reply(&Message::with_words(reply::RESULT, &[1]))?;
    // It waits for the handler, whose endpoint is deleted.
    equal!(worker.state()?, ThreadState::Sending);
    endpoint.revoke()?;
    endpoint.delete()?;
    let endpoint = stage.endpoint()?;
    worker.thread.faults_to(Class::ForeignCall, Some(endpoint))?;
    worker.thread.resume()?;
    made(endpoint)?;
    BOUND_REPLY.reply(&Message::with_words(reply::RESULT, &[2]))?;
    // The handler has received it, so it is not made again.
    made(endpoint)?;
    worker.thread.suspend()?;
    worker.thread.resume()?;
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    equal!(worker.join()?, [1, 2, pattern(13)[0]]);
    Ok(())
}

/// Returns the expected registers after a foreign system call that changes nothing.
pub fn extended(given: &Given) -> Found {
    let mut found = [0; 34];
    found[..32].copy_from_slice(given);
    found[32] = 0xa000_0000;
    found
}

fn interrupts(stage: &mut Stage) -> Outcome {
    // The worker loops in one instruction while the main thread's deadlines interrupt it.
    let worker = stage.spawn_with(Equipment::at(LOW), move || {
        let given = pattern(17);
        (given, run(&given, FOREVER))
    })?;
    let given = pattern(17);
    for _ in 0..20 {
        pause(stage)?;
        let registers = worker.thread.read_registers(true)?;
        equal!(registers.x, given[..31]);
        equal!(registers.flags & 0xf000_0000, 0x9000_0000);
        equal!(registers.thread_pointer, given[31]);
        worker.thread.resume()?;
    }
    // Behind the instruction that loops, the worker stores its registers.
    let mut registers = worker.thread.read_registers(true)?;
    registers.pc += 4;
    // SAFETY: the thread goes on in `probe`, with its own registers.
    unsafe { worker.thread.write_registers(&registers, true) }?;
    let (given, found) = worker.join()?;
    equal!(found[..32], given);
    equal!(found[32..], [0x9000_0000, 0]);
    Ok(())
}

/// `v0` to `v31`, control and status.
pub type Vectors = [u64; 66];

/// Returns different values for all registers, and a rounding mode and a status that are not the default.
pub fn vectors(seed: u64) -> Vectors {
    let mut vectors = core::array::from_fn(|index| seed << 48 | (index as u64) << 20 | 0xabc);
    vectors[64] = (seed & 3) << 22;
    vectors[65] = seed & 0x1f;
    vectors
}

/// Loads the vector registers.
pub fn fill(vectors: &Vectors) {
    // SAFETY: the array is as long as `fill_vectors` says; compiled code does not use the registers.
    unsafe { fill_vectors(core::ptr::from_ref(vectors).expose_provenance() as u64) };
}

/// Stores the vector registers.
pub fn dump() -> Vectors {
    let mut found = [!0; 66];
    // SAFETY: the array is as long as `dump_vectors` says.
    unsafe { dump_vectors(core::ptr::from_mut(&mut found).expose_provenance() as u64) };
    core::hint::black_box(found)
}

fn vectors_begin(stage: &mut Stage) -> Outcome {
    fill(&vectors(9));
    let worker = stage.spawn(|| dump() == [0; 66])?;
    check!(worker.join()?);
    check!(dump() == vectors(9));
    Ok(())
}

fn vectors_switch(stage: &mut Stage) -> Outcome {
    let mut workers = [None; 3];
    for (seed, worker) in (1..).zip(&mut workers) {
        *worker = Some(stage.spawn_with(Equipment::at(LOW), move || {
            fill(&vectors(seed));
            let mut wrong = 0;
            for _ in 0..50 {
                yield_now();
                wrong += u64::from(dump() != vectors(seed));
            }
            wrong
        })?);
    }
    fill(&vectors(7));
    for worker in workers.into_iter().flatten() {
        equal!(worker.join()?, 0);
    }
    check!(dump() == vectors(7));
    Ok(())
}

fn vectors_preempted(stage: &mut Stage) -> Outcome {
    let mut workers = [None; 3];
    for (seed, worker) in (1..).zip(&mut workers) {
        // Slices so short that each worker is interrupted hundreds of times.
        let equipment = Equipment { slice: MOMENT / 20, ..Equipment::at(LOW) };
        *worker = Some(stage.spawn_with(equipment, move || {
            fill(&vectors(seed));
            (0..3000).map(|_| u64::from(dump() != vectors(seed))).sum::<u64>()
        })?);
    }
    for worker in workers.into_iter().flatten() {
        equal!(worker.join()?, 0);
    }
    Ok(())
}

fn vectors_fault(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
        fill(&vectors(5));
        run(&pattern(1), FOREIGN);
        dump() == vectors(5)
    })?;
    worker.thread.faults_to(Class::ForeignCall, Some(endpoint))?;
    worker.thread.resume()?;
    endpoint.receive(Wait::until(patience()))?;
    fill(&vectors(6));
    BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    check!(worker.join()?);
    check!(dump() == vectors(6));
    Ok(())
}

/// Returns vector registers in the form in which they are transferred.
fn float_registers(vectors: &Vectors) -> FloatRegisters {
    let q = core::array::from_fn(|i| u128::from(vectors[2 * i]) | u128::from(vectors[2 * i + 1]) << 64);
    FloatRegisters { q, control: vectors[64], status: vectors[65] }
}

fn exchanged(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
        fill(&vectors(5));
        let found = run(&pattern(13), FOREIGN);
        (found, dump() == vectors(6))
    })?;
    let thread = worker.thread;
    thread.faults_to(Class::ForeignCall, Some(endpoint))?;
    equal!(thread.read_float(), Ok(FloatRegisters::default()));
    thread.resume()?;
    // While the thread waits until its call is received, it cannot be examined: its program counter would be wrong.
    equal!(thread.read_registers(false), Err(Error::WrongState));
    equal!(thread.read_float(), Err(Error::WrongState));
    let call = foreign_call(&endpoint.receive(Wait::until(patience()))?);
    fill(&vectors(9));
    let mut registers = thread.read_registers(false)?;
    equal!((&registers.x[..], registers.pc), (&pattern(13)[..31], call.instruction + 4));
    equal!(thread.read_float(), Ok(float_registers(&vectors(5))));
    thread.write_float(&float_registers(&vectors(6)))?;
    check!(dump() == vectors(9));
    let other = pattern(77);
    registers.x.copy_from_slice(&other[..31]);
    registers.thread_pointer = other[31];
    // The thread keeps nothing of what was written before the reply with registers.
    // SAFETY: the thread goes on with what the reply says.
    unsafe { thread.write_registers(&Registers::ZERO, true)? };
    equal!(thread.read_registers(false)?, Registers::ZERO);
    check!(block::write_registers(&registers).is_some());
    BOUND_REPLY.reply(&Message::new(reply::REGISTERS))?;
    equal!(worker.join()?, (extended(&other), true));
    Ok(())
}

/// Starts a server that uses the vector registers. It replies with the number of times that it found others in them.
fn serve_with_vectors(stage: &mut Stage, endpoint: Cap<Endpoint>, wait: Wait) -> Outcome {
    stage.spawn_with(Equipment::at(HIGH), move || -> Result<(), tench::sys::Error> {
        fill(&vectors(5));
        let (mut wrong, mut received) = (0, endpoint.receive(wait)?);
        loop {
            wrong += u64::from(dump() != vectors(5));
            // To a fault, the same message means that the thread goes on.
            let words = [wrong; 10];
            let length = if received.word(0) == 10 { 10 } else { 1 };
            received = endpoint.reply_receive(&Message::with_words(reply::RESUME, &words[..length]), wait)?;
        }
    })?;
    Ok(())
}

fn vectors_served(stage: &mut Stage) -> Outcome {
    let reply = stage.reply()?;
    for wait in [Wait::FOREVER, Wait::FOREVER.with_reply(reply)] {
        let endpoint = stage.endpoint()?;
        serve_with_vectors(stage, endpoint, wait)?;
        let mut workers = [None; 2];
        for (seed, worker) in (1..).zip(&mut workers) {
            let client = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, move || {
                let mut wrong = 0;
                for round in 0..40 {
                    // Every other round, the registers stay in the unit.
                    if round % 2 == 0 {
                        fill(&vectors(seed));
                    }
                    if round % 3 == 0 {
                        run(&pattern(1), FOREIGN);
                    } else {
                        let length = if round % 3 == 1 { 1 } else { 10 };
                        let words = [length as u64; 10];
                        let received = endpoint.call(&Message::with_words(0, &words[..length]));
                        wrong += received.map_or(1, |received| received.word(0));
                    }
                    wrong += u64::from(dump() != vectors(seed));
                    yield_now();
                }
                wrong
            })?;
            client.thread.faults_to(Class::ForeignCall, Some(endpoint))?;
            client.thread.resume()?;
            *worker = Some(client);
        }
        for worker in workers.into_iter().flatten() {
            equal!(worker.join()?, 0);
        }
    }
    Ok(())
}

fn vectors_deleted(stage: &mut Stage) -> Outcome {
    let never = stage.notification()?;
    let first = stage.spawn(move || {
        fill(&vectors(12));
        never.wait()
    })?;
    equal!(first.state()?, ThreadState::Waiting);
    first.thread.delete()?;
    let second = stage.spawn(|| dump() == [0; 66])?;
    check!(second.join()?);
    Ok(())
}

/// Receives messages of a thread's faults until it has made a step, and returns its registers. Lets it go on after a
/// foreign call, with the result 0x1234, and after a page fault, for which it is given an address that it can load.
fn step_made(
    endpoint: Cap<Endpoint>,
    thread: Cap<Thread>,
    readable: u64,
) -> Result<(Registers, Option<Class>), Failure> {
    let mut between = None;
    loop {
        let received = endpoint.receive(Wait::until(patience()))?;
        let mut words = [0; 8];
        words[..received.words().len()].copy_from_slice(received.words());
        let report = Report::of_message(received.label(), &words);
        match Class::from_code(report.class) {
            Some(Class::Exception) => {
                equal!(report.syndrome >> 26, STEP_CLASS);
                let registers = thread.read_registers(false)?;
                equal!(registers.pc, report.instruction);
                return Ok((registers, between));
            }
            Some(Class::ForeignCall) => BOUND_REPLY.reply(&Message::with_words(reply::RESULT, &[0x1234]))?,
            _ => {
                let mut registers = thread.read_registers(false)?;
                registers.x[0] = readable;
                // SAFETY: the thread loads a word that exists.
                unsafe { thread.step(&registers, false) }?;
                BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
            }
        }
        between = Class::from_code(report.class);
    }
}

fn stepped(stage: &mut Stage) -> Outcome {
    static WORD: u64 = 77;
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, || {
        // SAFETY: the fault is handled.
        (run(&pattern(13), FOREIGN)[0], unsafe { assembly::load(0) })
    })?;
    let thread = worker.thread;
    for class in [Class::PageFault, Class::Exception, Class::ForeignCall] {
        thread.faults_to(class, Some(endpoint))?;
    }
    let readable = core::ptr::from_ref(&WORD).expose_provenance() as u64;
    let mut registers = thread.read_registers(false)?;
    // SAFETY: the thread begins to run as it would otherwise.
    unsafe { thread.step(&registers, true) }?;
    let (mut straight, mut handled) = (0, (0, 0));
    loop {
        let before = registers.pc;
        let between;
        (registers, between) = step_made(endpoint, thread, readable)?;
        straight += u64::from(registers.pc == before + 4);
        match between {
            Some(Class::ForeignCall) => {
                equal!((registers.pc, registers.x[0]), (before + 4, 0x1234));
                handled.0 += 1;
            }
            Some(_) => {
                equal!((registers.pc, registers.x[0]), (before + 4, WORD));
                handled.1 += 1;
                break;
            }
            None => {}
        }
        // SAFETY: the thread goes on where it was.
        unsafe { thread.step(&registers, false) }?;
        BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    }
    equal!(handled, (1, 1));
    check!(straight > 50);
    BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    equal!(worker.join()?, (0x1234, WORD));
    Ok(())
}

fn stepped_alone(stage: &mut Stage) -> Outcome {
    static TURNS: AtomicU64 = AtomicU64::new(0);
    let (endpoint, others) = (stage.endpoint()?, stage.endpoint()?);
    let stepped = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, || {
        loop {
            yield_now();
        }
    })?;
    let other = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, || {
        loop {
            TURNS.fetch_add(1, Relaxed);
            yield_now();
        }
    })?;
    stepped.thread.faults_to(Class::Exception, Some(endpoint))?;
    other.thread.faults_to(Class::Exception, Some(others))?;
    TURNS.store(0, Relaxed);
    other.thread.resume()?;
    let mut registers = stepped.thread.read_registers(false)?;
    // SAFETY: the thread begins to run as it would otherwise.
    unsafe { stepped.thread.step(&registers, true) }?;
    for _ in 0..200 {
        (registers, _) = step_made(endpoint, stepped.thread, 0)?;
        // SAFETY: the thread goes on where it was.
        unsafe { stepped.thread.step(&registers, false) }?;
        BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    }
    step_made(endpoint, stepped.thread, 0)?;
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    refused!(others.try_receive(Wait::FOREVER), WouldBlock);
    equal!(other.state()?, ThreadState::Ready);
    let turns = TURNS.load(Relaxed);
    check!(turns > 5);
    // The other one, alone now, is not stopped by steps of which nobody is left.
    pause(stage)?;
    check!(TURNS.load(Relaxed) > turns);
    refused!(others.try_receive(Wait::FOREVER), WouldBlock);
    Ok(())
}
