//! Client and protocol of the mem server. What the server does: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

// As others call it: interfaces are read by tools, too, from where `crate` is something else.
extern crate self as tench_mem_client;

mod client;
pub mod protocol;
pub mod slabs;

pub use client::Block;
pub use protocol::{Account, Audit, Error, Extent, InUse, Mem, Totals, Within};

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
