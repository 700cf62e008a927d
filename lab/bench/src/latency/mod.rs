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
//! [`model`] sets R3's analytic model beside such latencies. The host tool makes means, percentiles and distribution
//! functions of them. With the argument `measuring` the loads run on a measuring kernel, and the longest interrupts-off
//! interval is printed.

mod adversary;
mod io;
mod load;
pub mod model;
mod overhead;
mod phase;
mod sampler;

use alloc::format;
use alloc::string::String;
use core::fmt::{Display, Write as _};

use tench::abi::object::entry_path;
use tench::println;
use tench::sys::Cap;

pub use io::{PEER, peer};
use sampler::{Spacing, sample};

/// Priority of the interrupted threads.
const PRIORITY: u8 = 80;
/// Seed of the random numbers.
const SEED: u64 = 1;
/// Number of values in a line.
const IN_A_LINE: usize = 32;

/// Deadlines for loads whose operations are short compared with 64,000 instructions.
const SHORT: Spacing = Spacing { least: 256, more: 4096, samples: 10_000 };
/// Deadlines for loads whose operations take some hundred thousand instructions.
const LONG: Spacing = Spacing { least: 1024, more: 32_768, samples: 3_000 };

/// Returns a function that says what failed.
fn problem<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("latency: {what}: {error}")
}

/// Prints a series.
fn values(series: &str, values: &[u32]) {
    for (line, some) in values.chunks(IN_A_LINE).enumerate() {
        let mut text = format!("values: {series} {}", line * IN_A_LINE);
        for value in some {
            // Writing to text does not fail.
            let _ = write!(text, " {value}");
        }
        println!("{text}");
    }
}

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
        Some(other) => Err(format!("latency: there is no part called {other}")),
    }
}

/// Takes all samples, and measures the overhead.
fn latencies() -> Result<(), String> {
    loads(1, &mut values)?;
    let (work, overhead) = overhead::measure(SEED)?;
    crate::figure("work", work);
    values("overhead", &overhead);
    crate::ipc::empty_message()
}

/// Argument with which the measuring kernel's own measurements are printed.
const MEASURING: &str = "measuring";
/// Share of the usual samples on a measuring kernel, which sees everything and not only what a sample falls into.
const MEASURED_SHARE: usize = 5;

/// Measures the longest interrupts-off interval while the loads run.
fn measure_intervals() -> Result<(), String> {
    crate::KERNEL.reset_irq_off_intervals().map_err(problem("this kernel"))?;
    loads(MEASURED_SHARE, &mut |_, _| ())?;
    let paths = model::paths()?;
    let longest = paths.iter().max_by_key(|(_, intervals)| intervals.longest);
    let (path, intervals) = longest.ok_or("latency: the kernel has measured nothing")?;
    let name = entry_path::name(*path).unwrap_or("?");
    println!("note: the longest interrupts-off interval is one of {name}, from {:#x} on", intervals.address);
    crate::figure("worst", intervals.longest);
    Ok(())
}
