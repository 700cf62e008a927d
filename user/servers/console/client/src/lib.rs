//! Client and protocol of the console server. What the server does: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
pub mod protocol;

pub use protocol::{Console, Error};

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
