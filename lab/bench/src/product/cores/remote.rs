//! Measurements through the monitors of two cores: pings, and programs that are started and awaited.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tench::procs::Procs;
use tench::sync::Barrier;
use tench::thread;
use tench::time::instructions;
use tench_monitor_interface::Monitor;

use super::channel::{TIMES, WARM_UP, mean};
use super::{TOGETHER, between, by_number, monitor, problem, procs};
use crate::support::{figure, percent};

/// Number of repetitions that the mean is taken of.
const SPAWNS: u64 = 25;
/// Number of repetitions before those that count.
const FIRST_SPAWNS: u64 = 8;
/// The other core.
const OTHER: u64 = 1;

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    let monitor = monitor(OTHER)?;
    figure("sleep_1", mean(|| ping(monitor))?);
    for together in TOGETHER {
        by_number("sleep_1", together, many(monitor, together)?);
    }
    let there = procs(monitor, OTHER)?;
    let (local, remote) = (spawns(Procs::STANDARD)?, spawns(there)?);
    figure("spawn_local", local);
    figure("spawn_remote", remote);
    figure("spawn_percent", percent(remote, local));
    figure("server_local", ask(monitor, 0)?);
    figure("server_remote", ask(monitor, OTHER)?);
    between::run(monitor, there)
}

/// Returns the cost of a request to the process server of a core, by a capability to its endpoint.
fn ask(monitor: Monitor, core: u64) -> Result<u64, String> {
    let procs = procs(monitor, core)?;
    mean(|| procs.load().map(drop).map_err(problem("a request")))
}

fn ping(monitor: Monitor) -> Result<(), String> {
    monitor.ping(OTHER).map(drop).map_err(problem("ping"))
}

/// Returns the cost of each ping of this many threads, from when all are ready until all are done.
fn many(monitor: Monitor, together: u64) -> Result<u64, String> {
    let meeting = Arc::new(Barrier::new(together as usize + 1));
    let each = || {
        let meeting = Arc::clone(&meeting);
        let work = move || {
            let warm = (0..WARM_UP).try_for_each(|_| ping(monitor));
            meeting.wait();
            let pinged = (0..TIMES).try_for_each(|_| ping(monitor));
            meeting.wait();
            warm.and(pinged)
        };
        thread::spawn(work)
    };
    let threads: Vec<_> = (0..together).map(|_| each()).collect();
    meeting.wait();
    let start = instructions();
    meeting.wait();
    let cost = instructions() - start;
    threads.into_iter().try_for_each(|thread| thread.join())?;
    Ok(cost / TIMES / together)
}

/// Returns the cost of starting `hello` and learning of its end. Work left when the reply arrives counts for the next.
fn spawns(procs: Procs) -> Result<u64, String> {
    (0..FIRST_SPAWNS).try_for_each(|_| spawn(procs))?;
    let start = instructions();
    (0..SPAWNS).try_for_each(|_| spawn(procs))?;
    Ok((instructions() - start) / SPAWNS)
}

/// Starts `hello` through a process server, and learns of its end.
fn spawn(procs: Procs) -> Result<(), String> {
    let process = procs.spawn("hello", &[]).map_err(problem("spawn"))?;
    let ended = procs.wait(process).map_err(problem("wait"))?;
    match ended.exit_code() {
        Some(0) => Ok(()),
        _ => Err(format!("cores: hello has {:?} with {}", ended.state, ended.detail)),
    }
}
