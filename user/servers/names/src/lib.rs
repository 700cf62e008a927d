//! The name server's table. This library makes no system call, so all of it is tested on the host; `main.rs` adds the
//! capabilities.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod kept;
pub mod table;
