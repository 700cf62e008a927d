//! The interface between a program and the kernel, and nothing more: system calls, typed capabilities, messages, time.
//!
//! ```text
//! raw        one stub per shape of system call; everything below goes through it
//! cap        Cap<T>: a capability address with a type; CSpaces: copy, mint, move, delete, revoke, identify
//! memory     untyped memory, frames, page tables, mappings
//! thread     threads and scheduling contexts
//! account    what the threads of a process have in common
//! ipc        endpoints, reply objects, notifications
//! message    building messages, reading received ones; room: the words in them
//! device     interrupts and the kernel itself
//! block      the thread block, and through it the IPC buffer
//! time       the system counter
//! ```
//! A `Cap<T>` is a name, not an owner: copying it copies the address, dropping it deletes nothing. The kernel checks
//! that the slot really holds a capability of the type; system calls fail with `WrongType` if not.
//!
//! On the host (for unit tests and `cargo check`) everything exists, and every system call fails with
//! [`Error::UnknownOperation`].
//!
//! # What is `unsafe` here
//!
//! Moving capabilities around is safe: the kernel checks every argument, and a program that unmaps memory in use ends
//! with a fault. Functions that make a thread run at an address that the caller chose are `unsafe`, because the caller
//! has to know that code and stack are fit for it; so is everything that follows an address in the thread block.

#![no_std]
#![deny(missing_docs)]

pub mod account;
pub mod block;
pub mod cap;
pub mod device;
pub mod ipc;
pub mod memory;
pub mod message;
pub mod raw;
mod reader;
pub mod remote;
pub mod thread;
pub mod time;
mod word_buffer;

pub use account::AccountInfo;
pub use block::{ThreadBlock, first_offered_slot, offer_slots, offered_slots};
pub use cap::{Cap, CapNode, Deleted, Freed, Identity, OWN_CSPACE};
pub use device::{Doorbell, Interrupt, InterruptControl, Kernel, Machine, Trigger};
pub use ipc::{Endpoint, Notification, Reply, Wait};
pub use memory::{Children, Frame, Mapping, MappingInfo, PageTable, Placement, Untyped, UntypedInfo};
pub use message::{Carried, Message, Reader, Received, Words};
pub use remote::Holders;
pub use tench_abi as abi;
pub use tench_abi::memory::MapFlags;
pub use tench_abi::{CapAddress, Error, Kind, Rights, Tag};
pub use thread::{Bindings, SchedulingContext, SchedulingInfo, Thread, ThreadInfo};
pub use time::Instant;
pub use word_buffer::{SHORT_BYTES, put_bytes, put_short};
