//! Client and protocol of the process server. Behaviour of the server: docs/manual/servers.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
pub mod pid;
pub mod protocol;
mod standing;
mod status;

pub use client::Spawn;
pub use protocol::{Capability, Error, Procs, Status};
pub use standing::Standing;

/// Why a request failed.
pub type Failure = tench_protocol::Failure<Error>;
