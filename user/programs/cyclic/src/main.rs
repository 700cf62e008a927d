//! Measures how late periodic threads run: see the library, and docs/manual/time.md.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod measure;

use alloc::string::{String, ToString};

use tench::abi::layout::slot;
use tench::println;
use tench::sys::{Cap, SchedulingContext};
use tench_cyclic::options::{Command, Options};

tench::entry!(start);

fn start() -> Result<(), String> {
    let ceiling = Cap::<SchedulingContext>::new(slot::SCHEDULING).query().map_err(text)?.ceiling;
    match Options::parse(tench::args().skip(1), ceiling.min(u64::from(u8::MAX)) as u8)? {
        Command::Help(help) => {
            println!("{help}");
            Ok(())
        }
        Command::Measure(options) => measure::measure(&options),
    }
}

/// An error in words.
fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
