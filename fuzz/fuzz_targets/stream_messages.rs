//! Turns bytes into messages to a server with the interface of `stream`, and into values that its client sends: only
//! valid messages may reach the server, and valid values arrive unchanged.
//!
//! `cargo fuzz run stream_messages`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tench_hostile::{hostile, round_trip, stream::Probe};

fuzz_target!(|bytes: &[u8]| {
    hostile::<Probe>(bytes);
    round_trip::<Probe>(bytes);
});
