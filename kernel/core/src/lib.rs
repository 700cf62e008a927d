//! The Tench kernel without the hardware: every object and every operation.
//!
//! The crate is generic over [`Arch`] and compiles for the host, where the same code is tested, fuzzed and compared
//! with a model. Its modules are layers: a module may name any type, but it calls functions of lower layers only.
//! Methods and associated functions belong to their type and do not count. Modules joined by `+` also call each other.
//! A test of the source reads this table.
//!
//! ```text
//!   entry                        a trap becomes an operation, a fault or an interrupt
//!   fast                         the commonest cases, in few instructions: all checks come first
//!   capabilities, configuration, untyped, remote, kernel_object       operations on objects of several kinds
//!   boot                         the first process
//!   delete                       how capabilities end, and objects with their last capability
//!   address_space, thread        operations on page tables, frames and mappings; threads
//!   account                      the threads of a process, and their time
//!   endpoint + reply + notification + fault + interrupt                what threads wait for, and what ends their wait
//!   + scheduler + preemption_point + helping + timers + depletion + scheduling_context    which of them runs, how long
//!   syscall                      arguments and outcomes of system calls
//!   cspace                       which capability an address names
//!   mapping                      what is mapped in a page table
//!   page_table                   page tables and address-space identifiers
//!   derivation                   which capability was made from which
//!   tree                         the ordered structure below
//!   kernel, object, slot, arch   the state, and how it is reached
//!   heap, budget, float, step, ipc_buffer, latency_tracer              parts of it on their own
//! ```
//!
//! Messages and time are one cycle: a deadline ends a wait, a waiting thread lends its time to the one for which it
//! waits, and a budget that is used up becomes a message to a handler.
//!
//! A system call is a function on [`Kernel`] that returns a result; its caller switches threads. All checks come first
//! and write nothing.

#![no_std]
#![deny(missing_docs)]

pub mod account;
pub mod address_space;
pub mod arch;
pub mod boot;
pub mod budget;
pub mod capabilities;
pub mod configuration;
pub mod cspace;
pub mod delete;
pub mod depletion;
pub mod derivation;
pub mod endpoint;
pub mod entry;
pub mod fast;
pub mod fault;
pub mod float;
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
pub mod scheduler;
pub mod scheduling_context;
pub mod slot;
pub mod step;
pub mod syscall;
pub mod thread;
pub mod timers;
pub mod tree;
pub mod untyped;

pub use arch::Arch;
pub use kernel::{Kernel, State};
pub use object::Ref;
pub use slot::{Cap, Slot, SlotRef};
