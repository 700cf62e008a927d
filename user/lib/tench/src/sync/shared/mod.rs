//! Locks, semaphores and condition variables in memory that several processes share.
//!
//! ```text
//!   frame    0      table of the group's members (tickets)
//!            1024   cell 0: a lock, a semaphore, a condition or a word; 64 bytes each
//!            1088   cell 1 …
//!
//!   process A: Group::new ── thread "group" keeps each member's notification, and gives copies of them to whoever asks
//!   process B: Group::join(frame, endpoint)
//! ```
//! A process makes the [`Group`]: the frame, and a thread that serves the endpoint. It passes both capabilities to
//! others, which join. In each process each thread that takes part becomes a [`Member`]: it makes a notification, hands
//! a copy in, and gets a number. Without contention an operation changes words of the frame and nothing else. Who has
//! to wait sleeps on its own notification; who wakes it signals that, and asks for a copy of it the first time.
//!
//! A process that ends takes its members' notifications along, by which the others notice: a lock that it held passes
//! on as [`Taken::OwnerDied`], within about [`LONG`] if somebody waited already. The process that made the group must
//! outlive the others' need to learn about new members.
//!
//! Those who share a frame trust each other not to write nonsense into it. What they cannot do is make anyone access
//! memory outside of it: there are no pointers in it, and numbers from it are checked.

mod group;
mod protocol;

use core::sync::atomic::AtomicUsize;
use core::time::Duration;

pub use group::{Group, GroupError, Member};
pub use protocol::{Error as JoinError, GroupClient};
pub use tench_sync::shared::{Error, MEMBERS, Taken};

/// A lock in a frame.
pub type SharedLock = tench_sync::shared::Lock<AtomicUsize>;
/// A semaphore in a frame.
pub type SharedPermits = tench_sync::shared::Permits<AtomicUsize>;
/// A condition variable in a frame.
pub type SharedCondition = tench_sync::shared::Condition<AtomicUsize>;

/// How long a member sleeps before it sees whether those that it waits for are still there.
pub const LONG: Duration = Duration::from_millis(10);
