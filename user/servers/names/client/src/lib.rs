//! Client and protocol of the names server. What the server does: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod protocol;

pub use protocol::{Error, Names};

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
