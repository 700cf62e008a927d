//! Hostile clients of each server, while somebody else is served.
//!
//! Two processes with several threads each ask a server for nonsense and for everything, give up before they are
//! answered, do not read what they are answered, and are killed in the middle of it ([`client`]). Meanwhile this
//! program asks the server for a fixed piece of work and looks at every answer ([`work`]): it is right, and costs what
//! it costs alone, as far as nobody of the same priority takes a time slice. When the hostile ones have been killed,
//! the books say what they said before.

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
use tench::time::{frequency, sleep};
use tench::{memory, println};

pub use client::run as client;

use crate::case::{Case, Failure, Outcome};
use crate::child::Random;
use crate::stage::PRIORITY;

/// The cases.
pub const CASES: &[Case] = &[
    Case::new("HOS0001", "a hostile client of the memory server harms nobody else", |_| attack("mem", &work::blocks)),
    Case::new("HOS0002", "a hostile client of the process server harms nobody else", |_| {
        attack("procs", &work::processes)
    }),
    Case::new("HOS0003", "a hostile client of the name server harms nobody else", |_| attack("names", &work::names)),
    Case::new("HOS0004", "a hostile client of the clock harms nobody else", |_| attack("clock", &work::delays)),
    Case::new("HOS0005", "a hostile client of the console harms nobody else", |_| attack("console", &work::texts)),
    Case::new("HOS0006", "a hostile client of the file server harms nobody else", |_| attack("files", &work::streams)),
    Case::new("HOS0007", "a hostile client of an external pager harms nobody else", |_| pager::serve_beside_enemies()),
];

const MEM: Mem = Mem::STANDARD;
const PROCS: Procs = Procs::STANDARD;
/// Hostile processes at a time.
const ENEMIES: u64 = 2;
/// Threads of each that attack.
const ENEMY_THREADS: u64 = 4;
/// Bytes that each may have: more than the memory server has slots for, in blocks of a page.
const QUOTA: u64 = 64 << 20;
/// Rounds until the servers have what they ever need, at most. A round in which nothing grows ends the case.
const ROUNDS: u64 = 12;
/// Pieces of work in a round, alone, beside enemies of lower priority, and beside those of the same.
const PIECES: u64 = 12;
/// Time for the enemies before each piece, in nanoseconds: at most.
const HEAD_START: u64 = 300_000;
/// Instructions until a thread whose request has run out of time is ready to run, with all that the server does for it.
const INTERRUPTION: u64 = 3_000;
/// In a hundred parts, what work may cost beside enemies of lower priority, of what it costs alone.
const BOUND: u64 = 200;

/// What must be as it was.
#[derive(Debug, PartialEq, Eq)]
struct Books {
    totals: Totals,
    /// Bytes and blocks of everybody who has an account.
    accounts: Vec<(u64, u64, u64)>,
    /// Capabilities of the servers that a manager can look into.
    capabilities: [usize; 4],
    names: usize,
    files: Usage,
}

impl Books {
    fn read() -> Outcome<Books> {
        work::remove_files()?;
        let audit = MEM.audit()?;
        equal!(audit.books, audit.kernel);
        let mut accounts = Vec::with_capacity(64);
        let mut last = 0;
        while let Ok(account) = MEM.next_account(last) {
            last = account.process;
            // This program's heap is not of interest.
            if last != tench::process::id() {
                accounts.push((last, account.used, account.blocks));
            }
        }
        let mut capabilities = [0; 4];
        for (count, name) in capabilities.iter_mut().zip(["names", "clock", "console", "files"]) {
            *count = capabilities_of(PROCS.find(name, 0)?)?;
        }
        let totals = Totals { largest: 0, ..MEM.totals()? };
        Ok(Books { totals, accounts, capabilities, names: work::count_names(), files: work::file_usage()? })
    }
}

/// How many capabilities a process has.
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

/// Whom enemies attack, and what is done meanwhile.
struct Scene<'a> {
    server: &'a str,
    work: &'a dyn Fn(u64) -> Outcome<u64>,
    /// Of a pager of this program.
    endpoint: Option<Cap<Endpoint>>,
}

/// A capability for a client of this program's pager.
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

/// Kills a hostile client, wherever it is; that it was an end of its own is possible.
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
    // It may have said that it has ended, or that it has faulted; what it does not is run out of its library.
    check!(matches!(
        (status.state, status.exit_code()),
        (State::Killed | State::Faulted, _) | (State::Exited, Some(0 | 2..))
    ));
    scene.endpoint.map_or(Ok(()), |endpoint| pager::forget(endpoint, enemy))
}

/// Instructions that pieces of work cost together, with enemies there or not.
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

/// Work beside enemies of a priority. One of them is killed and another one comes before the second half.
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

fn attack(server: &str, work: &dyn Fn(u64) -> Outcome<u64>) -> Outcome {
    play(&Scene { server, work, endpoint: None })
}

fn play(scene: &Scene<'_>) -> Outcome {
    let server = scene.server;
    let mut random = Random::new(server.bytes().map(u64::from).sum());
    // What this program and the servers need for the work itself, they have then.
    let _ = measure(scene, &mut random, 0)?;
    let mut before = Books::read()?;
    for round in 0..ROUNDS {
        let alone = 2 * measure(scene, &mut random, 1)?;
        let lower = beside(scene, &mut random, PRIORITY - 10)?;
        let same = beside(scene, &mut random, PRIORITY)?;
        println!(
            "note: {server}: {alone} instructions alone, {} % beside hostile clients of lower priority, {} % of the same",
            lower * 100 / alone,
            same * 100 / alone
        );
        // Requests of theirs that run out of time interrupt it, at most one of each thread while a piece of work is
        // done.
        let interruptions = 2 * PIECES * ENEMIES * ENEMY_THREADS * INTERRUPTION;
        check!(lower <= alone * BOUND / 100 + interruptions);
        // Each thread that attacks may have its time slice whenever this one has used up its own, or has waited.
        let slice = frequency() / 100 * 1_000_000_000 / frequency();
        check!(same <= alone * BOUND / 100 + 2 * PIECES * ENEMIES * ENEMY_THREADS * slice);
        let after = Books::read()?;
        if before == after {
            return Ok(());
        }
        println!("note: {server}: after round {round}: {before:?} became {after:?}");
        before = after;
    }
    Err(Failure::new("something grows in every round"))
}

/// The time in ticks.
fn now() -> u64 {
    Instant::now().ticks()
}
