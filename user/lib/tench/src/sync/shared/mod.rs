//! Locks, semaphores and condition variables in memory that several processes share.
//!
//! ```text
//!   frame    0      table of the group's members (tickets)
//!            1024   cell 0: a lock, a semaphore, a condition or a word; 64 bytes each
//!            1088   cell 1 …
//!
//!   process A: Group::new ── thread "group" keeps each member's notification, and sends copies on request
//!   process B: Group::join(frame, endpoint)
//! ```
//! A process makes the [`Group`]: the frame, and a thread that serves the endpoint. It passes both capabilities to
//! others, which join. In each process each participating thread becomes a [`Member`]: it makes a notification,
//! registers a copy, and gets a number. Without contention an operation only changes words of the frame. A thread that
//! has to wait sleeps on its own notification; the thread that wakes it signals that notification, and requests a copy
//! of it the first time.
//!
//! When a process ends, its members' notifications are deleted, by which the others notice: a lock that it held passes
//! on as [`Taken::OwnerDied`], within about [`LONG`] if a member waited already. The process that made the group must
//! outlive the others' need to learn about new members.
//!
//! Processes that share a frame trust each other not to corrupt it. They cannot make each other access memory outside
//! of it: there are no pointers in it, and numbers read from it are checked.

mod group;
mod protocol;

use core::sync::atomic::AtomicUsize;
use core::time::Duration;

pub use group::{Group, GroupError, Member};
pub use protocol::{Error as JoinError, GroupClient};
pub use tench_sync::shared::{Crowd, Error, MEMBERS, Slept, Table, Taken};

/// A lock in a frame.
pub type SharedLock = tench_sync::shared::Lock<AtomicUsize>;
/// A semaphore in a frame.
pub type SharedPermits = tench_sync::shared::Permits<AtomicUsize>;
/// A condition variable in a frame.
pub type SharedCondition = tench_sync::shared::Condition<AtomicUsize>;

/// Duration for which a member sleeps before it checks whether the members for which it waits still live.
pub const LONG: Duration = Duration::from_millis(10);
