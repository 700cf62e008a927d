//! The address space of a process.

mod access;
mod allowance;
mod check;
mod remap;
mod transfer;
mod usage;

pub use access::{Access, Denied};
pub use remap::Move;
pub use usage::{Kind, Resident, Usage};

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::ops::Range;

use crate::areas::{Area, Areas, Backing};
use crate::{Errno, Hardware, Memory, ObjectId, PAGE_SIZE, Page, Rights, round_up};

/// Number of entries of a table.
const ENTRIES: usize = 512;
/// Number of bytes whose pages have their entries in one table.
const TABLE_SIZE: u64 = ENTRIES as u64 * PAGE_SIZE;

/// Bytes that an area takes at most, with its place among the others.
const AREA_SIZE: usize = 4 * (size_of::<u64>() + size_of::<Area>());
/// Bytes that a table takes at most, with its place among the others and what the hardware has of it.
const TABLE_ROOM: usize = 40 * 1024;

/// The page at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    page: Page,
    /// Rights that the hardware gives. Without any, the hardware maps nothing.
    rights: Rights,
}

/// The entries of 2 MiB.
#[derive(Debug)]
struct Table<T> {
    hardware: T,
    entries: Box<[Option<Entry>; ENTRIES]>,
    /// Number of entries.
    used: usize,
    /// Where entries have been: there are none elsewhere.
    span: Range<usize>,
}

impl<T> Table<T> {
    /// Returns a table without entries.
    fn new(hardware: T) -> Table<T> {
        Table { hardware, entries: Box::new([None; ENTRIES]), used: 0, span: 0..0 }
    }

    /// Adds an entry, or changes it.
    fn put(&mut self, index: usize, entry: Entry) {
        self.used += usize::from(self.entries[index].is_none());
        self.entries[index] = Some(entry);
        let span = &self.span;
        self.span = if span.is_empty() { index..index + 1 } else { span.start.min(index)..span.end.max(index + 1) };
    }

    /// Removes an entry. Returns its page.
    fn take(&mut self, index: usize) -> Option<Page> {
        let entry = self.entries[index].take()?;
        self.used -= 1;
        Some(entry.page)
    }

    /// Returns the part of a range in which there may be entries.
    fn within(&self, range: &Range<usize>) -> Range<usize> {
        let start = range.start.max(self.span.start);
        start..range.end.min(self.span.end).max(start)
    }
}

/// Where an area is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At this address if there is room, else anywhere.
    Hint(u64),
    /// At this address, in place of what is there.
    Fixed(u64),
    /// At this address, if nothing is there.
    FixedIfFree(u64),
}

/// An area to be made.
#[derive(Clone, Copy, Debug)]
pub struct MapRequest {
    /// Where it is to be.
    pub placement: Placement,
    /// Length in bytes, which is rounded up to whole pages.
    pub length: u64,
    /// Rights of the process.
    pub rights: Rights,
    /// Rights that the process can give itself.
    pub allowed: Rights,
    /// Set if others see what is written.
    pub shared: bool,
    /// From where the contents are. The area becomes a further user of an object.
    pub backing: Backing,
    /// Set if the area grows downwards.
    pub grows: bool,
}

/// The most areas of a process: what Linux allows without being told otherwise.
pub const MAX_AREAS: usize = 65_530;

/// How long the areas of a process may be, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// All together.
    pub all: u64,
    /// Those together that are private and can be written, but do not grow.
    pub data: u64,
    /// Each that grows downwards.
    pub stack: u64,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { all: u64::MAX, data: u64::MAX, stack: 8 << 20 }
    }
}

/// The address space of a process.
#[derive(Debug)]
pub struct Space<H: Hardware> {
    /// How long areas may be that are made or grow from now on.
    pub allowance: Allowance,
    areas: Areas,
    /// The tables, by their first addresses.
    tables: BTreeMap<u64, Table<H::Table>>,
    root: H::Root,
    /// The addresses that a process may use.
    limits: Range<u64>,
    /// Where areas without an address are put, from the end downwards.
    arena: Range<u64>,
    /// From here to the end of the arena nothing is free, so that no place is searched there.
    full_from: u64,
}

/// Returns where an address lies: the first address of its table, and its entry.
const fn locate(address: u64) -> (u64, usize) {
    (address & !(TABLE_SIZE - 1), (address % TABLE_SIZE / PAGE_SIZE) as usize)
}

impl<H: Hardware> Space<H> {
    /// Makes an empty address space with the addresses in `limits`, which puts areas without an address into `arena`.
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn new(memory: &mut Memory<H>, limits: Range<u64>, arena: Range<u64>) -> Result<Space<H>, Errno> {
        let root = memory.hardware.make_root()?;
        let (areas, tables, allowance) = (Areas::new(), BTreeMap::new(), Allowance::default());
        Ok(Space { allowance, areas, tables, root, limits, full_from: arena.end, arena })
    }

    /// Returns the areas.
    pub const fn areas(&self) -> &Areas {
        &self.areas
    }

    /// Returns the hardware's page tables.
    pub const fn root(&self) -> &H::Root {
        &self.root
    }

    /// Returns the hardware's table in which an address lies, if there is one, and the entry.
    pub fn table(&self, address: u64) -> Option<(&H::Table, usize)> {
        let (base, index) = locate(address);
        Some((&self.tables.get(&base)?.hardware, index))
    }

    /// Returns the number of pages that are there.
    pub fn resident(&self) -> usize {
        self.tables.values().map(|table| table.used).sum()
    }

    /// Returns a range of whole pages that a process may use.
    fn range(&self, start: u64, length: u64) -> Option<Range<u64>> {
        let end = start.checked_add(round_up(length)?)?;
        (start.is_multiple_of(PAGE_SIZE) && self.limits.start <= start && end <= self.limits.end).then_some(start..end)
    }

    /// Makes an area. Returns its address.
    ///
    /// # Errors
    /// - `EINVAL`: a fixed address is not that of a page, or the length is 0.
    /// - `ENOMEM`: there is no room, there are [as many areas as may be](MAX_AREAS), they would be longer than
    ///   [allowed](Self::allowance), or a fixed address is not one that a process may use.
    /// - `EEXIST`: something is at the address that must be free.
    pub fn map(&mut self, memory: &mut Memory<H>, request: &MapRequest) -> Result<u64, Errno> {
        let length = round_up(request.length).ok_or(Errno::ENOMEM)?;
        if length == 0 {
            return Err(Errno::EINVAL);
        }
        if self.areas.count() > MAX_AREAS {
            return Err(Errno::ENOMEM);
        }
        let start = self.place(request.placement, length)?;
        let MapRequest { rights, allowed, shared, backing, grows, .. } = *request;
        let area = Area { end: start + length, rights, allowed, shared, backing, grows };
        self.check_allowance(start..area.end, &area)?;
        self.put(memory, start, area);
        Ok(start)
    }

    /// Makes an area at an address, in place of what is there.
    fn put(&mut self, memory: &mut Memory<H>, start: u64, area: Area) {
        let range = start..area.end;
        self.remove(memory, range.clone());
        if let Backing::Object(id, _) = area.backing {
            memory.objects.share(id);
        }
        self.areas.insert(start, area);
        while let Some((start, _)) = self.areas.at(self.full_from.wrapping_sub(1)) {
            self.full_from = start;
        }
        self.join(memory, range);
    }

    /// Returns the address for an area of this length.
    fn place(&self, placement: Placement, length: u64) -> Result<u64, Errno> {
        match placement {
            Placement::Hint(address) => {
                let hint = self.range(address & !(PAGE_SIZE - 1), length).filter(|range| range.start != 0);
                let free = hint.filter(|range| self.areas.within(range.clone()).next().is_none());
                let start = free.map(|range| range.start);
                start.or_else(|| self.areas.find_free(length, self.arena.start..self.full_from)).ok_or(Errno::ENOMEM)
            }
            Placement::Fixed(address) | Placement::FixedIfFree(address) => {
                if !address.is_multiple_of(PAGE_SIZE) {
                    return Err(Errno::EINVAL);
                }
                let range = self.range(address, length).ok_or(Errno::ENOMEM)?;
                let is_free = self.areas.within(range).next().is_none();
                if is_free || matches!(placement, Placement::Fixed(_)) { Ok(address) } else { Err(Errno::EEXIST) }
            }
        }
    }

    /// Removes what is in a range.
    ///
    /// # Errors
    /// `EINVAL` if the address is not that of a page, the length is 0, or the range is not one that a process may use;
    /// `ENOMEM` if an area would be divided and there are as many as may be.
    pub fn unmap(&mut self, memory: &mut Memory<H>, start: u64, length: u64) -> Result<(), Errno> {
        let range = self.range(start, length).filter(|range| !range.is_empty()).ok_or(Errno::EINVAL)?;
        let divides = |(start, area): (u64, &Area)| start < range.start && range.end < area.end;
        if self.areas.count() >= MAX_AREAS && self.areas.at(range.start).is_some_and(divides) {
            return Err(Errno::ENOMEM);
        }
        self.remove(memory, range);
        Ok(())
    }

    /// Removes all areas and entries in a range.
    fn remove(&mut self, memory: &mut Memory<H>, range: Range<u64>) {
        if self.areas.within(range.clone()).next().is_none() {
            return;
        }
        self.drop_entries(memory, range.clone());
        self.split(memory, &range);
        self.full_from = self.full_from.max(range.end.min(self.arena.end));
        while let Some(area) = self.areas.remove_first(range.clone()) {
            if let Backing::Object(id, _) = area.backing {
                memory.objects.release(&mut memory.pool, id);
            }
        }
        self.drop_tables(memory, range);
    }

    /// Divides areas at the ends of a range.
    fn split(&mut self, memory: &mut Memory<H>, range: &Range<u64>) {
        for id in self.areas.split(range) {
            memory.objects.share(id);
        }
    }

    /// Joins areas in and around a range.
    fn join(&mut self, memory: &mut Memory<H>, range: Range<u64>) {
        self.areas.join(range, |id| memory.objects.join(&mut memory.pool, id));
    }

    /// Removes the entries in a range.
    fn drop_entries(&mut self, memory: &mut Memory<H>, range: Range<u64>) {
        let (first, _) = locate(range.start);
        for (base, table) in self.tables.range_mut(first..range.end) {
            let mut left = table.within(&entries_in(*base, &range));
            while let Some(run) = first_run(&table.entries[..], left.clone(), |entry| Some(!entry?.rights.is_empty())) {
                left.start = run.range.end;
                if run.value {
                    memory.hardware.unmap(&mut table.hardware, run.range.start, run.range.len());
                }
                for index in run.range {
                    if let Some(page) = table.take(index) {
                        memory.pool.release(page);
                    }
                }
            }
        }
    }

    /// Ends the tables that touch a range and in whose addresses there is no area any more.
    fn drop_tables(&mut self, memory: &mut Memory<H>, range: Range<u64>) {
        let (mut next, _) = locate(range.start);
        while let Some(base) = self.tables.range(next..range.end.max(next)).next().map(|(base, _)| *base) {
            next = base + TABLE_SIZE;
            if self.areas.within(base..base + TABLE_SIZE).next().is_none()
                && let Some(table) = self.tables.remove(&base)
            {
                memory.hardware.drop_table(&mut self.root, table.hardware);
            }
        }
    }

    /// Changes what a process may do in a range.
    ///
    /// # Errors
    /// - `EINVAL`: the address is not that of a page.
    /// - `ENOMEM`: there is no area in some part of the range. What lies before it has changed. Or there are
    ///   [as many areas as may be](MAX_AREAS), and nothing has changed.
    /// - `EACCES`: an area may not have these rights. What lies before it has changed.
    pub fn protect(&mut self, memory: &mut Memory<H>, start: u64, length: u64, rights: Rights) -> Result<(), Errno> {
        if !start.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let range = self.range(start, length).filter(|_| self.areas.count() <= MAX_AREAS).ok_or(Errno::ENOMEM)?;
        let (mut end, mut result) = (range.start, Ok(()));
        for (part, area) in self.areas.within(range.clone()) {
            if part.start != end {
                break;
            }
            if !area.allowed.contains(rights) {
                result = Err(Errno::EACCES);
                break;
            }
            end = part.end;
        }
        if end < range.end && result.is_ok() {
            result = Err(Errno::ENOMEM);
        }
        let range = range.start..end;
        if !range.is_empty() {
            self.split(memory, &range);
            self.areas.change(range.clone(), |area| area.rights = rights);
            self.adjust(memory, range.clone());
            self.join(memory, range);
        }
        result
    }

    /// Takes from the entries in a range the rights that their areas do not have any more. Those of areas that may be
    /// written get all rights of these, if their pages are not to be copied first: whoever asks for that will most
    /// likely write.
    fn adjust(&mut self, memory: &mut Memory<H>, range: Range<u64>) {
        let Memory { pool, hardware, .. } = memory;
        for (part, area) in self.areas.within(range) {
            let (first, _) = locate(part.start);
            for (base, table) in self.tables.range_mut(first..part.end) {
                let mut left = table.within(&entries_in(*base, &part));
                let rights = |entry: Option<Entry>| {
                    let Entry { page, rights } = entry?;
                    let is_own = area.shared || pool.users(page) == 1;
                    let is_data = area.rights.contains(Rights::WRITE) && !area.rights.contains(Rights::EXECUTE);
                    Some((rights, if is_own && is_data { area.rights } else { rights & area.rights }))
                };
                while let Some(Run { range, value: (old, new) }) = first_run(&table.entries[..], left.clone(), rights) {
                    left.start = range.end;
                    if new != old {
                        set_rights(hardware, table, range, new);
                    }
                }
            }
        }
    }

    /// Lets the pages in a range go: private ones are made anew when they are touched again.
    ///
    /// # Errors
    /// `EINVAL` if the address is not that of a page, `ENOMEM` if there is no area in some part of the range.
    pub fn discard(&mut self, memory: &mut Memory<H>, start: u64, length: u64) -> Result<(), Errno> {
        if !start.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let range = self.range(start, length).ok_or(Errno::ENOMEM)?;
        self.drop_entries(memory, range.clone());
        if self.areas.cover(range) { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Removes the entries for the pages of an object from this one on, which are about to be cut off.
    pub fn truncate(&mut self, memory: &mut Memory<H>, object: ObjectId, page: u64) {
        let offset = page * PAGE_SIZE;
        let mut next = 0;
        while let Some((start, area)) = self.areas.above(next).map(|(start, area)| (start, *area)) {
            next = area.end;
            if let Backing::Object(id, first) = area.backing
                && id == object
            {
                self.drop_entries(memory, start + offset.saturating_sub(first).min(area.end - start)..area.end);
            }
        }
    }

    /// Makes a copy of the address space for a child: private pages are copied when one of the two writes to them.
    ///
    /// # Errors
    /// `ENOMEM`. Nothing has changed then, for the processes.
    pub fn fork(&mut self, memory: &mut Memory<H>) -> Result<Space<H>, Errno> {
        memory.check_room(self.areas.count().saturating_mul(AREA_SIZE))?;
        let root = memory.hardware.make_root()?;
        let (limits, arena, full_from) = (self.limits.clone(), self.arena.clone(), self.full_from);
        let (areas, tables, allowance) = (self.areas.clone(), BTreeMap::new(), self.allowance);
        let mut child = Space { allowance, areas, tables, root, limits, arena, full_from };
        for (_, area) in child.areas.iter() {
            if let Backing::Object(id, _) = area.backing {
                memory.objects.share(id);
            }
        }
        for (base, table) in &mut self.tables {
            let made = memory.check_room(TABLE_ROOM).and_then(|()| memory.hardware.make_table(&mut child.root, *base));
            let Ok(mut hardware) = made else {
                child.end(memory);
                return Err(Errno::ENOMEM);
            };
            let span = table.span.clone();
            if memory.hardware.share(&mut table.hardware, &mut hardware, span.clone()).is_err() {
                memory.hardware.drop_table(&mut child.root, hardware);
                child.end(memory);
                // Nobody knows what the table maps now.
                set_rights(&mut memory.hardware, table, 0..ENTRIES, Rights::empty());
                return Err(Errno::ENOMEM);
            }
            let mut copy = Table { used: table.used, span: span.clone(), ..Table::new(hardware) };
            for entry in table.entries[span.clone()].iter_mut().flatten() {
                entry.rights.remove(Rights::WRITE);
                memory.pool.share(entry.page);
            }
            copy.entries[span.clone()].copy_from_slice(&table.entries[span]);
            child.tables.insert(*base, copy);
        }
        Ok(child)
    }

    /// Ends the address space.
    pub fn end(mut self, memory: &mut Memory<H>) {
        // What was mapped goes with the tables.
        for mut table in core::mem::take(&mut self.tables).into_values() {
            memory.hardware.drop_table(&mut self.root, table.hardware);
            for entry in table.entries[table.span].iter_mut().filter_map(Option::take) {
                memory.pool.release(entry.page);
            }
        }
        let all = self.limits.clone();
        self.remove(memory, all);
        memory.hardware.drop_root(self.root);
    }

    /// Returns all pages that entries use, one for each entry.
    pub fn pages(&self) -> impl Iterator<Item = Page> {
        self.tables.values().flat_map(|table| table.entries.iter().flatten().map(|entry| entry.page))
    }
}

/// Returns the entries of the table at `base` that lie in a range.
fn entries_in(base: u64, range: &Range<u64>) -> Range<usize> {
    let index = |address: u64| (address.clamp(base, base + TABLE_SIZE) - base).div_ceil(PAGE_SIZE) as usize;
    index(range.start)..index(range.end)
}

/// Neighbouring entries of which the same is true.
struct Run<V> {
    range: Range<usize>,
    value: V,
}

/// Returns the first neighbours with an equal value. Those without a value belong to no run.
fn first_run<V: PartialEq + Copy>(
    entries: &[Option<Entry>],
    within: Range<usize>,
    value: impl Fn(Option<Entry>) -> Option<V>,
) -> Option<Run<V>> {
    let (start, first) = within.clone().find_map(|index| Some((index, value(entries[index])?)))?;
    let end = (start + 1..within.end).find(|index| value(entries[*index]) != Some(first)).unwrap_or(within.end);
    Some(Run { range: start..end, value: first })
}

/// Gives neighbouring entries other rights.
fn set_rights<H: Hardware>(hardware: &mut H, table: &mut Table<H::Table>, range: Range<usize>, rights: Rights) {
    // If they cannot be mapped with these, nothing is mapped, and the next access makes up for that.
    let mapped = !rights.is_empty() && map_again(hardware, table, range.clone(), rights).is_ok();
    if !mapped {
        hardware.unmap(&mut table.hardware, range.start, range.len());
    }
    let rights = if mapped { rights } else { Rights::empty() };
    for entry in table.entries[range].iter_mut().flatten() {
        entry.rights = rights;
    }
}

/// Maps the pages of neighbouring entries with other rights.
fn map_again<H: Hardware>(
    hardware: &mut H,
    table: &mut Table<H::Table>,
    range: Range<usize>,
    rights: Rights,
) -> Result<(), Errno> {
    /// So many at once need no memory from the heap.
    const PART: usize = 32;
    for start in range.clone().step_by(PART) {
        let entries = &table.entries[start..range.end.min(start + PART)];
        let mut pages = [Page(0); PART];
        for (page, entry) in pages.iter_mut().zip(entries.iter().flatten()) {
            *page = entry.page;
        }
        hardware.map(&mut table.hardware, start, &pages[..entries.len()], rights)?;
    }
    Ok(())
}
