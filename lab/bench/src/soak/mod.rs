//! Random clients that come, take, give back and are killed in the middle of anything, for as long as one likes; and
//! whether the memory server's account is right after each round.
//!
//! ```text
//!   bench soak [INSTRUCTIONS [SEED]]        rounds: starts clients, kills some, waits for all, looks at the books
//!     bench soak-client KIND SEED             random requests of one kind, until it has made enough of them
//!       bench soak-client …                     what a client of kind `spawn` starts
//! ```
//! A round is good if
//! - no client found anything wrong: an answer that cannot be, or memory that does not hold what was written;
//! - the memory server's books say what the kernel's account of the same memory says (`Audit` of the protocol);
//! - nobody has an account but those who had one before the first round: so what the clients had is free to the byte.
//!
//! A server keeps what it once needed at a time, and the process server remembers each process that has ended: that is
//! counted, and has a bound. A round that is not good ends the experiment with what was wrong.

mod client;
mod memory;
pub mod random;
mod requests;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;
use core::time::Duration;

use tench::abi::object::Statistic;
use tench::mem::slabs::Slabs;
use tench::mem::{Account, Mem};
use tench::procs::pid;
use tench::procs::protocol::{Error as ProcsError, FaultKind, State};
use tench::procs::{Failure, Procs, Status};
use tench::sys::Instant;
use tench::time::sleep;
use tench::{println, process};

pub use client::run as client;
pub use random::Random;

use crate::{KERNEL, figure};

/// Rounds of a run that is not told how long to go on.
const ROUNDS: u64 = 24;
/// Rounds that do not count: servers come to have what they need.
const WARM_UP: u64 = 16;
/// Clients of a round, at most.
const MAX_CLIENTS: u64 = 6;
/// Nanoseconds after which a client is killed, at most; one instruction is one nanosecond here.
const LONGEST_LIFE: u64 = 4_000_000;
/// Priority of the clients; this program's own is higher.
const PRIORITY: u8 = 100;
/// Bytes that all servers together may have more than after the rounds that do not count, however long it goes on;
/// without the process server.
const SERVERS_BOUND: i64 = 1 << 20;
/// The same for the process server: for its records of processes that have ended, and some bytes for each process ever.
const RECORDS_BOUND: i64 = 4 << 20;
const RECORD_BYTES: i64 = 16;
/// Slabs for the clients that ask for bundles, by log2 of their sizes: for dynamic objects, and for static ones.
const SLABS: (&[u8], &[u8]) = (&[18, 17, 17, 16, 15, 14, 13, 12, 12, 10], &[12]);

/// Says what failed.
fn problem<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("soak: {what}: {error}")
}

/// What has happened so far.
#[derive(Default)]
struct Tally {
    rounds: u64,
    clients: u64,
    /// Requests of clients that were not killed.
    requests: u64,
    killed: u64,
    /// Clients that touched a page for which there was no memory.
    exhausted: u64,
    /// Clients for whose start there was not enough memory.
    refused: u64,
}

/// Measures: runs rounds, and prints what happened.
pub fn run() -> Result<(), String> {
    let mut numbers = tench::args().skip(2).map(|text| text.parse::<u64>());
    let mut number = |otherwise: u64| numbers.next().unwrap_or(Ok(otherwise)).map_err(problem("a number"));
    let (instructions, seed) = (number(0)?, number(1)?);
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    Slabs::STANDARD.set_up(SLABS.0, SLABS.1).map_err(problem("slabs"))?;
    for _ in 0..WARM_UP {
        round(&mut random, &mut tally)?;
    }
    let before = accounts()?;
    tally = Tally::default();
    let start = executed()?;
    let mut next_note = 1;
    while tally.rounds < ROUNDS || executed()? - start < instructions {
        round(&mut random, &mut tally)?;
        compare(&before, &accounts()?, &tally)?;
        let billions = (executed()? - start) / 1_000_000_000;
        if billions >= next_note {
            println!("note: {billions} billion instructions, {} rounds, {} clients", tally.rounds, tally.clients);
            next_note = billions + 10;
        }
    }
    let after = accounts()?;
    Slabs::STANDARD.take_down().map_err(problem("slabs"))?;
    figure("rounds", tally.rounds);
    figure("accounts_left", after.len() as i64 - before.len() as i64);
    if instructions > 0 {
        figure("instructions", executed()? - start);
        figure("clients", tally.clients);
        figure("requests", tally.requests);
        figure("killed", tally.killed);
        figure("exhausted", tally.exhausted);
        figure("refused", tally.refused);
        figure("process_server_bytes", growth(&before, &after, |process| process == pid::PROCS));
        figure("other_servers_bytes", growth(&before, &after, is_server));
    }
    Ok(())
}

/// Whether a process serves others: all that are older than this one, but for the process server.
fn is_server(process: u64) -> bool {
    process < process::id() && process != pid::PROCS
}

/// Instructions executed so far, by the machine's clock: one is one nanosecond, and what was idle does not count. (The
/// counter of instructions has 32 bits.)
pub fn executed() -> Result<u64, String> {
    let idle = KERNEL.query(Statistic::IdleTicks).map_err(problem("the kernel's statistics"))?;
    let ticks = Instant::now().ticks() - idle;
    Ok((u128::from(ticks) * 1_000_000_000 / u128::from(tench::time::frequency().max(1))) as u64)
}

/// Starts clients, kills some of them at some time, waits for all, and looks at the books.
fn round(random: &mut Random, tally: &mut Tally) -> Result<(), String> {
    let mut clients = Vec::new();
    for _ in 0..=random.below(MAX_CLIENTS) {
        match start(random) {
            Ok(client) => clients.push(client),
            Err(Failure::Refused(ProcsError::OutOfMemory)) => tally.refused += 1,
            Err(failure) => return Err(problem("starting a client")(failure)),
        }
        if random.once_in(3) {
            sleep(Duration::from_nanos(random.below(LONGEST_LIFE / 4)));
        }
    }
    tally.clients += clients.len() as u64;
    for client in &clients {
        if random.once_in(2) {
            sleep(Duration::from_nanos(random.below(LONGEST_LIFE)));
            end_early(*client, random)?;
        }
    }
    for client in clients {
        judge(Procs::STANDARD.wait(client).map_err(problem("waiting for a client"))?, tally)?;
    }
    // What a client has started lives on when it is killed, and may be suspended then.
    while let Some(process) = living()? {
        let _ = Procs::STANDARD.resume(process);
        judge(Procs::STANDARD.wait(process).map_err(problem("waiting for a client's child"))?, tally)?;
    }
    tally.rounds += 1;
    audit()
}

/// Starts a client of any kind, with a quota or without.
fn start(random: &mut Random) -> Result<u64, Failure> {
    let kind = client::KINDS[random.index(client::KINDS.len())].0;
    let quota = if random.once_in(3) { None } else { Some((64 << 10) + random.below(8 << 20)) };
    client::start(kind, random.next() >> 8, quota, PRIORITY)
}

/// Kills a client, which may have come to its end by then.
fn end_early(client: u64, random: &mut Random) -> Result<(), String> {
    if random.once_in(4) {
        // Killing one that is suspended is something else again.
        match Procs::STANDARD.suspend(client) {
            Ok(()) | Err(Failure::Refused(ProcsError::WrongState)) => {}
            Err(failure) => return Err(problem("suspending a client")(failure)),
        }
    }
    match Procs::STANDARD.kill(client) {
        Ok(()) | Err(Failure::Refused(ProcsError::WrongState)) => Ok(()),
        Err(failure) => Err(problem("killing a client")(failure)),
    }
}

/// For its main thread there was no stack.
const NO_STACK: u64 = tench::runtime::NO_STACK as u64;

/// Whether a client came to an end that is allowed.
fn judge(status: Status, tally: &mut Tally) -> Result<(), String> {
    match (status.state, status.exit_code(), status.fault()) {
        (State::Killed, ..) => tally.killed += 1,
        (State::Exited, Some(code), _) if code & 0xff == 0 => tally.requests += code >> 8,
        (State::Faulted, _, Some(FaultKind::OutOfMemory)) => tally.exhausted += 1,
        (State::Exited, Some(NO_STACK), _) => tally.refused += 1,
        _ => return Err(format!("soak: client {} ended with {:?} {}", status.process, status.state, status.detail)),
    }
    Ok(())
}

/// A process younger than this one that has not ended.
fn living() -> Result<Option<u64>, String> {
    let mut last = process::id();
    loop {
        match Procs::STANDARD.next(last) {
            Ok(status) if status.state.has_ended() => last = status.process,
            Ok(status) => return Ok(Some(status.process)),
            Err(Failure::Refused(ProcsError::NoSuchProcess)) => return Ok(None),
            Err(failure) => return Err(problem("looking for clients")(failure)),
        }
    }
}

/// Compares the memory server's books with the kernel's account.
fn audit() -> Result<(), String> {
    let audit = Mem::STANDARD.audit().map_err(problem("an audit"))?;
    if audit.books != audit.kernel {
        return Err(format!("soak: the books say {:?}, and the kernel {:?}", audit.books, audit.kernel));
    }
    Ok(())
}

/// Everybody's account.
fn accounts() -> Result<Vec<Account>, String> {
    let mut accounts = Vec::with_capacity(16);
    let mut last = 0;
    while let Ok(account) = Mem::STANDARD.next_account(last) {
        last = account.process;
        accounts.push(account);
    }
    if accounts.is_empty() { Err("soak: nobody has an account".into()) } else { Ok(accounts) }
}

/// Whether there are the same accounts as before, and not too much in those of the servers.
fn compare(before: &[Account], after: &[Account], tally: &Tally) -> Result<(), String> {
    let numbers = |accounts: &[Account]| accounts.iter().map(|account| account.process).collect::<Vec<_>>();
    if numbers(before) != numbers(after) {
        return Err(format!("soak: there are accounts of {:?}, and were of {:?}", numbers(after), numbers(before)));
    }
    let servers = growth(before, after, is_server);
    let records = growth(before, after, |process| process == pid::PROCS);
    // A client may have started some others.
    let processes = tally.clients as i64 * 8;
    if servers > SERVERS_BOUND || records > RECORDS_BOUND + processes * RECORD_BYTES {
        return Err(format!("soak: the servers have {servers} bytes more than before, the process server {records}"));
    }
    Ok(())
}

/// How much more some processes have than they had.
fn growth(before: &[Account], after: &[Account], whose: impl Fn(u64) -> bool) -> i64 {
    let used = |accounts: &[Account]| -> i64 {
        accounts.iter().filter(|account| whose(account.process)).map(|account| account.used as i64).sum()
    };
    used(after) - used(before)
}
