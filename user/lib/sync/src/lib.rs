//! Locks, condition variables, semaphores: the algorithms, independent of the system below.
//!
//! ```text
//!   FairLock            lock without data: everything else is built on it
//!   Line                a queue of waiters behind a FairLock
//!   Condition  Permits  ReadWrite  Barrier       built on a Line
//!   shared::…           the same for memory that several processes share
//!   InheritingLock      a lock whose waiters help its holder, built on queues of the system
//! ```
//! A [`Platform`] defines a word in memory and how a thread sleeps and is woken. So the same code runs on the target,
//! on the host's threads, and under a checker that tries every order of steps.
//!
//! # Fairness
//!
//! Locks are granted in the order of the requests. A lock that is released while threads wait is never free in between:
//! it is handed to the thread that has waited longest, and a thread that comes meanwhile queues behind the others. So
//! no thread starves, however often another takes and releases the same lock.
//!
//! # No spinning
//!
//! With fixed priorities, a spinning thread would keep the thread for which it waits from running. Every wait here
//! sleeps. Without contention no thread sleeps or is woken: an operation is one or two atomic instructions on one word.

#![no_std]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

mod barrier;
mod condition;
mod inheriting;
mod lock;
mod permits;
mod platform;
mod read_write;
pub mod shared;
mod waiter;

pub use barrier::Barrier;
pub use condition::Condition;
pub use inheriting::{Gate, Gates, Helping, InheritingLock, Member, WaitEnd};
pub use lock::FairLock;
pub use permits::{Overflow, Permits};
pub use platform::{Platform, Word};
pub use read_write::ReadWrite;
pub use waiter::{Line, Waiter};
