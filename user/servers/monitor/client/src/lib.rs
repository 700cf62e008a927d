//! Client and protocol of the monitor. What it does: docs/manual/cores.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
pub mod protocol;

pub use protocol::{Error, Monitor};

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
