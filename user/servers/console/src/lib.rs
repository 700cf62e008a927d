//! The console server's terminal: line discipline, output buffer, who reads. Nothing here touches the device or makes a
//! system call, so all of it is tested on the host; `main.rs` drives the serial port and answers.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod kept;
pub mod line;
pub mod output;
pub mod plain;
pub mod terminal;
