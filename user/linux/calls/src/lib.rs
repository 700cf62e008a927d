//! Linux's system calls on AArch64: numbers, arguments, errors, and their text in a trace.
//!
//! - [`table`] has a [`Signature`] for each call: its name, and what each argument and the result mean.
//! - [`numbers`] has the values of flags and other constants, and [`names`] what a trace calls them.
//! - [`ipc`] has both of System V's shared memory, semaphores and message queues.
//! - [`records`] has the layouts of the records in memory to which arguments point.
//! - [`Trace`] writes a call as `strace` does. It begins a line when the call is made and ends it with the result,
//!   because some arguments can be shown only before the call (a program that replaces itself takes its strings away),
//!   and others only after it.
//!
//! The numbers of calls and errors come from the crate `syscalls`. Those of flags are written down here, because they
//! differ between architectures, and the tests run on another one.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod contents;
pub mod ipc;
pub mod names;
pub mod numbers;
pub mod records;
mod signature;
pub mod table;
mod text;
mod trace;

pub use contents::Memory;
pub use signature::{Argument, Outcome, Signature};
pub use syscalls::Errno;
pub use syscalls::aarch64::Sysno;
pub use trace::Trace;
