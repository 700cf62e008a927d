//! How long after its deadline the thread runs that waited for it, and what preemption costs (R3, section 5).
//!
//! A thread of the highest priority waits until a deadline, which is a number of instructions: while the machine never
//! idles, its time is the count of retired instructions ([`phase`]). The latency is what was retired from the deadline
//! to the thread's first instruction after it. Three loads run meanwhile:
//!
//! | load | module | what it does |
//! |---|---|---|
//! | `cpu` | [`load`] | arithmetic in user mode |
//! | `io` | [`io`] | bursts of packets: buffers, messages of 64 words to another process, device registers, interrupts, small calls |
//! | `adversary` | [`adversary`] | the longest operations that a program can ask for |
//!
//! [`overhead`] measures what timer interrupts cost a computation. Series are printed when a load has ended:
//!
//! ```text
//! values: SERIES FIRST V V V …      the values of a series from number FIRST on
//! ```
//! [`model`] sets R3's analytic model beside such latencies. The host tool makes means, percentiles and distribution
//! functions of them. With the argument `watching` the loads run on a kernel that measures itself, and what is printed
//! is the longest stretch with interrupts off.

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

use tench::abi::object::stretch;
use tench::println;
use tench::sys::Cap;

pub use io::{PEER, peer};
use sampler::{Spacing, sample};

/// Priority of what is interrupted.
const PRIORITY: u8 = 80;
/// Where the random numbers begin.
const SEED: u64 = 1;
/// Values in a line.
const IN_A_LINE: usize = 32;

/// Deadlines for loads whose operations are short beside 64,000 instructions.
const SHORT: Spacing = Spacing { least: 256, more: 4096, samples: 10_000 };
/// Deadlines for loads whose operations take some hundred thousand instructions.
const LONG: Spacing = Spacing { least: 1024, more: 32_768, samples: 3_000 };

/// Says what failed.
fn problem<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("latency: {what}: {error}")
}

/// Prints a series.
fn values(series: &str, values: &[u32]) {
    for (line, some) in values.chunks(IN_A_LINE).enumerate() {
        let mut text = format!("values: {series} {}", line * IN_A_LINE);
        for value in some {
            // Text has room for everything.
            let _ = write!(text, " {value}");
        }
        println!("{text}");
    }
}

/// What takes the samples of one load.
type Done<'d> = &'d mut dyn FnMut(&'static str, &[u32]);

/// Takes samples beside each load, a share of the usual number; `done` is told the latencies.
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

/// Measures everything.
pub fn run() -> Result<(), String> {
    match tench::args().nth(2) {
        None => latencies(),
        Some(WATCHING) => watching(),
        Some(other) => Err(format!("latency: there is no part called {other}")),
    }
}

/// Every sample, and the overhead.
fn latencies() -> Result<(), String> {
    loads(1, &mut values)?;
    let (work, overhead) = overhead::measure(SEED)?;
    crate::figure("work", work);
    values("overhead", &overhead);
    crate::ipc::empty_message()
}

/// The argument with which this kernel's own measurements are shown.
const WATCHING: &str = "watching";
/// A kernel that watches itself sees everything, not only what a sample falls into: fewer of them do.
const WATCHED_SHARE: usize = 5;

/// The longest stretch with interrupts off while the loads run.
fn watching() -> Result<(), String> {
    crate::KERNEL.forget_stretches().map_err(problem("this kernel"))?;
    loads(WATCHED_SHARE, &mut |_, _| ())?;
    let paths = model::paths()?;
    let longest = paths.iter().max_by_key(|(_, stretches)| stretches.longest);
    let (path, stretches) = longest.ok_or("latency: the kernel has measured nothing")?;
    let name = stretch::name(*path).unwrap_or("?");
    println!("note: the longest stretch with interrupts off is one of {name}, from {:#x} on", stretches.place);
    crate::figure("worst", stretches.longest);
    Ok(())
}
