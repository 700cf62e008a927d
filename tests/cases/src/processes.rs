//! Tests of processes as their parents see them: waiting with a deadline, time, suspension, children.

use alloc::vec::Vec;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::memory::make;
use tench::names::Names;
use tench::procs::pid;
use tench::procs::protocol::{Error as ProcsError, MAX_APPEND, State};
use tench::procs::{Failure as ProcsFailure, Procs, Status};
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{Cap, Endpoint, Instant, Message, Notification, Rights, SchedulingContext, Wait};
use tench::thread::Builder;
use tench::time::{self, Duration};
use tench::{memory, thread};
use tench_protocol::transport::Until;

use crate::blocks::free_memory;
use crate::case::{Case, Outcome};
use crate::hostile::capabilities_of;
use crate::stage::{LOW, Stage};

pub const CASES: &[Case] = &[
    Case::new("PROC0001", "a wait with a deadline ends at it, or with the process", deadline),
    Case::new("PROC0002", "the time of a process is that of all its threads, ended ones too", time_of_all),
    Case::new("PROC0003", "no thread of a suspended process runs, and all go on", suspended),
    Case::new("PROC0004", "children are listed, in order, also when they have ended", children),
    Case::new("PROC0005", "many threads wait for a process, each as long as it wants", many_waiters),
    Case::new("PROC0006", "all processes of a name are killed, those in preparation too", kill_all),
    Case::new(
        "PROC0007",
        "a process that asks for it is notified of an interrupt once; any other is killed, and so is one that goes on",
        interrupts,
    ),
    Case::new("PROC0008", "what runs counts as load, and what is suspended or has ended does not", load),
    Case::new("PROC0009", "what powers a process has is known, and not of whom there is not", powers),
    Case::new("PROC0010", "a server that was busy when a process ended is notified later", notified_later),
    Case::new("PROC0011", "waits that were given up are found when processes end", given_up),
    Case::new("PROC0012", "a program is started in one request, with all its arguments, or nothing is left of it", run),
    Case::new("PROC0013", "a process holds a million capabilities if its parent has said so, and else 16,000", slots),
];

const PROCS: Procs = Procs::STANDARD;
/// Name under which a child registers an endpoint.
const NAME: &str = "cases/named";
/// Ticks that each thread of the time-burning child uses.
const SHARE: u64 = 40_000;
/// Threads of that child besides its main thread.
const THREADS: u64 = 3;

/// Starts this program as a child with a task; the child runs when this thread waits.
fn start(arguments: &[&str]) -> Outcome<u64> {
    start_with(arguments, None)
}

/// Starts this program as a child with a task and a capability to an endpoint.
pub fn start_with(arguments: &[&str], endpoint: Option<Cap<Endpoint>>) -> Outcome<u64> {
    let mut child = PROCS.prepare("cases")?;
    if let Some(endpoint) = endpoint {
        child.give(endpoint)?;
    }
    for argument in arguments {
        child.argument(argument)?;
    }
    child.configure(LOW as u8, LOW as u8, 0, Powers::empty())?;
    Ok(child.start()?)
}

fn in_millis(millis: u64) -> Instant {
    time::deadline(Duration::from_millis(millis))
}

const TIMED_OUT: Result<Status, ProcsFailure> = Err(ProcsFailure::Refused(ProcsError::TimedOut));

fn deadline(_: &mut Stage) -> Outcome {
    let child = start(&["spin"])?;
    let end = in_millis(2);
    equal!(PROCS.wait_until(child, end), TIMED_OUT);
    check!(Instant::now() >= end);
    equal!(PROCS.wait_until(child, Instant::from_ticks(0)), TIMED_OUT);
    equal!(PROCS.status(child)?.state, State::Running);
    PROCS.kill(child)?;
    equal!(PROCS.wait_until(child, in_millis(1000))?.state, State::Killed);
    equal!(PROCS.wait_until(child, Instant::from_ticks(0))?.state, State::Killed);
    let child = start(&["comply"])?;
    equal!(PROCS.wait_until(child, in_millis(1000))?.state, State::Exited);
    let nobody = ProcsFailure::Refused(ProcsError::NoSuchProcess);
    equal!(PROCS.wait_until(child + 1000, in_millis(1)), Err(nobody));
    Ok(())
}

/// Uses the processor until a scheduling context has consumed `ticks`.
fn burn(context: Cap<SchedulingContext>, ticks: u64) {
    let used = || context.query().map_or(u64::MAX, |info| info.consumed);
    let end = used().saturating_add(ticks);
    while used() < end {}
}

/// Runs the child whose threads burn their shares one after another and end, and then its main thread.
pub fn burn_shares() -> i32 {
    for _ in 0..THREADS {
        let own = Cap::<SchedulingContext>::new(slot::SCHEDULING);
        let thread = thread::spawn(move || {
            let begin = Instant::now();
            while Instant::now().since(begin) < SHARE {}
        });
        thread.join();
        burn(own, SHARE);
    }
    0
}

fn time_of_all(_: &mut Stage) -> Outcome {
    let child = start(&["burn"])?;
    equal!(PROCS.wait(child)?.detail, 0);
    let ticks = PROCS.status(child)?.ticks;
    let expected = 2 * THREADS * SHARE;
    // Starting and creating the threads takes little beside that.
    check!((expected..expected + expected / 4).contains(&ticks));
    check!(PROCS.status(tench::procs::pid::PROCS)?.ticks > 0);
    Ok(())
}

/// Runs the child whose threads all run for ever.
pub fn spin() -> i32 {
    for _ in 0..THREADS {
        thread::spawn(|| {
            loop {
                core::hint::spin_loop()
            }
        })
        .detach();
    }
    loop {
        core::hint::spin_loop();
    }
}

fn suspended(_: &mut Stage) -> Outcome {
    let child = start(&["spin"])?;
    time::sleep(Duration::from_millis(40));
    let ticks = || Ok::<u64, crate::case::Failure>(PROCS.status(child)?.ticks);
    check!(ticks()? > SHARE);
    for _ in 0..3 {
        PROCS.suspend(child)?;
        equal!(PROCS.status(child)?.state, State::Suspended);
        let before = ticks()?;
        time::sleep(Duration::from_millis(10));
        equal!(ticks()?, before);
        PROCS.resume(child)?;
        equal!(PROCS.status(child)?.state, State::Running);
        time::sleep(Duration::from_millis(10));
        check!(ticks()? > before + SHARE);
    }
    equal!(PROCS.resume(child), Err(ProcsFailure::Refused(ProcsError::WrongState)));
    PROCS.suspend(child)?;
    PROCS.kill(child)?;
    equal!(PROCS.wait(child)?.state, State::Killed);
    check!(ticks()? > 4 * SHARE);
    Ok(())
}

fn load(_: &mut Stage) -> Outcome {
    let before = PROCS.load()?;
    let prepared = PROCS.prepare("cases")?;
    equal!(PROCS.load()?, before);
    prepared.abandon();
    let children = [start(&["spin"])?, start(&["spin"])?];
    equal!(PROCS.load()?, before + 2);
    PROCS.suspend(children[0])?;
    equal!(PROCS.suspend(children[0]), Ok(()));
    equal!(PROCS.load()?, before + 1);
    PROCS.resume(children[0])?;
    equal!(PROCS.load()?, before + 2);
    // One child ends while it is suspended, and one while it runs.
    PROCS.suspend(children[0])?;
    PROCS.kill(children[0])?;
    equal!(PROCS.load()?, before + 1);
    PROCS.kill(children[1])?;
    equal!(PROCS.load()?, before);
    Ok(())
}

fn powers(_: &mut Stage) -> Outcome {
    let nobody = |error| Err(ProcsFailure::Refused(error));
    equal!(PROCS.powers(tench::procs::pid::INIT)?, u64::from(Powers::all().bits()));
    let child = start(&["spin"])?;
    equal!(PROCS.powers(child)?, 0);
    PROCS.kill(child)?;
    equal!(PROCS.powers(child), nobody(ProcsError::WrongState));
    equal!(PROCS.powers(child + 1000), nobody(ProcsError::NoSuchProcess));
    // The process server knows nothing about a process of another core.
    equal!(PROCS.powers(tench::procs::pid::pid_base(7) | child), nobody(ProcsError::NoSuchProcess));
    Ok(())
}

/// Returns the children of this process after one of them, or all after 0.
fn children_after(mut after: u64) -> Vec<u64> {
    let next = || {
        after = PROCS.child(tench::process::id(), after).ok()?;
        Some(after)
    };
    core::iter::from_fn(next).collect()
}

fn children(_: &mut Stage) -> Outcome {
    let before = children_after(0);
    let last = before.last().copied().unwrap_or(0);
    let children = [start(&["comply"])?, start(&["spin"])?, start(&["comply"])?];
    equal!(children_after(last), children);
    PROCS.kill(children[1])?;
    for child in children {
        PROCS.wait(child)?;
        equal!(PROCS.status(child)?.parent, tench::process::id());
    }
    equal!(children_after(last), children);
    equal!(PROCS.child(children[0], 0), Err(ProcsFailure::Refused(ProcsError::NoSuchProcess)));
    Ok(())
}

fn many_waiters(_: &mut Stage) -> Outcome {
    let child = start(&["spin"])?;
    let waiters: Vec<_> = (0..12_u64)
        .map(|number| {
            thread::spawn(move || match number % 3 {
                0 => PROCS.wait(child),
                1 => PROCS.wait_until(child, in_millis(2 + number)),
                _ => PROCS.wait_until(child, in_millis(5000)),
            })
        })
        .collect();
    time::sleep(Duration::from_millis(30));
    let are_done: Vec<bool> = waiters.iter().map(thread::JoinHandle::is_finished).collect();
    PROCS.kill(child)?;
    for (number, (waiter, was_done)) in waiters.into_iter().zip(are_done).enumerate() {
        let result = waiter.join();
        if number % 3 == 1 {
            equal!((was_done, result), (true, TIMED_OUT));
        } else {
            equal!((was_done, result.map(|status| status.state)), (false, Ok(State::Killed)));
        }
    }
    Ok(())
}

/// Number of interruptions reported by the child.
const SAID: u64 = 3;

/// Runs the child that asks three times to be notified of interruptions: it says that it waits, and asks again after
/// each notification but the last.
pub fn wait_for_interrupts() -> i32 {
    let again = || -> Option<Cap<Notification>> {
        let own = make::<Notification>(0).ok()?.leak();
        PROCS.on_interrupt(own).ok()?;
        Some(own)
    };
    // The last request counts.
    (0..2).for_each(|_| {
        let _ = again();
    });
    let Some(mut own) = again() else { return 1 };
    let parent = Cap::<Endpoint>::new(slot::EXTRA);
    for round in 0..SAID {
        if parent.call1(0, round).is_err() || own.wait().is_err() {
            return 1;
        }
        if round + 1 < SAID {
            own = match again() {
                Some(own) => own,
                None => return 1,
            };
        }
    }
    // After the last notification the child does not end.
    let _ = parent.call1(0, SAID);
    spin()
}

/// Runs the child that asks to be notified through a notification that may not be signalled.
pub fn ask_in_vain() -> i32 {
    let Ok(own) = make::<Notification>(0) else { return 1 };
    let deaf = memory::take_slot().ok().and_then(|slot| own.cap().mint_to(slot, Rights::READ, 0).ok());
    if deaf.is_none_or(|deaf| PROCS.on_interrupt(deaf).is_err()) {
        return 1;
    }
    let _ = Cap::<Endpoint>::new(slot::EXTRA).call1(0, 0);
    0
}

fn interrupts(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let child = start_with(&["interrupts"], Some(endpoint))?;
    for round in 0..=SAID {
        let patience = Wait::until(in_millis(1000));
        equal!(endpoint.receive(patience)?.word(0), round);
        BOUND_REPLY.reply(&Message::new(0))?;
        // Until the child waits.
        time::sleep(Duration::from_millis(1));
        equal!(PROCS.interrupt(child)?, round == SAID);
    }
    equal!(PROCS.wait(child)?.state, State::Killed);
    equal!(PROCS.interrupt(child), Err(ProcsFailure::Refused(ProcsError::WrongState)));
    // Children that have not asked, are suspended, or do not run yet.
    let child = start(&["spin"])?;
    PROCS.suspend(child)?;
    equal!(PROCS.interrupt(child)?, true);
    equal!(PROCS.wait(child)?.state, State::Killed);
    let prepared = PROCS.prepare("hello")?;
    equal!(PROCS.interrupt(prepared.process())?, true);
    let nobody = Err(ProcsFailure::Refused(ProcsError::NoSuchProcess));
    equal!(PROCS.interrupt(prepared.process()), nobody);
    equal!(PROCS.interrupt(pid::PROCS), Err(ProcsFailure::Refused(ProcsError::Essential)));
    // A notification that cannot be signalled counts as none.
    let child = start_with(&["deaf"], Some(endpoint))?;
    endpoint.receive(Wait::until(in_millis(1000)))?;
    equal!(PROCS.interrupt(child)?, true);
    Ok(())
}

fn kill_all(_: &mut Stage) -> Outcome {
    equal!(PROCS.kill_all("hello"), Ok(0));
    let mut running = Vec::new();
    for _ in 0..3 {
        let child = PROCS.prepare("hello")?;
        // The child does not run before this thread waits.
        child.configure(LOW as u8, LOW as u8, 0, Powers::empty())?;
        running.push(child.start()?);
    }
    let prepared = PROCS.prepare("hello")?;
    PROCS.suspend(running[1])?;
    equal!(PROCS.kill_all("hello"), Ok(4));
    for process in running {
        equal!(PROCS.wait(process)?.state, State::Killed);
    }
    let nobody = Err(ProcsFailure::Refused(ProcsError::NoSuchProcess));
    equal!(prepared.start(), nobody);
    equal!(PROCS.kill(prepared.process()), Err(ProcsFailure::Refused(ProcsError::NoSuchProcess)));
    // One process that may not be killed does not spare the others.
    equal!(PROCS.kill_all("procs"), Err(ProcsFailure::Refused(ProcsError::Essential)));
    Ok(())
}

/// Waits until the name is registered, or until it is not.
fn until_named() -> Outcome {
    let slot = memory::take_slot()?;
    until(|| {
        let endpoint = Names::STANDARD.look_up(NAME, slot);
        endpoint.is_ok_and(|endpoint| endpoint.delete().is_ok())
    })?;
    memory::free_slot(slot);
    Ok(())
}

/// Waits until the name server knows that the child has ended and the name is free again. (Calls through it fail
/// earlier: the endpoint went with the child's memory.)
fn until_free() -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    until(|| Names::STANDARD.register(NAME, endpoint.cap()).is_ok())?;
    check!(Names::STANDARD.unregister(NAME).is_ok());
    Ok(())
}

fn until(mut is_so: impl FnMut() -> bool) -> Outcome {
    let end = in_millis(2000);
    while !is_so() {
        check!(Instant::now() < end);
        time::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn notified_later(_: &mut Stage) -> Outcome {
    let child = start(&["named"])?;
    until_named()?;
    let names = PROCS.find("names", 0)?;
    PROCS.suspend(names)?;
    // The child has received this, so no further message reaches it.
    let slot = memory::take_slot()?;
    let busy = Builder::new().spawn(move || Names::STANDARD.look_up("nobody/has/this", slot).is_err());
    time::sleep(Duration::from_millis(1));
    let killed = PROCS.kill(child);
    let state = PROCS.status(child).map(|status| status.state);
    PROCS.resume(names)?;
    check!(busy.is_ok_and(|busy| busy.join()));
    memory::free_slot(slot);
    killed?;
    equal!(state?, State::Killed);
    until_free()
}

/// Waits for a process that does not end, and gives up.
fn give_up_waits(count: usize) {
    for _ in 0..count {
        // Long enough for the server to receive the request.
        let _ = Procs::at(Until(Cap::new(slot::PROCS), time::deadline(Duration::from_micros(20)))).wait(pid::INIT);
    }
}

fn given_up(_: &mut Stage) -> Outcome {
    const WAITS: usize = 48;
    // The server checks eight of these waits at each process's end.
    let end_some = || {
        (0..WAITS / 8 + 2).try_for_each(|_| -> Outcome {
            PROCS.wait(start(&["comply"])?)?;
            Ok(())
        })
    };
    give_up_waits(WAITS);
    let before = capabilities_of(pid::PROCS)?;
    end_some()?;
    give_up_waits(WAITS);
    // Each wait has a reply object. It is reused once the server has found that no thread waits there any more.
    check!(capabilities_of(pid::PROCS)? < before + WAITS / 4);
    end_some()
}

/// Runs the child that is asked whether its arguments arrived. Returns the sum of their lengths, each weighted by its
/// place.
pub fn lengths_of<'a>(arguments: impl Iterator<Item = &'a str>) -> i32 {
    (1..).zip(arguments).map(|(place, argument)| place * argument.len() as i32).sum()
}

fn run(_: &mut Stage) -> Outcome {
    let ended = |arguments: &[&str]| -> Outcome<_> { Ok(PROCS.wait(PROCS.spawn("cases", arguments)?)?.exit_code()) };
    equal!(ended(&["lengths"])?, Some(0));
    equal!(ended(&["lengths", "", "ab", "c d", ""])?, Some(2 * 2 + 3 * 3));
    // The longest that goes in one request, and one that does not.
    let long = "x".repeat(MAX_APPEND - "cases\0lengths\0\0".len());
    equal!(ended(&["lengths", &long])?, Some(long.len() as u64));
    equal!(ended(&["lengths", &long, "y"])?, Some(long.len() as u64 + 2));

    let children = children_after(0);
    let refused = |strings: &[u8], why| PROCS.run(strings) == Err(ProcsFailure::Refused(why));
    for strings in [&b""[..], b"hello", b"hello\0x", b"\xff\0"] {
        check!(refused(strings, ProcsError::BadStrings));
    }
    let longest = [&[b'x'; MAX_APPEND - 1][..], &[0]].concat();
    for strings in [&b"\0"[..], b"\0hello\0", b"no such program\0", &longest] {
        check!(refused(strings, ProcsError::NoSuchProgram));
    }
    equal!(PROCS.spawn("hello\0x", &[]), Err(ProcsFailure::Refused(ProcsError::NoSuchProgram)));
    equal!(children_after(0), children);
    Ok(())
}

/// Runs the child that registers an endpoint and waits to be killed.
pub fn stay_named() -> i32 {
    let Ok(endpoint) = make::<Endpoint>(0) else { return 1 };
    if Names::STANDARD.register(NAME, endpoint.cap()).is_err() {
        return 1;
    }
    loop {
        time::sleep(Duration::from_secs(1));
    }
}

/// Number of capabilities that the child with many slots holds.
const MANY: u64 = 1_000_000;

/// Runs the child that makes copies of a capability until there are `most`, or no slot is left. Returns their number.
pub fn hold_copies(most: u64) -> Option<i32> {
    let endpoint = make::<Endpoint>(0).ok()?;
    let (mut count, mut last) = (0, endpoint.cap());
    while count < most
        && let Ok(slot) = memory::take_slot()
    {
        last = endpoint.cap().copy_to(slot).ok()?;
        count += 1;
    }
    // The last one is as good as any, and its slot can be used again.
    let empty = |error| error == tench::sys::Error::WouldBlock;
    last.try_send(&Message::new(0)).err().filter(|error| empty(*error))?;
    last.delete().ok()?;
    memory::free_slot(last.address());
    (memory::take_slot().ok()? == last.address()).then_some(count as i32)
}

/// Runs that child. Returns how many capabilities it held.
fn held(slots: Option<u64>) -> Outcome<u64> {
    let child = PROCS.prepare("cases")?;
    child.argument("hold")?;
    child.argument(&alloc::format!("{MANY}"))?;
    slots.map_or(Ok(()), |slots| child.set_slots(slots))?;
    Ok(PROCS.wait(child.start()?)?.exit_code().unwrap_or(0))
}

/// Starts a process with as many slots as there can be, and kills it.
fn largest() -> Outcome {
    let child = PROCS.prepare("cases")?;
    child.argument("spin")?;
    child.set_slots(1 << 24)?;
    for more in [(1 << 24) + 1, u64::MAX] {
        equal!(child.set_slots(more), Err(ProcsFailure::Refused(ProcsError::TooManySlots)));
    }
    let process = child.start()?;
    equal!(child.set_slots(100), Err(ProcsFailure::Refused(ProcsError::WrongState)));
    PROCS.kill(process)?;
    PROCS.wait(process)?;
    Ok(())
}

fn slots(_: &mut Stage) -> Outcome {
    let usual = held(None)?;
    check!((16_000..16_384).contains(&usual));
    equal!(held(Some(100))?, usual);
    // The first time, the servers may take memory that they keep.
    let mut before = None;
    for _ in 0..2 {
        equal!(held(Some(MANY))?, MANY);
        largest()?;
        let free = free_memory()?;
        equal!(before.unwrap_or(free), free);
        before = Some(free);
    }
    Ok(())
}
