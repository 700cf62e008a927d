//! Processes that may have ended without the server's knowledge.
//!
//! A process server reports the end of a process once. A holder of that process's capability can take entries with it
//! afterwards, and nobody would ever return those. So a server notes each process that takes something while it has
//! nothing, and asks about the noted ones when it is next told of the end of another. That costs one question for a
//! process that takes something, and none for others.
//!
//! Each process server knows the processes of its own core alone, and is asked about those. A process is noted at most
//! while it has entries, so no more are noted than there are entries.

use alloc::collections::BTreeSet;
use core::ops::RangeInclusive;

use tench_abi::power::CORE_SHIFT;

/// The noted processes.
#[derive(Clone, Debug, Default)]
pub struct Unconfirmed {
    processes: BTreeSet<u64>,
}

impl Unconfirmed {
    /// Returns an empty set.
    pub const fn new() -> Unconfirmed {
        Unconfirmed { processes: BTreeSet::new() }
    }

    /// Notes a process that takes something and has nothing yet. A core's authority, which is no process, is not noted.
    pub fn note(&mut self, process: u64) {
        if process & ((1 << CORE_SHIFT) - 1) != 0 {
            self.processes.insert(process);
        }
    }

    /// Removes a process that lives, or has nothing any more.
    pub fn forget(&mut self, process: u64) {
        self.processes.remove(&process);
    }

    /// Returns a process about which to ask the process server of the core of `process`.
    pub fn next(&self, process: u64) -> Option<u64> {
        self.processes.range(core_of(process)).next().copied()
    }

    /// Returns the processes, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.processes.iter().copied()
    }
}

/// Returns the numbers that processes of the same core as this one can have.
pub const fn core_of(process: u64) -> RangeInclusive<u64> {
    let first = process >> CORE_SHIFT << CORE_SHIFT;
    first..=first | ((1 << CORE_SHIFT) - 1)
}
