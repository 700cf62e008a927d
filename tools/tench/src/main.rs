//! The host tool behind the entry script `tench`: builds the system, boots it, tests it and measures it.
//!
//! One idea per module. Data flows one way:
//!
//! ```text
//! systems/NAME.toml ─ system ─┐
//! sources ── toolchain, build ┼─ image, archive ── qemu ─┬─ run      a person at the terminal
//!                             │                          ├─ script   a file of typed lines
//!                        symbols (names for addresses) ──┤
//!                                                        ├─ test     everything that has to hold
//!                                                        └─ lab      everything that is measured
//! a trace of allocations ── memlab                          what a policy loses, without a target
//! traits of servers ─────── interfaces                      headers for C, pages of the manual
//! Debian's archive ──────── peer                            what a program does on Linux itself
//! ```
//! `console` reads the memory of a running machine. `workspace` knows where files are, `process` starts other programs,
//! `cli` defines the command line.

#![forbid(unsafe_code)]

mod archive;
mod artifacts;
mod build;
mod check;
mod cli;
mod compile_c;
mod console;
mod disk;
mod doctor;
mod elf;
mod image;
mod interfaces;
mod kernel_text;
mod lab;
mod linux;
mod meter;
mod peer;
mod piped;
mod prepare;
mod process;
mod qemu;
mod run;
mod screen;
mod script;
mod stack;
mod symbols;
mod system;
mod test;
mod toolchain;
mod transcript;
mod workspace;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    process::set_verbose(cli.verbose);
    let result = match workspace::Workspace::find() {
        Err(report) => Err(report),
        Ok(workspace) => match cli.command {
            Command::Run(options) => run::run(&workspace, &options),
            Command::Test(options) => test::run(&workspace, &options),
            Command::Check => check::run(&workspace),
            Command::Lab(options) => lab::run(&workspace, &options),
            Command::Memlab(command) => lab::memlab::run(&command),
            Command::LinuxPeer(options) => peer::run(&workspace, &options),
            Command::Interfaces(options) => interfaces::run(&workspace, &options),
            Command::Doctor => doctor::run(&workspace),
        },
    };
    match result {
        Ok(status) => std::process::ExitCode::from(status),
        Err(report) => {
            eprintln!("{report:?}");
            std::process::ExitCode::FAILURE
        }
    }
}
