//! The parts of the monitor that make no system call, and so are tested on the host. The folders are layers, as in the
//! program, whose `main.rs` has a drawing of all modules.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod message;

/// Requests of programs to other cores, and of other cores to servers and processes here: names that are local to each
/// core, and which processes have used which servers.
pub mod requests {
    pub mod names;
    pub mod requesters;
}

/// Capabilities and memory that other cores get: the two ledgers, attachments of messages, and how much memory a core
/// gives.
pub mod transfer {
    pub mod attachments;
    pub mod exchange;
    pub mod grant;
    pub mod proxies;
}

/// The other cores: the block with which each starts, its share of the memory, and limits on its use of time here.
pub mod cores {
    pub mod boot;
    pub mod portions;
    pub mod share;
}
