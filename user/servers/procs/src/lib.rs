//! The process server's table of processes, its catalogue of programs, and its supervision of other servers. This
//! library makes no system call, so all of it is tested on the host; `main.rs` adds the kernel objects.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod catalogue;
pub mod guests;
pub mod records;
pub mod shares;
pub mod supervisor;
pub mod waits;
