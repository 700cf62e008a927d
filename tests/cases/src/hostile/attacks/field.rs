//! The environment of an attack, and the judgement when it is over.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use tench::abi::process::DEFAULT_PRIORITY;
use tench::fs;
use tench::io::{Read, Write};
use tench::names::Names;
use tench::println;
use tench::procs::{Procs, Spawn, pid};
use tench::sys::Instant;
use tench::time::{self, frequency, sleep};
use tench_monitor_interface::Monitor;

use super::bystander::Bystander;
use super::capacity::Capacity;
use super::client::{Client, Served};
use super::inventory::{Inventory, used};
use super::reserved::{Reserved, Seen};
use super::turns::Turns;
use super::{Attack, Cores, End, LINES, LINES_END, held, leavers, meter, said};
use crate::case::{Failure, Outcome};
use crate::child::COMPLIED;

const PROCS: Procs = Procs::STANDARD;
/// Time for which an endless attack runs.
const SPAN: Duration = Duration::from_millis(40);
/// Maximum time of an attack that ends by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval at which the end of an attack is checked.
const MOMENT: Duration = Duration::from_millis(1);
/// Bytes that an attack may have, with all it starts: more single pages than the memory server has slots for.
const QUOTA: u64 = 80 << 20;
/// Maximum microseconds of a round of the client, on average.
const ROUND: u64 = 20_000;
/// Percentage of the first core's time that must be left: without a flood it is about 80, and others may have a fifth
/// of the time.
pub const LEFT: u64 = 60;
/// A file that attackers do not own.
pub const VICTIM: &str = "/tmp/not-yours";
const TEXT: &[u8] = b"untouched";
/// Bytes that the process server may use to remember ended processes.
const RECORDS: u64 = 4 << 20;
/// Bounds by which an attack is judged.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// Microseconds within which the client must get each reply.
    pub reply_time: u64,
    /// Maximum number of rounds until the servers have all they ever need. A round in which nothing grows is the last.
    /// What has grown until then is reused for later requests, so [each later program](Capacity) gets as much as at the
    /// beginning.
    pub rounds: usize,
    /// How often the check that everything came back is repeated, after twice the time each time: messages to another
    /// core that are not received are kept for ten seconds.
    pub looks: u32,
    /// Percentage of the first core's time that must be left to programs of the usual priority, if that is checked.
    pub left: Option<u64>,
}

impl Bounds {
    /// Bounds for attacks, which must be resisted.
    pub const USUAL: Bounds = Bounds { reply_time: super::REPLY_TIME, rounds: 8, looks: 8, left: None };
    /// Bounds for controls, which must be detected.
    pub const CONTROL: Bounds = Bounds { rounds: 3, looks: 2, ..Bounds::USUAL };
}

/// The processes and threads that run beside an attack.
pub struct Field {
    reserved: Reserved,
    client: Client,
    monitor: Option<Monitor>,
    /// Process servers of all cores, this core's first.
    cores: Vec<Procs>,
    turns: Turns,
    /// Bytes of the process server at the beginning.
    records: u64,
    /// Capacity in the servers' tables at the beginning.
    capacity: Capacity,
}

impl Field {
    /// Starts the processes and threads.
    pub fn new() -> Outcome<Field> {
        let monitor = Names::STANDARD.look_up(Monitor::NAME, super::empty()?).ok().map(Monitor::at);
        let mut cores = Vec::from([PROCS]);
        if let Some(monitor) = monitor {
            let (count, _) = said(monitor.cores())?;
            for core in 1..count {
                cores.push(Procs::at(said(monitor.processes(core, super::empty()?))?));
            }
        }
        if cores.len() > 1 && !meter::is_there() {
            return Err(Failure::new("nobody tells turns of other cores from what is late"));
        }
        let turns = Turns::new(&cores[1..])?;
        let reserved = Reserved::start()?;
        let client = Client::start()?;
        let capacity = Capacity::first()?;
        Ok(Field { reserved, client, monitor, cores, turns, records: used(pid::PROCS)?, capacity })
    }

    /// Checks that a program gets as much room in the servers' tables as at the beginning.
    pub fn check_capacity(&self) -> Outcome {
        self.capacity.check()
    }

    /// Checks that what the process server remembers is bounded.
    pub fn close(&self) -> Outcome {
        let grown = used(pid::PROCS)?.saturating_sub(self.records);
        println!("note: the process server has {} KiB more than at the beginning", grown >> 10);
        check!(grown <= RECORDS);
        Ok(())
    }

    /// Returns whether the machine has several cores.
    pub fn has_several_cores(&self) -> bool {
        self.cores.len() > 1
    }

    /// Runs an attack.
    pub fn play(&mut self, attack: &Attack) -> Outcome {
        let attackers = match attack.cores {
            Cores::First => &self.cores[..1],
            Cores::Second => &self.cores[1..2],
            Cores::Every | Cores::Several => &self.cores[..],
        };
        let attackers = attackers.to_vec();
        let left = if attack.cores == Cores::Second { Some(LEFT) } else { None };
        let bounds = Bounds { reply_time: attack.reply_time, left, ..Bounds::USUAL };
        self.beside(attack.name, bounds, &mut || assault(attack, &attackers))
    }

    /// Runs an attack while others are served, and judges it. As servers may have to allocate something the first time,
    /// the attack may run several times until everything is as before.
    pub fn beside(&mut self, name: &str, bounds: Bounds, assault: &mut dyn FnMut() -> Outcome) -> Outcome {
        make_victim()?;
        // A quantity that returns to an earlier value does not grow, whichever round that was in.
        let mut seen_before = Vec::from([Inventory::read(self.monitor)?]);
        for round in 1..=bounds.rounds {
            make_victim()?;
            let start = Instant::now();
            self.reserved.seen();
            self.turns.start_events()?;
            let bystander = bounds.left.map(|_| Bystander::start()).transpose()?;
            self.client.go();
            let outcome = assault().and_then(|()| others_start());
            time::sleep_until(start.after(tench::sys::time::ticks(SPAN, frequency())));
            let left = bystander.map(Bystander::end);
            let served = self.client.rest()?;
            self.turns.stop_events()?;
            let seen = self.reserved.seen();
            let passed = Instant::now().since(start) * 1_000_000 / frequency();
            println!(
                "note: {name}: {} jobs, {} late, the longest {} of {} us; {} rounds in {} us, the longest request {} us at {}",
                seen.jobs,
                seen.late,
                seen.longest,
                self.reserved.reservation.deadline / 1000,
                served.rounds,
                passed,
                served.longest.0,
                served.longest.1
            );
            if let Some(left) = left {
                println!("note: {name}: {left} % of the core were left to programs");
            }
            let outcome = outcome.and_then(|()| match (left, bounds.left) {
                (Some(left), Some(least)) if left < least => {
                    Err(Failure::new(format!("{left} % of the core were left to programs, of {least}")))
                }
                _ => Ok(()),
            });
            outcome.and_then(|()| judge(seen, served, passed, bounds.reply_time)).and_then(|()| look_at_victim())?;
            let after = self.read_until_stable(&seen_before, bounds.looks)?;
            // Late deletion also counts.
            let seen = self.reserved.seen();
            judge(seen, Served { rounds: u64::MAX, ..served }, passed, bounds.reply_time)?;
            let (held, before) = (after.held(), seen_before[0].held());
            if held != before {
                return Err(Failure::new(format!("what is held grows: {before:?} became {held:?}")));
            }
            if seen_before.contains(&after) {
                // A table that is full does not grow any more either.
                return if round > 1 { self.capacity.check() } else { Ok(()) };
            }
            println!("note: {name}: after round {round}, {:?} became {after:?}", seen_before.last());
            seen_before.push(after);
        }
        Err(Failure::new("something grows in every round"))
    }

    /// Waits until the accounts are as before, or do not change any more; returns them.
    fn read_until_stable(&self, before: &[Inventory], looks: u32) -> Outcome<Inventory> {
        let mut after = Inventory::read(self.monitor)?;
        for look in 0..looks {
            if before.contains(&after) {
                break;
            }
            let rest = MOMENT * (1 << look);
            // Messages to a process on another core that has ended are kept for longer.
            sleep(if self.monitor.is_some() { 50 * rest } else { rest });
            after = Inventory::read(self.monitor)?;
        }
        Ok(after)
    }
}

/// Fails if a round violated a bound.
fn judge(seen: Seen, served: Served, passed: u64, reply_time: u64) -> Outcome {
    if seen.late > 0 {
        let Seen { jobs, late, longest } = seen;
        return Err(Failure::new(format!("{late} of {jobs} reserved jobs were late, the longest took {longest} us")));
    }
    if let Some(wrong) = served.wrong {
        return Err(Failure::new(format!("the client got a wrong reply from {wrong}")));
    }
    let (longest, whose) = served.longest;
    if longest > reply_time {
        return Err(Failure::new(format!("the client waited {longest} us for a reply of {whose}")));
    }
    if served.rounds < passed / ROUND {
        return Err(Failure::new(format!("the client had {} rounds in {passed} us", served.rounds)));
    }
    Ok(())
}

/// Prepares an attacking process, with standard capabilities, and mostly without powers.
fn prepare(procs: Procs, attack: &Attack) -> Outcome<Spawn> {
    let child = procs.prepare("cases")?;
    child.argument("attack")?;
    child.argument(attack.name)?;
    child.argument(&format!("{}", tench::process::id()))?;
    child.configure(DEFAULT_PRIORITY, DEFAULT_PRIORITY, 0, attack.powers)?;
    if attack.is_limited {
        child.limit(QUOTA)?;
    }
    Ok(child)
}

/// Lets an attack run on some cores at the same time, and collects its results.
fn assault(attack: &Attack, cores: &[Procs]) -> Outcome {
    let mut processes = Vec::new();
    for procs in cores {
        processes.push((*procs, prepare(*procs, attack)?.start()?));
    }
    let span = if attack.end == End::Any { SPAN } else { PATIENCE };
    let end = time::deadline(span);
    let mut outcome = Ok(());
    for (procs, process) in processes {
        let ended = ends_before(procs, process, end)?;
        if !ended {
            // The process may be ending just now.
            let _ = procs.kill(process);
        }
        let found = match (attack.end, ended) {
            (End::Any, _) => endless(procs, process),
            (End::Returns, true) => held(procs, process),
            (End::Returns, false) => Err(Failure::new("it did not end")),
        };
        outcome = outcome.and(found);
    }
    outcome.and(leavers::clear())
}

fn ends_before(procs: Procs, process: u64, end: Instant) -> Outcome<bool> {
    while Instant::now() < end {
        if procs.status(process)?.state.has_ended() {
            return Ok(true);
        }
        sleep(MOMENT);
    }
    Ok(false)
}

/// Waits for the end of an endless attack. If it reports a gain, that counts.
fn endless(procs: Procs, process: u64) -> Outcome {
    let status = said(procs.wait_until(process, time::deadline(PATIENCE)))?;
    match status.exit_code() {
        // An endless attack may also have ended itself, with any code.
        Some(line @ LINES..LINES_END) => Err(Failure::new(format!("something was gained, at line {}", line - LINES))),
        _ => Ok(()),
    }
}

/// Checks that another process can start a program, and that the program ends as it should.
fn others_start() -> Outcome {
    let child = PROCS.spawn("cases", &["comply"])?;
    let status = said(PROCS.wait_until(child, time::deadline(Duration::from_secs(2))))?;
    equal!(status.exit_code(), Some(COMPLIED));
    Ok(())
}

fn make_victim() -> Outcome {
    said(said(fs::create(VICTIM))?.write(TEXT))?;
    Ok(())
}

fn look_at_victim() -> Outcome {
    let mut found = [0; 16];
    let length = said(said(fs::open(VICTIM))?.read(&mut found))?;
    equal!(&found[..length], TEXT);
    Ok(())
}
