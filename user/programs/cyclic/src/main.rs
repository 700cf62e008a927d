//! Measures how late periodic threads run: see the library, and docs/manual/time.md.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod measure;

use alloc::string::String;

use tench_cyclic::Options;

tench::entry!(start);

fn start() -> Result<(), String> {
    tench_options::start(Options::parse, measure::measure)
}
