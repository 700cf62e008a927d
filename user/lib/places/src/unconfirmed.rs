//! Processes of which a server does not know whether they live.
//!
//! A process server says once of a process that it has ended. Who has that process's capability by then can take places
//! with it afterwards, and nobody would ever give those back. So a server notes each process that takes something while
//! it has nothing, and asks about those whom it has noted when it hears next of the end of another. That costs one
//! question for a process that takes something, and none for others.
//!
//! Each process server knows the processes of its own core alone, and is asked about those. A process is noted while it
//! has places at most, so there are no more of those noted than places.

use alloc::collections::BTreeSet;
use core::ops::RangeInclusive;

use tench_abi::power::CORE_SHIFT;

/// The processes.
#[derive(Clone, Debug, Default)]
pub struct Unconfirmed {
    processes: BTreeSet<u64>,
}

impl Unconfirmed {
    /// None yet.
    pub const fn new() -> Unconfirmed {
        Unconfirmed { processes: BTreeSet::new() }
    }

    /// A process takes something that has nothing yet. Who is a core's authority, and no process, is not noted.
    pub fn note(&mut self, process: u64) {
        if process & ((1 << CORE_SHIFT) - 1) != 0 {
            self.processes.insert(process);
        }
    }

    /// A process lives, or has nothing any more.
    pub fn forget(&mut self, process: u64) {
        self.processes.remove(&process);
    }

    /// Returns a process about which to ask the process server of the core of `process`.
    pub fn next(&self, process: u64) -> Option<u64> {
        self.processes.range(core_of(process)).next().copied()
    }

    /// The processes, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.processes.iter().copied()
    }
}

/// Returns the numbers that processes of the core of this one can have.
pub const fn core_of(process: u64) -> RangeInclusive<u64> {
    let first = process >> CORE_SHIFT << CORE_SHIFT;
    first..=first | ((1 << CORE_SHIFT) - 1)
}
