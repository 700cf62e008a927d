//! How much memory an address space uses.

use core::ops::Range;

use super::{Space, entries_in, locate};
use crate::areas::Area;
use crate::{Backing, Hardware, Memory, PAGE_SIZE};

/// Pages that a range of addresses uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages of the process's own, or copied by it.
    pub anonymous: u64,
    /// Pages of objects that are mapped in private.
    pub file: u64,
    /// Pages of objects that are shared.
    pub shared: u64,
}

/// To whom a page belongs that an area has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To the process, and to those that have it from a fork.
    Anonymous,
    /// To an object that is mapped in private.
    File,
    /// To an object that is shared.
    Shared,
}

/// A page that an area has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// To whom it belongs.
    pub kind: Kind,
    /// In how many places of address spaces it is, this one included.
    pub places: u32,
}

impl<H: Hardware> Space<H> {
    /// Returns whether the page at an address is in memory: one of the process's own, or of the object that is there.
    /// Returns none if no area is at the address.
    pub fn is_present(&self, memory: &Memory<H>, address: u64) -> Option<bool> {
        let (start, area) = self.areas.at(address)?;
        let (base, index) = locate(address);
        let has_entry = self.tables.get(&base).is_some_and(|table| table.entries[index].is_some());
        let is_in_object = || match area.backing {
            Backing::Anonymous => false,
            Backing::Object(id, first) => memory.objects.get(id).page((first + address - start) / PAGE_SIZE).is_some(),
        };
        Some(has_entry || is_in_object())
    }

    /// Returns how many pages all areas use.
    pub fn usage(&self, memory: &Memory<H>) -> Usage {
        let mut usage = Usage::default();
        for (start, area) in self.areas.iter() {
            for page in self.residents(memory, start, area) {
                match page.kind {
                    Kind::Anonymous => usage.anonymous += 1,
                    Kind::File => usage.file += 1,
                    Kind::Shared => usage.shared += 1,
                }
            }
        }
        usage
    }

    /// Returns the pages of an area that begins at an address.
    pub fn residents(&self, memory: &Memory<H>, start: u64, area: &Area) -> impl Iterator<Item = Resident> {
        self.residents_in(memory, start..area.end, start, area)
    }

    /// Returns the resident page at an address, if there is one.
    pub fn page_of(&self, memory: &Memory<H>, address: u64) -> Option<Resident> {
        let (start, area) = self.areas.at(address)?;
        let page = address / PAGE_SIZE * PAGE_SIZE;
        self.residents_in(memory, page..page + PAGE_SIZE, start, area).next()
    }

    /// Returns the resident pages in a range of the area that begins at `start`.
    fn residents_in(
        &self,
        memory: &Memory<H>,
        range: Range<u64>,
        start: u64,
        area: &Area,
    ) -> impl Iterator<Item = Resident> {
        let (backing, shared) = (area.backing, area.shared);
        self.entries(range).map(move |(address, page)| {
            let object_page = match backing {
                Backing::Anonymous => None,
                Backing::Object(id, first) => memory.objects.get(id).page((first + (address - start)) / PAGE_SIZE),
            };
            let users = memory.pool.users(page);
            match (object_page == Some(page), shared) {
                (false, _) => Resident { kind: Kind::Anonymous, places: users },
                // The object is a user, too.
                (true, false) => Resident { kind: Kind::File, places: users - 1 },
                (true, true) => Resident { kind: Kind::Shared, places: users - 1 },
            }
        })
    }

    /// Returns the number of tables of the lowest level.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Returns the pages in a range, with their addresses.
    fn entries(&self, range: Range<u64>) -> impl Iterator<Item = (u64, crate::Page)> {
        let (first, _) = locate(range.start);
        self.tables.range(first..range.end).flat_map(move |(base, table)| {
            let entries = entries_in(*base, &range);
            let pages = entries.clone().zip(&table.entries[entries]);
            pages.filter_map(move |(index, entry)| Some((base + index as u64 * PAGE_SIZE, entry.as_ref()?.page)))
        })
    }
}
