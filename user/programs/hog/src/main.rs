//! Uses the machine: see the library, and docs/manual/time.md.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod ipc;
mod loads;
mod work;

use alloc::string::String;

use tench_hog::Options;

tench::entry!(start);

fn start() -> Result<(), String> {
    tench_options::start(Options::parse, work::work)
}
