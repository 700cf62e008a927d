//! Locks, conditions, semaphores: the algorithms, without a system below.
//!
//! ```text
//!   FairLock            lock without data: everything else is built on it
//!   Line                a queue of waiters behind a FairLock
//!   Condition  Permits  ReadWrite  Barrier       what a Line is good for
//!   shared::…           the same for memory that several processes share
//! ```
//! A [`Platform`] says what a word in memory is and how a thread sleeps and is woken. So the same code runs on the
//! target, on the host with the threads of its own, and under a checker that tries every order of steps.
//!
//! # Fair
//!
//! Whoever asks first gets first. A lock that is given up while others wait is never free for a moment in between: it
//! is handed to the thread that has waited longest, and whoever comes meanwhile waits behind the others. So no thread
//! starves, however often another takes and releases the same lock.
//!
//! # Nothing spins
//!
//! With fixed priorities, a thread that spins would keep the one that it waits for from running. Every wait here
//! sleeps. Without contention nobody sleeps and nobody is woken: an operation is one or two atomic instructions on one
//! word.

#![no_std]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

mod barrier;
mod condition;
mod lock;
mod permits;
mod platform;
mod read_write;
pub mod shared;
mod waiter;

pub use barrier::Barrier;
pub use condition::Condition;
pub use lock::FairLock;
pub use permits::{Overflow, Permits};
pub use platform::{Platform, Word};
pub use read_write::ReadWrite;
pub use waiter::{Line, Waiter};
