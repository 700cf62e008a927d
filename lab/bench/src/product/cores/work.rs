//! Independent work on several cores: the cost to each other of cores that do not interact.
//!
//! A unit of work takes memory page by page, computes in it, gives it back, makes requests of its core's memory server
//! and process server, and makes a thread and awaits it. So it uses the kernel, the servers and the memory of its core,
//! and nothing of others.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use tench::mem::Mem;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::thread;
use tench::time::instructions;

use super::{monitor, problem, procs};
use crate::support::{figure, percent};

/// Number of cores of the machine.
const CORES: u64 = 8;
/// Numbers of working cores.
const NUMBERS: [u64; 4] = [1, 2, 4, 8];
/// Number of units on each core.
const UNITS: u64 = 16;
/// Bytes of memory that a unit takes; each says whether its index is a prime.
const SIZE: usize = 256 << 10;
/// Number of primes below `SIZE`, at most.
const PRIMES: usize = 23_000;

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    let monitor = monitor(CORES - 1)?;
    // The servers of each core grow to their final size.
    let servers: Vec<Procs> = (0..CORES).map(|core| procs(monitor, core)).collect::<Result<_, _>>()?;
    cost(&servers)?;
    let mut costs = Vec::new();
    for number in NUMBERS {
        let cost = cost(&servers[..number as usize])?;
        figure(&format!("work_{number}"), cost);
        costs.push(cost);
    }
    if let [one, .., eight] = costs[..] {
        figure("work_percent", percent(eight, one));
    }
    Ok(())
}

/// Returns the machine's instructions for each unit of work on the cores of these process servers, including the start
/// and the end of the processes.
fn cost(servers: &[Procs]) -> Result<u64, String> {
    let start = instructions();
    let mut workers = Vec::new();
    for procs in servers {
        let worker = procs.spawn("bench", &["cores-child"]).map_err(problem("starting who works"))?;
        workers.push((procs, worker));
    }
    for (procs, worker) in workers {
        let ended = procs.wait(worker).map_err(problem("waiting for who works"))?;
        if (ended.state, ended.detail) != (State::Exited, 0) {
            return Err(format!("{worker:#x}, which works, has {} with {}", ended.state, ended.detail));
        }
    }
    Ok((instructions() - start) / (servers.len() as u64 * UNITS))
}

/// Runs the process on each core.
pub fn child() -> Result<(), String> {
    (0..UNITS).try_for_each(|_| unit())
}

/// Does a unit of work.
fn unit() -> Result<(), String> {
    let primes = thread::spawn(sieve).join();
    let total = Mem::STANDARD.totals().map_err(|failure| failure.to_string())?.total;
    let known = Procs::STANDARD.next(0).map_err(|failure| failure.to_string())?.process;
    if primes != PRIMES || total == 0 || known == 0 {
        return Err(format!("{primes} primes, {total} bytes, process {known}"));
    }
    Ok(())
}

/// Returns the number of primes.
fn sieve() -> usize {
    let mut is_prime = vec![true; SIZE];
    is_prime[..2].fill(false);
    let mut number = 2;
    while number * number < SIZE {
        if is_prime[number] {
            is_prime[number * number..].iter_mut().step_by(number).for_each(|is| *is = false);
        }
        number += 1;
    }
    is_prime.iter().filter(|is| **is).count()
}
