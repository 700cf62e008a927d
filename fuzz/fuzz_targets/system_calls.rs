//! Turns bytes into system calls, interrupts and faults; the kernel's whole state is checked after each.
//!
//! `cargo fuzz run -s none system_calls`. Without the address sanitizer: each entry into the kernel runs on a stack of
//! its own, and object memory is one allocation, so that sanitizer would see little and misunderstand much.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = tench_model::executions::play(bytes) {
        panic!("the state is inconsistent: {wrong}");
    }
});
