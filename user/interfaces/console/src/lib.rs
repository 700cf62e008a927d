//! Client and protocol of the console server. Behaviour of the server: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
pub mod protocol;

pub use protocol::{Console, Error};

/// Why a request failed.
pub type Failure = tench_protocol::Failure<Error>;
