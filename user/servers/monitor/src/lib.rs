//! What of the monitor makes no system call: where things lie in the memory that a core is started with, how memory is
//! divided, what monitors say to each other, which names each core has for itself, and what they keep books of about
//! capabilities that left their core.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod about;
pub mod askers;
pub mod boot;
pub mod exchange;
pub mod freight;
pub mod message;
pub mod names;
pub mod portions;
pub mod proxies;
pub mod share;
