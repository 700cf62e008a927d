//! Client and protocol of the clock server. What the server does: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod protocol;

pub use protocol::{Clock, Error};

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
