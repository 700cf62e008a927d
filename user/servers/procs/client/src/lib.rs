//! Client and protocol of the procs server. What the server does: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
pub mod pid;
pub mod protocol;
mod standing;

pub use client::Spawn;
pub use protocol::{Capability, Error, Procs, Status};
pub use standing::Standing;

/// Why a request had no success.
pub type Failure = tench_protocol::Failure<Error>;
