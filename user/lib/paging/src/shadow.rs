//! Shadow entries: what each entry of the page tables holds.
//!
//! The hardware's tables cannot be read, so each has a shadow: as many words as the table has entries, each of which is
//! empty, or names the table installed there or the mapping that covers it. A look-up takes the same path as the
//! hardware, in at most four steps:
//!
//! ```text
//! level 0          level 1          level 2          level 3
//! ┌───┐            ┌───┐            ┌───┐            ┌───┐
//! │ T ├──────────▶ │   │            │ M │ 2 MiB      │ M │ 4 KiB
//! │   │            │ T ├──────────▶ │ T ├──────────▶ │ M │ same mapping
//! └───┘ 512 GiB    └───┘ 1 GiB      └───┘            │   │
//! ```
//! Each table also counts the mapped entries in it and below it. A table without any can be replaced by a large page.

use tench_abi::CapAddress;
use tench_abi::memory::{TABLE_ENTRIES, entry_bits};

use crate::backend::Object;
use crate::pool::{Array, Node, Pool};

/// Number of tables that need no further memory: enough for a heap, stacks, and windows of all sizes.
pub(crate) const BUILT_IN: usize = 8;

/// Bit that marks an entry as a table. The other bits are the table's index.
const TABLE: u32 = 1 << 31;

/// Content of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The entry is empty.
    Empty,
    /// A table of the next level, by index.
    Table(usize),
    /// A mapping, by index.
    Mapping(usize),
}

impl Entry {
    const fn decode(word: u32) -> Entry {
        match word {
            0 => Entry::Empty,
            _ if word & TABLE != 0 => Entry::Table((word & !TABLE) as usize),
            _ => Entry::Mapping(word as usize - 1),
        }
    }
}

/// The entries of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries([u32; TABLE_ENTRIES]);

impl Default for Entries {
    fn default() -> Self {
        Entries([0; TABLE_ENTRIES])
    }
}

/// A table's data besides its entries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    object: Object,
    /// First address that the table maps.
    base: u64,
    /// Number of entries covered by mappings, here and in the tables below.
    mapped: u64,
    parent: u32,
    unused: u32,
    entry: u16,
    level: u8,
}

impl Node for Head {
    fn link(&mut self) -> &mut u32 {
        &mut self.unused
    }
}

const NO_HEAD: Head = Head { object: Object::NONE, base: 0, mapped: 0, parent: 0, unused: 0, entry: 0, level: 0 };

/// The tables of an address space. The root has index 0.
#[derive(Debug)]
pub struct Tables {
    heads: Pool<Head, BUILT_IN>,
    entries: Array<Entries, BUILT_IN>,
    /// The table of level 3 that was looked up last. If its index has been reused, the head there says what that table
    /// maps.
    recent: usize,
}

/// Index of the root.
pub const ROOT: usize = 0;

impl Tables {
    /// Returns an empty set; [`initialise`](Self::initialise) adds the root.
    pub const fn new() -> Tables {
        Tables {
            heads: Pool::new([NO_HEAD; BUILT_IN]),
            entries: Array::new([const { Entries([0; TABLE_ENTRIES]) }; BUILT_IN]),
            recent: ROOT,
        }
    }

    /// Sets the root.
    pub fn initialise(&mut self, root: CapAddress) {
        if self.heads.used() == 0 {
            self.heads.take(Head { object: Object { cap: root, ..Object::NONE }, ..NO_HEAD });
        }
    }

    pub(crate) const fn heads(&mut self) -> &mut Pool<Head, BUILT_IN> {
        &mut self.heads
    }

    pub(crate) const fn entries(&mut self) -> &mut Array<Entries, BUILT_IN> {
        &mut self.entries
    }

    /// Returns the number of tables that can be added before the metadata has to grow.
    pub const fn left(&self) -> usize {
        self.heads.left()
    }

    /// Returns the number of tables, the root included.
    pub const fn count(&self) -> usize {
        self.heads.used()
    }

    /// Returns the index of the entry of a table of `level` that maps `address`.
    #[inline]
    pub const fn index(address: u64, level: u8) -> u16 {
        ((address >> entry_bits(level as u32)) % TABLE_ENTRIES as u64) as u16
    }

    /// Returns a table's capability.
    #[inline]
    pub fn cap(&self, table: usize) -> CapAddress {
        self.heads.get(table).object.cap
    }

    /// Returns a table's level.
    #[inline]
    pub fn level(&self, table: usize) -> u8 {
        self.heads.get(table).level
    }

    /// Returns the first address that an entry of a table maps.
    #[inline]
    pub fn address(&self, table: usize, entry: u16) -> u64 {
        let head = self.heads.get(table);
        head.base + (u64::from(entry) << entry_bits(u32::from(head.level)))
    }

    /// Returns where a table is installed: its parent and the entry.
    pub fn parent_entry(&self, table: usize) -> (usize, u16) {
        let head = self.heads.get(table);
        (head.parent as usize, head.entry)
    }

    /// Returns the content of an entry.
    #[inline]
    pub fn entry(&self, table: usize, entry: u16) -> Entry {
        Entry::decode(self.entries.get(table).0[usize::from(entry)])
    }

    /// Walks to the last table on the path to an address: returns the table, and the content of its entry.
    #[inline]
    pub fn walk(&self, address: u64) -> (usize, Entry) {
        let mut table = ROOT;
        loop {
            let level = self.level(table);
            match self.entry(table, Self::index(address, level)) {
                Entry::Table(next) => table = next,
                entry => return (table, entry),
            }
        }
    }

    /// Returns the table of level 3 that maps an address, if it exists.
    #[inline]
    pub fn page_table(&mut self, address: u64) -> Option<usize> {
        let head = self.heads.get(self.recent);
        // An unused index maps nothing: its level is 0, like the root's.
        if head.level == 3 && (head.base ^ address) >> entry_bits(2) == 0 {
            return Some(self.recent);
        }
        let (table, _) = self.walk(address);
        if self.level(table) != 3 {
            return None;
        }
        self.recent = table;
        Some(table)
    }

    /// Returns whether neighbouring entries of a table are empty.
    #[inline]
    pub fn is_empty(&self, table: usize, first: u16, count: u16) -> bool {
        let first = usize::from(first);
        self.entries.get(table).0[first..first + usize::from(count)].iter().all(|word| *word == 0)
    }

    /// Returns the first mapping that covers an address of a range.
    pub fn first_mapping(&self, from: u64, to: u64) -> Option<usize> {
        let mut address = from;
        while address < to {
            let (table, level) = match self.walk(address) {
                (_, Entry::Mapping(mapping)) => return Some(mapping),
                (table, _) => (table, self.level(table)),
            };
            let end = self.address(table, 0) + ((TABLE_ENTRIES as u64) << entry_bits(u32::from(level)));
            if self.heads.get(table).mapped == 0 && table != ROOT {
                address = end;
                continue;
            }
            let bits = entry_bits(u32::from(level));
            // Limited to the range: most ranges are a page.
            let count = ((to.min(end) - 1) >> bits) - (address >> bits) + 1;
            let first = usize::from(Self::index(address, level));
            let rest = &self.entries.get(table).0[first..first + count as usize];
            let skipped = rest.iter().position(|word| *word != 0).unwrap_or(rest.len());
            address = ((address >> bits) + skipped as u64) << bits;
        }
        None
    }

    /// Installs a table in an empty entry. A node must be available.
    pub fn add(&mut self, parent: usize, entry: u16, object: Object) -> usize {
        let (base, level) = (self.address(parent, entry), self.level(parent) + 1);
        let head = Head { object, base, level, entry, parent: parent as u32, ..NO_HEAD };
        let table = self.heads.take(head);
        self.entries.get_mut(parent).0[usize::from(entry)] = TABLE | table as u32;
        table
    }

    /// Removes a table without mappings from its parent. Tables below it are removed first, one per call, each of which
    /// is returned; `None` when the table itself has been removed, or there is none.
    pub fn take_empty(&mut self, parent: usize, entry: u16) -> Option<Object> {
        let Entry::Table(mut table) = self.entry(parent, entry) else { return None };
        if self.heads.get(table).mapped != 0 {
            return None;
        }
        while let Some(below) = self.entries.get(table).0.iter().find(|word| **word & TABLE != 0) {
            table = (below & !TABLE) as usize;
        }
        let Head { object, parent, entry, .. } = *self.heads.get(table);
        self.entries.get_mut(parent as usize).0[usize::from(entry)] = 0;
        self.heads.give(table);
        Some(object)
    }

    /// Records that a mapping covers neighbouring entries, which must be empty.
    pub fn cover(&mut self, table: usize, first: u16, count: u16, mapping: usize) {
        self.range(table, first, count).fill(mapping as u32 + 1);
        self.count_mapped(table, i64::from(count));
    }

    /// Records that neighbouring entries are no longer covered.
    pub fn uncover(&mut self, table: usize, first: u16, count: u16) {
        self.range(table, first, count).fill(0);
        self.count_mapped(table, -i64::from(count));
    }

    fn range(&mut self, table: usize, first: u16, count: u16) -> &mut [u32] {
        let first = usize::from(first);
        &mut self.entries.get_mut(table).0[first..first + usize::from(count)]
    }

    fn count_mapped(&mut self, mut table: usize, difference: i64) {
        loop {
            let head = self.heads.get_mut(table);
            head.mapped = head.mapped.wrapping_add_signed(difference);
            if table == ROOT {
                return;
            }
            table = head.parent as usize;
        }
    }

    /// Panics unless every table is installed where its head says, and its count is right. Calls `check` for each run
    /// of entries of one mapping: table, first entry, number of entries, mapping.
    pub fn check_invariants(&self, mut check: impl FnMut(usize, u16, u16, usize)) {
        self.heads.check_invariants();
        let mut seen = 0;
        self.check_table(ROOT, &mut seen, &mut check);
        assert_eq!(seen, self.heads.used(), "every table is installed somewhere");
    }

    /// Checks a table and those below it; returns the number of entries covered by mappings.
    fn check_table(&self, table: usize, seen: &mut usize, check: &mut impl FnMut(usize, u16, u16, usize)) -> u64 {
        *seen += 1;
        let mut mapped = 0;
        let mut index = 0;
        while index < TABLE_ENTRIES as u16 {
            match self.entry(table, index) {
                Entry::Empty => {}
                Entry::Table(below) => {
                    let head = self.heads.get(below);
                    assert_eq!(
                        (head.parent as usize, head.entry),
                        (table, index),
                        "a table knows where it is installed"
                    );
                    assert_eq!(head.level, self.level(table) + 1, "a table is one level below its parent");
                    assert_eq!(head.base, self.address(table, index), "a table knows what it shows");
                    mapped += self.check_table(below, seen, check);
                }
                Entry::Mapping(mapping) => {
                    let first = index;
                    while index + 1 < TABLE_ENTRIES as u16 && self.entry(table, index + 1) == Entry::Mapping(mapping) {
                        index += 1;
                    }
                    mapped += u64::from(index + 1 - first);
                    check(table, first, index + 1 - first, mapping);
                }
            }
            index += 1;
        }
        assert_eq!(self.heads.get(table).mapped, mapped, "a table counts what is mapped below it");
        mapped
    }
}

impl Default for Tables {
    fn default() -> Self {
        Tables::new()
    }
}
