//! The reservation server's decisions and its memory. Nothing here makes a system call, so all of it is tested on the
//! host; `server.rs` tells the kernel.
//!
//! ```text
//! analysis   whether a set of reservations meets all deadlines
//! levels     a priority for each, in the order of deadlines
//! kept       reservations in memory that stays when the server is started again
//! book       all of them: what is asked, granted, refused
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod analysis;
pub mod book;
pub mod kept;
pub mod levels;
