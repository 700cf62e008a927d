//! Bytes become messages to a server with the interface of `slabs`, and values that its client sends: only what is
//! valid may reach the server, and valid values arrive as they were.
//!
//! `cargo fuzz run slabs_messages`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tench_hostile::{hostile, round_trip, slabs::Probe};

fuzz_target!(|bytes: &[u8]| {
    hostile::<Probe>(bytes);
    round_trip::<Probe>(bytes);
});
