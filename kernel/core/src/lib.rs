//! The Tench kernel without the hardware: every object and every operation.
//!
//! The crate is generic over [`Arch`] and compiles for the host, where the same code is tested, fuzzed and compared
//! with a model. Its modules:
//!
//! ```text
//!   entry        decodes a trap into an operation, and decides which thread runs next
//!   fast         the two message paths that matter most, checked first and short
//!   endpoint, reply, notification, fault      messages
//!   thread, scheduler, scheduling_context, helping, timers, account  which thread runs, and when
//!   budget, depletion                         for how long
//!   cspace, untyped, delete, frame, page_table  capabilities and memory
//!   remote                                    remote capabilities: exported to and imported from other cores
//!   derivation, tree, heap                    the ordered structures below them
//!   kernel, object, slot                      the state, and how it is reached
//! ```
//!
//! A system call is a function on [`Kernel`] that returns a result; its caller switches threads. All checks come first
//! and write nothing.

#![no_std]
#![deny(missing_docs)]

pub mod account;
pub mod arch;
pub mod boot;
pub mod budget;
pub mod cspace;
pub mod delete;
pub mod depletion;
pub mod derivation;
pub mod endpoint;
pub mod entry;
pub mod fast;
pub mod fault;
pub mod float;
pub mod frame;
pub mod heap;
pub mod helping;
pub mod interrupt;
pub mod ipc_buffer;
pub mod kernel;
pub mod kernel_object;
pub mod latency_tracer;
pub mod mapping;
pub mod notification;
pub mod object;
pub mod page_table;
pub mod preemption_point;
pub mod remote;
pub mod reply;
pub mod scattered;
pub mod scheduler;
pub mod scheduling_context;
pub mod slot;
pub mod thread;
pub mod timers;
pub mod tree;
pub mod untyped;

pub use arch::Arch;
pub use kernel::{Kernel, State};
pub use object::Ref;
pub use slot::{Cap, Slot, SlotRef};
