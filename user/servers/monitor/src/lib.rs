//! What of the monitor makes no system call: where things lie in the memory that a core is started with, how memory is divided, and
//! what monitors say to each other.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod about;
pub mod boot;
pub mod message;
pub mod share;
