//! The command language of `memctl`. The library makes no system call, so all of it is tested on the host.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod command;
