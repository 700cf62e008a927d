//! Programs for Linux that measure what calls, faults and threads cost, and print it: the same here and on Linux.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::procs::Procs;

use crate::support::problem;

/// Runs the program that this one's arguments name after the experiment, with the words after it.
pub fn run() -> Result<(), String> {
    let mut arguments = Vec::from(["--quiet"]);
    arguments.extend(tench::args().skip(2));
    let Some(program) = arguments.get(1) else {
        return Err(String::from(
            "the arguments name no program for Linux; the host tool adds it after the experiment",
        ));
    };
    let procs = Procs::STANDARD;
    let process = procs.spawn("linux", &arguments).map_err(problem("starting linux"))?;
    let ended = procs.wait(process).map_err(problem("waiting for linux"))?;
    match ended.exit_code() {
        Some(0) => Ok(()),
        Some(code) => Err(format!("{program} exited with {code}; it says above what failed")),
        None => Err(String::from("linux was ended by a fault, or killed")),
    }
}
