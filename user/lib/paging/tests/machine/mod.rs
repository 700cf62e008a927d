//! A machine for tests: capabilities, page tables as the hardware would see them, and failures on request. It panics
//! whenever a kernel would refuse a call, or the library makes a mistake.

// Each file of tests uses a part of it.
#![allow(missing_docs, dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use tench_abi::CapAddress;
use tench_abi::memory::{MapFlags, entry_bits};
use tench_paging::{Backend, FrameCap, Object, Run};

pub const ROOT: CapAddress = CapAddress(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Injected,
    Rights,
}

#[derive(Debug)]
struct Table {
    level: u8,
    parent: Option<(u32, u16)>,
    entries: BTreeMap<u16, Entry>,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Table(u32),
    Page { frame: u32, offset: u64, mapping: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    table: u32,
    first: u16,
    count: u16,
    flags: MapFlags,
    made: MapFlags,
}

#[derive(Debug)]
pub struct Machine {
    next: u32,
    slots: BTreeSet<u32>,
    tables: BTreeMap<u32, Table>,
    mappings: BTreeMap<u32, Mapping>,
    /// Log2 of the size of each frame, and whether the library made it.
    pub frames: BTreeMap<u32, (u8, bool)>,
    /// Frames that must not be written.
    pub read_only: BTreeSet<u32>,
    /// Number of calls that can fail, so far.
    pub calls: u64,
    /// Number of the call that fails.
    pub fails_at: Option<u64>,
    /// Set if every later call fails too.
    pub for_ever: bool,
    /// Number of map calls.
    pub maps: u64,
    /// Number of nodes by which the metadata has grown.
    pub grown: usize,
}

impl Machine {
    pub fn new() -> Machine {
        let root = Table { level: 0, parent: None, entries: BTreeMap::new() };
        Machine {
            next: 1000,
            slots: BTreeSet::new(),
            tables: BTreeMap::from([(ROOT.0, root)]),
            mappings: BTreeMap::new(),
            frames: BTreeMap::new(),
            read_only: BTreeSet::new(),
            calls: 0,
            fails_at: None,
            for_ever: false,
            maps: 0,
            grown: 0,
        }
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Makes a frame that the test owns.
    pub fn frame(&mut self, bits: u8) -> FrameCap {
        let cap = self.fresh();
        self.frames.insert(cap, (bits, false));
        FrameCap { cap: CapAddress(cap), bits }
    }

    fn may_fail(&mut self) -> Result<(), Refused> {
        self.calls += 1;
        match self.fails_at {
            Some(at) if at == self.calls || self.for_ever && at < self.calls => Err(Refused::Injected),
            _ => Ok(()),
        }
    }

    /// Returns what the hardware finds at an address: frame, offset of the page, rights.
    pub fn resolve(&self, address: u64) -> Option<(u32, u64, MapFlags)> {
        let mut table = &self.tables[&ROOT.0];
        loop {
            let bits = entry_bits(u32::from(table.level));
            match *table.entries.get(&((address >> bits & 511) as u16))? {
                Entry::Table(next) => table = &self.tables[&next],
                Entry::Page { frame, offset, mapping } => {
                    let inside = address & ((1 << bits) - 1) & !0xfff;
                    return Some((frame, offset + inside, self.mappings[&mapping].flags));
                }
            }
        }
    }

    /// Returns the numbers of mappings, of frames that the library made, and of taken slots.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.mappings.len(), self.frames.values().filter(|(_, own)| *own).count(), self.slots.len())
    }

    /// Returns the number of tables, the root included.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }
}

impl Backend for Machine {
    type Error = Refused;

    fn make_frame(&mut self, bits: u8) -> Result<Object, Refused> {
        self.may_fail()?;
        let cap = self.fresh();
        self.frames.insert(cap, (bits, true));
        Ok(Object { cap: CapAddress(cap), token: [u64::from(cap), 7] })
    }

    fn make_table(&mut self, level: u8) -> Result<Object, Refused> {
        self.may_fail()?;
        assert!((1..=3).contains(&level));
        let cap = self.fresh();
        self.tables.insert(cap, Table { level, parent: None, entries: BTreeMap::new() });
        Ok(Object { cap: CapAddress(cap), token: [u64::from(cap), 7] })
    }

    fn destroy(&mut self, object: Object) {
        let cap = object.cap.0;
        assert_eq!(object.token, [u64::from(cap), 7], "an object comes back as it was given");
        if let Some(table) = self.tables.remove(&cap) {
            assert!(table.entries.is_empty(), "a table that goes is empty");
            if let Some((parent, entry)) = table.parent {
                self.tables.get_mut(&parent).unwrap().entries.remove(&entry);
            }
            return;
        }
        assert_eq!(self.frames.remove(&cap).map(|(_, own)| own), Some(true), "only its own frames go");
        let shows =
            |table: &Table| table.entries.values().any(|e| matches!(e, Entry::Page { frame, .. } if *frame == cap));
        assert!(!self.tables.values().any(shows), "a frame that goes is shown nowhere");
    }

    fn install(&mut self, table: CapAddress, parent: CapAddress, entry: u16) -> Result<(), Refused> {
        self.may_fail()?;
        let level = self.tables[&parent.0].level;
        let below = self.tables.get_mut(&table.0).unwrap();
        assert!(below.parent.is_none() && below.level == level + 1);
        below.parent = Some((parent.0, entry));
        let before = self.tables.get_mut(&parent.0).unwrap().entries.insert(entry, Entry::Table(table.0));
        assert!(before.is_none(), "the entry was in use");
        Ok(())
    }

    fn take_slot(&mut self) -> Result<CapAddress, Refused> {
        self.may_fail()?;
        let slot = self.fresh();
        self.slots.insert(slot);
        Ok(CapAddress(slot))
    }

    fn give_slot(&mut self, slot: CapAddress) {
        assert!(self.slots.remove(&slot.0), "a slot is given back once");
        assert!(!self.mappings.contains_key(&slot.0), "a slot that is given back is empty");
    }

    fn map(&mut self, run: &Run) -> Result<(), Refused> {
        self.may_fail()?;
        let Run { frame, offset, table, first, count, flags, slot } = *run;
        if flags.contains(MapFlags::WRITE) && self.read_only.contains(&frame.0) {
            return Err(Refused::Rights);
        }
        self.maps += 1;
        let level = self.tables[&table.0].level;
        let bits = entry_bits(u32::from(level));
        let size = 1u64 << self.frames[&frame.0].0;
        assert!(level > 0 && count > 0 && first + count <= 512);
        assert!(offset % (1 << bits) == 0 && offset + (u64::from(count) << bits) <= size);
        assert!(self.slots.contains(&slot.0));
        let mapping = Mapping { table: table.0, first, count, flags, made: flags };
        assert!(self.mappings.insert(slot.0, mapping).is_none(), "the slot was in use");
        for entry in 0..count {
            let offset = offset + (u64::from(entry) << bits);
            let page = Entry::Page { frame: frame.0, offset, mapping: slot.0 };
            let before = self.tables.get_mut(&table.0).unwrap().entries.insert(first + entry, page);
            assert!(before.is_none(), "the entry was in use");
        }
        Ok(())
    }

    fn protect(&mut self, mapping: CapAddress, flags: MapFlags) -> Result<(), Refused> {
        self.may_fail()?;
        let mapping = self.mappings.get_mut(&mapping.0).unwrap();
        assert!(mapping.made.contains(flags));
        mapping.flags = flags;
        Ok(())
    }

    fn unmap(&mut self, mapping: CapAddress) -> Result<(), Refused> {
        self.may_fail()?;
        let Mapping { table, first, count, .. } = self.mappings.remove(&mapping.0).unwrap();
        for entry in first..first + count {
            self.tables.get_mut(&table).unwrap().entries.remove(&entry).unwrap();
        }
        Ok(())
    }

    fn grow<T: Copy + Default + 'static>(&mut self, count: usize) -> Option<&'static mut [T]> {
        self.may_fail().ok()?;
        self.grown += count;
        Some(vec![T::default(); count].leak())
    }
}
