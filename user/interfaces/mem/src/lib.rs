//! Client and protocol of the memory server. Behaviour of the server: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

// This is the name under which others see it: tools also read interfaces, from where `crate` is something else.
extern crate self as tench_mem_interface;

mod client;
pub mod protocol;
pub mod slabs;

pub use client::Block;
pub use protocol::{Account, Audit, Error, Extent, InUse, Mem, Totals, Within};

/// Why a request failed.
pub type Failure = tench_protocol::Failure<Error>;
