//! `cyclic`: threads that want to run at certain times, and how late they do. What for: docs/manual/time.md.
//!
//! ```text
//! options      what can be said on the command line
//! period       when a thread wants to run next, and which times it has missed
//! statistics   what is known about one thread: least, last, mean, most, and how often
//! histogram    how often it was how late
//! live         the same numbers while they change, for somebody else to read
//! report       lines and tables of text
//! drawing      the histogram as a picture
//! ```
//! All of it is arithmetic, in nanoseconds, and is tested on the host; the program has the threads.

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

/// In what lateness is said. With counted instructions, an instruction takes a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Millionths of a second.
    Microseconds,
    /// Thousandths of those.
    Nanoseconds,
    /// Instructions; right only where they are counted.
    Instructions,
}

impl Unit {
    /// Nanoseconds in one.
    pub const fn nanoseconds(self) -> u64 {
        match self {
            Unit::Microseconds => 1000,
            Unit::Nanoseconds | Unit::Instructions => 1,
        }
    }

    /// How it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "µs",
            Unit::Nanoseconds => "ns",
            Unit::Instructions => "instructions",
        }
    }

    /// As many whole ones as there are in so many nanoseconds.
    pub const fn count(self, nanoseconds: u64) -> u64 {
        nanoseconds / self.nanoseconds()
    }
}
