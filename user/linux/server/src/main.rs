//! Runs unmodified Linux programs: see the library.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod machine;
mod serve;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::fs;
use tench_linux::descriptors::Descriptors;
use tench_linux::options::{Options, USAGE};
use tench_linux::{Process, System};
use tench_linux_files::{Errno, Tree};

use machine::Kernel;

tench::entry!(main);

/// The environment of the first program.
const ENVIRONMENT: [&str; 4] = ["PATH=/usr/bin:/bin", "HOME=/root", "TERM=linux", "PWD=/"];

fn main() -> Result<(), String> {
    if tench::process::help(USAGE) {
        return Ok(());
    }
    let options = Options::parse(tench::args().skip(1))?;
    let mut system = System::new(Kernel::new()).map_err(|error| problem("the first files", error))?;
    (system.traces, system.is_quiet) = (options.traces, options.is_quiet);
    let contents = fs::read(&options.program).map_err(|error| format!("{}: {error}", options.program))?;
    let path = if options.program.starts_with('/') { options.program.clone() } else { format!("/{}", options.program) };
    system.add_file(path.as_bytes(), contents.leak(), 0o755).map_err(|error| problem(&path, error))?;
    let mut descriptors = Descriptors::default();
    system.open_console(&mut descriptors).map_err(|error| problem("/dev/console", error))?;
    let environment: Vec<Vec<u8>> = ENVIRONMENT.iter().map(|variable| variable.as_bytes().to_vec()).collect();
    let image = system
        .load(Tree::ROOT, path.as_bytes(), &options.arguments, &environment)
        .map_err(|error| problem(&path, error))?;
    let (entry, stack) = (image.entry, image.stack);
    system.tree.share(Tree::ROOT);
    let mut process = Process::first(image, path.as_bytes(), descriptors, Tree::ROOT);
    let code = serve::run(&mut system, &mut process, entry, stack)?;
    tench::exit(code)
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
