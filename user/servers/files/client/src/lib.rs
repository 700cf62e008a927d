//! Client and protocol of the file server. What the server does: docs/manual/streams.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// The answer of `pipe` says what it is better than a name for it would.
#![allow(clippy::type_complexity)]

mod client;
pub mod protocol;

pub use protocol::{Error, Files};

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
