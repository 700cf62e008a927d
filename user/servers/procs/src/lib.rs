//! The parts of the process server that make no system call, each in the folder of its layer: all of this library is
//! tested on the host. `main.rs` adds the kernel objects.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod table;

/// Sources of processes.
pub mod spawn {
    pub mod catalogue;
}

/// Policy about servers.
pub mod supervision {
    pub mod supervisor;
}
