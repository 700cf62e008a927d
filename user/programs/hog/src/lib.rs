//! `hog`: load of several kinds, to run beside something else. For its purpose see docs/manual/time.md.
//!
//! ```text
//! options   the options of the command line
//! turns     the times at which a thread works and waits, so that all together take a share of the time
//! report    the lines that are printed at the end
//! ```
//! The program has the loads themselves.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod options;
pub mod report;
pub mod turns;

pub use options::Options;

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// Computation.
    Cpu,
    /// Calls to a server in a thread of its own, with long messages and capabilities both ways.
    Ipc,
    /// Mapping, touching and unmapping; making objects of untyped memory and revoking them.
    Memory,
    /// Waits for deadlines, each as soon as possible after the previous one, and signals to itself.
    Interrupts,
}

impl Load {
    /// All kinds.
    pub const ALL: [Load; 4] = [Load::Cpu, Load::Ipc, Load::Memory, Load::Interrupts];

    /// Returns the kind's name.
    pub const fn name(self) -> &'static str {
        match self {
            Load::Cpu => "cpu",
            Load::Ipc => "ipc",
            Load::Memory => "memory",
            Load::Interrupts => "interrupts",
        }
    }

    /// Returns the name of the kind's rounds.
    pub const fn rounds(self) -> &'static str {
        match self {
            Load::Cpu => "loops",
            Load::Ipc => "calls",
            Load::Memory => "rounds",
            Load::Interrupts => "deadlines",
        }
    }
}
