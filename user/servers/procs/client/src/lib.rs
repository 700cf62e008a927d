//! Client and protocol of the procs server.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod protocol;

pub use protocol::Error;
