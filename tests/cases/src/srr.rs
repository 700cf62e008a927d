//! Tests of Send-Receive-Reply on the target: the specification that the simulation on the host meets, and what only
//! real time can show.

use alloc::format;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tench::mem::Mem;
use tench::sys::Instant;
use tench::time::frequency;
use tench_srr::cases::{self, Case as Specification};
use tench_srr::{
    CLOCK_EVENT, Error, TICKS_PER_SECOND, Terminal, Tid, await_event, clock, create, exit, idle_share, my_tid, receive,
    reply, run, send, ticks, yield_now,
};

use crate::case::{Case, Failure, Outcome};

pub const CASES: &[Case] = &[
    Case::new("SRR0001", "the primitives behave as specified", |_| check_all(cases::CASES)),
    Case::new("SRR0002", "events and the clock server behave as specified", |_| check_all(cases::time::CASES)),
    Case::new("SRR0003", "an event takes over from a busy task", |_| preempted()),
    Case::new("SRR0004", "events interfere with no primitive, wherever they come", |_| interfering()),
    Case::new("SRR0005", "delays are never early, and late by less than a tick", |_| delays()),
    Case::new("SRR0006", "the idle share is what no task has used", |_| idle()),
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
