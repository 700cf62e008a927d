//! A soak test of arbitrary length: random clients start, take and give back memory and are killed at any moment, and
//! the memory server's account must be right after each round.
//!
//! ```text
//!   bench soak [INSTRUCTIONS [SEED]]        rounds: starts clients, kills some, waits for all, checks the accounts
//!     bench soak-client KIND SEED             random requests of one kind, until it has made enough of them
//!       bench soak-client …                     what a client of kind `spawn` starts
//! ```
//! A round is good if
//! - no client found an error: an impossible reply, or memory that does not hold what was written;
//! - the memory server's metadata agree with the kernel's account of the same memory (`Audit` of the protocol);
//! - only processes that had an account before the first round have one: so the clients' memory is free to the byte.
//!
//! A server keeps the most memory it ever needed at a time, and the process server remembers each ended process: both
//! are counted and bounded. A round that is not good ends the experiment with the reason.

mod client;
mod memory;
mod requests;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
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
use tench_random::Random;

pub use client::run as client;

use crate::support::{KERNEL, figure, problem};

/// Default number of rounds.
const ROUNDS: u64 = 24;
/// Rounds that do not count: the servers allocate what they keep.
const WARM_UP: u64 = 16;
/// Maximum number of clients of a round.
const MAX_CLIENTS: u64 = 6;
/// Maximum lifetime of a client that is killed, in nanoseconds; one instruction is one nanosecond here.
const LONGEST_LIFE: u64 = 4_000_000;
/// Priority of the clients, below this program's own.
const PRIORITY: u8 = 100;
/// Maximum growth in bytes of all servers together, without the process server, after the rounds that do not count.
const SERVERS_BOUND: i64 = 1 << 20;
/// Maximum growth in bytes of the process server: its records of ended processes, besides some bytes for each process
/// ever.
const RECORDS_BOUND: i64 = 4 << 20;
const RECORD_BYTES: i64 = 16;
/// Slabs for the clients that request bundles, by log2 of their sizes: for dynamic objects, and for static ones.
const SLABS: (&[u8], &[u8]) = (&[18, 17, 17, 16, 15, 14, 13, 12, 12, 10], &[12]);

/// Counts of what has happened so far.
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

/// Runs rounds, and prints the counts.
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

/// Returns whether a process is a server: all that are older than this one, except the process server.
fn is_server(process: u64) -> bool {
    process < process::id() && process != pid::PROCS
}

/// Returns the instructions executed so far, by the machine's clock: one is one nanosecond, and idle time does not
/// count. (The instruction counter has 32 bits.)
pub fn executed() -> Result<u64, String> {
    let idle = KERNEL.query(Statistic::IdleTicks).map_err(problem("the kernel's statistics"))?;
    let ticks = Instant::now().ticks() - idle;
    Ok((u128::from(ticks) * 1_000_000_000 / u128::from(tench::time::frequency().max(1))) as u64)
}

/// Starts clients, kills some of them at some time, waits for all, and checks the accounts.
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
    // Processes started by a killed client live on, and may be suspended.
    while let Some(process) = live_process()? {
        let _ = Procs::STANDARD.resume(process);
        judge(Procs::STANDARD.wait(process).map_err(problem("waiting for a client's child"))?, tally)?;
    }
    tally.rounds += 1;
    audit()
}

/// Starts a client of a random kind, with a quota or without.
fn start(random: &mut Random) -> Result<u64, Failure> {
    let kind = client::KINDS[random.index(client::KINDS.len())].0;
    let quota = if random.once_in(3) { None } else { Some((64 << 10) + random.below(8 << 20)) };
    client::start(kind, random.next() >> 8, quota, PRIORITY)
}

/// Kills a client, which may have ended by then.
fn end_early(client: u64, random: &mut Random) -> Result<(), String> {
    if random.once_in(4) {
        // Killing a suspended client is another case.
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

/// Exit code of a client without memory for its main thread's stack.
const NO_STACK: u64 = tench::runtime::NO_STACK as u64;

/// Fails unless a client's end is allowed.
fn judge(status: Status, tally: &mut Tally) -> Result<(), String> {
    match (status.state, status.exit_code(), status.fault()) {
        (State::Killed, ..) => tally.killed += 1,
        (State::Exited, Some(code), _) if code & 0xff == 0 => tally.requests += code >> 8,
        (State::Faulted, _, Some(FaultKind::OutOfMemory)) => tally.exhausted += 1,
        (State::Exited, Some(NO_STACK), _) => tally.refused += 1,
        _ => return Err(format!("client {} ended with {:?} {}", status.process, status.state, status.detail)),
    }
    Ok(())
}

/// Returns a process younger than this one that has not ended.
fn live_process() -> Result<Option<u64>, String> {
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

/// Compares the memory server's metadata with the kernel's account.
fn audit() -> Result<(), String> {
    let audit = Mem::STANDARD.audit().map_err(problem("an audit"))?;
    if audit.ledger != audit.kernel {
        return Err(format!("the ledger says {:?}, and the kernel {:?}", audit.ledger, audit.kernel));
    }
    Ok(())
}

/// Returns all accounts.
fn accounts() -> Result<Vec<Account>, String> {
    let mut accounts = Vec::with_capacity(16);
    let mut last = 0;
    while let Ok(account) = Mem::STANDARD.next_account(last) {
        last = account.process;
        accounts.push(account);
    }
    if accounts.is_empty() { Err("nobody has an account".into()) } else { Ok(accounts) }
}

/// Fails unless there are the same accounts as before, and the servers' have not grown too much.
fn compare(before: &[Account], after: &[Account], tally: &Tally) -> Result<(), String> {
    let numbers = |accounts: &[Account]| accounts.iter().map(|account| account.process).collect::<Vec<_>>();
    if numbers(before) != numbers(after) {
        return Err(format!("there are accounts of {:?}, and were of {:?}", numbers(after), numbers(before)));
    }
    let servers = growth(before, after, is_server);
    let records = growth(before, after, |process| process == pid::PROCS);
    // A client may have started some others.
    let processes = tally.clients as i64 * 8;
    if servers > SERVERS_BOUND || records > RECORDS_BOUND + processes * RECORD_BYTES {
        return Err(format!("the servers have {servers} bytes more than before, the process server {records}"));
    }
    Ok(())
}

/// Returns the growth in bytes of some processes' accounts.
fn growth(before: &[Account], after: &[Account], whose: impl Fn(u64) -> bool) -> i64 {
    let used = |accounts: &[Account]| -> i64 {
        accounts.iter().filter(|account| whose(account.process)).map(|account| account.used as i64).sum()
    };
    used(after) - used(before)
}
