//! What System V has for processes: shared memory, semaphores and message queues.
//!
//! ```text
//!  key ──┐                            Segments    a segment: its contents, who has it attached
//!  shmget ──▶ identifier ──▶ Table ──▶ Semaphores  a set: values, operations that wait, what is undone
//!                                      Queues      a queue: messages, who waits to send and to receive
//! ```
//!
//! Nothing here waits, or knows memory, processes or signals. The caller has these tasks:
//!
//! - It says [by](By) whom each operation is: the user, for permissions, and the process, which is recorded.
//! - A segment's contents have a type `C`, of which this crate only says when they end. Who attaches, and lets go by
//!   whatever way, the caller counts, and tells [`Segments::settle`].
//! - An operation on semaphores or messages that cannot be done now is kept for its thread if that may wait. As soon as
//!   it can be done, it is, in the order in which such operations came. `take_woken` names the threads whose operations
//!   are over; `take_result` has the result, once. Who waits no longer says so with `end_wait`.
//! - When a process ends, [`Semaphores::end_process`] undoes what it wanted to be undone.
//!
//! Behaviour that looks strange is that of Linux 6.1, with which the tests compare this crate; so are identifiers: the
//! index of what they name in the low 15 bits, and above it a number that rises whenever indices begin anew.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod messages;
mod segments;
mod semaphores;
mod table;
mod text;
mod waits;

pub use messages::{Filter, Message, Queue, Queues, Received, Wanted};
pub use segments::{Change, Segment, Segments};
pub use semaphores::{Done, Operation, Semaphores, Set};
pub use table::{By, Entry, Found, Owner, Permissions, User};
pub use tench_linux_calls::Errno;
