//! What the kernel's paths cost.
//!
//! Every figure is a number of retired instructions: those of the kernel and the instruction that enters it, from its
//! caller up to the first instruction of whoever runs next. [`programs`] says what exactly lies between two readings of
//! the counter; what the readings cost is measured by the same loop around nothing, and taken off.
//!
//! ```text
//! programs   the loops, in assembly      place      the other address space
//! actor      a thread with its loop      passages   from readings to figures
//! messages   paths between two threads   single     paths that return to their caller
//! faults     faults, upcalls, interrupts
//! ```
//! Each path is taken [`ROUNDS`](actor::ROUNDS) times, of which the first few do not count. The machine is
//! deterministic, so all others are equal; if they are not, a note says so, and the smallest is the figure.

mod actor;
mod faults;
mod messages;
mod passages;
mod place;
mod programs;
mod single;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;

use actor::{Actor, Role, perform};
use place::Other;
use programs::{Program, RawRecord};
use tench::println;

/// What all measurements need.
pub struct Bench {
    /// The other address space.
    other: Other,
    /// What two readings cost.
    readings: u64,
}

/// Says what failed.
pub fn problem<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("ipc: {what}: {error}")
}

impl Bench {
    /// Lets actors act, and answers what each recorded.
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

    /// The cost of passages between whose readings there are `further` instructions of the programs.
    fn cost(&self, key: &str, passages: &[u64], further: u64) -> Result<u64, String> {
        let cost = passages::cost(passages, self.readings + further);
        let (cost, equal) = cost.ok_or_else(|| format!("ipc: {key}: nothing was recorded"))?;
        if !equal {
            println!("note: {key}: not every round took the same; the smallest counts of {passages:?}");
        }
        Ok(cost)
    }

    /// Prints and answers the cost of passages.
    fn figure(&self, key: &str, passages: &[u64]) -> Result<u64, String> {
        self.figure_less(key, passages, 0)
    }

    /// Prints and answers the cost of passages between whose readings there are `further` instructions of the programs.
    fn figure_less(&self, key: &str, passages: &[u64], further: u64) -> Result<u64, String> {
        let cost = self.cost(key, passages, further)?;
        crate::figure(key, cost);
        Ok(cost)
    }
}

/// What all measurements need, calibrated.
fn bench() -> Result<Bench, String> {
    let other = Other::new().map_err(problem("making an address space"))?;
    let mut bench = Bench { other, readings: 0 };
    let nothing = bench.actor("calibrating", Role::new([0; 13]).program(Program::Nothing))?;
    let [records] = bench.act("calibrating", [nothing])?;
    bench.readings = bench.cost("calibrating", &passages::own(&records), 0)?;
    Ok(bench)
}

/// Measures the shortest message there and back alone.
pub fn empty_message() -> Result<(), String> {
    messages::round_trip(&bench()?, 0).map(|_| ())
}

/// Measures everything.
pub fn run() -> Result<(), String> {
    let bench = bench()?;
    messages::run(&bench)?;
    single::run(&bench)?;
    faults::run(&bench)
}
