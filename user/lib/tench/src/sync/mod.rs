//! Mutex, condition variable, once: without system calls as long as nobody has to wait.
//!
//! A thread that has to wait puts itself in a queue of the lock, and waits for the notification in its thread block.
//! Whoever lets it go on takes it out of the queue and signals that notification. Nothing spins: with fixed priorities
//! a spinning thread would keep the one that it waits for from running.

mod condvar;
mod mutex;
mod once;
mod queue;

pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
pub use once::{Once, OnceLock};
pub(crate) use queue::Waiter;
