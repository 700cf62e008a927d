//! The clock server's queue and its arithmetic. Nothing here makes a system call, so all of it is tested on the host;
//! `main.rs` reads the counter and answers.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod queue;
pub mod time;
