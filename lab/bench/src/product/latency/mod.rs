//! Lateness of a thread that waits for a deadline, and costs of preemption (R3, section 5).
//!
//! A thread of the highest priority waits until a deadline, which is a number of instructions: while the machine never
//! idles, its time is the count of retired instructions ([`phase`]). The latency is the number of instructions retired
//! from the deadline to the thread's first instruction after it. Three loads run meanwhile:
//!
//! | load | module | work |
//! |---|---|---|
//! | `cpu` | [`load`] | arithmetic in user mode |
//! | `io` | [`io`] | bursts of packets: buffers, messages of 64 words to another process, device registers, interrupts, small calls |
//! | `adversary` | [`adversary`] | the longest operations that a program can ask for |
//!
//! [`overhead`] measures the cost of timer interrupts to a computation. Series are printed when a load has ended:
//!
//! ```text
//! values: SERIES FIRST V V V …      the values of a series from number FIRST on
//! ```
//! The study `latency_model` sets R3's analytic model beside such latencies. The host tool makes means, percentiles and
//! distribution functions of them. With the argument `measuring` the loads run on a measuring kernel, and the longest
//! interrupts-off interval is printed.

mod adversary;
pub mod io;
pub mod load;
mod overhead;
pub mod phase;
pub mod sampler;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::object::{IrqOffIntervals, entry_path};
use tench::println;
use tench::sys::Cap;

use crate::support::{KERNEL, figure, problem, values};
pub use io::{PEER, peer};
use sampler::{Spacing, sample};

/// Priority of the interrupted threads.
const PRIORITY: u8 = 80;
/// Seed of the random numbers.
pub const SEED: u64 = 1;

/// Deadlines for loads whose operations are short compared with 64,000 instructions.
pub const SHORT: Spacing = Spacing { least: 256, more: 4096, samples: 10_000 };
/// Deadlines for loads whose operations take some hundred thousand instructions.
const LONG: Spacing = Spacing { least: 1024, more: 32_768, samples: 3_000 };

/// Receiver of one load's samples.
type Done<'d> = &'d mut dyn FnMut(&'static str, &[u32]);

/// Takes samples beside each load, a share of the usual number; `done` receives the latencies.
fn loads(share: usize, done: Done) -> Result<(), String> {
    let few = |spacing: Spacing| Spacing { samples: spacing.samples / share, ..spacing };
    let load = load::cpu()?;
    let cpu = sample(few(SHORT), SEED, &mut ())?;
    load.stop()?;
    done("cpu", &cpu);
    let load = io::Io::start()?;
    let io = sample(few(SHORT), SEED, &mut ())?;
    let bursts = load.stop()?;
    done("io", &io);
    let load = adversary::start()?;
    let adversary = sample(few(LONG), SEED, &mut ())?;
    let rounds = load.stop()?;
    done("adversary", &adversary);
    println!("note: {bursts} bursts of packets; the adversary's messages and rounds: {rounds:?}");
    Ok(())
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    match tench::args().nth(2) {
        None => latencies(),
        Some(MEASURING) => measure_intervals(),
        Some(other) => Err(format!("there is no part called {other}")),
    }
}

/// Takes all samples, and measures the overhead.
fn latencies() -> Result<(), String> {
    loads(1, &mut values)?;
    let (work, overhead) = overhead::measure(SEED)?;
    figure("work", work);
    values("overhead", &overhead);
    super::ipc::empty_message()
}

/// Returns the intervals of every path that has some.
pub fn paths() -> Result<Vec<(u64, IrqOffIntervals)>, String> {
    let all = (0..entry_path::TIMER)
        .map(|path| Ok((path, KERNEL.irq_off_intervals(path).map_err(problem("the interrupts-off intervals"))?)));
    let all: Vec<_> = all.collect::<Result<_, String>>()?;
    Ok(all.into_iter().filter(|(_, intervals)| intervals.count > 0).collect())
}

/// Argument with which the measuring kernel's own measurements are printed.
const MEASURING: &str = "measuring";
/// Share of the usual samples on a measuring kernel, which sees everything and not only what a sample falls into.
const MEASURED_SHARE: usize = 5;

/// Measures the longest interrupts-off interval while the loads run.
fn measure_intervals() -> Result<(), String> {
    KERNEL.reset_irq_off_intervals().map_err(problem("this kernel"))?;
    loads(MEASURED_SHARE, &mut |_, _| ())?;
    let paths = paths()?;
    let longest = paths.iter().max_by_key(|(_, intervals)| intervals.longest);
    let (path, intervals) = longest.ok_or("the kernel has measured nothing")?;
    let name = entry_path::name(*path).unwrap_or("?");
    println!("note: the longest interrupts-off interval is one of {name}, from {:#x} on", intervals.address);
    figure("worst", intervals.longest);
    Ok(())
}
