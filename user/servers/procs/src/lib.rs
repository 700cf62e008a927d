//! The process server's records. Nothing here makes a system call, so all of it is tested on the
//! host; `main.rs` adds the kernel objects.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod records;
