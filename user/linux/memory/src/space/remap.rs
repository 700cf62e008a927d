//! Areas that change their length or their place.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Denied, Entry, Space, entries_in, locate, set_rights};
use crate::areas::Area;
use crate::{Errno, Hardware, MapRequest, Memory, PAGE_SIZE, Page, Placement, Rights, round_up};

/// Where an area may go that changes its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The area stays.
    No,
    /// The area moves if there is no room behind it.
    IfNecessary,
    /// The area moves to this address, in place of what is there.
    To(u64),
}

impl<H: Hardware> Space<H> {
    /// Changes the length of a part of an area, and perhaps its place. Returns its address.
    ///
    /// # Errors
    /// - `EINVAL`: an address is not that of a page, a length is 0, or the old and the new place overlap.
    /// - `EFAULT`: the old place is not part of one area.
    /// - `ENOMEM`: there is no room.
    pub fn remap(
        &mut self,
        memory: &mut Memory<H>,
        old: u64,
        old_length: u64,
        new_length: u64,
        to: Move,
    ) -> Result<u64, Errno> {
        let source = self.range(old, old_length).filter(|range| !range.is_empty()).ok_or(Errno::EINVAL)?;
        let length = round_up(new_length).filter(|length| *length != 0).ok_or(Errno::EINVAL)?;
        let old_length = source.end - source.start;
        let (start, area) = self.areas.at(old).map(|(start, area)| (start, *area)).ok_or(Errno::EFAULT)?;
        if area.end < source.end {
            return Err(Errno::EFAULT);
        }
        match to {
            Move::To(new) => {
                let target = self.range(new, length).ok_or(Errno::EINVAL)?;
                if target.start < source.end && source.start < target.end {
                    return Err(Errno::EINVAL);
                }
            }
            Move::No | Move::IfNecessary if length <= old_length => {
                if length < old_length {
                    self.remove(memory, old + length..source.end);
                }
                return Ok(old);
            }
            Move::No | Move::IfNecessary if area.end == source.end && self.is_free(source.end, length - old_length) => {
                self.copy_area(memory, (start, &area), source.end, source.end, length - old_length)?;
                return Ok(old);
            }
            Move::No => return Err(Errno::ENOMEM),
            Move::IfNecessary => {}
        }
        self.move_area(memory, (start, &area), source, length, to)
    }

    /// Returns whether there is nothing behind an address for this length, and a process may have something there.
    fn is_free(&self, start: u64, length: u64) -> bool {
        self.range(start, length).is_some_and(|range| self.areas.within(range).next().is_none())
    }

    /// Makes an area that continues another one from an address of that on, at a place.
    fn copy_area(
        &mut self,
        memory: &mut Memory<H>,
        (start, area): (u64, &Area),
        from: u64,
        to: u64,
        length: u64,
    ) -> Result<(), Errno> {
        let Area { rights, allowed, shared, backing, grows, .. } = *area;
        let backing = backing.advanced(from - start);
        let placement = Placement::Fixed(to);
        self.map(memory, &MapRequest { placement, length, rights, allowed, shared, backing, grows }).map(drop)
    }

    /// Moves a part of an area, with a new length.
    fn move_area(
        &mut self,
        memory: &mut Memory<H>,
        area: (u64, &Area),
        source: Range<u64>,
        length: u64,
        to: Move,
    ) -> Result<u64, Errno> {
        let new = match to {
            Move::To(new) => new,
            Move::No | Move::IfNecessary => self.place(Placement::Hint(0), length)?,
        };
        let moved = source.start..source.start + (source.end - source.start).min(length);
        self.copy_area(memory, area, source.start, new, length)?;
        if self.ensure_tables(memory, moved.clone(), new).is_err() {
            self.remove(memory, new..new + length);
            return Err(Errno::ENOMEM);
        }
        let pages = self.take_pages(memory, moved);
        self.remove(memory, source);
        for (offset, page) in pages {
            self.put_page(new + offset, page);
        }
        Ok(new)
    }

    /// Makes the tables for what is to move from a range to an address.
    fn ensure_tables(&mut self, memory: &mut Memory<H>, from: Range<u64>, to: u64) -> Result<(), Denied> {
        let (first, _) = locate(from.start);
        let mut bases = Vec::new();
        for (base, table) in self.tables.range(first..from.end) {
            let used = entries_in(*base, &from).filter(|index| table.entries[*index].is_some());
            bases.extend(used.map(|index| locate(base + index as u64 * PAGE_SIZE - from.start + to).0));
            bases.dedup();
        }
        bases.into_iter().try_for_each(|base| self.ensure_table(memory, base))
    }

    /// Takes the pages of entries in a range out of the address space, with their offsets.
    fn take_pages(&mut self, memory: &mut Memory<H>, range: Range<u64>) -> Vec<(u64, Page)> {
        let mut pages = Vec::new();
        let (first, _) = locate(range.start);
        for (base, table) in self.tables.range_mut(first..range.end) {
            let entries = entries_in(*base, &range);
            set_rights(&mut memory.hardware, table, entries.clone(), Rights::empty());
            for index in entries {
                if let Some(entry) = table.entries[index].take() {
                    table.used -= 1;
                    pages.push((base + index as u64 * PAGE_SIZE - range.start, entry.page));
                }
            }
        }
        pages
    }

    /// Makes an entry for a page at an address where there is none, but a table. The next access maps it.
    fn put_page(&mut self, address: u64, page: Page) {
        let (base, index) = locate(address);
        if let Some(table) = self.tables.get_mut(&base) {
            table.put(index, Entry { page, rights: Rights::empty() });
        }
    }
}
