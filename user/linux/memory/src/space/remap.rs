//! Areas that change their length or their place.

use core::ops::Range;

use super::{Denied, Entry, Space, TABLE_SIZE, entries_in, locate, set_rights};
use crate::areas::{Area, Backing};
use crate::{Errno, Hardware, MAX_AREAS, Memory, ObjectId, PAGE_SIZE, Page, Placement, Rights, round_up};

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
    /// - `ENOMEM`: there is no room, or the areas would be longer than [allowed](Self::allowance).
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
        self.check_longer(length.saturating_sub(old_length), &area)?;
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
                // It stays one area, also if it may not be joined with another.
                self.areas.extend(start, old + length);
                self.join(memory, source.end..old + length);
                return Ok(old);
            }
            Move::No => return Err(Errno::ENOMEM),
            Move::IfNecessary => {}
        }
        self.move_area(memory, (start, &area), source, length, to)
    }

    /// Gives the process, which has just been forked, copies of an object's pages in place of a part in them. Where no
    /// memory is left for that, nothing is.
    pub fn part_from(&mut self, memory: &mut Memory<H>, object: ObjectId) {
        let mut next = 0;
        while let Some((start, area)) = self.areas.above(next).map(|(start, area)| (start, *area)) {
            next = area.end;
            if !matches!(area.backing, Backing::Object(id, _) if id == object) {
                continue;
            }
            self.areas.change(start..area.end, |area| area.shared = false);
            let is_copied = (start..area.end).step_by(PAGE_SIZE as usize).all(|page| {
                let mut byte = [0];
                self.read(memory, page, &mut byte) == 1 && self.write(memory, page, &byte) == 1
            });
            if !is_copied {
                self.remove(memory, start..area.end);
            }
        }
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
        if self.areas.count() > MAX_AREAS {
            return Err(Errno::ENOMEM);
        }
        self.put(memory, to, Area { end: to + length, backing: area.backing.advanced(from - start), ..*area });
        Ok(())
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
        self.move_entries(memory, moved, new);
        self.remove(memory, source);
        Ok(new)
    }

    /// Makes the tables for what is to move from a range to an address.
    fn ensure_tables(&mut self, memory: &mut Memory<H>, from: Range<u64>, to: u64) -> Result<(), Denied> {
        let mut next = from.start;
        while let Some(address) = self.next_entry(next..from.end) {
            let (base, _) = locate(address - from.start + to);
            self.ensure_table(memory, base)?;
            // The next one that may belong into another table.
            next = base + TABLE_SIZE - to + from.start;
        }
        Ok(())
    }

    /// Returns the first address in a range of pages that has an entry.
    fn next_entry(&self, range: Range<u64>) -> Option<u64> {
        let (first, _) = locate(range.start);
        if range.is_empty() {
            return None;
        }
        self.tables.range(first..range.end).find_map(|(base, table)| {
            let mut entries = entries_in(*base, &range);
            let index = entries.find(|index| table.entries[*index].is_some())?;
            Some(base + index as u64 * PAGE_SIZE)
        })
    }

    /// Moves the entries in a range to an address, where there are tables for them and no entries.
    fn move_entries(&mut self, memory: &mut Memory<H>, from: Range<u64>, to: u64) {
        let mut next = from.start;
        while let Some(address) = self.next_entry(next..from.end) {
            let (base, _) = locate(address);
            next = base + TABLE_SIZE;
            let entries = entries_in(base, &from);
            if let Some(table) = self.tables.get_mut(&base) {
                set_rights(&mut memory.hardware, table, entries.clone(), Rights::empty());
            }
            for index in entries {
                if let Some(page) = self.tables.get_mut(&base).and_then(|table| table.take(index)) {
                    self.put_page(base + index as u64 * PAGE_SIZE - from.start + to, page);
                }
            }
        }
    }

    /// Makes an entry for a page at an address where there is none, but a table. The next access maps it.
    fn put_page(&mut self, address: u64, page: Page) {
        let (base, index) = locate(address);
        if let Some(table) = self.tables.get_mut(&base) {
            table.put(index, Entry { page, rights: Rights::empty() });
        }
    }
}
