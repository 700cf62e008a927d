//! A test that starts and ends processes, in every way and at every moment, and checks that nothing is left of them.
//!
//! ```text
//!   bench spawn-kill [INSTRUCTIONS [SEED]]     one cycle after another: starts a process, ends it, checks the accounts
//!     bench spawn-kill-child WORKLOAD                does something until it is killed, exits or faults
//! ```
//! First, as many processes end as the process server remembers: from then on it forgets one for each that ends, and so
//! must not grow by a byte. After each cycle, all memory but the process server's is as free as before. After every 64,
//! all accounts are compared, the process server's included, and the capabilities of the servers that a manager can
//! inspect.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tench::abi::Powers;
use tench::clock::Clock;
use tench::mem::{Mem, Totals};
use tench::names::Names;
use tench::procs::pid;
use tench::procs::protocol::{Error as ProcsError, State};
use tench::procs::{Failure, Procs};
use tench::sys::{CapAddress, Endpoint};
use tench::time::sleep;
use tench::{memory, process, thread};
use tench_random::Random;

use crate::product::soak::executed;
use crate::support::{figure, problem};

/// Default number of cycles.
const CYCLES: u64 = 512;
/// Cycles that do not count: the servers allocate what they keep.
const WARM_UP: u64 = 64;
/// Cycles that do not count in a long run.
const LONG_WARM_UP: u64 = 1024;
/// Cycles after which everything is checked.
const EPOCH: u64 = 64;
/// Number of ended processes that the process server remembers at most.
const REMEMBERED: u64 = 4096;
/// Maximum nanoseconds after which a process is ended; one instruction is one nanosecond here.
const LONGEST_LIFE: u64 = 1_200_000;
/// Priority of the processes, below this program's own.
const PRIORITY: u8 = 100;
/// Exit code of the process that exits.
const CODE: u64 = 42;

const MEM: Mem = Mem::STANDARD;
const PROCS: Procs = Procs::STANDARD;

/// Body of a process: runs until it is killed, or returns none if it was refused something.
type Workload = fn() -> Option<()>;

/// Bodies of processes by name, and whether they end by themselves.
const WORKLOADS: [(&str, Workload, bool); 8] = [
    ("exit", || tench::exit(CODE as i32), true),
    ("fault", fault, true),
    ("memory", take_memory, false),
    ("names", register_names, false),
    ("clock", wait_for_times, false),
    ("wait", wait_for_a_name, false),
    ("spawn", spawn, false),
    ("threads", make_threads, false),
];

// ── What the processes do ────────────────────────────────────────────────────────────────────────────────────────────

/// Reads an unmapped address.
fn fault() -> Option<()> {
    // SAFETY: the first page is never mapped, so this ends the process.
    unsafe { core::ptr::without_provenance::<u8>(8).read_volatile() };
    None
}

fn take_memory() -> Option<()> {
    loop {
        let held: [_; 6] = core::array::from_fn(|index| memory::Pages::new(4096 << index).ok());
        drop(held);
        let slot = memory::take_slot().ok()?;
        if let Ok(block) = MEM.allocate(16, slot) {
            MEM.free(block.number).ok()?;
        }
        memory::free_slot(slot);
    }
}

fn register_names() -> Option<()> {
    let endpoint = memory::make::<Endpoint>(0).ok()?;
    let name = format!("spawn-kill/{}", process::id());
    loop {
        Names::STANDARD.register(&name, endpoint.cap()).ok()?;
        Names::STANDARD.unregister(&name).ok()?;
    }
}

fn wait_for_times() -> Option<()> {
    let slot = memory::take_slot().ok()?;
    let clock = Clock::at(Names::STANDARD.look_up(Clock::NAME, slot).ok()?);
    (1..20).try_for_each(|ticks| clock.delay(ticks).ok().map(drop))?;
    clock.delay(u64::MAX).ok().map(drop)
}

fn wait_for_a_name() -> Option<()> {
    Names::STANDARD.wait_for("nobody is called so", memory::take_slot().ok()?).ok().map(drop)
}

fn spawn() -> Option<()> {
    loop {
        PROCS.prepare("bench").ok()?.abandon();
        let child = PROCS.spawn("bench", &["spawn-kill-child", "exit"]).ok()?;
        PROCS.wait(child).ok()?;
        // This process is neither started nor abandoned.
        PROCS.prepare("bench").ok()?.argument("never").ok()?;
    }
}

fn make_threads() -> Option<()> {
    loop {
        let other = thread::spawn(|| sleep(Duration::from_micros(3)));
        thread::yield_now();
        other.join();
    }
}

/// Runs such a process.
pub fn child() -> Result<(), String> {
    let name = tench::args().nth(2).unwrap_or("");
    let workload =
        WORKLOADS.iter().find(|(workload, ..)| *workload == name).ok_or_else(|| format!("nobody does {name}"))?;
    // It must run until it is killed.
    (workload.1)().ok_or_else(|| format!("{name} is refused what it asks for"))
}

// ── What is looked at ────────────────────────────────────────────────────────────────────────────────────────────────

/// State that must be the same before and after.
#[derive(Debug, PartialEq, Eq)]
struct Inventory {
    /// Totals without the process server's and this program's.
    totals: Totals,
    /// Bytes of the servers other than the process server.
    servers: u64,
    /// Number of capabilities of the servers that a manager can inspect.
    capabilities: usize,
}

/// Returns the bytes on an account.
fn used(process: u64) -> Result<u64, String> {
    let account = MEM.next_account(process - 1).map_err(problem("an account"))?;
    if account.process == process { Ok(account.used) } else { Err(format!("{process} has no account")) }
}

/// Returns the bytes of each account, to help find what is missing.
fn accounts() -> Vec<(u64, u64)> {
    let mut last = 0;
    let next = || {
        let account = MEM.next_account(last).ok()?;
        last = account.process;
        Some((account.process, account.used))
    };
    core::iter::from_fn(next).collect()
}

/// Returns the totals without the process server's and this program's.
fn totals() -> Result<Totals, String> {
    let totals = MEM.totals().map_err(problem("all memory"))?;
    let others = used(pid::PROCS)? + used(process::id())?;
    // The number of these two processes' blocks and the largest free block do not matter.
    Ok(Totals { free: totals.free + others, largest: 0, blocks: 0, ..totals })
}

/// Returns the number of capabilities that a process has.
fn capabilities(process: u64) -> Result<usize, String> {
    let (mut count, mut from) = (0, CapAddress::new(0, 1));
    loop {
        let (next, found) = PROCS.capabilities(process, from).map_err(problem("a server's capabilities"))?;
        count += found.iter().count();
        if next == CapAddress::NULL {
            return Ok(count);
        }
        from = next;
    }
}

impl Inventory {
    fn read() -> Result<Inventory, String> {
        let audit = MEM.audit().map_err(problem("an audit"))?;
        if audit.ledger != audit.kernel {
            return Err(format!("the ledger says {:?}, and the kernel {:?}", audit.ledger, audit.kernel));
        }
        let (mut servers, mut last) = (0, 0);
        while let Ok(account) = MEM.next_account(last) {
            last = account.process;
            servers += if last == pid::PROCS || last == process::id() { 0 } else { account.used };
        }
        let found = ["names", "clock", "console"].map(|name| PROCS.find(name, 0).map_err(problem("a server")));
        let capabilities =
            found.into_iter().try_fold(0, |sum, server| Ok::<_, String>(sum + capabilities(server?)?))?;
        Ok(Inventory { totals: totals()?, servers, capabilities })
    }

    fn compare(&self) -> Result<(), String> {
        let now = Inventory::read()?;
        if now == *self { Ok(()) } else { Err(format!("{self:?} became {now:?}")) }
    }
}

// ── Cycles ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Counts of how the processes ended.
#[derive(Default)]
struct Tally {
    cycles: u64,
    killed: u64,
    exited: u64,
    faulted: u64,
}

/// Fails on an error, unless the process has ended by itself.
fn unless_ended(result: Result<(), Failure>, what: &str) -> Result<(), String> {
    match result {
        Ok(()) | Err(Failure::Refused(ProcsError::WrongState)) => Ok(()),
        Err(failure) => Err(problem(what)(failure)),
    }
}

/// Starts a process, and ends it and all that it has started.
fn cycle(random: &mut Random, tally: &mut Tally) -> Result<(), String> {
    // A fault is reported on the console, which takes longer than everything else.
    let index = if random.once_in(32) { 1 } else { [0, 2, 3, 4, 5, 6, 7][random.index(7)] };
    let (workload, _, ends) = WORKLOADS[index];
    let spawn = PROCS.prepare("bench").map_err(problem("preparing"))?;
    ["spawn-kill-child", workload]
        .into_iter()
        .try_for_each(|text| spawn.argument(text))
        .map_err(problem("an argument"))?;
    spawn.configure(PRIORITY, PRIORITY, 0, Powers::empty()).map_err(problem("its priority"))?;
    let child = spawn.start().map_err(problem("starting"))?;
    let waits = ends && random.once_in(2);
    if !waits {
        // Sometimes before its first instruction.
        if !random.once_in(8) {
            sleep(Duration::from_nanos(random.below(LONGEST_LIFE)));
        }
        if random.once_in(4) {
            unless_ended(PROCS.suspend(child), "suspending")?;
        }
        if random.once_in(2) {
            unless_ended(PROCS.kill(child), "killing")?;
        }
    }
    if !waits {
        kill_all()?;
    }
    let status = PROCS.wait(child).map_err(problem("waiting"))?;
    match status.state {
        State::Killed if !waits => tally.killed += 1,
        State::Exited if index == 0 && status.exit_code() == Some(CODE) => tally.exited += 1,
        State::Faulted if index == 1 => tally.faulted += 1,
        _ => return Err(format!("{workload} ended with {:?} {}", status.state, status.detail)),
    }
    tally.cycles += 1;
    Ok(())
}

/// Kills all processes of this program except itself: the process, if it still runs, and its children.
fn kill_all() -> Result<(), String> {
    let own = process::id();
    loop {
        match PROCS.find("bench", own) {
            Ok(process) => unless_ended(PROCS.kill(process), "killing all")?,
            Err(Failure::Refused(ProcsError::NoSuchProcess)) => return Ok(()),
            Err(failure) => return Err(problem("finding")(failure)),
        }
    }
}

/// Starts and kills processes until the process server's records are full.
fn fill_records() -> Result<(), String> {
    for ended in 1..=REMEMBERED {
        let spawn = PROCS.prepare("bench").map_err(problem("preparing"))?;
        spawn.configure(PRIORITY, PRIORITY, 0, Powers::empty()).map_err(problem("its priority"))?;
        let child = spawn.start().map_err(problem("starting"))?;
        PROCS.kill(child).map_err(problem("killing"))?;
        if ended.is_multiple_of(512) {
            tench::println!("note: the process server remembers {ended}");
        }
    }
    Ok(())
}

/// Runs cycles, and prints the counts.
pub fn run() -> Result<(), String> {
    let mut numbers = tench::args().skip(2).map(|text| text.parse::<u64>());
    let mut number = |otherwise: u64| numbers.next().unwrap_or(Ok(otherwise)).map_err(problem("a number"));
    let (instructions, seed) = (number(0)?, number(1)?);
    let (mut random, mut tally) = (Random::new(seed), Tally::default());
    // This program's own part in it must not grow later.
    let slot = memory::take_slot().map_err(problem("a slot"))?;
    let found = Names::STANDARD.look_up(Clock::NAME, slot).map_err(problem("the clock"))?;
    found.delete().map_err(problem("the clock"))?;
    memory::free_slot(slot);
    fill_records()?;
    // A long run meets rare states.
    for _ in 0..if instructions > 0 { LONG_WARM_UP } else { WARM_UP } {
        cycle(&mut random, &mut tally)?;
    }
    let (before, records, owners) = (Inventory::read()?, used(pid::PROCS)?, accounts());
    let start = executed()?;
    tally = Tally::default();
    while tally.cycles < CYCLES || executed()? - start < instructions {
        cycle(&mut random, &mut tally)?;
        if totals()? != before.totals {
            let (cycles, was, is) = (tally.cycles, &before.totals, totals()?);
            return Err(format!(
                "cycle {cycles}: {was:?} became {is:?}; by process: {owners:?} became {:?}",
                accounts()
            ));
        }
        if tally.cycles.is_multiple_of(EPOCH) {
            before.compare()?;
            let now = used(pid::PROCS)?;
            if now != records {
                return Err(format!("cycle {}: the process server had {records} bytes, and has {now}", tally.cycles));
            }
        }
        if tally.cycles.is_multiple_of(10_000) {
            tench::println!("note: {} cycles, {} instructions", tally.cycles, executed()? - start);
        }
    }
    before.compare()?;
    figure("cycles", tally.cycles);
    figure("bytes_lost", totals()?.free.abs_diff(before.totals.free));
    figure("process_server_bytes", used(pid::PROCS)?.abs_diff(records));
    figure("capabilities_left", Inventory::read()?.capabilities - before.capabilities);
    if instructions > 0 {
        figure("instructions", executed()? - start);
        figure("killed", tally.killed);
        figure("exited", tally.exited);
        figure("faulted", tally.faulted);
    }
    Ok(())
}
