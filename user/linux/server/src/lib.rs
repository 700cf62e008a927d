//! Runs unmodified Linux programs.
//!
//! An [`Instance`] has processes and a [`System`], which has what they share: memory, files, open files. A [`Caller`]
//! is a process that makes a system call, with all others. Whatever needs the machine below is behind the trait
//! [`Machine`], so that everything here also runs on the host.

#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod caller;
mod calls;
pub mod capabilities;
pub mod descriptors;
pub mod devices;
pub mod epoll;
pub mod exec;
pub mod filters;
pub mod futexes;
mod generated;
pub mod identity;
mod instance;
pub mod ipc;
pub mod limits;
pub mod locks;
pub mod log;
pub mod mounts;
mod notices;
pub mod operations;
pub mod options;
mod owners;
pub mod packed;
mod parents;
pub mod process;
pub mod processes;
pub mod running;
mod shortage;
pub mod signals;
pub mod spaces;
pub mod specials;
pub mod system;
mod terminal;
pub mod terminals;
pub mod thread;
pub mod tracing;
mod vdso;
pub mod waiting;
mod watches;

pub use caller::{Caller, Outcome};
pub use instance::{Fault, Instance};
pub use process::{Process, Status};
pub use system::{Machine, System};
pub use thread::Threads;
