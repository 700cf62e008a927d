//! What `init` decides without a system call: how memory is divided, and where devices are. `main.rs` does the rest.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod device_tree;
pub mod memory;
