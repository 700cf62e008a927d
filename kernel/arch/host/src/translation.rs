//! Page tables as this machine walks them, and a translation cache that drops only what it is told to drop.
//!
//! An entry is 0, or
//!
//! ```text
//!  47                      12 11       7 6     2  1     0
//! ┌──────────────────────────┬──────────┬───────┬─────┬─────┐
//! │ physical address         │ 0        │ flags │table│valid│
//! └──────────────────────────┴──────────┴───────┴─────┴─────┘
//! ```
//! The cache is as lazy as hardware may be: it caches pages and, apart from them, page-table pointers. A test
//! translates addresses through it, and [`Cache::stale`] finds any entry that an operation should have invalidated and
//! did not.

use std::collections::BTreeMap;

use tench_abi::memory::{MapFlags, entry_bits};

use crate::memory::Memory;

const VALID: u64 = 1;
const TABLE: u64 = 2;
const FLAGS_SHIFT: u32 = 2;
const FLAGS_MASK: u64 = 0x1f;
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;
/// Lowest bit of the address-space identifier in a translation register.
const ASID_SHIFT: u32 = 48;

/// Returns an entry that maps memory.
pub fn page_entry(physical: u64, flags: MapFlags) -> u64 {
    physical | (flags.bits() & FLAGS_MASK) << FLAGS_SHIFT | VALID
}

/// Returns the address and the flags of a page's entry.
pub fn page(entry: u64) -> (u64, MapFlags) {
    (entry & ADDRESS, MapFlags::from_bits_truncate(entry >> FLAGS_SHIFT & FLAGS_MASK))
}

/// Returns a page's entry without the rights to write and execute that are not in `mask`.
pub fn restrict(entry: u64, mask: MapFlags) -> u64 {
    let lost = (MapFlags::WRITE | MapFlags::EXECUTE) - mask;
    entry & !(lost.bits() << FLAGS_SHIFT)
}

/// Returns an entry that leads to another table.
pub fn table_entry(physical: u64) -> u64 {
    physical | TABLE | VALID
}

/// Returns the translation register for a root table.
pub fn space_register(physical: u64, asid: u16) -> u64 {
    physical | u64::from(asid) << ASID_SHIFT
}

/// The page to which an address translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// First virtual address of the page.
    pub address: u64,
    /// Physical address of its first byte.
    pub physical: u64,
    /// Level of the table whose entry maps it.
    pub level: u32,
    /// Rights and attributes of the page.
    pub flags: MapFlags,
}

/// One step of a walk.
enum Step {
    Nothing,
    Table(u64),
    Page(Page),
}

/// Reads the entry for `address` in the table at `table`.
fn step(memory: &Memory, table: u64, level: u32, address: u64) -> Step {
    let index = address >> entry_bits(level) & 511;
    let entry = memory.read(table + index * 8);
    if entry & VALID == 0 {
        return Step::Nothing;
    }
    if entry & TABLE != 0 {
        return Step::Table(entry & ADDRESS);
    }
    Step::Page(Page {
        address: address & !((1 << entry_bits(level)) - 1),
        physical: entry & ADDRESS,
        level,
        flags: MapFlags::from_bits_truncate(entry >> FLAGS_SHIFT & FLAGS_MASK),
    })
}

/// Walks the tables below `root`, without the cache.
pub fn walk(memory: &Memory, root: u64, address: u64) -> Option<Page> {
    let mut table = root;
    for level in 0..4 {
        match step(memory, table, level, address) {
            Step::Nothing => return None,
            Step::Table(next) => table = next,
            Step::Page(page) => return Some(page),
        }
    }
    panic!("a page table is installed below level 3 at {table:#x}")
}

/// Walks down to the table that an entry of `level` leads to.
fn walk_table(memory: &Memory, root: u64, level: u32, address: u64) -> Option<u64> {
    let mut table = root;
    for at in 0..=level {
        match step(memory, table, at, address) {
            Step::Table(next) => table = next,
            Step::Nothing | Step::Page(_) => return None,
        }
    }
    Some(table)
}

/// A translation cache, tagged with address-space identifiers.
#[derive(Default)]
pub struct Cache {
    /// Pages by identifier and first address.
    pages: BTreeMap<(u16, u64), Page>,
    /// Tables by identifier, level and first address of the entry's span.
    tables: BTreeMap<(u16, u32, u64), u64>,
}

impl Cache {
    /// Translates an address as hardware does, caching each step of the walk.
    pub fn access(&mut self, memory: &Memory, register: u64, address: u64) -> Option<Page> {
        let asid = (register >> ASID_SHIFT) as u16;
        for level in 1..4 {
            let key = (asid, address & !((1 << entry_bits(level)) - 1));
            if let Some(page) = self.pages.get(&key).filter(|page| page.level == level) {
                return Some(*page);
            }
        }
        let mut table = register & ADDRESS;
        if table == 0 {
            return None;
        }
        for level in 0..4 {
            let key = (asid, level, address & !((1 << entry_bits(level)) - 1));
            if let Some(cached) = self.tables.get(&key) {
                table = *cached;
                continue;
            }
            match step(memory, table, level, address) {
                Step::Nothing => return None,
                Step::Table(next) => {
                    self.tables.insert(key, next);
                    table = next;
                }
                Step::Page(page) => {
                    self.pages.insert((asid, page.address), page);
                    return Some(page);
                }
            }
        }
        None
    }

    /// Drops `count` pages of `level` from `address` on. Keeps the page-table pointers.
    pub fn invalidate(&mut self, asid: u16, address: u64, level: u32, count: usize) {
        let end = address + ((count as u64) << entry_bits(level));
        self.pages.retain(|(space, at), page| *space != asid || *at < address || *at >= end || page.level != level);
    }

    /// Drops everything of an address space.
    pub fn invalidate_space(&mut self, asid: u16) {
        self.pages.retain(|(space, _), _| *space != asid);
        self.tables.retain(|(space, _, _), _| *space != asid);
    }

    /// Returns a description of a stale entry, if there is one. `root` returns the root table of a live address space.
    pub fn stale(&self, memory: &Memory, root: impl Fn(u16) -> Option<u64>) -> Option<String> {
        for ((asid, address), page) in &self.pages {
            let now = root(*asid).and_then(|root| walk(memory, root, *address));
            if now != Some(*page) {
                return Some(format!("space {asid}, {address:#x}: cached {page:x?}, now {now:x?}"));
            }
        }
        for ((asid, level, address), table) in &self.tables {
            let now = root(*asid).and_then(|root| walk_table(memory, root, *level, *address));
            if now != Some(*table) {
                return Some(format!("space {asid}, level {level}, {address:#x}: cached {table:#x}, now {now:x?}"));
            }
        }
        None
    }

    /// Returns the number of cached pages and tables.
    pub fn len(&self) -> usize {
        self.pages.len() + self.tables.len()
    }

    /// Returns true if the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
