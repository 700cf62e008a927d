//! The meaning of frames, page tables and mappings, specified as plainly as possible.
//!
//! A table is a list of 512 entries; an entry is a page or another table. A mapping is a row of entries. Addresses are
//! translated by walking from a root. Nothing is cached, so nothing can be stale.

mod scattered;

use std::collections::BTreeMap;

use tench_abi::memory::{MapFlags, TABLE_ENTRIES, USER_END, entry_bits};
use tench_abi::object::Rights;
use tench_abi::{Error, Kind};

/// The object of a capability, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A frame.
    Frame(usize),
    /// A page table.
    Table(usize),
    /// A mapping.
    Mapping(usize),
}

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The object that it names.
    pub object: Object,
    /// The operations that it allows.
    pub rights: Rights,
    /// Set if retype made it.
    pub original: bool,
}

/// A frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Physical address of its first byte.
    pub physical: u64,
    /// Log2 of its size in bytes.
    pub bits: u32,
    /// Set for device memory.
    pub device: bool,
}

/// An entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Maps memory at this physical address, for this mapping.
    Page(u64, usize),
    /// Maps memory at this physical address with these flags, and was set in this scattered mapping.
    Shown {
        /// Physical address.
        physical: u64,
        /// Flags.
        flags: MapFlags,
        /// The scattered mapping.
        mapping: usize,
    },
    /// Leads to this table.
    Table(usize),
}

/// A page table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Level: 0 (root) to 3.
    pub level: u32,
    /// Entries that are not empty, by index.
    pub entries: BTreeMap<u64, Entry>,
}

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The mapped frame.
    pub frame: usize,
    /// The table.
    pub table: usize,
    /// Index of the first entry.
    pub first: u64,
    /// Number of entries.
    pub count: u64,
    /// Physical address that the first entry maps.
    pub physical: u64,
    /// Flags of the entries.
    pub flags: MapFlags,
    /// Rights of the capability to the frame with which it was made.
    pub rights: Rights,
    /// Set if this is a scattered mapping: its entries say what they map, and `flags` which flags they may have.
    pub scattered: bool,
}

/// The state of the model.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Frames by number; numbers are not used again.
    pub frames: BTreeMap<usize, Frame>,
    /// Tables by number.
    pub tables: BTreeMap<usize, Table>,
    /// Mappings by number.
    pub mappings: BTreeMap<usize, Mapping>,
    /// The CSpace.
    pub cspace: BTreeMap<u64, Capability>,
    /// Slots that exist.
    pub slots: std::ops::Range<u64>,
    made: usize,
}

/// The memory that a deletion freed: address and log2 of its size; `None` if the object remains.
pub type Freed = Option<(u64, u32)>;

impl World {
    /// Returns a world with nothing but a CSpace of these slots, all empty.
    pub fn new(slots: std::ops::Range<u64>) -> World {
        World { slots, ..World::default() }
    }

    /// Returns a number that no object has had.
    fn number(&mut self) -> usize {
        self.made += 1;
        self.made
    }

    /// Adds a frame, with its original capability.
    pub fn add_frame(&mut self, address: u64, frame: Frame) {
        let number = self.number();
        self.frames.insert(number, frame);
        self.add(address, Object::Frame(number), Rights::all(), true);
    }

    /// Adds a table, with its original capability.
    pub fn add_table(&mut self, address: u64, level: u32) {
        let number = self.number();
        self.tables.insert(number, Table { level, entries: BTreeMap::new() });
        self.add(address, Object::Table(number), Rights::all(), true);
    }

    fn add(&mut self, address: u64, object: Object, rights: Rights, original: bool) {
        self.cspace.insert(address, Capability { object, rights, original });
    }

    fn get(&self, address: u64) -> Result<Capability, Error> {
        self.cspace.get(&address).copied().ok_or(Error::InvalidCapability)
    }

    fn frame(&self, address: u64) -> Result<(usize, Rights), Error> {
        match self.get(address)? {
            Capability { object: Object::Frame(frame), rights, .. } => Ok((frame, rights)),
            _ => Err(Error::WrongType),
        }
    }

    fn table(&self, address: u64) -> Result<usize, Error> {
        match self.get(address)? {
            Capability { object: Object::Table(table), rights, .. } => {
                if rights.contains(Rights::WRITE) {
                    Ok(table)
                } else {
                    Err(Error::MissingRights)
                }
            }
            _ => Err(Error::WrongType),
        }
    }

    fn mapping(&self, address: u64) -> Result<usize, Error> {
        match self.get(address)? {
            Capability { object: Object::Mapping(mapping), .. } => Ok(mapping),
            _ => Err(Error::WrongType),
        }
    }

    /// Fails unless an address names an empty slot.
    fn destination(&self, address: u64) -> Result<(), Error> {
        if !self.slots.contains(&address) {
            Err(Error::NoSuchSlot)
        } else if self.cspace.contains_key(&address) {
            Err(Error::SlotOccupied)
        } else {
            Ok(())
        }
    }

    /// Returns the flags if rights to the frame allow them.
    fn flags(&self, flags: u64, rights: Rights, frame: usize) -> Result<MapFlags, Error> {
        let flags = MapFlags::from_bits(flags).ok_or(Error::InvalidArgument)?;
        if !flags.contains(MapFlags::READ) || flags.contains(MapFlags::WRITE | MapFlags::EXECUTE) {
            return Err(Error::InvalidArgument);
        }
        let types = flags & (MapFlags::EXECUTE | MapFlags::DEVICE | MapFlags::UNCACHED);
        if flags.contains(MapFlags::COHERENT) && types != MapFlags::EXECUTE {
            return Err(Error::InvalidArgument);
        }
        let needs =
            [(MapFlags::READ, Rights::READ), (MapFlags::WRITE, Rights::WRITE), (MapFlags::EXECUTE, Rights::EXECUTE)];
        for (flag, right) in needs {
            if flags.contains(flag) && !rights.contains(right) {
                return Err(Error::MissingRights);
            }
        }
        let device = self.frames[&frame].device;
        let flags = flags - MapFlags::COHERENT;
        Ok(if device { flags | MapFlags::DEVICE } else { flags })
    }

    /// Specifies `FrameMap`.
    pub fn map(&mut self, [frame, table, first, count, offset, flags, slot]: [u64; 7]) -> Result<(), Error> {
        let (frame, rights) = self.frame(frame)?;
        if !rights.contains(Rights::READ) {
            return Err(Error::MissingRights);
        }
        let table = self.table(table)?;
        let flags = self.flags(flags, rights, frame)?;
        let entries = TABLE_ENTRIES as u64;
        if count == 0 || first >= entries || count > entries - first {
            return Err(Error::InvalidArgument);
        }
        let Frame { physical, bits, .. } = self.frames[&frame];
        let (level, length) = (self.tables[&table].level, 1 << bits);
        if level == 0 || offset >= length {
            return Err(Error::InvalidArgument);
        }
        let page = 1 << entry_bits(level);
        if !(physical + offset).is_multiple_of(page) || !offset.is_multiple_of(page) {
            return Err(Error::Misaligned);
        }
        if count * page > length - offset {
            return Err(Error::InvalidArgument);
        }
        if (first..first + count).any(|index| self.tables[&table].entries.contains_key(&index)) {
            return Err(Error::AlreadyMapped);
        }
        self.destination(slot)?;
        let physical = physical + offset;
        let mapping = Mapping { frame, table, first, count, physical, flags, rights, scattered: false };
        let number = self.number();
        self.mappings.insert(number, mapping);
        self.add(slot, Object::Mapping(number), rights, false);
        for i in 0..count {
            let page = Entry::Page(physical + i * page, number);
            self.tables.get_mut(&table).expect("there").entries.insert(first + i, page);
        }
        Ok(())
    }

    /// Specifies `MappingProtect`.
    pub fn protect(&mut self, address: u64, flags: u64) -> Result<(), Error> {
        let number = self.mapping(address)?;
        let mapping = self.mappings[&number];
        if mapping.scattered {
            return Err(Error::WrongType);
        }
        let flags = self.flags(flags, mapping.rights, mapping.frame)?;
        self.mappings.insert(number, Mapping { flags, ..mapping });
        Ok(())
    }

    /// Specifies `MappingQuery`.
    pub fn query(&self, address: u64) -> Result<[u64; 5], Error> {
        let number = self.mapping(address)?;
        let mapping = self.mappings[&number];
        if mapping.scattered {
            return Ok(self.query_scattered(number));
        }
        let virtual_address =
            self.virtual_address(mapping.table, mapping.first).map_or(u64::MAX, |(_, address)| address);
        Ok([mapping.first, mapping.count, mapping.flags.bits(), virtual_address, 0])
    }

    /// Returns the physical address of the memory that a mapping shows.
    pub fn shown(&self, address: u64) -> Result<u64, Error> {
        Ok(self.mappings[&self.mapping(address)?].physical)
    }

    /// Returns the table and index at which a table is installed.
    fn parent(&self, table: usize) -> Option<(usize, u64)> {
        let mut places = self.tables.iter().flat_map(|(number, t)| t.entries.iter().map(move |e| (*number, e)));
        places.find(|(_, (_, entry))| **entry == Entry::Table(table)).map(|(number, (index, _))| (number, *index))
    }

    /// Returns the root above a table, and the virtual address of an entry there.
    fn virtual_address(&self, table: usize, index: u64) -> Option<(usize, u64)> {
        let level = self.tables[&table].level;
        let offset = index << entry_bits(level);
        if level == 0 {
            return Some((table, offset));
        }
        let (parent, index) = self.parent(table)?;
        self.virtual_address(parent, index).map(|(root, address)| (root, address + offset))
    }

    /// Specifies `PageTableMap`.
    pub fn install(&mut self, table: u64, parent: u64, index: u64) -> Result<(), Error> {
        let (table, parent) = (self.table(table)?, self.table(parent)?);
        let upper = self.tables[&parent].level;
        let user = if upper == 0 { USER_END >> entry_bits(0) } else { TABLE_ENTRIES as u64 };
        if upper + 1 != self.tables[&table].level || index >= user {
            return Err(Error::InvalidArgument);
        }
        if self.parent(table).is_some() || self.tables[&parent].entries.contains_key(&index) {
            return Err(Error::AlreadyMapped);
        }
        self.tables.get_mut(&parent).expect("there").entries.insert(index, Entry::Table(table));
        Ok(())
    }

    /// Specifies `PageTableUnmap`.
    pub fn take_out(&mut self, table: u64) -> Result<(), Error> {
        let table = self.table(table)?;
        let (parent, index) = self.parent(table).ok_or(Error::NotMapped)?;
        self.tables.get_mut(&parent).expect("there").entries.remove(&index);
        Ok(())
    }

    /// Specifies `Mint` without a badge, which is `Copy` if all rights are kept.
    pub fn mint(&mut self, from: u64, to: u64, rights: Rights) -> Result<(), Error> {
        let capability = self.get(from)?;
        self.destination(to)?;
        if let Object::Mapping(_) = capability.object {
            return Err(Error::NotCopyable);
        }
        self.add(to, capability.object, capability.rights & rights, false);
        Ok(())
    }

    /// Specifies `Move`.
    pub fn relocate(&mut self, from: u64, to: u64) -> Result<(), Error> {
        let capability = self.get(from)?;
        self.destination(to)?;
        self.cspace.remove(&from);
        self.cspace.insert(to, capability);
        Ok(())
    }

    /// Specifies `Delete`.
    pub fn delete(&mut self, address: u64) -> Result<Freed, Error> {
        let object = self.get(address)?.object;
        self.cspace.remove(&address);
        if self.cspace.values().any(|other| other.object == object) {
            return Ok(None);
        }
        Ok(Some(self.delete_object(object)))
    }

    /// Deletes an object. Returns the memory that becomes free.
    fn delete_object(&mut self, object: Object) -> (u64, u32) {
        match object {
            Object::Mapping(number) => {
                self.cspace.retain(|_, capability| capability.object != object);
                let mapping = self.mappings.remove(&number).expect("there");
                let entries = &mut self.tables.get_mut(&mapping.table).expect("there").entries;
                entries.retain(|_, entry| match entry {
                    Entry::Page(_, owner) | Entry::Shown { mapping: owner, .. } => *owner != number,
                    Entry::Table(_) => true,
                });
                (0, 0)
            }
            Object::Frame(number) => {
                self.delete_mappings(|mapping| mapping.frame == number);
                let frame = self.frames.remove(&number).expect("there");
                (frame.physical, frame.bits)
            }
            Object::Table(number) => {
                self.delete_mappings(|mapping| mapping.table == number);
                for table in self.tables.values_mut() {
                    table.entries.retain(|_, entry| *entry != Entry::Table(number));
                }
                self.tables.remove(&number);
                (u64::MAX, tench_abi::object::PAGE_TABLE_BITS)
            }
        }
    }

    /// Deletes the mappings that `which` selects. Returns their number.
    fn delete_mappings(&mut self, which: impl Fn(&Mapping) -> bool) -> u64 {
        let going: Vec<usize> = self.mappings.iter().filter(|(_, m)| which(m)).map(|(number, _)| *number).collect();
        for number in &going {
            self.delete_object(Object::Mapping(*number));
        }
        going.len() as u64
    }

    /// Specifies `Revoke`. Returns the number of deleted capabilities.
    pub fn revoke(&mut self, address: u64) -> Result<u64, Error> {
        let capability = self.get(address)?;
        if !capability.original {
            return Ok(0);
        }
        let before = self.cspace.len();
        self.cspace.retain(|at, other| *at == address || other.object != capability.object);
        let mut count = (before - self.cspace.len()) as u64;
        if let Object::Frame(number) = capability.object {
            count += self.delete_mappings(|mapping| mapping.frame == number);
        }
        Ok(count)
    }

    /// Translates an address in the address space of a root. Returns physical address and flags.
    pub fn translate(&self, root: usize, address: u64) -> Option<(u64, MapFlags)> {
        let mut table = root;
        loop {
            let t = &self.tables[&table];
            let bits = entry_bits(t.level);
            match t.entries.get(&(address >> bits & 511))? {
                Entry::Table(next) => table = *next,
                Entry::Shown { physical, flags, .. } => {
                    return Some((physical + (address & ((1 << bits) - 1)), *flags));
                }
                Entry::Page(physical, mapping) => {
                    return Some((physical + (address & ((1 << bits) - 1)), self.mappings[mapping].flags));
                }
            }
        }
    }

    /// Returns the kind of the capability at an address.
    pub fn kind(&self, address: u64) -> Kind {
        match self.cspace.get(&address).map(|capability| capability.object) {
            None => Kind::Null,
            Some(Object::Frame(_)) => Kind::Frame,
            Some(Object::Table(_)) => Kind::PageTable,
            Some(Object::Mapping(_)) => Kind::Mapping,
        }
    }
}
