//! Costs of the calls, faults and signals of Linux programs: `tests/linux/costs.c` measures and prints them, here and
//! on Linux.

use alloc::format;
use alloc::string::String;

use tench::procs::Procs;

use crate::support::problem;

/// The program, below the root of the archive, and the word that ends its figures' names here.
const ARGUMENTS: [&str; 3] = ["--quiet", "linux/costs", "tench"];

pub fn run() -> Result<(), String> {
    let procs = Procs::STANDARD;
    let process = procs.spawn("linux", &ARGUMENTS).map_err(problem("starting linux"))?;
    let ended = procs.wait(process).map_err(problem("waiting for linux"))?;
    match ended.exit_code() {
        Some(0) => Ok(()),
        Some(code) => Err(format!("linux/costs exited with {code}; it says above what failed")),
        None => Err(String::from("linux was ended by a fault, or killed")),
    }
}
