//! The console server's terminal: line discipline, output buffer, and ownership. This library does not touch the device
//! or make system calls, so all of it is tested on the host; `main.rs` drives the serial port and replies.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod kept;
pub mod line;
pub mod output;
pub mod plain;
pub mod terminal;
