//! Independent work on several cores: what cores that have nothing to do with each other cost each other.
//!
//! A unit of work takes memory page by page, computes in it, gives it back, asks its core's memory server and process
//! server, and makes a thread and awaits it. So it uses the kernel, the servers and the memory of its core, and nothing
//! of others.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use tench::mem::Mem;
use tench::procs::Procs;
use tench::thread;
use tench::time::instructions;
use tench_monitor_client::Monitor;
use tench_monitor_client::protocol::Condition;

use super::{monitor, percent, problem};
use crate::figure;

/// Cores of the machine.
const CORES: u64 = 8;
/// On how many of them is worked.
const NUMBERS: [u64; 4] = [1, 2, 4, 8];
/// Units on each.
const UNITS: u64 = 16;
/// This program and its arguments there, each with a zero byte.
const CHILD: &[u8] = b"bench\0cores-child\0";
/// Bytes of memory that a unit takes, of which each says whether its number is a prime.
const SIZE: usize = 256 << 10;
/// Primes below `SIZE`.
const PRIMES: usize = 23_000;

/// Measures.
pub fn run() -> Result<(), String> {
    let monitor = monitor(CORES - 1)?;
    // The servers of each core become as large as they have to be.
    cost(monitor, CORES)?;
    let mut costs = Vec::new();
    for number in NUMBERS {
        let cost = cost(monitor, number)?;
        figure(&format!("work_{number}"), cost);
        costs.push(cost);
    }
    if let [one, .., eight] = costs[..] {
        percent("work_percent", eight, one);
    }
    Ok(())
}

/// Instructions of the machine for each unit of work on so many cores, with what it takes to start and await who works.
fn cost(monitor: Monitor, cores: u64) -> Result<u64, String> {
    let start = instructions();
    let mut workers = Vec::new();
    for core in 0..cores {
        workers.push(monitor.spawn(core, CHILD).map_err(problem("starting who works"))?);
    }
    for worker in workers {
        let ended = monitor.wait(worker).map_err(problem("waiting for who works"))?;
        if (ended.state, ended.detail) != (Condition::Exited, 0) {
            return Err(format!("cores: {worker:#x}, which works, has {} with {}", ended.state, ended.detail));
        }
    }
    Ok((instructions() - start) / (cores * UNITS))
}

/// What runs on each core.
pub fn child() -> Result<(), String> {
    (0..UNITS).try_for_each(|_| unit())
}

/// A unit of work.
fn unit() -> Result<(), String> {
    let primes = thread::spawn(sieve).join();
    let total = Mem::STANDARD.totals().map_err(|failure| failure.to_string())?.total;
    let known = Procs::STANDARD.next(0).map_err(|failure| failure.to_string())?.process;
    if primes != PRIMES || total == 0 || known == 0 {
        return Err(format!("cores: {primes} primes, {total} bytes, process {known}"));
    }
    Ok(())
}

/// How many primes there are.
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
