//! The kernel on the host: the semantics of a real machine, with memory in a buffer, under the tests' control.
//!
//! ```text
//!   machine      a booted kernel, and a driver that makes system calls as any thread
//!   check        checks that the kernel's whole state is consistent
//!   host         the `Arch` of the host: time, interrupts, preemption points, power
//!   stack        a coroutine for each entry into the kernel, so that preemption points can switch threads
//!   translation  page tables and their walker, and a translation cache that catches missing invalidations
//!   memory       the buffer
//!   weave        operations of several threads in every order, switched at preemption points
//!   snapshot     the state as text, to be compared
//!   canonical    the state as a number, equal for states that are equal up to renaming
//!   image        part of the memory and the kernel's state, saved and restored
//! ```

mod boot;
pub mod canonical;
pub mod check;
mod check_capabilities;
mod check_exports;
pub mod check_helping;
pub mod check_order;
pub mod check_queues;
mod check_tables;
pub mod check_tree;
pub mod host;
pub mod image;
pub mod machine;
pub mod memory;
pub mod snapshot;
pub mod stack;
pub mod translation;
pub mod weave;

pub use host::Host;
pub use machine::{Machine, ResultRegisters};
