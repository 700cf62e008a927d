//! Advisory locks of files of Linux processes.
//!
//! [`Locks`] has the locks of all files, of two sorts that do not know each other:
//!
//! ```text
//!  fcntl: ranges of bytes       owner: a process (F_SETLK), or an open file (F_OFD_SETLK)
//!         |--- shared ---|- exclusive -|      each byte has one kind per owner;
//!                                             neighbours of one kind are one lock
//!  flock: the whole file        owner: an open file
//! ```
//!
//! Nothing here waits, or knows threads, descriptors or files: files and open files are any names that can be compared.
//! The caller has these tasks:
//!
//! - A lock that is [held](Refusal::Held) by somebody else may be waited for: [`Locks::wait`] records who waits, which
//!   is what [`Locks::is_deadlock`] searches, and [`Locks::take_woken`] says whose call is to be made again. A call
//!   that is over, however it ends, is forgotten by [`Locks::end_wait`].
//! - When a process closes any descriptor of a file, [`Locks::close_process`] drops its locks of that file; when an
//!   open file has no users any more, [`Locks::close_description`] does. While there are [no locks](Locks::is_empty),
//!   neither need be called.
//!
//! Behaviour that looks strange is Linux's, with which the tests compare this crate. What differs: there are
//! [limits](Locks::MAX_OF_FILE) of the number of locks. A deadlock is found however many processes take part in it, and
//! whichever of several locks that are in the way belongs to it.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod file;
mod locks;
mod range;

pub use file::{Kind, Owner, Record};
pub use locks::{Locks, Refusal, Wanted};
pub use range::Range;
pub use tench_linux_calls::Errno;
