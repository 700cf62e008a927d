//! `hog`: load of several kinds, to run beside something else. What for: docs/manual/time.md.
//!
//! ```text
//! options   what can be said on the command line
//! turns     when a thread works and when it waits, so that all together take a share of the time
//! report    what is said at the end
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
    /// Calculates.
    Cpu,
    /// Calls a server in a thread of its own, with long messages and capabilities both ways.
    Ipc,
    /// Maps, touches and unmaps; makes objects of untyped memory and revokes them.
    Memory,
    /// Waits for deadlines, one as soon as possible after the other, and signals itself.
    Interrupts,
}

impl Load {
    /// All of them.
    pub const ALL: [Load; 4] = [Load::Cpu, Load::Ipc, Load::Memory, Load::Interrupts];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Load::Cpu => "cpu",
            Load::Ipc => "ipc",
            Load::Memory => "memory",
            Load::Interrupts => "interrupts",
        }
    }

    /// What is counted.
    pub const fn rounds(self) -> &'static str {
        match self {
            Load::Cpu => "loops",
            Load::Ipc => "calls",
            Load::Memory => "rounds",
            Load::Interrupts => "deadlines",
        }
    }
}
