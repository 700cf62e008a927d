//! What of the monitor makes no system call: where things lie in the memory that a core is started with, and how memory is divided.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod boot;
pub mod share;
