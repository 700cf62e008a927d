//! Watches of files by Linux processes: `inotify`.
//!
//! [`Watches`] has all instances. Each has watches of files, and a queue of what happened to these.
//!
//! ```text
//!  tell(file, name, mask) ──▶ watches of the file ──▶ queue of each one's instance ──▶ read
//!                             that want the event      merged with the last, at most 16384
//! ```
//!
//! The crate does not wait, and knows no paths, descriptors and processes. The caller has these tasks:
//!
//! - It tells each event of a file with a name in a directory twice: of the directory, with the name, and then of the
//!   file. Files have names of a type `F`, which no other file has as long as one is watched.
//! - It says when a file [has ended](Watches::end_file).
//! - It wakes whoever waits for an instance that [has got something](Watches::take_woken) to read.
//!
//! Queues are bounded: each by its number of events, as on Linux, and all together by [their bytes](MAX_BYTES). What
//! does not fit is lost, and an event at the end of the queue says so.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod event;
mod watches;

pub use event::Event;
pub use tench_linux_calls::Errno;
pub use watches::{Happened, InstanceId, MAX_BYTES, MAX_EVENTS, MAX_INSTANCES, MAX_WATCHES, Watches};
