//! Client and protocol of the file server. Behaviour of the server: docs/manual/streams.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// The reply of `pipe` is clearer than a name for its type would be.
#![allow(clippy::type_complexity)]

mod client;
pub mod protocol;

pub use protocol::{Error, Files};

/// Why a request failed.
pub type Failure = tench_protocol::Failure<Error>;
