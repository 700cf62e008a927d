//! The parts of the monitor that make no system call: the memory layout of a core's boot block, the division of memory
//! among cores, the messages between monitors, the names that are local to each core, and the ledger of capabilities
//! that have left their core.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod message;

/// Requests of programs to other cores, and of other cores to servers and processes here.
pub mod work {
    pub mod names;
    pub mod remote_request;
    pub mod requesters;
}

/// Capabilities that leave their core.
pub mod transfer {
    pub mod attachments;
    pub mod exchange;
    pub mod grant;
    pub mod proxies;
}

/// The other cores.
pub mod cores {
    pub mod boot;
    pub mod portions;
    pub mod share;
}
