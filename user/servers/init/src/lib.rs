//! The parts of `init` that make no system call: division of memory, and lookup of devices. `main.rs` does the rest.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod device_tree;
pub mod memory;
