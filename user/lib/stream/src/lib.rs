//! Byte streams: pipes, open files, whatever bytes come from and go to.
//!
//! A capability designates one *end* of a stream: who holds it can read or write there, and pass it on. Any server can
//! have ends; the file server has pipes and files. See docs/manual/streams.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod protocol;

pub use protocol::{Error, Stream};

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
