//! Byte streams: pipes, open files, and other sources and targets of bytes.
//!
//! A capability designates one *end* of a stream: its holder can read or write there, and transfer it. Any server can
//! have ends; the file server has pipes and files. See docs/manual/streams.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod protocol;

pub use protocol::{Error, Stream};

/// Reason why a request failed.
pub type Failure = tench_protocol::Failure<Error>;
