//! Tests with hostile clients of each server, while another client is served.
//!
//! Two processes with several threads each make random requests of a server and request all that they can, give up
//! before they get a reply, do not read replies, and are killed meanwhile ([`client`](mod@client)). At the same time
//! this program has the server do a fixed workload and checks every reply ([`work`]): each is right, and the workload
//! costs what it costs alone, except for turns of threads of equal priority. When the hostile processes have been
//! killed, all accounts are as before.

pub mod attacks;
pub mod authority;
mod client;
mod pager;
pub mod powers;
mod shares;
mod streams;
mod work;

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use tench::abi::Powers;
use tench::files::protocol::Usage;
use tench::mem::{Mem, Totals};
use tench::procs::Procs;
use tench::procs::protocol::{Error as ProcsError, State};
use tench::sys::{Cap, CapAddress, Endpoint, Instant, Rights};
use tench::time::sleep;
use tench::{memory, println};
use tench_random::Random;

pub use client::run as client;

use crate::case::{Case, Failure, Outcome};
use crate::stage::PRIORITY;

pub const CASES: &[Case] = &[
    Case::new("HOS0001", "a hostile client of the memory server harms nobody else", |_| {
        attack("mem", 0, &work::blocks)
    }),
    Case::new("HOS0002", "a hostile client of the process server harms nobody else", |_| {
        attack("procs", 8, &work::processes)
    }),
    Case::new("HOS0003", "a hostile client of the name server harms nobody else", |_| {
        attack("names", 20, &work::names)
    }),
    Case::new("HOS0004", "a hostile client of the clock harms nobody else", |_| attack("clock", 8, &work::delays)),
    Case::new("HOS0005", "a hostile client of the console harms nobody else", |_| attack("console", 9, &work::texts)),
    Case::new("HOS0006", "a hostile client of the file server harms nobody else", |_| {
        attack("files", 80, &work::streams)
    }),
    Case::new("HOS0007", "a hostile client of an external pager harms nobody else", |_| pager::serve_beside_enemies()),
];

const MEM: Mem = Mem::STANDARD;
const PROCS: Procs = Procs::STANDARD;
/// Number of hostile processes at a time.
const ENEMIES: u64 = 2;
/// Number of attacking threads of each.
const ENEMY_THREADS: u64 = 4;
/// Bytes that each hostile process may have: more blocks of a page than the memory server has slots for.
const QUOTA: u64 = 64 << 20;
/// Maximum number of rounds until the servers have all they ever need. A round in which nothing grows ends the case.
const ROUNDS: u64 = 12;
/// Workloads in a round: alone, beside enemies of lower priority, and beside enemies of the same.
const PIECES: u64 = 12;
/// Maximum time for the enemies before each workload, in nanoseconds.
const HEAD_START: u64 = 300_000;
/// Instructions until a thread whose request has timed out is ready to run, including all that the server does for it.
const INTERRUPTION: u64 = 3_000;
/// Maximum instructions of a hostile thread's turn, on average: it makes a request, the server works for it, and when
/// it waits for the reply it goes behind its equals. It never uses up its time slice, which would be a thousand times
/// as long. 2,300 to 4,700 have been seen.
const TURN: u64 = 8_000;
/// Bound on the workload's cost beside enemies of lower priority, in percent of its cost alone.
const BOUND: u64 = 200;

/// Figures of the system that must be the same before and after the attacks.
#[derive(Debug, PartialEq, Eq)]
struct Inventory {
    totals: Totals,
    /// Bytes and blocks of each account.
    accounts: Vec<(u64, u64, u64)>,
    /// Number of capabilities of each server that a manager can inspect.
    capabilities: [usize; 4],
    names: usize,
    files: Usage,
}

impl Inventory {
    fn read() -> Outcome<Inventory> {
        work::remove_files()?;
        let audit = MEM.audit()?;
        equal!(audit.ledger, audit.kernel);
        let mut accounts = Vec::with_capacity(64);
        let mut last = 0;
        while let Ok(account) = MEM.next_account(last) {
            last = account.process;
            // This program's heap is left out.
            if last != tench::process::id() {
                accounts.push((last, account.used, account.blocks));
            }
        }
        let mut capabilities = [0; 4];
        for (count, name) in capabilities.iter_mut().zip(["names", "clock", "console", "files"]) {
            *count = capabilities_of(PROCS.find(name, 0)?)?;
        }
        let totals = Totals { largest: 0, ..MEM.totals()? };
        Ok(Inventory { totals, accounts, capabilities, names: work::count_names(), files: work::file_usage()? })
    }
}

/// Returns the number of capabilities that a process has.
pub fn capabilities_of(process: u64) -> Outcome<usize> {
    let (mut count, mut from) = (0, CapAddress::new(0, 1));
    loop {
        let (next, found) = PROCS.capabilities(process, from)?;
        count += found.iter().count();
        if next == CapAddress::NULL {
            return Ok(count);
        }
        from = next;
    }
}

/// The server that the enemies attack, and the workload run meanwhile.
struct Scene<'a> {
    server: &'a str,
    work: &'a dyn Fn(u64) -> Outcome<u64>,
    /// Number of times that the workload goes behind its equals: once for each request whose reply does not take the
    /// kernel's fast path, and for each wait.
    turns: u64,
    /// Endpoint of a pager of this program.
    endpoint: Option<Cap<Endpoint>>,
}

/// Makes a capability for a client of this program's pager.
fn badged(endpoint: Cap<Endpoint>, client: u64) -> Outcome<Cap<Endpoint>> {
    Ok(endpoint.mint_to(memory::take_slot()?, Rights::WRITE | Rights::CALL | Rights::GRANT, client)?)
}

/// Starts a hostile client.
fn enemy(scene: &Scene<'_>, seed: u64, priority: u64) -> Outcome<u64> {
    let mut spawn = PROCS.prepare("cases")?;
    if let Some(endpoint) = scene.endpoint {
        let badged = badged(endpoint, spawn.process())?;
        spawn.give(badged)?;
        badged.delete()?;
        memory::free_slot(badged.address());
    }
    for argument in ["hostile", scene.server, &format!("{seed}")] {
        spawn.argument(argument)?;
    }
    spawn.configure(priority as u8, priority as u8, 0, Powers::empty())?;
    spawn.limit(QUOTA)?;
    Ok(spawn.start()?)
}

/// Kills a hostile client, wherever it is; it may have ended by itself.
fn kill(scene: &Scene<'_>, enemy: u64, random: &mut Random) -> Outcome {
    if random.below(3) == 0 {
        match PROCS.suspend(enemy) {
            Ok(()) | Err(tench::procs::Failure::Refused(ProcsError::WrongState)) => sleep(Duration::from_micros(50)),
            Err(failure) => return Err(failure.into()),
        }
    }
    match PROCS.kill(enemy) {
        Ok(()) | Err(tench::procs::Failure::Refused(ProcsError::WrongState)) => {}
        Err(failure) => return Err(failure.into()),
    }
    let status = PROCS.wait(enemy)?;
    // It may have reported its end or a fault; it never runs past its library.
    check!(matches!(
        (status.state, status.exit_code()),
        (State::Killed | State::Faulted, _) | (State::Exited, Some(0 | 2..))
    ));
    scene.endpoint.map_or(Ok(()), |endpoint| pager::forget(endpoint, enemy))
}

/// Returns the instructions that the workloads take together, with or without enemies.
fn measure(scene: &Scene<'_>, random: &mut Random, head_start: u64) -> Outcome<u64> {
    let mut cost = 0;
    for piece in 0..PIECES {
        if head_start > 0 {
            sleep(Duration::from_nanos(random.below(head_start)));
        }
        cost += (scene.work)(piece)?;
    }
    Ok(cost)
}

/// Runs the workload beside enemies of a priority. One of them is killed and replaced before the second half.
fn beside(scene: &Scene<'_>, random: &mut Random, priority: u64) -> Outcome<u64> {
    let mut enemies: Vec<u64> = Vec::new();
    let mut outcome = Ok(0);
    for _ in 0..ENEMIES {
        enemies.push(enemy(scene, random.next() >> 40, priority)?);
    }
    // They take what they can get.
    sleep(Duration::from_millis(20));
    for half in 0..2 {
        let cost = measure(scene, random, HEAD_START);
        outcome = outcome.and_then(|before| cost.map(|cost| before + cost));
        kill(scene, enemies.remove(0), random)?;
        if half == 0 {
            enemies.push(enemy(scene, random.next() >> 40, priority)?);
        }
    }
    for enemy in enemies {
        kill(scene, enemy, random)?;
    }
    outcome
}

fn attack(server: &str, turns: u64, work: &dyn Fn(u64) -> Outcome<u64>) -> Outcome {
    play(&Scene { server, work, turns, endpoint: None })
}

fn play(scene: &Scene<'_>) -> Outcome {
    let server = scene.server;
    let mut random = Random::new(server.bytes().map(u64::from).sum());
    // Then this program and the servers have all that the workload itself needs.
    let _ = measure(scene, &mut random, 0)?;
    let mut before = Inventory::read()?;
    for round in 0..ROUNDS {
        let alone = 2 * measure(scene, &mut random, 1)?;
        let lower = beside(scene, &mut random, PRIORITY - 10)?;
        let same = beside(scene, &mut random, PRIORITY)?;
        println!(
            "note: {server}: {alone} instructions alone, {} % beside hostile clients of lower priority, {} % of the same",
            lower * 100 / alone,
            same * 100 / alone
        );
        // Their requests that time out interrupt the workload, at most one of each thread while a workload is done.
        let interruptions = 2 * PIECES * ENEMIES * ENEMY_THREADS * INTERRUPTION;
        check!(lower <= alone * BOUND / 100 + interruptions);
        // Whenever this thread has gone behind its equals, or has used up its time slice, each of them has a turn.
        let turns = (2 * PIECES * scene.turns + 1) * ENEMIES * ENEMY_THREADS;
        check!(same <= alone * BOUND / 100 + interruptions + turns * TURN);
        let after = Inventory::read()?;
        if before == after {
            return Ok(());
        }
        println!("note: {server}: after round {round}: {before:?} became {after:?}");
        before = after;
    }
    Err(Failure::new("something grows in every round"))
}

/// Returns the time in ticks.
fn now() -> u64 {
    Instant::now().ticks()
}
