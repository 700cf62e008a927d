//! Endless attacks: the hostile clients of [`client`](mod@super::super::client), at each server, from each core.

use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::clock::Clock;
use tench::console::protocol::Console;
use tench::names::Names;
use tench::procs::{Procs, pid};
use tench::sys::{Cap, Endpoint, Error, Instant, Message, Wait};
use tench::thread::Builder;
use tench_monitor_interface::Monitor;

use super::super::client;
use super::kernel::SERVERS;
use super::{Attack, empty, procs_of, said, soon};
use crate::case::{Failure, Outcome};

pub const ATTACKS: &[Attack] = &[
    Attack::new("flood-mem", "a flood of requests to the memory server holds nobody up", || flood("mem")).endless(),
    Attack::new("flood-procs", "nor one to the process server", || flood("procs")).endless().replying_within(STARTS),
    Attack::new("flood-names", "nor one to the name server", || flood("names")).endless(),
    Attack::new("flood-clock", "nor one to the clock", || flood("clock")).endless(),
    Attack::new("flood-console", "nor one to the console", || flood("console")).endless(),
    Attack::new("flood-files", "nor one to the file server", || flood("files")).endless(),
    Attack::new("flood-reserve", "nor one to the reservation server", || flood("reserve")).endless(),
    Attack::new("flood-roots", "nor processes started and ended with as many slots as can be", flood_roots)
        .endless()
        .replying_within(STARTS),
    Attack::new("flood-cores", "nor one to the process servers and monitors of all cores", flood_cores)
        .endless()
        .unlimited(),
    Attack::new("spin", "nor threads that are busy", spin).endless(),
    Attack::new("deadlines", "nor threads that wait for a moment again and again", deadlines).endless(),
    Attack::new("clock-waits", "nor those that let the clock wake them again and again", clock_waits).endless(),
    Attack::new(
        "server-deadlines",
        "nor deadlines of requests that pass while servers carry out others",
        server_deadlines,
    )
    .endless(),
    Attack::new("sent", "nothing can be sent to a server that nobody waits for", sent),
];

const PROCS: Procs = Procs::STANDARD;
/// Microseconds for which the client waits at most beside threads that start and end processes one after another: a
/// turn of each.
const STARTS: u64 = 22_000;
/// Number of threads that do the same.
const THREADS: usize = 6;
const STACK: usize = 16 << 10;

pub fn flood(server: &str) -> Outcome {
    client(server, tench::process::id());
    // The flood goes on until the process is killed.
    Err(Failure::new("the flood did not begin"))
}

/// Starts threads that do something for ever, and does it in the calling thread, too.
pub fn together(what: impl Fn() + Copy + Send + 'static) -> Outcome {
    let endless = move || {
        loop {
            what();
        }
    };
    for _ in 1..THREADS {
        said(Builder::new().stack_size(STACK).spawn(endless))?.detach();
    }
    endless()
}

/// Starts and ends processes whose CSpaces have roots of 4 MiB.
fn flood_roots() -> Outcome {
    together(|| {
        let Ok(child) = PROCS.prepare("hello") else { return };
        let _ = child.set_slots(1 << 24);
        if let Ok(process) = child.start() {
            let _ = PROCS.kill(process);
            let _ = PROCS.wait_until(process, soon(20_000));
        }
    })
}

fn flood_cores() -> Outcome {
    let slot = empty()?;
    let monitor = Names::STANDARD.look_up(Monitor::NAME, slot).ok().map(Monitor::at);
    let mut all = Vec::from([Procs::STANDARD]);
    if let Some(monitor) = monitor {
        for core in 0..said(monitor.cores())?.0 {
            all.push(procs_of(monitor, core)?);
        }
    }
    let all: &'static [Procs] = all.leak();
    together(move || {
        for procs in all {
            let _ = procs.load();
            if let Ok(child) = procs.prepare("hello") {
                let _ = child.argument("x");
                child.abandon();
            }
        }
        if let Some(monitor) = monitor {
            let _ = (monitor.ping(0), monitor.ping(1), monitor.memory(0), monitor.exchanged());
        }
    })
}

fn spin() -> Outcome {
    together(core::hint::spin_loop)
}

fn deadlines() -> Outcome {
    together(|| {
        let event = tench::thread::own_notification();
        let _ = event.map(|event| event.wait_until(Instant::now().after(60)));
    })
}

fn clock_waits() -> Outcome {
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, empty()?))?);
    together(move || {
        let _ = clock.delay(60);
    })
}

/// Threads whose requests' deadlines pass, for each thread that makes long requests.
const TIMED: usize = 12;

/// Lets deadlines of requests pass while the process server, the console and the clock serve long ones. A server that
/// then took its own priority to count would do most of its work at that priority.
fn server_deadlines() -> Outcome {
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, empty()?))?);
    let own = tench::process::id();
    for number in 0..TIMED {
        let wait = move || {
            let step = 20 + 7 * number as u64;
            loop {
                match number % 3 {
                    0 => drop(PROCS.wait_limited(own, soon(step))),
                    1 => drop(Console::STANDARD.get_until(1, soon(step))),
                    _ => drop(clock.delay_until(soon(step))),
                }
            }
        };
        said(Builder::new().stack_size(STACK).spawn(wait))?.detach();
    }
    together(move || {
        // The child ends by itself if nothing kills it.
        if let Ok(child) = PROCS.spawn("cases", &["comply"]) {
            let _ = PROCS.kill(child);
        }
        let _ = (Console::STANDARD.write(&[b'\n'; 200]), clock.delay(30), clock.time());
    })
}

fn sent() -> Outcome {
    let clock = said(Names::STANDARD.look_up(Clock::NAME, empty()?))?;
    // On the other cores there are proxies of these servers, which the monitors manage.
    let here = if pid::split_pid(tench::process::id()).0 == 0 { SERVERS.len() } else { 2 };
    equal!(SERVERS[..2], [slot::PROCS, slot::MEM]);
    let others = if here == 2 { None } else { Some(clock) };
    for server in SERVERS.into_iter().take(here).map(Cap::<Endpoint>::new).chain(others) {
        for label in 0..32 {
            let message = Message::with_words(label, &[tench::process::id(), 1, 2]);
            equal!(server.send(&message, Wait::until(soon(1000))), Err(Error::CallsOnly));
            equal!(server.try_send(&message), Err(Error::CallsOnly));
        }
    }
    Ok(())
}
