//! Tests of Send-Receive-Reply on the target: the specification that the simulation on the host meets, and what only
//! real time can show.

use alloc::format;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::mem::Mem;
use tench::println;
use tench::procs::Procs;
use tench::sys::{Cap, Instant, SchedulingContext};
use tench::thread::current_thread;
use tench::time::{frequency, sleep_until};
use tench_srr::cases::{self, Case as Specification};
use tench_srr::{
    CLOCK_EVENT, Error, TICKS_PER_SECOND, Terminal, Tid, await_event, clock, create, exit, idle_share, my_tid, receive,
    reply, run, send, ticks, yield_now,
};

use crate::assembly;
use crate::case::{Case, Failure, Outcome};
use crate::child::COMPLIED;

pub const CASES: &[Case] = &[
    Case::new("SRR0001", "the primitives behave as specified", |_| check_all(cases::CASES)),
    Case::new("SRR0002", "events and the clock server behave as specified", |_| check_all(cases::time::CASES)),
    Case::new("SRR0003", "an event takes over from a busy task", |_| preempted()),
    Case::new("SRR0004", "events interfere with no primitive, wherever they come", |_| interfering()),
    Case::new("SRR0005", "delays are never early, and late by less than a tick", |_| delays()),
    Case::new("SRR0006", "the idle share is what no task has used", |_| idle()),
    Case::new("SRR0007", "an event may come at any instruction", |_| everywhere()),
    Case::new("SRR0008", "tasks have a priority just above their session's caller", |_| priorities()),
    Case::new("SRR0009", "an event may come at any instruction of a first session", |_| in_first_session(0)),
    Case::new("SRR0010", "an event's task takes over though its creator's thread waits for it", |_| {
        in_first_session(1)
    }),
    Case::new("SRR0011", "a task for whose thread others wait goes on before a preempted one", |_| in_first_session(2)),
];

fn check_all(all: &[Specification]) -> Outcome {
    for case in all {
        case.check().map_err(|complaint| Failure::new(format!("{}: {complaint}", case.name)))?;
    }
    Ok(())
}

/// A console that prints nothing.
struct Silence;

impl Terminal for Silence {
    fn write(&mut self, _: &str) {}
    fn wait_key(&mut self) {}
}

/// Runs a session, and returns the number that its tasks have left.
fn session(first: impl FnOnce(Arc<AtomicU64>) + Send + 'static) -> Outcome<u64> {
    let number = Arc::new(AtomicU64::new(0));
    let shared = number.clone();
    let ended = run(Silence, 3, move || first(shared));
    ended.map_err(|error| Failure::new(format!("the session: {error}")))?;
    Ok(number.load(Relaxed))
}

/// Returns the ticks of the system counter in one tick of the clock server.
fn tick() -> u64 {
    frequency() / TICKS_PER_SECOND
}

fn preempted() -> Outcome {
    let count = session(|number| {
        let end = Instant::now().after(20 * tick());
        let other = number.clone();
        let awaits = move || {
            for _ in 0..3 {
                let Ok(time) = await_event(CLOCK_EVENT) else { return };
                // The tick has begun just now.
                if time == ticks() {
                    other.fetch_add(1, Relaxed);
                }
            }
        };
        if create(5, awaits).is_err() {
            return;
        }
        // No primitive: only the event can end its turn.
        while number.load(Relaxed) < 3 && Instant::now() < end {}
    })?;
    equal!(count, 3);
    Ok(())
}

/// Replies to each sender, with one byte more.
fn serve() {
    loop {
        let mut message = [0; 8];
        let (sender, _) = receive(&mut message);
        message[0] = message[0].wrapping_add(1);
        let _ = reply(sender, &message);
    }
}

/// Calls the server again and again. Returns whether everything was right.
fn call(server: Tid, until: Instant) -> bool {
    let (mut number, mut round) = (0, 0);
    while Instant::now() < until {
        let mut response = [0; 8];
        if send(server, &[number, 0, 0, 0, 0, 0, 0, 0], &mut response) != Ok(8) || response[0] != number.wrapping_add(1)
        {
            return false;
        }
        number = response[0];
        yield_now();
        // A task that ends at once, one way or the other, and a reply to a task that does not wait for one.
        round += 1;
        let ended = if round % 2 == 0 { create(7, || exit()) } else { create(7, || ()) };
        let done = ended.is_ok() && reply(my_tid(), b"") == Err(Error::Incomplete);
        if !done {
            return false;
        }
    }
    true
}

/// Runs a session whose tasks leave more stack frames than their threads have room for, twice. The second needs no more
/// memory than the first.
fn interfering() -> Outcome {
    interfere()?;
    let before = own_memory()?;
    interfere()?;
    equal!(own_memory()?, before);
    Ok(())
}

/// Returns the bytes and blocks on this program's account.
fn own_memory() -> Outcome<(u64, u64)> {
    let account = Mem::STANDARD.next_account(tench::process::id() - 1)?;
    equal!(account.process, tench::process::id());
    Ok((account.used, account.blocks))
}

/// Runs tasks above and below those that use primitives all the time; they await events, one of which comes in each of
/// so many periods, each time at another point. Everything must go on as it should.
fn interfere() -> Outcome {
    const CALLERS: u64 = 3;
    let right = session(|number| {
        let until = Instant::now().after(24 * tick());
        let Ok(server) = create(6, serve) else { return };
        let Ok(clock) = clock::start(9, None) else { return };
        for priority in [2, 2, 5] {
            let number = number.clone();
            // The task of higher priority first, and the others afterwards.
            let until = if priority == 5 { Instant::now().after(8 * tick()) } else { until };
            let caller = move || {
                if call(server, until) {
                    number.fetch_add(1, Relaxed);
                }
            };
            if create(priority, caller).is_err() {
                return;
            }
        }
        for (priority, delay) in [(8, 1), (7, 2), (3, 1), (1, 3)] {
            let number = number.clone();
            let sleeper = move || {
                let mut response = [0; 8];
                while Instant::now() < until {
                    // Its wake-up changes the other tasks' state.
                    let asked = clock::delay(clock, delay).is_ok() && send(server, &[1; 8], &mut response) == Ok(8);
                    let made = create(7, yield_now).is_ok();
                    if !(asked && made && response[0] == 2) {
                        return;
                    }
                }
                number.fetch_add(100, Relaxed);
            };
            if create(priority, sleeper).is_err() {
                return;
            }
        }
    })?;
    equal!(right, CALLERS + 400);
    Ok(())
}

/// Lets an event come at each point of a task's primitives: around a Send-Receive-Reply, the creation and the end of a
/// task, and the beginning of a wait in which no other task can run.
///
/// The event's task sometimes sleeps on its own account before it uses primitives, so that the preempted task goes on
/// though it is not its turn, and then lets the other end its wait.
fn everywhere() -> Outcome {
    /// Ticks of the system counter in which a round begins before the event: longer than a round takes.
    const AHEAD: u64 = 500;
    /// Number of rounds: one for each instruction of that time, if an instruction takes a nanosecond.
    const ROUNDS: u64 = 16 * AHEAD;
    /// Returns whether the task that is created in a round sends, too.
    fn sends(round: u64) -> bool {
        round % 7 < 2
    }
    let right = session(|number| {
        let me = my_tid();
        let latest = Arc::new(AtomicU64::new(Instant::now().ticks()));
        let Ok(server) = create(4, serve) else { return };
        let event_came = latest.clone();
        let eventful = move || {
            for round in 0.. {
                if await_event(CLOCK_EVENT).is_err() {
                    return;
                }
                event_came.store(Instant::now().ticks(), Relaxed);
                if round % 3 == 0 {
                    sleep_until(Instant::now().after(AHEAD));
                }
                if send(me, &[1; 8], &mut [0; 8]) != Ok(8) {
                    return;
                }
            }
        };
        if create(5, eventful).is_err() {
            return;
        }
        for round in 0..ROUNDS {
            let event = latest.load(Relaxed) + tick();
            // Most of the time nothing runs.
            sleep_until(Instant::from_ticks(event - 4 * AHEAD));
            while Instant::now() < Instant::from_ticks(event - round % AHEAD) {}
            // SAFETY: it only takes time.
            unsafe { assembly::delay(round / AHEAD) };
            let mut response = [0; 8];
            let served = send(server, &[1; 8], &mut response) == Ok(8) && response[0] == 2;
            // Which of two threads that switch to each other calls, and which replies, depends on who let whom go on.
            let counted = number.clone();
            let helper = move || {
                if sends(round) && send(server, &[1; 8], &mut [0; 8]) == Ok(8) {
                    counted.fetch_add(1, Relaxed);
                }
            };
            let created = create(3 + (round % 3) as i32, helper).is_ok();
            let mut message = [0; 8];
            let (sender, _) = receive(&mut message);
            let replied = reply(sender, &message) == Ok(8);
            if !(served && created && replied) {
                return;
            }
            number.fetch_add(1, Relaxed);
        }
    })?;
    equal!(right, ROUNDS + (0..ROUNDS).filter(|round| sends(*round)).count() as u64);
    Ok(())
}

/// Checks that can be made in the first session of a process.
const FIRST_SESSIONS: [fn() -> Outcome; 3] = [everywhere, indebted, helped];

/// Makes a check in a process of its own: how the threads of tasks wait for each other depends on all sessions that a
/// process has had.
fn in_first_session(check: usize) -> Outcome {
    let child = Procs::STANDARD.prepare("cases")?;
    // A session needs priorities above its caller's.
    child.configure(100, 110, 0, Powers::empty())?;
    child.argument("session")?;
    child.argument(&format!("{check}"))?;
    let child = child.start()?;
    match Procs::STANDARD.wait_until(child, Instant::now().after(400 * frequency())) {
        Ok(status) => equal!(status.exit_code(), Some(COMPLIED)),
        Err(failure) => {
            Procs::STANDARD.kill(child)?;
            return Err(failure.into());
        }
    }
    Ok(())
}

/// Runs the child of [`in_first_session`].
pub fn child(check: usize) -> Option<i32> {
    match FIRST_SESSIONS.get(check)?() {
        Ok(()) => Some(COMPLIED as i32),
        Err(failure) => {
            println!("note: {failure}");
            None
        }
    }
}

fn indebted() -> Outcome {
    let number = session(|number| {
        let end = Instant::now().after(20 * tick());
        let awaits = move || {
            let seen = number.clone();
            // No primitive: only the event can end its turn.
            let busy = move || while seen.load(Relaxed) == 0 && Instant::now() < end {};
            let came = create(4, busy).is_ok() && await_event(CLOCK_EVENT).is_ok();
            number.store(if came && Instant::now() < end { 1 } else { 2 }, Relaxed);
        };
        // The creator's thread has called the new task's.
        let _ = create(5, awaits);
    })?;
    equal!(number, 1);
    Ok(())
}

fn helped() -> Outcome {
    let number = session(|number| {
        let end = Instant::now().after(20 * tick());
        let (seen, mut message) = (number.clone(), [0; 8]);
        let awaits = move || {
            let (sender, _) = receive(&mut message);
            let busy = move || while seen.load(Relaxed) == 0 && Instant::now() < end {};
            // It is preempted, and the sender is ready then and has a higher priority.
            if create(7, busy).is_ok() && await_event(CLOCK_EVENT).is_ok() {
                let _ = reply(sender, &message);
            }
        };
        let Ok(eventful) = create(9, awaits) else { return };
        let sends = move || {
            let sent = send(eventful, &[1; 8], &mut [0; 8]).is_ok();
            number.store(if sent && Instant::now() < end { 1 } else { 2 }, Relaxed);
        };
        // Its thread has called the sender's, and waits for it meanwhile.
        let creates = move || assert!(create(8, sends).is_ok());
        let _ = create(6, creates);
    })?;
    equal!(number, 1);
    Ok(())
}

fn delays() -> Outcome {
    let late = session(|number| {
        let Ok(server) = clock::start(9, None) else { return };
        number.store(u64::MAX, Relaxed);
        let mut latest = 0;
        for delay in [1, 2, 5] {
            let begin = ticks();
            let (Ok(said), now) = (clock::delay(server, delay), ticks()) else { return };
            let wanted = begin + delay as u64;
            if said < wanted || now < said {
                return;
            }
            latest = latest.max(now - wanted);
        }
        number.store(latest, Relaxed);
    })?;
    check!(late <= 1);
    Ok(())
}

fn idle() -> Outcome {
    let share = session(|number| {
        let Ok(server) = clock::start(9, None) else { return };
        let end = ticks() + 20;
        while ticks() < end {
            // Busy for three tenths of every second tick.
            let busy = Instant::now().after(tick() * 6 / 10);
            while Instant::now() < busy {}
            if clock::delay_until(server, (ticks() / 2 * 2 + 2) as i32).is_err() {
                return;
            }
        }
        number.store(u64::from(idle_share()), Relaxed);
    })?;
    // Before the first even tick and after the last the share differs.
    check!((690..=710).contains(&share));
    Ok(())
}

fn priorities() -> Outcome {
    const OWN: Cap<SchedulingContext> = Cap::new(slot::SCHEDULING);
    let own = OWN.query()?;
    let set = |priority| OWN.configure(priority, own.ceiling, own.slice, None);
    // The threads of the first task and of the second, which the next session uses again.
    let outcome = [0, 10, 5].into_iter().try_for_each(|lower| {
        set(own.priority - lower)?;
        let sum = session(|number| {
            let other = number.clone();
            let add = |number: &AtomicU64| {
                number.fetch_add(current_thread().query().map_or(0, |thread| thread.priority), Relaxed);
            };
            add(&number);
            // It ends last. The last one's thread is left with another priority in any case.
            let _ = create(2, move || add(&other));
        })?;
        equal!(sum, 2 * (own.priority - lower + 1));
        Ok(())
    });
    set(own.priority)?;
    outcome
}
