//! The parts of the monitor that make no system call: the memory layout of a core's boot block, the division of memory
//! among cores, the messages between monitors, the names that are local to each core, and the ledger of capabilities
//! that have left their core.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod attachments;
pub mod boot;
pub mod exchange;
pub mod grant;
pub mod message;
pub mod names;
pub mod portions;
pub mod proxies;
pub mod remote_request;
pub mod requesters;
pub mod share;
