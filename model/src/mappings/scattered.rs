//! The meaning of scattered mappings: mappings whose entries are set one by one.

use tench_abi::Error;
use tench_abi::memory::{MAX_SCATTERED, MAX_SET, MapFlags, TABLE_ENTRIES, entry_bits};
use tench_abi::object::Rights;

use super::{Capability, Entry, Frame, Mapping, Object, World};

impl World {
    /// Returns the flags that entries of a scattered mapping may have.
    fn possible(&self, frame: usize, rights: Rights) -> MapFlags {
        let pairs = [(Rights::WRITE, MapFlags::WRITE), (Rights::EXECUTE, MapFlags::EXECUTE)];
        let granted = pairs.into_iter().filter(|(right, _)| rights.contains(*right)).map(|(_, flag)| flag);
        let device = if self.frames[&frame].device { MapFlags::DEVICE } else { MapFlags::empty() };
        granted.fold(MapFlags::READ | device, |all, flag| all | flag)
    }

    /// Specifies `FrameScatter`.
    pub fn scatter(&mut self, [frame, table, slot]: [u64; 3]) -> Result<(), Error> {
        let (frame, rights) = self.frame(frame)?;
        if !rights.contains(Rights::READ) {
            return Err(Error::MissingRights);
        }
        let table = self.table(table)?;
        let Frame { physical, bits, .. } = self.frames[&frame];
        let level = self.tables[&table].level;
        if level == 0 || bits < entry_bits(level) {
            return Err(Error::InvalidArgument);
        }
        if self.mappings.values().filter(|mapping| mapping.scattered && mapping.table == table).count() == MAX_SCATTERED
        {
            return Err(Error::Busy);
        }
        self.destination(slot)?;
        let flags = self.possible(frame, rights);
        let mapping = Mapping { frame, table, first: 0, count: 0, physical, flags, rights, scattered: true };
        let number = self.number();
        self.mappings.insert(number, mapping);
        self.add(slot, Object::Mapping(number), rights, false);
        Ok(())
    }

    /// Returns the number of the scattered mapping at an address.
    fn scattered(&self, address: u64) -> Result<usize, Error> {
        let number = self.mapping(address)?;
        if self.mappings[&number].scattered { Ok(number) } else { Err(Error::WrongType) }
    }

    /// Returns the entries that a program named.
    fn range(first: u64, count: u64) -> Result<std::ops::Range<u64>, Error> {
        let entries = TABLE_ENTRIES as u64;
        let is_allowed = count > 0 && first < entries && count <= entries - first;
        if is_allowed { Ok(first..first + count) } else { Err(Error::InvalidArgument) }
    }

    /// Specifies `MappingSet`.
    pub fn set_entries(&mut self, [address, first, count, offset, flags]: [u64; 5]) -> Result<(), Error> {
        let number = self.scattered(address)?;
        let range = World::range(first, count)?;
        if count > MAX_SET {
            return Err(Error::InvalidArgument);
        }
        let Mapping { frame, table, rights, .. } = self.mappings[&number];
        let mut shown = None;
        if flags != 0 {
            let flags = self.flags(flags, rights, frame)?;
            let (page, length) = (1 << entry_bits(self.tables[&table].level), 1 << self.frames[&frame].bits);
            if !offset.is_multiple_of(page) {
                return Err(Error::Misaligned);
            }
            if offset >= length || count * page > length - offset {
                return Err(Error::InvalidArgument);
            }
            shown = Some((self.frames[&frame].physical + offset, page, flags));
        }
        let entries = &mut self.tables.get_mut(&table).expect("there").entries;
        let is_own = |entry: &Entry| matches!(entry, Entry::Shown { mapping, .. } if *mapping == number);
        if !range.clone().all(|index| entries.get(&index).is_none_or(is_own)) {
            return Err(Error::AlreadyMapped);
        }
        for index in range {
            entries.remove(&index);
            if let Some((physical, page, flags)) = shown {
                let physical = physical + (index - first) * page;
                entries.insert(index, Entry::Shown { physical, flags, mapping: number });
            }
        }
        Ok(())
    }

    /// Specifies `MappingClone`. Returns the number of entries copied.
    pub fn clone_entries(&mut self, [from, to, first, count, mask, restrict]: [u64; 6]) -> Result<u64, Error> {
        let (source, target) = (self.scattered(from)?, self.scattered(to)?);
        let range = World::range(first, count)?;
        let mask = MapFlags::from_bits(mask).ok_or(Error::InvalidArgument)?;
        let access = MapFlags::READ | MapFlags::WRITE | MapFlags::EXECUTE;
        let (shown, copy) = (self.mappings[&source], self.mappings[&target]);
        let level = |mapping: &Mapping| self.tables[&mapping.table].level;
        let is_alike = shown.frame == copy.frame && level(&shown) == level(&copy);
        if !mask.contains(MapFlags::READ) || !(mask - access).is_empty() || restrict > 1 || !is_alike {
            return Err(Error::InvalidArgument);
        }
        if !self.possible(copy.frame, copy.rights).contains(mask) {
            return Err(Error::MissingRights);
        }
        let kept = |flags: MapFlags| flags - (access - mask);
        let mut copied = 0;
        for index in range {
            let Some(Entry::Shown { physical, flags, mapping }) =
                self.tables[&shown.table].entries.get(&index).copied()
            else {
                continue;
            };
            if mapping != source || self.tables[&copy.table].entries.contains_key(&index) {
                continue;
            }
            let entry = |flags, mapping| Entry::Shown { physical, flags, mapping };
            let mut put = |table: usize, entry| {
                self.tables.get_mut(&table).expect("there").entries.insert(index, entry);
            };
            put(copy.table, entry(kept(flags), target));
            if restrict == 1 {
                put(shown.table, entry(kept(flags), source));
            }
            copied += 1;
        }
        Ok(copied)
    }

    /// Specifies `MappingQuery` of a scattered mapping.
    pub(super) fn query_scattered(&self, number: usize) -> [u64; 5] {
        let Mapping { table, flags, .. } = self.mappings[&number];
        let is_own = |entry: &&Entry| matches!(entry, Entry::Shown { mapping, .. } if *mapping == number);
        let count = self.tables[&table].entries.values().filter(is_own).count();
        let address = self.virtual_address(table, 0).map_or(u64::MAX, |(_, address)| address);
        [0, count as u64, flags.bits(), address, 0]
    }

    /// Returns whether the capability at an address is to a scattered mapping.
    pub fn is_scattered(&self, address: u64) -> bool {
        let capability = self.cspace.get(&address).copied();
        matches!(capability, Some(Capability { object: Object::Mapping(number), .. }) if self.mappings[&number].scattered)
    }

    /// Returns whether the capability at an address is to a frame of which a scattered mapping was made.
    pub fn is_scattered_already(&self, address: u64) -> bool {
        let Ok((frame, _)) = self.frame(address) else { return false };
        self.mappings.values().any(|mapping| mapping.scattered && mapping.frame == frame)
    }

    /// Returns the size of a page that an entry of a scattered mapping maps, in bytes.
    pub fn page(&self, address: u64) -> Result<u64, Error> {
        let Mapping { table, .. } = self.mappings[&self.scattered(address)?];
        Ok(1 << entry_bits(self.tables[&table].level))
    }

    /// Returns the number of such pages in a scattered mapping's frame.
    pub fn pages(&self, address: u64) -> Result<u64, Error> {
        let Mapping { frame, .. } = self.mappings[&self.scattered(address)?];
        Ok((1 << self.frames[&frame].bits) / self.page(address)?)
    }

    /// Returns whether the capabilities at two addresses are to scattered mappings of one frame in different tables.
    pub fn are_alike(&self, a: u64, b: u64) -> bool {
        let (Ok(a), Ok(b)) = (self.scattered(a), self.scattered(b)) else { return false };
        let (a, b) = (self.mappings[&a], self.mappings[&b]);
        a.frame == b.frame && a.table != b.table
    }
}
