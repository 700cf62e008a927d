//! System V IPC: shared memory, semaphores and message queues.
//!
//! ```text
//!  key ──┐                            Segments    a segment: its contents, who has it attached
//!  shmget ──▶ identifier ──▶ Table ──▶ Semaphores  a set: values, operations that wait, what is undone
//!                                      Queues      a queue: messages, who waits to send and to receive
//! ```
//!
//! This crate never waits, and knows no memory, processes or signals. The caller has these tasks:
//!
//! - It says [by whom](By) each operation is done: the user, for permissions, and the process, which is recorded.
//! - A segment's contents have a type `C`, of which this crate only says when they end. The caller counts how often
//!   they are attached, and tells [`Segments::settle`].
//! - An operation on semaphores or messages that cannot be done now is kept for its thread if that may wait. It is
//!   done as soon as it can be, in the order in which such operations came. `take_woken` names the threads whose
//!   operations are over; `take_result` has the result, once. `end_wait` forgets a thread that waits no longer.
//! - When a process ends, [`Semaphores::end_process`] undoes its operations that had `SEM_UNDO`.
//!
//! Behaviour that looks strange is that of Linux 6.1, with which the tests compare this crate. So are identifiers: the
//! low 15 bits are an index, and above them is a number that rises whenever indices begin anew.

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
