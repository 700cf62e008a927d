//! Client and protocol of the name server. Behaviour of the server: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod protocol;

pub use protocol::{Error, Names};

/// Why a request failed.
pub type Failure = tench_protocol::Failure<Error>;
