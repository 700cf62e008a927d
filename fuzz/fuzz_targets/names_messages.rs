//! Turns bytes into messages to a server with the interface of `names`, and into values that its client sends: only
//! valid messages may reach the server, and valid values arrive unchanged.
//!
//! `cargo fuzz run names_messages`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tench_hostile::{hostile, round_trip, names::Probe};

fuzz_target!(|bytes: &[u8]| {
    hostile::<Probe>(bytes);
    round_trip::<Probe>(bytes);
});
