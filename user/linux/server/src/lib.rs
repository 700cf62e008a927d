//! Runs unmodified Linux programs.
//!
//! A [`System`] has what the processes of an instance share: memory, files, open files. A [`Process`] has the rest. A
//! [`Caller`] is a process that makes a system call, with the system. Whatever needs the machine below is behind the
//! trait [`Machine`], so that everything here also runs on the host.

#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod caller;
mod calls;
pub mod descriptors;
pub mod devices;
pub mod exec;
pub mod options;
pub mod process;
pub mod system;

pub use caller::{Caller, Outcome};
pub use process::Process;
pub use system::{Machine, System};
