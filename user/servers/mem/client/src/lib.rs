//! Client and protocol of the mem server. What the server does: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
pub mod protocol;
pub mod slabs;

pub use client::{Account, Audit, Block, Extent, InUse, Mem, Totals, Within};
pub use protocol::Error;

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
