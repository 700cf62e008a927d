//! Mappings: ranges of frames, cut into runs of entries of one table, each of which is a mapping.

use tench_abi::CapAddress;
use tench_abi::memory::{MapFlags, PAGE_BITS, TABLE_ENTRIES, entry_bits};

use crate::backend::{Backend, Object, Run};
use crate::paging::{Need, Paging};
use crate::pool::Node;
use crate::reserve::Reserve;
use crate::shadow::{Entry, ROOT, Tables};
use crate::types::Error;

/// A mapping: one kernel object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mapping {
    pub(crate) slot: CapAddress,
    pub(crate) frame: CapAddress,
    /// Offset in the frame in bytes.
    pub(crate) offset: u64,
    pub(crate) table: u32,
    /// One more than the index of the frame's node, if the frame was made here; otherwise 0.
    pub(crate) owner: u32,
    pub(crate) first: u16,
    pub(crate) count: u16,
    pub(crate) flags: u8,
    /// Rights with which it was made, the maximum for protecting it.
    pub(crate) made: u8,
    unused: u32,
}

impl Mapping {
    pub(crate) const ZERO: Mapping = Mapping {
        slot: CapAddress::NULL,
        frame: CapAddress::NULL,
        offset: 0,
        table: 0,
        owner: 0,
        first: 0,
        count: 0,
        flags: 0,
        made: 0,
        unused: 0,
    };

    pub(crate) fn flags(&self) -> MapFlags {
        MapFlags::from_bits_truncate(u64::from(self.flags))
    }

    pub(crate) fn made(&self) -> MapFlags {
        MapFlags::from_bits_truncate(u64::from(self.made))
    }
}

impl Node for Mapping {
    fn link(&mut self) -> &mut u32 {
        &mut self.unused
    }
}

/// A frame that was made for a lazy region. It is destroyed with the last mapping of a part of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) object: Object,
    pub(crate) mappings: u32,
    unused: u32,
}

impl Frame {
    pub(crate) const ZERO: Frame = Frame::new(Object::NONE);

    /// Returns a frame that is not mapped yet.
    pub(crate) const fn new(object: Object) -> Frame {
        Frame { object, mappings: 0, unused: 0 }
    }
}

impl Node for Frame {
    fn link(&mut self) -> &mut u32 {
        &mut self.unused
    }
}

/// Part of a frame that is to be mapped at an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRange {
    pub(crate) frame: CapAddress,
    pub(crate) owner: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) flags: MapFlags,
}

impl Paging {
    /// Returns the first address of a mapping.
    pub(crate) fn start_of(&self, mapping: &Mapping) -> u64 {
        self.tables.address(mapping.table as usize, mapping.first)
    }

    /// Returns the size of a mapping in bytes.
    pub(crate) fn size_of(&self, mapping: &Mapping) -> u64 {
        u64::from(mapping.count) << entry_bits(u32::from(self.tables.level(mapping.table as usize)))
    }

    /// Returns the maximum number of page tables that mapping a range needs.
    pub(crate) fn missing_tables(&self, range: &FrameRange, runs: usize) -> usize {
        let there = usize::from(self.tables.level(self.tables.walk(range.address).0));
        let last = range.address + range.size - 1;
        let crossed = |level| (last >> entry_bits(level)) - (range.address >> entry_bits(level));
        // Each further run begins another table of its level, and perhaps one of the level above.
        3 - there + runs - 1 + (crossed(1) + crossed(0)) as usize
    }

    /// Maps a range, after checking that nothing is mapped there.
    pub(crate) fn show<B: Backend>(&mut self, backend: &mut B, range: &FrameRange) -> Result<(), Error<B::Error>> {
        // Most ranges are pages of an existing table.
        let last = range.address + range.size - 1;
        if (range.address ^ last) >> entry_bits(2) == 0
            && range.size < 1 << entry_bits(2)
            && let Some(table) = self.tables.page_table(range.address)
        {
            let count = (range.size >> PAGE_BITS) as u16;
            if !self.tables.is_empty(table, Tables::index(range.address, 3), count) {
                return Err(Error::Mapped);
            }
            self.ensure(backend, Need { mappings: 1, ..Need::default() })?;
            return self.map_pages(backend, table, range);
        }
        self.prepare(backend, range)?;
        self.map_range(backend, range, None)
    }

    /// Maps a range of pages of one table, in which nothing is mapped there; the metadata has room. (Each page fault
    /// comes here.)
    #[inline(always)]
    pub(crate) fn map_pages<B: Backend>(
        &mut self,
        backend: &mut B,
        table: usize,
        range: &FrameRange,
    ) -> Result<(), Error<B::Error>> {
        let run = (table, Tables::index(range.address, 3), (range.size >> PAGE_BITS) as u16);
        let slot = backend.take_slot()?;
        let mapped = self.map_entries(backend, run, range, range.offset, slot);
        if mapped.is_err() {
            backend.give_slot(slot);
        }
        mapped
    }

    /// Maps a range where nothing is mapped; the metadata has room. If it fails, nothing of the range is mapped, unless
    /// unmapping fails too.
    pub(crate) fn map_range<B: Backend>(
        &mut self,
        backend: &mut B,
        range: &FrameRange,
        mut reserve: Option<&mut Reserve>,
    ) -> Result<(), Error<B::Error>> {
        for (address, size, level) in runs(range) {
            if let Err(error) = self.map_run(backend, range, address, size, level, reserve.as_deref_mut()) {
                while let Some(mapping) = self.tables.first_mapping(range.address, address) {
                    if self.drop_mapping(backend, mapping, reserve.as_deref_mut()).is_err() {
                        break;
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Maps neighbouring entries of one table, which is made if necessary.
    fn map_run<B: Backend>(
        &mut self,
        backend: &mut B,
        range: &FrameRange,
        address: u64,
        size: u64,
        level: u8,
        mut reserve: Option<&mut Reserve>,
    ) -> Result<(), Error<B::Error>> {
        let table = self.table(backend, address, level, reserve.as_deref_mut())?;
        let (first, count) = (Tables::index(address, level), (size >> entry_bits(u32::from(level))) as u16);
        if level < 3 {
            for entry in first..first + count {
                while let Some(object) = self.tables.take_empty(table, entry) {
                    backend.destroy(object);
                }
            }
        }
        let slot = match reserve.as_deref_mut().and_then(Reserve::take_slot) {
            Some(slot) => slot,
            None => backend.take_slot()?,
        };
        let offset = range.offset + (address - range.address);
        let mapped = self.map_entries(backend, (table, first, count), range, offset, slot);
        if mapped.is_err() {
            keep_slot(backend, reserve, slot);
        }
        mapped
    }

    /// Maps empty entries of a table (the table, the first entry, their number) to a range's frame from `offset` on,
    /// and records the mapping in the metadata, which has room.
    fn map_entries<B: Backend>(
        &mut self,
        backend: &mut B,
        (table, first, count): (usize, u16, u16),
        range: &FrameRange,
        offset: u64,
        slot: CapAddress,
    ) -> Result<(), Error<B::Error>> {
        let &FrameRange { frame, owner, flags, .. } = range;
        backend.map(&Run { frame, offset, table: self.tables.cap(table), first, count, flags, slot })?;
        let bits = flags.bits() as u8;
        let mapping = Mapping {
            slot,
            frame,
            offset,
            table: table as u32,
            owner,
            first,
            count,
            flags: bits,
            made: bits,
            unused: 0,
        };
        let mapping = self.mappings.take(mapping);
        self.tables.cover(table, first, count, mapping);
        self.hold(owner);
        Ok(())
    }

    /// Returns the table of `level` that maps an address, and makes it if necessary. The metadata has room.
    fn table<B: Backend>(
        &mut self,
        backend: &mut B,
        address: u64,
        level: u8,
        mut reserve: Option<&mut Reserve>,
    ) -> Result<usize, Error<B::Error>> {
        let mut table = ROOT;
        while self.tables.level(table) < level {
            let index = Tables::index(address, self.tables.level(table));
            table = match self.tables.entry(table, index) {
                Entry::Table(next) => next,
                Entry::Mapping(_) => return Err(Error::Mapped),
                Entry::Empty => {
                    let next = self.tables.level(table) + 1;
                    let object = match reserve.as_deref_mut().and_then(|reserve| reserve.take_table(next)) {
                        Some(object) => object,
                        None => backend.make_table(next)?,
                    };
                    if let Err(error) = backend.install(object.cap, self.tables.cap(table), index) {
                        backend.destroy(object);
                        return Err(Error::Backend(error));
                    }
                    self.tables.add(table, index, object)
                }
            };
        }
        Ok(table)
    }

    /// Unmaps a whole mapping, and destroys a frame that was made for it and is mapped nowhere else. Its slot goes to
    /// the reserve, or is freed.
    pub(crate) fn drop_mapping<B: Backend>(
        &mut self,
        backend: &mut B,
        index: usize,
        reserve: Option<&mut Reserve>,
    ) -> Result<(), Error<B::Error>> {
        let mapping = *self.mappings.get(index);
        backend.unmap(mapping.slot)?;
        keep_slot(backend, reserve, mapping.slot);
        self.tables.uncover(mapping.table as usize, mapping.first, mapping.count);
        self.mappings.give(index);
        self.release(backend, mapping.owner);
        Ok(())
    }

    /// Counts one mapping less of a frame.
    pub(crate) fn release<B: Backend>(&mut self, backend: &mut B, owner: u32) {
        let Some(index) = owner.checked_sub(1) else { return };
        let frame = self.frames.get_mut(index as usize);
        frame.mappings -= 1;
        if frame.mappings == 0 {
            let object = frame.object;
            self.frames.give(index as usize);
            backend.destroy(object);
        }
    }

    /// Counts one mapping more of a frame, which keeps the frame while its mappings are replaced.
    pub(crate) fn hold(&mut self, owner: u32) {
        if let Some(index) = owner.checked_sub(1) {
            self.frames.get_mut(index as usize).mappings += 1;
        }
    }
}

/// Puts an empty slot into the reserve, or frees it.
fn keep_slot<B: Backend>(backend: &mut B, reserve: Option<&mut Reserve>, slot: CapAddress) {
    match reserve {
        Some(reserve) => reserve.keep_slot(backend, slot),
        None => backend.give_slot(slot),
    }
}

/// Cuts a range into runs of entries of one table: address, size in bytes, level. Uses the largest pages that fit.
pub(crate) fn runs(range: &FrameRange) -> impl Iterator<Item = (u64, u64, u8)> + use<> {
    let end = range.address + range.size;
    let (start, offset) = (range.address, range.offset);
    let mut address = start;
    core::iter::from_fn(move || {
        if address >= end {
            return None;
        }
        let alignment = address | (offset + (address - start));
        let fits = |level: u8| {
            let bits = entry_bits(u32::from(level));
            alignment.trailing_zeros() >= bits && (end - address) >> bits > 0
        };
        let level = [1, 2].into_iter().find(|level| fits(*level)).unwrap_or(3);
        let bits = entry_bits(u32::from(level));
        let in_table = (TABLE_ENTRIES as u64 - u64::from(Tables::index(address, level))) << bits;
        let size = in_table.min((end - address) >> bits << bits);
        let run = (address, size, level);
        address += size;
        Some(run)
    })
}
