//! Costs of a process: R0's figures 13 and 17, its latency of spawning by the number of existing processes, and on from
//! 25 to 1,000.
//!
//! | key | what |
//! |---|---|
//! | `rpc_N` | `create` and `start` by the process server, with N processes, until the caller has its reply |
//! | `local_N` | creation and start by the loader library in the caller, with memory and capabilities of its own |
//! | `hello_N` | `rpc_N` of the program `hello` |
//! | `hello_end_N` | from then on until `wait` returns that it has ended: its run and its end |
//! | `main_N` | from `create` to the first instruction of `main` |
//! | `kill_N` | `kill` of one that waits, until its memory is free and the reply is there |
//! | `local_end_N` | the end by the caller itself, of one that it has loaded itself |
//! | `local_kept_kib` | memory that those have requested themselves of the memory server, which stays their maker's |
//! | `…_percent` | what 1,000 costs in per cent of 25 |
//!
//! Samples `rpc`, `local`, `kill`, `local_end` over the number of processes. `rpc_N` and so on are means of the last 25
//! up to the N-th, because now and then an array or a node grows. All of them are alive: each has run until it waits
//! before the next one is made. All figures are instructions of all participants together.

mod local;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;
use core::time::Duration;

use tench::mem::Mem;
use tench::println;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::time::{instructions, sleep};

use crate::support::{self, figure, mean, problem};

/// Numbers of processes at which there are figures.
const SIZES: [usize; 2] = [25, 1000];
/// Number of spawns that a figure is the mean of.
const MEAN: usize = 25;
/// A program that waits; with an argument, it also reports when it came to `main`.
const WAITING: &str = "wait";
/// Bits of an instruction count that fit into an exit code.
const CODE: u64 = 0x3fff_ffff;
/// Time for a new process to reach its wait. No other process runs meanwhile, so this costs nothing.
const SETTLED: Duration = Duration::from_millis(2);

/// Returns the instructions of an operation that must succeed.
fn cost<T, E: Display>(what: &str, operation: impl FnOnce() -> Result<T, E>) -> Result<(T, u64), String> {
    let (result, cost) = support::cost(operation);
    Ok((result.map_err(problem(what))?, cost))
}

/// Returns the mean of the last few costs.
fn last(costs: &[u64]) -> u64 {
    mean(&costs[costs.len().saturating_sub(MEAN)..])
}

/// Costs of successive processes.
struct Series {
    name: &'static str,
    costs: Vec<u64>,
}

impl Series {
    fn new(name: &'static str) -> Series {
        Series { name, costs: Vec::with_capacity(SIZES[SIZES.len() - 1]) }
    }

    /// Adds the cost of one; `number` processes exist.
    fn add(&mut self, number: usize, cost: u64) {
        self.costs.push(cost);
        println!("sample: {} {number} {cost}", self.name);
    }

    /// Prints the figure for a number of processes.
    fn figure(&self, number: usize) {
        figure(&format!("{}_{number}", self.name), last(&self.costs));
    }
}

/// Prints a figure with many processes in per cent of the one with few.
fn percent(name: &str, few: u64, many: u64) {
    figure(&format!("{name}_percent"), support::percent(many, few));
}

/// Measures programs that run and end, beside `number` waiting ones.
fn passing(number: usize) -> Result<[u64; 3], String> {
    let procs = Procs::STANDARD;
    let mut costs = [const { Vec::new() }; 3];
    for _ in 0..MEAN {
        let (process, started) = cost("starting hello", || procs.spawn("hello", &[]))?;
        let (ended, end) = cost("waiting for hello", || procs.wait(process))?;
        if ended.exit_code() != Some(0) {
            return Err(String::from("hello has not ended well"));
        }
        let before = instructions();
        let process = procs.spawn(WAITING, &["main"]).map_err(problem("starting one that ends"))?;
        let ended = procs.wait(process).map_err(problem("waiting for its end"))?;
        if ended.state != State::Exited {
            return Err(String::from("one that should end has not"));
        }
        let main = ended.detail.wrapping_sub(before) & CODE;
        for (costs, cost) in costs.iter_mut().zip([started, end, main]) {
            costs.push(cost);
        }
    }
    let means = costs.map(|costs| last(&costs));
    for (name, mean) in ["hello", "hello_end", "main"].into_iter().zip(means) {
        figure(&format!("{name}_{number}"), mean);
    }
    Ok(means)
}

/// Ends all processes, the newest first.
fn kill_all(mut processes: Vec<u64>) -> Result<[u64; SIZES.len()], String> {
    let mut series = Series::new("kill");
    let mut means = [0; SIZES.len()];
    while let Some(process) = processes.pop() {
        let number = processes.len() + 1;
        let ((), cost) = cost("killing", || Procs::STANDARD.kill(process))?;
        series.add(number, cost);
        if let Some(place) = SIZES.iter().position(|size| number == (*size).saturating_sub(MEAN) + 1) {
            means[place] = last(&series.costs);
            figure(&format!("kill_{}", SIZES[place]), means[place]);
        }
    }
    Ok(means)
}

/// Measures spawning by the process server.
fn rpc() -> Result<(), String> {
    let procs = Procs::STANDARD;
    let mut series = Series::new("rpc");
    let mut processes = Vec::new();
    let mut means = Vec::new();
    for number in 1..=SIZES[SIZES.len() - 1] {
        let (process, cost) = cost("starting", || procs.spawn(WAITING, &[]))?;
        series.add(number, cost);
        processes.push(process);
        sleep(SETTLED);
        if SIZES.contains(&number) {
            series.figure(number);
            means.push((last(&series.costs), passing(number)?));
        }
    }
    for process in &processes {
        let status = procs.status(*process).map_err(problem("looking"))?;
        if status.state != State::Running || status.ticks == 0 {
            return Err(format!("process {process} does not wait, it is {:?}", status.state));
        }
    }
    let kill = kill_all(processes)?;
    let [(few, passing_few), (many, passing_many)] = means[..] else { return Err(String::from("no figures")) };
    percent("rpc", few, many);
    percent("hello", passing_few[0], passing_many[0]);
    percent("hello_end", passing_few[1], passing_many[1]);
    percent("kill", kill[0], kill[1]);
    Ok(())
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let free = || Mem::STANDARD.totals().map(|totals| totals.free).map_err(problem("the memory server's totals"));
    rpc()?;
    let before = free()?;
    local::run()?;
    // The memory they were made of has come back; what they have requested of the memory server is on this program's
    // account.
    let kept = before.saturating_sub(free()?);
    figure("local_kept_kib", kept / 1024);
    Ok(())
}
