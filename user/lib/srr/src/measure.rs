//! R4's measurement: the cost of one Send-Receive-Reply.
//!
//! A sender sends messages of one length to a receiver that replies with the same length. If the receiver has the
//! higher priority it waits first (`r`), otherwise the sender does (`s`); priorities are R4's. R4's program divides by
//! a wrong number of rounds and counts the work before and after; here the sender takes the difference between two
//! readings of the instruction counter, after a few rounds that bring all tasks into their steady states.

use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tench::time::instructions;

use crate::{Error, Terminal, Tid, create, receive, reply, run, send};

/// Number of transactions between the two readings.
const ROUNDS: u64 = 1000;
/// Number of transactions before the first reading.
const BEFORE: u64 = 10;
/// Priority of the first task.
const FIRST: i32 = 4;
/// Priority of the sender.
const SENDER: i32 = 2;

/// The measurements: the figure's key, the receiver's priority, and the length of message and reply.
pub const CASES: [(&str, i32, usize); 6] =
    [("r_4", 3, 4), ("r_64", 3, 64), ("r_256", 3, 256), ("s_4", 1, 4), ("s_64", 1, 64), ("s_256", 1, 256)];

/// A terminal that prints nothing.
struct Silence;

impl Terminal for Silence {
    fn write(&mut self, _: &str) {}
    fn wait_key(&mut self) {}
}

/// Performs all measurements, and reports for each key the retired instructions of one transaction, kernel and library
/// together, rounded down.
/// Errors: those of [`run`].
pub fn measure(mut report: impl FnMut(&str, u64)) -> Result<(), Error> {
    for (key, priority, length) in CASES {
        report(key, transaction(priority, length)?);
    }
    Ok(())
}

/// Returns the number of instructions of one transaction.
fn transaction(priority: i32, length: usize) -> Result<u64, Error> {
    let taken = Arc::new(AtomicU64::new(0));
    let result = taken.clone();
    run(Silence, FIRST, move || {
        let Ok(receiver) = create(priority, move || echo(length)) else { return };
        // Without a sender nothing is measured, and the figure is 0.
        let _ = create(SENDER, move || {
            rounds(receiver, length, BEFORE);
            let start = instructions();
            rounds(receiver, length, ROUNDS);
            // The counter may have 32 bits.
            let difference = instructions().wrapping_sub(start) & u64::from(u32::MAX);
            result.store(difference / ROUNDS, Relaxed);
        });
    })?;
    Ok(taken.load(Relaxed))
}

/// Runs the sender.
fn rounds(receiver: Tid, length: usize, count: u64) {
    let message = vec![b'.'; length];
    let mut response = vec![0; length];
    for _ in 0..count {
        // The receiver lives as long as the session.
        let _ = send(receiver, &message, &mut response);
    }
}

/// Runs the receiver.
fn echo(length: usize) {
    let mut message = vec![0; length];
    loop {
        let (sender, length) = receive(&mut message);
        let _ = reply(sender, &message[..length]);
    }
}

#[cfg(all(test, not(target_os = "none")))]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// The host has no counter of instructions, so every figure is 0; but all code runs.
    #[test]
    fn everything_is_measured() {
        let mut keys = Vec::new();
        measure(|key, _| keys.push(key.len())).unwrap();
        assert_eq!(keys, CASES.map(|(key, ..)| key.len()));
    }
}
