//! Prints ticks at intervals: `timer [TICKS [MILLISECONDS]]`, by default five, one a second.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use tench::println;
use tench::time::{self, Duration, Instant};
use tench_profile::Application;

tench::entry!(main);

/// Usage of the program.
const USAGE: &str = "usage: timer [TICKS [MILLISECONDS]]";

fn main() -> Result<(), String> {
    if tench::process::help(USAGE) {
        return Ok(());
    }
    let mut arguments = tench::args().skip(1);
    let ticks = number(arguments.next(), 5)?;
    let interval = Duration::from_millis(number(arguments.next(), 1000)?);
    if arguments.next().is_some() {
        return Err(usage("too many arguments"));
    }
    tench_profile::start(Application::Timer).map_err(|failure| failure.to_string())?;
    let start = Instant::now();
    for tick in 1..=ticks {
        // Counted from the start, so that the time for printing does not add up.
        let step = tench::sys::time::ticks(interval, time::frequency()).saturating_mul(tick);
        time::sleep_until(start.after(step));
        println!("tick {tick} after {} ms", time::elapsed(start).as_millis());
    }
    Ok(())
}

/// Returns the number of an argument, or `otherwise` if there is none.
fn number(argument: Option<&str>, otherwise: u64) -> Result<u64, String> {
    match argument {
        Some(text) => text.parse().map_err(|_| usage(&format!("\"{text}\" is not a number"))),
        None => Ok(otherwise),
    }
}

fn usage(problem: &str) -> String {
    format!("{problem}; {USAGE}")
}

extern crate alloc;
use alloc::format;
use alloc::string::{String, ToString};
