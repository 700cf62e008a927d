//! Client and protocol of the monitor. Behaviour of the server: docs/manual/cores.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
pub mod protocol;

pub use protocol::{Error, Monitor};

/// Why a request failed.
pub type Failure = tench_protocol::Failure<Error>;
