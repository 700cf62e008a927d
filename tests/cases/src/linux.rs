//! Instances of Linux programs, as the rest of the system sees them: what is left of one that has ended in whichever
//! way, two side by side, and one whose program is hostile.
//!
//! The programs are those of `tests/linux`, which are in the archive if these cases are to run. Each says by its exit
//! code whether it found what it expected. Accounts are compared as those of [`killing`](crate::killing) are.

use alloc::format;

use tench::abi::Powers;
use tench::fs;
use tench::procs::Procs;
use tench::procs::protocol::{Error as ProcsError, State};
use tench::procs::{Failure as ProcsFailure, Status};
use tench::sys::Instant;
use tench::thread::Builder;
use tench::time::{self, Duration};

use crate::case::{Case, Failure, Outcome, said};
use crate::hostile::attacks::HELD;
use crate::killing::{fill_records, take_inventory, wait_until_gone};
use crate::stage::{LOW, Stage};

pub const CASES: &[Case] = &[
    Case::new("LNX0001", "an instance gives everything back when it ends, dies of a signal, or is killed", |_| {
        with_urgency(gives_all_back)
    }),
    Case::new("LNX0002", "killed at any step, an instance leaves nothing: first quarter", |_| at_every_step(0)),
    Case::new("LNX0003", "killed at any step, an instance leaves nothing: second quarter", |_| at_every_step(1)),
    Case::new("LNX0004", "killed at any step, an instance leaves nothing: third quarter", |_| at_every_step(2)),
    Case::new("LNX0005", "killed at any step, an instance leaves nothing: last quarter", |_| at_every_step(3)),
    Case::new("LNX0006", "two instances side by side find only their own, also when one ends", side_by_side),
    Case::new("LNX0007", "a hostile program ends only itself, and leaves another instance alone", hostile),
    Case::new("LNX0008", "whoever lends a Linux program the terminal gets it back, whatever that does", terminal),
    Case::new(
        "LNX0009",
        "a program that takes capabilities or memory ends only itself, and its instance goes on",
        thieves,
    ),
];

const PROCS: Procs = Procs::STANDARD;
/// Steps at which an instance is killed.
const STEPS: u64 = 400;
/// Priority of who kills: above all servers.
const PRIORITY: u8 = 230;
/// The longest that a program may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time after which the victim has done everything, and stays.
const SETTLED: Duration = Duration::from_millis(100);
/// The victim's program, which forks, maps, and opens files and sockets.
const VICTIM: &str = "linux/victim";
/// Where the victim sees the system's files.
const MOUNT: [&str; 2] = ["--mount", "tmp=/mnt"];
/// Files and directories that a victim may leave there, in an order in which they can be removed.
const LEFT: [&str; 3] = ["tmp/victims/v", "tmp/victims", "tmp/victim"];
/// Exit code of `linux` if SIGSEGV has ended the first process.
const SEGMENTATION_FAULT: u64 = 128 + 11;
/// Bytes that a hostile instance may have, so that it cannot take the neighbour's.
const QUOTA: u64 = 128 << 20;
/// Bytes with which an instance can run small programs.
const LITTLE: u64 = 16 << 20;
/// Seeds of the hostile program, and calls that it makes with each.
const SEEDS: u64 = 3;
const CALLS: u64 = 5000;

/// Starts `linux` with a program and its arguments.
fn start(arguments: &[&str], quota: Option<u64>) -> Outcome<u64> {
    let child = PROCS.prepare("linux")?;
    for argument in ["--quiet"].iter().chain(arguments) {
        child.argument(argument)?;
    }
    child.configure(LOW as u8, LOW as u8, 0, Powers::empty())?;
    if let Some(bytes) = quota {
        child.limit(bytes)?;
    }
    Ok(child.start()?)
}

/// Waits for an instance's end.
fn end_of(instance: u64) -> Outcome<Status> {
    Ok(PROCS.wait_until(instance, time::deadline(PATIENCE))?)
}

/// Fails unless an instance ends with a code.
#[track_caller]
fn ends_with(instance: u64, code: u64) -> Outcome {
    let status = end_of(instance)?;
    if status.exit_code() == Some(code) {
        return Ok(());
    }
    Err(Failure::new(format!("it ended otherwise: {:?}, {}", status.state, status.detail)))
}

/// Waits until nothing of an ended instance is left. An open file's capability that it was about to receive stays in
/// the file server's slot for replies until that sends another one.
fn forget(instance: u64) -> Outcome {
    for path in LEFT {
        // Most are not there.
        let _ = fs::remove(path);
    }
    drop(said(fs::open(VICTIM))?);
    wait_until_gone(instance)
}

/// Does something in a thread of a higher priority than all servers.
fn with_urgency(what: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    Builder::new().priority(PRIORITY).spawn(what)?.join()
}

/// Lets an instance end in a given way.
fn end_once(way: &str) -> Outcome {
    let instance = start(&[MOUNT[0], MOUNT[1], VICTIM, way], None)?;
    match way {
        "stay" => {
            time::sleep(SETTLED);
            equal!(PROCS.status(instance)?.state, State::Running);
            PROCS.kill(instance)?;
            equal!(end_of(instance)?.state, State::Killed);
        }
        "signal" => ends_with(instance, SEGMENTATION_FAULT)?,
        _ => ends_with(instance, 0)?,
    }
    forget(instance)
}

fn gives_all_back() -> Outcome {
    const WAYS: [&str; 3] = ["end", "signal", "stay"];
    fill_records()?;
    // Then servers have all that they ever need.
    for way in WAYS {
        end_once(way)?;
    }
    let before = take_inventory()?;
    for way in WAYS.repeat(3) {
        end_once(way)?;
        equal!(take_inventory()?, before);
    }
    Ok(())
}

fn start_victim() -> Outcome<u64> {
    start(&[MOUNT[0], MOUNT[1], VICTIM], None)
}

/// Starts an instance and kills it some time after its start, or lets it end. Returns whether it had ended by itself.
fn kill_after(ticks: u64) -> Outcome<bool> {
    let instance = start_victim()?;
    time::sleep_until(Instant::now().after(ticks));
    let killed = PROCS.kill(instance);
    let has_ended = matches!(killed, Err(ProcsFailure::Refused(ProcsError::WrongState)));
    check!(killed.is_ok() || has_ended);
    let status = end_of(instance)?;
    equal!(status.state, if has_ended { State::Exited } else { State::Killed });
    // What the program has found until then was right.
    check!(!has_ended || status.exit_code() == Some(0));
    forget(instance)?;
    Ok(has_ended)
}

fn kill_at_all(quarter: u64) -> Outcome {
    fill_records()?;
    let begin = Instant::now();
    ends_with(start_victim()?, 0)?;
    let life = Instant::now().since(begin);
    // Lets the servers' arrays grow to their final size.
    for part in 1..9 {
        kill_after(life * part / 8)?;
    }
    let before = take_inventory()?;
    let mut ended = 0;
    for number in 0..STEPS / 4 {
        let ticks = life * (number * 4 + quarter) / STEPS;
        ended += u64::from(kill_after(ticks)?);
        let after = take_inventory()?;
        if after != before {
            return Err(Failure::new(format!("killed after {ticks} ticks: {after:?}, before: {before:?}")));
        }
    }
    check!(ended < STEPS / 8);
    // Others still run programs.
    ends_with(start_victim()?, 0)
}

/// Runs every fourth step, beginning with `quarter`, so that progress is printed in between.
fn at_every_step(quarter: u64) -> Outcome {
    with_urgency(move || kill_at_all(quarter))
}

fn side_by_side(_: &mut Stage) -> Outcome {
    let long = start(&["linux/neighbours", "long", "60"], None)?;
    let short = start(&["linux/neighbours", "short", "8", "last"], None)?;
    ends_with(short, 0)?;
    equal!(PROCS.status(long)?.state, State::Running);
    let killed = start(&["linux/neighbours", "killed", "60"], None)?;
    time::sleep(Duration::from_millis(5));
    PROCS.kill(killed)?;
    equal!(end_of(killed)?.state, State::Killed);
    equal!(PROCS.status(long)?.state, State::Running);
    ends_with(long, 0)
}

fn hostile(_: &mut Stage) -> Outcome {
    let play = |seed: u64| {
        // It ends as soon as it finds something that is not its own, and otherwise not while the other plays.
        let neighbour = start(&["linux/neighbours", "good", "1000000"], None)?;
        let words = [format!("{seed}"), format!("{CALLS}")];
        let enemy = start(&["linux/hostile", &words[0], &words[1]], Some(QUOTA))?;
        ends_with(enemy, 0)?;
        equal!(PROCS.status(neighbour)?.state, State::Running);
        PROCS.kill(neighbour)?;
        equal!(end_of(neighbour)?.state, State::Killed);
        ends_with(start(&["linux/neighbours", "after", "8"], None)?, 0)?;
        forget(enemy)
    };
    fill_records()?;
    play(0)?;
    let before = take_inventory()?;
    for seed in 1..=SEEDS {
        play(seed)?;
        equal!(take_inventory()?, before);
    }
    Ok(())
}

/// Runs programs with little memory that take from their instance what it has: each would have all of it if that were
/// lost.
fn thieves(_: &mut Stage) -> Outcome {
    fill_records()?;
    let play = || -> Outcome {
        for (program, quota) in [(&["linux/powers", "4000"][..], LITTLE), (&["linux/crowd"][..], QUOTA)] {
            let instance = start(program, Some(quota))?;
            ends_with(instance, 0)?;
            forget(instance)?;
        }
        Ok(())
    };
    play()?;
    let before = take_inventory()?;
    play()?;
    equal!(take_inventory()?, before);
    Ok(())
}

/// Has a process of its own lend the terminal, so that this is nobody's again afterwards.
fn terminal(_: &mut Stage) -> Outcome {
    let lender = PROCS.prepare("cases")?;
    for argument in ["attack", "keep-terminal"] {
        lender.argument(argument)?;
    }
    lender.configure(LOW as u8, LOW as u8, 0, Powers::TERMINAL)?;
    ends_with(lender.start()?, HELD)
}
