//! Unmapping and protecting: operations that remove or change parts of an address space.

use tench_abi::memory::{MapFlags, TABLE_ENTRIES, entry_bits};

use crate::backend::Backend;
use crate::mapping::{FrameRange, Mapping, runs};
use crate::paging::{Need, Paging, is_range};
use crate::regions::Kind;
use crate::reserve::Reserve;
use crate::shadow::{Entry, ROOT};
use crate::types::Error;

/// Rights, as opposed to attributes.
const RIGHTS: MapFlags = MapFlags::READ.union(MapFlags::WRITE).union(MapFlags::EXECUTE);

/// Parts into which a mapping is divided: before the range, in it, after it.
const PARTS: usize = 3;

impl Paging {
    /// Unmaps a range and frees its addresses. The range may cut regions and mappings, and may have holes. Takes O(log
    /// n) steps, plus one per mapping.
    ///
    /// If a mapping cannot be unmapped, those before it are unmapped, and all regions stay; the call can be repeated.
    pub fn unmap<B: Backend>(&mut self, backend: &mut B, start: u64, size: u64) -> Result<(), Error<B::Error>> {
        self.ensure(backend, Need { regions: 1, ..Need::default() })?;
        self.clear(backend, start, size)?;
        self.regions.free(start, size);
        if size >= 1 << entry_bits(2) {
            self.prune(backend, ROOT, start, start + size);
        }
        Ok(())
    }

    /// Destroys the table of level 3 of a mapping that was just removed, if nothing else is mapped in it and all of it
    /// lies in the removed range: so its memory is free as early as that of its pages, beside which it may lie.
    fn drop_table<B: Backend>(&mut self, backend: &mut B, table: usize, start: u64, end: u64) {
        let from = self.tables.address(table, 0);
        if self.tables.level(table) == 3 && start <= from && from + (1 << entry_bits(2)) <= end {
            let (parent, entry) = self.tables.parent_entry(table);
            if let Some(object) = self.tables.take_empty(parent, entry) {
                backend.destroy(object);
            }
        }
    }

    /// Destroys tables that map only addresses of a range in which nothing is mapped any more. Those at its edges stay
    /// for their neighbours.
    fn prune<B: Backend>(&mut self, backend: &mut B, table: usize, start: u64, end: u64) {
        let level = self.tables.level(table);
        let bits = entry_bits(u32::from(level));
        let base = self.tables.address(table, 0);
        let (first, last) =
            ((start.max(base) - base) >> bits, ((end - 1 - base) >> bits).min(TABLE_ENTRIES as u64 - 1));
        for entry in first as u16..=last as u16 {
            let Entry::Table(below) = self.tables.entry(table, entry) else { continue };
            let from = self.tables.address(table, entry);
            if start <= from && from + (1 << bits) <= end {
                while let Some(object) = self.tables.take_empty(table, entry) {
                    backend.destroy(object);
                }
            } else if level < 2 {
                self.prune(backend, below, start, end);
            }
        }
    }

    /// Unmaps a range and leaves its addresses reserved. Memory of lazy regions is zero when it is populated again. All
    /// else as [`unmap`](Self::unmap).
    pub fn clear<B: Backend>(&mut self, backend: &mut B, start: u64, size: u64) -> Result<(), Error<B::Error>> {
        if !is_range(start, size) {
            return Err(Error::BadRange);
        }
        let stop = start + size;
        // In the range, nothing is mapped any more before this address.
        let mut at = start;
        while let Some(index) = self.tables.first_mapping(at, stop) {
            let mapping = *self.mappings.get(index);
            let first = self.start_of(&mapping);
            let end = first + self.size_of(&mapping);
            if start <= first && end <= stop {
                self.drop_mapping(backend, index, None)?;
                self.drop_table(backend, mapping.table as usize, start, stop);
            } else {
                self.replace(backend, index, start, stop, None)?;
            }
            at = end.min(stop);
        }
        Ok(())
    }

    /// Changes the rights of a range, all of which must be reserved; attributes stay. The range may cut regions and
    /// mappings.
    ///
    /// If a mapping cannot be changed, those before it are changed; the call can be repeated.
    pub fn protect<B: Backend>(
        &mut self,
        backend: &mut B,
        start: u64,
        size: u64,
        flags: MapFlags,
    ) -> Result<(), Error<B::Error>> {
        if !is_range(start, size) {
            return Err(Error::BadRange);
        }
        if !flags.contains(MapFlags::READ) || flags.contains(MapFlags::WRITE | MapFlags::EXECUTE) {
            return Err(Error::BadRights);
        }
        let end = start + size;
        let mut at = start;
        while at < end {
            let region = self.regions.find(at).ok_or(Error::NotAllocated)?;
            if region.kind == Kind::Guard || region.kind == Kind::Foreign {
                return Err(Error::NotAllocated);
            }
            at = region.end();
        }
        self.ensure(backend, Need { regions: 2, ..Need::default() })?;
        at = start;
        while let Some(index) = self.tables.first_mapping(at, end) {
            let mapping = *self.mappings.get(index);
            let (first, last) = (self.start_of(&mapping), self.start_of(&mapping) + self.size_of(&mapping));
            let wanted = (flags & RIGHTS) | (mapping.flags() - RIGHTS);
            if wanted != mapping.flags() {
                if start <= first && last <= end && mapping.made().contains(wanted) {
                    backend.protect(mapping.slot, wanted)?;
                    self.mappings.get_mut(index).flags = wanted.bits() as u8;
                } else {
                    self.replace(backend, index, start, end, Some(wanted))?;
                }
            }
            at = last;
        }
        // The attributes of memory populated later stay too; regions of several attributes are rare, so each is handled
        // by itself.
        at = start;
        while at < end {
            let Some(region) = self.regions.find(at) else { return Err(Error::NotAllocated) };
            let part = region.end().min(end) - at;
            self.regions.set_flags(at, part, (flags & RIGHTS) | (region.flags - RIGHTS));
            at += part;
        }
        Ok(())
    }

    /// Replaces a mapping by mappings of its parts: those outside a range unchanged, the one inside with other rights,
    /// or not at all. If this fails, the mapping is restored.
    fn replace<B: Backend>(
        &mut self,
        backend: &mut B,
        index: usize,
        start: u64,
        end: u64,
        inside: Option<MapFlags>,
    ) -> Result<(), Error<B::Error>> {
        let mapping = *self.mappings.get(index);
        let (first, last) = (self.start_of(&mapping), self.start_of(&mapping) + self.size_of(&mapping));
        let (start, end) = (start.max(first), end.min(last));
        let old = mapping.flags();
        let whole = self.frame_range(&mapping, first, last, old);
        let mut parts = [None; PARTS];
        for (part, (from, to, flags)) in
            parts.iter_mut().zip([(first, start, Some(old)), (start, end, inside), (end, last, Some(old))])
        {
            *part = flags.filter(|_| from < to).map(|flags| self.frame_range(&mapping, from, to, flags));
        }
        let mut reserve = self.reserve_for(backend, &mapping, &parts)?;
        // Keeps the frame alive while no mapping maps it.
        self.hold(mapping.owner);
        let replaced = self.exchange(backend, index, &whole, &parts, &mut reserve);
        self.release(backend, mapping.owner);
        reserve.empty(backend);
        replaced
    }

    /// Ensures that a mapping can be replaced by its parts: counts, slots, tables.
    fn reserve_for<B: Backend>(
        &mut self,
        backend: &mut B,
        mapping: &Mapping,
        parts: &[Option<FrameRange>; PARTS],
    ) -> Result<Reserve, Error<B::Error>> {
        let count: usize = parts.iter().flatten().map(|part| runs(part).count()).sum();
        let level = self.tables.level(mapping.table as usize);
        // Where a large page is cut, tables for smaller pages are needed.
        let bits = entry_bits(u32::from(level));
        let cuts = |bits: u32| {
            let inner = parts.iter().flatten().map(|part| part.address).filter(|at| at % (1 << bits) != 0);
            let outer = parts.iter().flatten().map(|part| part.address + part.size).filter(|at| at % (1 << bits) != 0);
            let mut entries = [u64::MAX; 2 * PARTS];
            let mut found = 0;
            for entry in inner.chain(outer).map(|at| at >> bits) {
                if !entries[..found].contains(&entry) {
                    entries[found] = entry;
                    found += 1;
                }
            }
            found
        };
        let tables = match level {
            3 => [0, 0],
            2 => [0, cuts(bits)],
            _ => [cuts(bits), cuts(entry_bits(2))],
        };
        let need = Need { tables: tables.iter().sum(), mappings: count, ..Need::default() };
        self.ensure(backend, need)?;
        let mut reserve = Reserve::new();
        reserve.fill(backend, count, tables)?;
        Ok(reserve)
    }

    /// Deletes a mapping and maps its parts.
    fn exchange<B: Backend>(
        &mut self,
        backend: &mut B,
        index: usize,
        whole: &FrameRange,
        parts: &[Option<FrameRange>; PARTS],
        reserve: &mut Reserve,
    ) -> Result<(), Error<B::Error>> {
        self.drop_mapping(backend, index, Some(reserve))?;
        for part in parts.iter().flatten() {
            let Err(error) = self.map_range(backend, part, Some(reserve)) else { continue };
            let mut mapped = self.tables.first_mapping(whole.address, whole.address + whole.size);
            while let Some(index) = mapped {
                if self.drop_mapping(backend, index, Some(reserve)).is_err() {
                    return Err(error);
                }
                mapped = self.tables.first_mapping(whole.address, whole.address + whole.size);
            }
            // Whether or not this succeeds, the metadata says what is mapped.
            let _ = self.map_range(backend, whole, Some(reserve));
            return Err(error);
        }
        Ok(())
    }

    /// Returns a part of the memory that a mapping maps.
    fn frame_range(&self, mapping: &Mapping, from: u64, to: u64, flags: MapFlags) -> FrameRange {
        let offset = mapping.offset + (from - self.start_of(mapping));
        FrameRange { frame: mapping.frame, owner: mapping.owner, offset, address: from, size: to - from, flags }
    }
}
