//! Shared memory.

use alloc::vec::Vec;

use tench_linux_calls::{Errno, ipc};

use crate::table::{By, Entry, Found, Owner, Table, index_of};

/// Size of a page in bytes.
const PAGE_SIZE: u64 = 4096;
/// The longest contents: a file's.
const MAX_LENGTH: u64 = i64::MAX as u64;

/// A segment.
#[derive(Debug)]
pub struct Segment<C> {
    /// The contents.
    pub content: C,
    /// Length in bytes.
    pub size: u64,
    /// How often it is attached.
    pub attachments: u64,
    /// The process that has made it.
    pub maker: u32,
    /// The process that has attached or detached it last; 0 for none.
    pub last: u32,
    /// When it was attached last, in seconds; 0 for never.
    pub attached: u64,
    /// When it was detached last, in seconds; 0 for never.
    pub detached: u64,
    /// When it was made, or its permissions were changed, in seconds.
    pub changed: u64,
}

/// A change of a segment's attachments.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// How often it is attached now.
    pub attachments: u64,
    /// A process has attached it since the last time.
    pub was_attached: bool,
    /// A process has detached it since the last time.
    pub was_detached: bool,
}

/// All segments.
#[derive(Debug)]
pub struct Segments<C> {
    all: Table<Segment<C>>,
    /// Pages of all segments, used or not.
    pages: u64,
}

impl<C> Default for Segments<C> {
    fn default() -> Segments<C> {
        Segments { all: Table::new(Segments::<C>::MAX_COUNT), pages: 0 }
    }
}

/// Returns the number of pages that have so many bytes.
const fn pages(size: u64) -> u64 {
    size.div_ceil(PAGE_SIZE)
}

impl<C> Segments<C> {
    /// The most segments.
    pub const MAX_COUNT: usize = 4096;
    /// The most bytes of a segment. The most pages of all have the same number.
    pub const MAX_BYTES: u64 = u64::MAX - (1 << 24);

    /// Returns the identifier of a segment, which is made if that is wanted. `make` makes its contents.
    ///
    /// # Errors
    /// `EINVAL` if the segment is smaller or none can have the size, `ENOENT`, `EEXIST`, `EACCES`, `ENOSPC` if there
    /// are too many, and those of `make`.
    pub fn get(
        &mut self,
        by: &By<'_>,
        key: i32,
        size: u64,
        flags: u32,
        make: impl FnOnce() -> Result<C, Errno>,
    ) -> Result<i32, Errno> {
        let fits = |segment: &Segment<C>| if segment.size < size { Err(Errno::EINVAL) } else { Ok(()) };
        if let Some(id) = self.all.find(by, key, flags, fits)? {
            return Ok(id);
        }
        if !(1..=Self::MAX_BYTES).contains(&size) {
            return Err(Errno::EINVAL);
        }
        let total = self.pages.checked_add(pages(size)).filter(|total| *total <= Self::MAX_BYTES);
        let total = total.ok_or(Errno::ENOSPC)?;
        if size > MAX_LENGTH {
            return Err(Errno::EINVAL);
        }
        self.all.check_count()?;
        let segment = Segment {
            content: make()?,
            size,
            attachments: 0,
            maker: by.process,
            last: 0,
            attached: 0,
            detached: 0,
            changed: by.now,
        };
        self.pages = total;
        Ok(self.all.add(by, key, flags, segment))
    }

    /// Returns a segment that a process wants to attach with some permissions.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EACCES`.
    pub fn attach(&self, by: &By<'_>, id: i32, wanted: u32) -> Result<&Segment<C>, Errno> {
        let entry = self.all.get(id)?;
        entry.permissions.check(&by.user, wanted)?;
        Ok(&entry.value)
    }

    /// Records what a process has done with the contents of segments: `change` says it of each. Returns the contents
    /// of segments that have ended, since they were removed and nobody has them attached any more.
    pub fn settle(&mut self, by: &By<'_>, mut change: impl FnMut(&C) -> Option<Change>) -> Vec<C> {
        let mut ended = Vec::new();
        for Entry { id, permissions, value } in self.all.iter_mut() {
            let Some(change) = change(&value.content) else { continue };
            value.attachments = change.attachments;
            value.last = by.process;
            if change.was_attached {
                value.attached = by.now;
            }
            if change.was_detached {
                value.detached = by.now;
            }
            if value.attachments == 0 && permissions.mode & ipc::shm::DEST != 0 {
                ended.push(index_of(*id));
            }
        }
        ended.into_iter().filter_map(|index| self.end(index)).collect()
    }

    /// Removes a segment, as soon as nobody has it attached. Returns its contents if that is now.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EPERM` if it belongs to another.
    pub fn remove(&mut self, by: &By<'_>, id: i32) -> Result<Option<C>, Errno> {
        let entry = self.all.own(by, id)?;
        if entry.value.attachments == 0 {
            return Ok(self.end(index_of(id)));
        }
        entry.permissions.mode |= ipc::shm::DEST;
        self.all.hide(index_of(id));
        Ok(None)
    }

    fn end(&mut self, index: u32) -> Option<C> {
        let segment = self.all.remove(index)?;
        self.pages -= pages(segment.size);
        Some(segment.content)
    }

    /// Ends all segments, which nobody has attached. Returns the contents of one of them.
    pub fn end_one(&mut self) -> Option<C> {
        let index = self.all.iter().next().map(|entry| index_of(entry.id))?;
        self.end(index)
    }

    /// Gives a segment to somebody.
    ///
    /// # Errors
    /// `EINVAL` if it is not there or nobody has such a number, `EPERM` if it belongs to another.
    pub fn give(&mut self, by: &By<'_>, id: i32, owner: &Owner) -> Result<(), Errno> {
        self.all.give(by, id, owner)?.changed = by.now;
        Ok(())
    }

    /// Locks a segment in memory, or unlocks it. Only the mode changes, since all segments are in memory.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EPERM` if it belongs to another.
    pub fn lock(&mut self, by: &By<'_>, id: i32, locks: bool) -> Result<(), Errno> {
        let mode = &mut self.all.own(by, id)?.permissions.mode;
        *mode = if locks { *mode | ipc::shm::LOCKED } else { *mode & !ipc::shm::LOCKED };
        Ok(())
    }

    /// Returns what is known of a segment, and what a call that asks for it returns.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EACCES`.
    pub fn look(&self, by: &By<'_>, id: i32, how: Found) -> Result<(&Entry<Segment<C>>, u64), Errno> {
        self.all.look(by, id, how)
    }

    /// Returns the number of segments.
    pub fn count(&self) -> usize {
        self.all.count()
    }

    /// Returns the pages of all segments, used or not.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the highest index of a segment; 0 if there is none.
    pub fn highest(&self) -> u64 {
        self.all.highest()
    }

    /// Returns all segments, by their indices.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<Segment<C>>> {
        self.all.iter()
    }

    /// Checks that keys lead to segments, that their pages are counted, and that none is left that was to end.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        self.all.check()?;
        if self.iter().map(|entry| pages(entry.value.size)).sum::<u64>() != self.pages {
            return Err("pages of segments are counted wrongly");
        }
        let is_over =
            |entry: &Entry<Segment<C>>| entry.value.attachments == 0 && entry.permissions.mode & ipc::shm::DEST != 0;
        if self.iter().any(is_over) { Err("a segment is there that should have ended") } else { Ok(()) }
    }
}
