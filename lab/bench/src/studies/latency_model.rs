//! R3's analytic model beside measurements: how late the kernel begins to handle an interrupt, from the lengths of its
//! interrupts-off intervals.
//!
//! For each load, on a kernel that measures itself:
//!
//! 1. The load runs alone. The kernel sums the lengths of all interrupts-off intervals and their squares, and the
//!    number of instructions is known. That is all that the model needs.
//! 2. The load runs while the timer interrupts it at random moments, and the kernel says when it was entered for each.
//!    That is what the model predicts.
//!
//! The first contains nothing of the second: neither the intervals of the thread that waits for the timer, nor the
//! latencies.
//!
//! ```text
//! figure: LOAD_time T                  instructions of the first part
//! sample: LOAD_WHAT PATH N             of the intervals on that path: count, sum, squares (sum of), longest
//! values: LOAD_entry FIRST V V …       instructions from each deadline to the kernel's entry
//! ```

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::Operation;
use tench::abi::object::IrqOffIntervals;
use tench::println;
use tench::time::instructions;

use crate::product::latency::phase::Phase;
use crate::product::latency::sampler::{Also, Pause, sample};
use crate::product::latency::{SEED, SHORT, io, load, paths};
use crate::support::{KERNEL, figure, problem, values};

/// Ticks for which the load runs alone: 160 million instructions, which 32 bits hold.
const ALONE: u64 = 10_000_000;

/// Times at which the kernel was entered. An entry for another interrupt may have come just before the deadline and
/// have handled the timer's, too: then that did not wait.
struct Entries(Vec<u32>);

impl Also for Entries {
    fn woken(&mut self, phase: &Phase, deadline: u64) -> Result<(), String> {
        let entry = KERNEL.timer_entry().map_err(problem("the kernel's entry"))?;
        self.0.push(phase.latency(deadline, entry));
        Ok(())
    }
}

/// Measurements of a load, kept until everything has been measured.
struct Measured {
    load: &'static str,
    time: u64,
    intervals: Vec<(u64, IrqOffIntervals)>,
    entries: Vec<u32>,
}

impl Measured {
    /// Measures beside a running load.
    fn of(load: &'static str) -> Result<Measured, String> {
        let pause = Pause::new()?;
        // The load reaches its usual pace first.
        pause.pass(ALONE / 16)?;
        KERNEL.reset_irq_off_intervals().map_err(problem("this kernel"))?;
        let before = instructions();
        pause.pass(ALONE)?;
        let time = instructions().wrapping_sub(before) & u64::from(u32::MAX);
        // The queries themselves come after that time.
        let mut intervals = paths()?;
        intervals.retain(|(path, _)| *path != Operation::KernelIrqOff as u64);
        // Capacity for all entries, so that nothing is moved meanwhile.
        let mut entries = Entries(Vec::with_capacity(SHORT.samples));
        sample(SHORT, SEED, &mut entries)?;
        Ok(Measured { load, time, intervals, entries: entries.0 })
    }

    /// Prints the measurements.
    fn print(&self) {
        let load = self.load;
        figure(&format!("{load}_time"), self.time);
        for (path, intervals) in &self.intervals {
            let columns = [
                ("count", intervals.count),
                ("sum", intervals.sum),
                ("squares", intervals.squares),
                ("longest", intervals.longest),
            ];
            for (what, value) in columns {
                println!("sample: {load}_{what} {path} {value}");
            }
        }
        values(&format!("{load}_entry"), &self.entries);
    }
}

/// Measures both loads.
pub fn run() -> Result<(), String> {
    let load = load::cpu()?;
    let cpu = Measured::of("cpu")?;
    load.stop()?;
    let load = io::Io::start()?;
    let io = Measured::of("io")?;
    load.stop()?;
    cpu.print();
    io.print();
    Ok(())
}
