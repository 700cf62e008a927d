//! The message queues of Linux processes: POSIX's.
//!
//! [`Queues`] has all queues of an instance, by their names.
//!
//! ```text
//!  open ─ name ─┐
//!  send ────────┴─ [9: a b] [4: c] [0: d e] ─ receive     the highest priority first,
//!                    each priority in order               and within it what is oldest
//! ```
//!
//! Nothing here waits, or knows processes, descriptors or signals. The caller has these tasks:
//!
//! - A queue has a user for each open file; [`Queues::close`] removes it. Without a name and users a queue ends.
//! - Who is refused with `EAGAIN` may wait, and try again after something was received, or sent.
//! - A process may want to learn that a message has come to an empty queue for which nobody waits.
//!   [`Queues::send`] says so once, by a [notice](Queues::notify) of a type `N`, which this crate only keeps. When the
//!   process closes a descriptor of the queue, [`Queues::forget`] drops it.
//!
//! Behaviour that looks strange is Linux's, with whose queues the tests compare this crate. What differs: the bytes
//! that messages of all queues may have are [limited](Queues::MAX_BYTES) for the whole instance, since everything
//! belongs to one user.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod queue;
mod queues;

pub use queue::{Limits, MAX_PRIORITY, Message};
pub use queues::{Owned, QueueId, Queues, Wanted};
pub use tench_linux_calls::Errno;
