//! `cyclic`: periodic threads, and how late they run. For its purpose see docs/manual/time.md.
//!
//! ```text
//! options      the options of the command line
//! period       the next time at which a thread wants to run, and the times that it has missed
//! statistics   the numbers of one thread: least, last, mean, most, and counts
//! histogram    the counts of each lateness
//! live         the same numbers while they change, for another thread to read
//! report       lines and tables of text
//! drawing      the histogram as a picture
//! ```
//! The library is arithmetic, in nanoseconds, and is tested on the host; the program has the threads.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod drawing;
pub mod histogram;
pub mod live;
pub mod options;
pub mod period;
pub mod report;
pub mod statistics;

pub use histogram::Histogram;
pub use options::Options;
pub use statistics::{Figures, Statistics};

/// The unit of lateness. With counted instructions, an instruction takes a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Instructions; right only where they are counted.
    Instructions,
}

impl Unit {
    /// Returns the number of nanoseconds in one unit.
    pub const fn nanoseconds(self) -> u64 {
        match self {
            Unit::Microseconds => 1000,
            Unit::Nanoseconds | Unit::Instructions => 1,
        }
    }

    /// Returns the unit's symbol.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "µs",
            Unit::Nanoseconds => "ns",
            Unit::Instructions => "instructions",
        }
    }

    /// Returns the number of whole units in `nanoseconds`.
    pub const fn count(self, nanoseconds: u64) -> u64 {
        nanoseconds / self.nanoseconds()
    }
}
