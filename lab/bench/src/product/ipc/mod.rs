//! Costs of the kernel's paths.
//!
//! Every figure is a number of retired instructions: those of the kernel and the instruction that enters it, from its
//! caller up to the first instruction of the next thread. [`programs`] says what exactly lies between two readings of
//! the counter; the cost of the readings is measured by the same loop around nothing, and subtracted.
//!
//! ```text
//! programs   the loops, in assembly      address_space   the other address space
//! actor      a thread with its loop      passages   from readings to figures
//! messages   paths between two threads   single     paths that return to their caller
//! faults     faults, upcalls, interrupts
//! parked     calls to a server that owes other callers their replies
//! ```
//! Each path is taken [`ROUNDS`](actor::ROUNDS) times, of which the first few do not count. The machine is
//! deterministic, so all others are equal; if they are not, a note says so, and the smallest is the figure.

mod actor;
mod address_space;
mod faults;
mod messages;
mod parked;
mod passages;
mod programs;
mod single;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use actor::{Actor, Role, perform};
use address_space::Other;
use programs::{Program, RawRecord};
use tench::println;

use crate::support::{figure, problem};

/// State that all measurements need.
pub struct Bench {
    /// The other address space.
    other: Other,
    /// Cost of two readings.
    readings: u64,
}

impl Bench {
    /// Lets actors run, and returns the records of each.
    fn act<const N: usize>(&self, what: &str, actors: [Actor; N]) -> Result<[Vec<RawRecord>; N], String> {
        perform(&actors.each_ref()).map_err(problem(what))?;
        let mut all = [const { Vec::new() }; N];
        for (records, actor) in all.iter_mut().zip(&actors) {
            *records = actor.records().map_err(problem(what))?;
        }
        Ok(all)
    }

    /// Makes an actor.
    fn actor(&self, what: &str, role: Role) -> Result<Actor, String> {
        Actor::new(&self.other, role).map_err(problem(what))
    }

    /// Returns the cost of passages between whose readings there are `further` instructions of the programs.
    fn cost(&self, key: &str, passages: &[u64], further: u64) -> Result<u64, String> {
        let cost = passages::cost(passages, self.readings + further);
        let (cost, equal) = cost.ok_or_else(|| format!("{key}: nothing was recorded"))?;
        if !equal {
            println!("note: {key}: not every round took the same; the smallest counts of {passages:?}");
        }
        Ok(cost)
    }

    /// Prints and returns the cost of passages.
    fn figure(&self, key: &str, passages: &[u64]) -> Result<u64, String> {
        self.figure_less(key, passages, 0)
    }

    /// Prints the sum of the costs of the way there and the way back. `further` instructions of the programs lie
    /// between the readings of the way back.
    fn round_trip(&self, key: &str, records: [&[RawRecord]; 2], further: u64) -> Result<(), String> {
        let [from, to] = records;
        let there = self.cost(key, &passages::across(from, to), 0)?;
        let back = self.cost(key, &passages::across(to, from), further)?;
        figure(key, there + back);
        Ok(())
    }

    /// Prints and returns the cost of passages between whose readings there are `further` instructions of the programs.
    fn figure_less(&self, key: &str, passages: &[u64], further: u64) -> Result<u64, String> {
        let cost = self.cost(key, passages, further)?;
        figure(key, cost);
        Ok(cost)
    }
}

/// Makes the calibrated state that all measurements need.
fn bench() -> Result<Bench, String> {
    let other = Other::new().map_err(problem("making an address space"))?;
    let mut bench = Bench { other, readings: 0 };
    let nothing = bench.actor("calibrating", Role::new([0; 13]).program(Program::Nothing))?;
    let [records] = bench.act("calibrating", [nothing])?;
    bench.readings = bench.cost("calibrating", &passages::own(&records), 0)?;
    Ok(bench)
}

/// Measures the round trip of the shortest message alone.
pub fn empty_message() -> Result<(), String> {
    messages::round_trip(&bench()?, 0).map(|_| ())
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let bench = bench()?;
    messages::run(&bench)?;
    parked::run(&bench)?;
    single::run(&bench)?;
    faults::run(&bench)
}
