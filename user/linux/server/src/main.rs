//! Runs unmodified Linux programs: see the library.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod console;
mod machine;
mod serve;
mod threads;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::fs;
use tench_linux::options::{Options, USAGE};
use tench_linux::{Fault, Instance, Status, System};
use tench_linux_files::Errno;
use tench_linux_memory::Access;

use machine::Kernel;

tench::entry!(main);

/// The environment of the first program.
const ENVIRONMENT: [&str; 4] = ["PATH=/usr/bin:/bin", "HOME=/root", "TERM=linux", "PWD=/"];

fn main() -> Result<(), String> {
    if tench::process::help(USAGE) {
        return Ok(());
    }
    let options = Options::parse(tench::args().skip(1))?;
    let machine = Kernel::new().map_err(|error| format!("what every instance needs: {error}"))?;
    let mut system = System::new(machine).map_err(|error| problem("the first files", error))?;
    (system.traces, system.is_quiet) = (options.traces, options.is_quiet);
    let contents = fs::read(&options.program).map_err(|error| format!("{}: {error}", options.program))?;
    let path = if options.program.starts_with('/') { options.program.clone() } else { format!("/{}", options.program) };
    system.add_file(path.as_bytes(), contents.leak(), 0o755).map_err(|error| problem(&path, error))?;
    let environment: Vec<Vec<u8>> = ENVIRONMENT.iter().map(|variable| variable.as_bytes().to_vec()).collect();
    let mut instance = Instance::new(system);
    instance.start(path.as_bytes(), &options.arguments, &environment).map_err(|error| problem(&path, error))?;
    serve::run(&mut instance)?;
    match instance.status() {
        Some((Status::Exited(code), _)) => tench::exit(code.into()),
        Some((Status::Killed(signal), fault)) => {
            let name = path.rsplit('/').next().unwrap_or(&path);
            tench::eprintln!("linux: {name} ended by {}{}", signal_name(signal), explanation(fault));
            tench::exit(128 + signal.cast_signed())
        }
        None => Ok(()),
    }
}

fn signal_name(signal: u32) -> String {
    tench_linux_calls::names::signal(signal).map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

/// Returns what an instruction could not do.
fn explanation(fault: Option<Fault>) -> String {
    match fault {
        Some(Fault::Access { address, access, instruction }) => {
            let doing = match access {
                Access::Read => "reads",
                Access::Write => "writes",
                Access::Execute => "executes",
            };
            format!(": it {doing} {address:#x} at {instruction:#x}")
        }
        Some(Fault::Instruction(address)) => format!(": its instruction at {address:#x} does not exist"),
        None => String::new(),
    }
}

/// Returns the sentence for an error before the program runs.
fn problem(what: &str, error: Errno) -> String {
    let text = match error {
        Errno::ENOEXEC => "it is no program for Linux on AArch64",
        Errno::ENOENT => "the program that loads it does not exist",
        Errno::ENOMEM => "there is not enough memory",
        other => other.name().unwrap_or("an unknown error"),
    };
    format!("{what}: {text}")
}
