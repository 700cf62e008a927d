//! Bytes become messages to a server with the interface of `clock`, and values that its client sends: only what is
//! valid may reach the server, and valid values arrive as they were.
//!
//! `cargo fuzz run clock_messages`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tench_hostile::{hostile, round_trip, clock::Probe};

fuzz_target!(|bytes: &[u8]| {
    hostile::<Probe>(bytes);
    round_trip::<Probe>(bytes);
});
