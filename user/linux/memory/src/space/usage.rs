//! How much memory an address space uses.

use core::ops::Range;

use super::{Space, entries_in, locate};
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

impl<H: Hardware> Space<H> {
    /// Returns how many pages all areas use.
    pub fn usage(&self, memory: &Memory<H>) -> Usage {
        let mut usage = Usage::default();
        for (start, area) in self.areas.iter() {
            for (address, page) in self.entries(start..area.end) {
                let object_page = match area.backing {
                    Backing::Anonymous => None,
                    Backing::Object(id, first) => memory.objects.get(id).page((first + (address - start)) / PAGE_SIZE),
                };
                match object_page {
                    Some(own) if own == page && area.shared => usage.shared += 1,
                    Some(own) if own == page => usage.file += 1,
                    _ => usage.anonymous += 1,
                }
            }
        }
        usage
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
