//! The reservation server's decisions and its persistent state. This library makes no system call, so all of it is
//! tested on the host; `server.rs` configures the kernel.
//!
//! ```text
//! analysis   whether a set of reservations meets all deadlines
//! levels     a priority for each, in the order of deadlines
//! kept       the journal of reservations, which survives restarts
//! table      all reservations: requests, grants, refusals
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod analysis;
pub mod kept;
pub mod levels;
pub mod table;
