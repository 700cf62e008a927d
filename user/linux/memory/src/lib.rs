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
pub use objects::{News, Object, ObjectId, Objects};
pub use pool::{Page, Pool};
use slab::Slab;
pub use space::{Access, Allowance, Denied, Kind, MAX_AREAS, MapRequest, Move, Placement, Resident, Space, Usage};
pub use tench_linux_calls::Errno;

/// Size of a page in bytes.
pub const PAGE_SIZE: u64 = 4096;

/// Bytes of the personality's own memory that stay free for what is small. Whatever is not asks for room first
/// ([`Memory::check_room`]), and leaves that.
pub const RESERVE: usize = 512 * 1024;

/// Returns `ENOMEM` unless so many bytes can be allocated beside the [reserve](RESERVE).
fn check_room<H: Hardware>(hardware: &mut H, bytes: usize) -> Result<(), Errno> {
    hardware.can_allocate(bytes.saturating_add(RESERVE)).then_some(()).ok_or(Errno::ENOMEM)
}

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

impl<H: Hardware> Memory<H> {
    /// Checks that so many bytes of the personality's own memory can be allocated beside the [reserve](RESERVE).
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn check_room(&mut self, bytes: usize) -> Result<(), Errno> {
        check_room(&mut self.hardware, bytes)
    }

    /// Makes room for further objects in their table.
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn prepare_objects(&mut self, count: usize) -> Result<(), Errno> {
        prepare(&mut self.objects.objects, count, |bytes| check_room(&mut self.hardware, bytes))
    }
}

/// Makes room for further entries in a table, which is doubled if it has none. `check` checks that there is memory.
///
/// # Errors
/// Those of `check`.
pub fn prepare<T>(
    table: &mut Slab<T>,
    count: usize,
    check: impl FnOnce(usize) -> Result<(), Errno>,
) -> Result<(), Errno> {
    if table.capacity() - table.len() >= count {
        return Ok(());
    }
    let more = count.max(table.len());
    // An entry also has a word that tells whether it is free. The old table stays until all is copied.
    check((table.len() + more).saturating_mul(size_of::<T>() + size_of::<usize>()))?;
    table.reserve(more);
    Ok(())
}

/// Returns an address or a length rounded up to whole pages, or `None` if that is no number.
pub fn round_up(value: u64) -> Option<u64> {
    value.checked_next_multiple_of(PAGE_SIZE)
}
