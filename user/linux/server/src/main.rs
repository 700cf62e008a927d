//! Runs unmodified Linux programs: see the library.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod clock;
mod machine;
mod outside;
mod segment;
mod serve;
mod threads;
mod timer;
mod worker;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::fs;
use tench_linux::options::{Options, USAGE};
use tench_linux::packed::{SEARCHED, from_root};
use tench_linux::{Fault, Instance, Status, System};
use tench_linux_files::{Errno, Last, Tree};
use tench_linux_memory::{Access, RESERVE};
use tench_linux_packed::Packed;

use machine::Kernel;

tench::entry!(main);

/// The environment of the first program, beside `PATH`.
const ENVIRONMENT: [&str; 3] = ["HOME=/root", "TERM=linux", "PWD=/"];

fn main() -> Result<(), String> {
    if tench::process::help(USAGE) {
        return Ok(());
    }
    let options = Options::parse(tench::args().skip(1))?;
    // Whatever programs take: the personality's own memory is there before it is used.
    tench::memory::serve_without_faults(RESERVE).map_err(|error| format!("what every instance needs: {error}"))?;
    let machine = Kernel::new().map_err(|error| format!("what every instance needs: {error}"))?;
    let mut system = System::new(machine).map_err(|error| problem("the first files", error))?;
    (system.traces, system.inspects_calls, system.is_quiet) = (options.traces, options.traces, options.is_quiet);
    if let Some(bytes) = segment::packed() {
        let defect = |defect| format!("the files of ./tench run --linux: {defect}; build the image again");
        let added = system.add_packed(&Packed::parse(bytes).map_err(defect)?);
        added.map_err(|bad| {
            let error = bad.error.name().unwrap_or("an unknown error");
            format!("the files of ./tench run --linux: {}: {error}", String::from_utf8_lossy(&bad.path))
        })?;
    }
    for mount in options.mounts {
        system.mount(mount)?;
    }
    let path = find(&mut system, &options.program)?;
    let name = String::from_utf8_lossy(&path).into_owned();
    let mut environment: Vec<Vec<u8>> = ENVIRONMENT.iter().map(|variable| variable.as_bytes().to_vec()).collect();
    environment.push([b"PATH=", SEARCHED].concat());
    let mut instance = Instance::new(system);
    instance.start(&path, &options.arguments, &environment).map_err(|error| problem(&name, error))?;
    serve::run(&mut instance)?;
    match instance.status() {
        Some((Status::Exited(code), _)) => tench::exit(code.into()),
        Some((Status::Killed(signal), fault)) => {
            let name = name.rsplit('/').next().unwrap_or(&name);
            tench::eprintln!("linux: {name} ended by {}{}", signal_name(signal), explanation(fault));
            tench::exit(128 + signal.cast_signed())
        }
        None => Ok(()),
    }
}

fn signal_name(signal: u32) -> String {
    tench_linux_calls::names::signal(signal).map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

/// Returns why an instruction failed.
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
        Some(Fault::Misaligned { address, instruction }) => {
            format!(": its instruction at {instruction:#x} cannot access the misaligned {address:#x}")
        }
        Some(Fault::Instruction(address)) => format!(": its instruction at {address:#x} does not exist"),
        Some(Fault::Step(address)) => format!(": it has made a single step to {address:#x}"),
        Some(Fault::Breakpoint(address)) => format!(": there is a breakpoint at {address:#x}"),
        None => String::new(),
    }
}

/// Returns the path of the program with a name, among the files of Linux programs. It is copied there from Tench's
/// files if it is only among those.
fn find(system: &mut System<Kernel>, name: &str) -> Result<Vec<u8>, String> {
    if name.contains('/') {
        system.bring(&from_root(name.as_bytes())).map_err(|error| problem(name, error))?;
    }
    if let Some(path) = system.find_program(name.as_bytes()) {
        return Ok(path);
    }
    let path = from_root(name.as_bytes());
    if name.contains('/') && system.tree.find((Tree::ROOT, Tree::ROOT), &path, Last::Follow).is_ok() {
        return Err(problem(name, Errno::EACCES));
    }
    let contents = fs::read(name).map_err(|error| format!("{name}: {error}"))?;
    let added = system.add_file(&path, contents.leak(), 0o755);
    added.map(|()| path).map_err(|error| problem(name, error))
}

/// Returns the sentence for an error before the program runs.
fn problem(what: &str, error: Errno) -> String {
    let text = match error {
        Errno::ENOEXEC => "it is no program for Linux on AArch64",
        Errno::EACCES => "nobody may execute it",
        Errno::ENOENT => "the program that loads it does not exist",
        Errno::ENOMEM => "there is not enough memory",
        other => other.name().unwrap_or("an unknown error"),
    };
    format!("{what}: {text}")
}
