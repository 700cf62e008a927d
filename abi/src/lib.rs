//! Every number that the kernel, programs and host tools share, defined once.
//!
//! The crate only packs and unpacks: a constant, a layout or an error on which two parts of the system must agree lives
//! here and nowhere else. `tests/golden.rs` dumps all of it, so that a change of the interface shows in a diff.
//!
//! # How a system call is made
//!
//! `svc #1` enters the kernel; any other immediate is a *foreign* system call (see [`fault::Class::ForeignCall`]).
//!
//! | register   | on entry                                  | on return                                   |
//! |------------|-------------------------------------------|---------------------------------------------|
//! | `x10`      | operation number ([`Operation`])          | badge of a received message, otherwise 0    |
//! | `x0`       | capability address, see [`CapAddress`]    | 0, or an [`Error`] code                     |
//! | `x1`       | message tag ([`Tag`]) or first argument   | tag of a received message, or first result  |
//! | `x2`..`x9` | message words 0..8, or further arguments  | message words 0..8, or further results      |
//! | `x11`      | reply capability, if the tag says so      | 0                                           |
//! | `x12`      | deadline, if the tag says so              | 0                                           |
//!
//! A call is declared like a function call: `x19`..`x30` and `sp` survive; every other general register holds a result
//! or zero afterwards. Vector registers survive.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod boot;
pub mod error;
pub mod fault;
pub mod layout;
pub mod memory;
pub mod message;
pub mod object;
pub mod operation;
pub mod power;
pub mod process;

pub use error::Error;
pub use message::Tag;
pub use object::{CapAddress, Kind, Rights};
pub use operation::Operation;
pub use power::Powers;
