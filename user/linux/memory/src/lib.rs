//! The memory of Linux processes.
//!
//! ```text
//!   Space (a process)                         Objects (files, shared memory)
//!   ┌ Area ── private, anonymous              ┌ Object: a page for each offset that was used
//!   │ Area ── private, of an object ─────────▶│
//!   └ Area ── shared, of an object ──────────▶└
//!   Table: an entry for each address ──┐                │
//!                                      ▼                ▼
//!   Pool: the pages, and how many entries and objects use each
//! ```
//! All pages are the personality's own, and lie in its own memory: a page that was copied on write outlives its
//! process, and calls read and write a process's memory by looking its addresses up here. A [`Space`] has [`Area`]s,
//! which say what may be where, and entries, which say what is there. An entry is made when its page is first touched,
//! by the process (a [fault](Space::fault)) or by a call.
//!
//! # Copy on write
//! A page that several use is mapped without write access in all private areas. Whoever writes to it gets a copy, or
//! the page itself if all others have let go of it meanwhile. So nobody has to be told when a page is let go of.
//!
//! # Invariants
//! [`Memory::check`] and [`Space::check`] check all of them:
//! - A page's count is the number of entries and objects that use it; a page with none is free, and no other.
//! - An entry lies in an area. In a shared area it has the object's page for its address.
//! - The hardware maps the entry's page, with no right that the area does not have, and no right to write if the area
//!   is private and the page is used by another as well.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod areas;
mod hardware;
mod objects;
mod pool;
mod space;

pub use areas::{Area, Areas, Backing};
pub use hardware::{Hardware, Place, Rights};
pub use objects::{Object, ObjectId, Objects};
pub use pool::{Page, Pool};
pub use space::{Access, Denied, MapRequest, Move, Placement, Space, Usage};
pub use tench_linux_calls::Errno;

/// Size of a page in bytes.
pub const PAGE_SIZE: u64 = 4096;

/// Pages and objects of an instance, and the hardware that maps them.
#[derive(Debug)]
pub struct Memory<H> {
    /// The pages.
    pub pool: Pool,
    /// The objects.
    pub objects: Objects,
    /// Bytes and page tables.
    pub hardware: H,
}

/// Returns an address or a length rounded up to whole pages, or `None` if that is no number.
pub fn round_up(value: u64) -> Option<u64> {
    value.checked_next_multiple_of(PAGE_SIZE)
}
