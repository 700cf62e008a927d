//! The state of one address space, and the operations that only add to it.

use tench_abi::CapAddress;
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE, USER_END, entry_bits};
use tench_tree::Id;

use crate::backend::Backend;
use crate::mapping::{Frame, FrameRange, Mapping, runs};
use crate::pool::Pool;
use crate::regions::{Kind, Region, Regions};
use crate::shadow::{Entry, Tables};
use crate::types::{Account, Error, FrameCap, Request};

const PAGE: u64 = PAGE_SIZE as u64;
/// Log2 of the size in bytes of the largest frame or fault-around range.
const MAX_BITS: u8 = 47;

/// Number of mappings and frames that need no further memory.
const BUILT_IN: usize = 64;

/// Maximum number of nodes that an operation may add to the metadata.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    pub(crate) regions: usize,
    pub(crate) tables: usize,
    pub(crate) mappings: usize,
    pub(crate) frames: usize,
}

/// An address space.
#[derive(Debug)]
pub struct Paging {
    pub(crate) regions: Regions,
    pub(crate) tables: Tables,
    pub(crate) mappings: Pool<Mapping, BUILT_IN>,
    pub(crate) frames: Pool<Frame, BUILT_IN>,
}

impl Paging {
    /// Returns the initial value, which is the same as zeroed memory.
    pub const fn new() -> Paging {
        Paging {
            regions: Regions::new(),
            tables: Tables::new(),
            mappings: Pool::new([Mapping::ZERO; BUILT_IN]),
            frames: Pool::new([Frame::ZERO; BUILT_IN]),
        }
    }

    /// Sets up an empty address space whose table of level 0 is `root`. It has all addresses above the first page;
    /// addresses for requests without a fixed one are chosen from `low` to before `high`.
    pub fn initialise(&mut self, root: CapAddress, low: u64, high: u64) {
        self.regions.initialise(PAGE, USER_END, (low, high));
        self.tables.initialise(root);
    }

    /// Ensures that the metadata has room for an operation. Mostly it does.
    #[inline(always)]
    pub(crate) fn ensure<B: Backend>(&mut self, backend: &mut B, need: Need) -> Result<(), Error<B::Error>> {
        let regions = need.regions == 0 || self.regions.left() >= need.regions;
        let tables = need.tables == 0 || self.tables.left() >= need.tables;
        let mappings = need.mappings == 0 || self.mappings.left() >= need.mappings;
        let frames = need.frames == 0 || self.frames.left() >= need.frames;
        if regions && tables && mappings && frames { Ok(()) } else { self.grow(backend, need) }
    }

    /// Grows the metadata.
    #[cold]
    fn grow<B: Backend>(&mut self, backend: &mut B, need: Need) -> Result<(), Error<B::Error>> {
        /// Adds a chunk to one array.
        macro_rules! grow {
            ($array:expr) => {{
                let array = $array;
                let count = array.next_chunk().ok_or(Error::NoMetadata)?;
                array.add(backend.grow(count).ok_or(Error::NoMetadata)?);
            }};
        }
        while self.regions.left() < need.regions {
            grow!(self.regions.pool().array());
        }
        while self.tables.left() < need.tables {
            // Heads grow last: there is room for tables only with both.
            while self.tables.entries().capacity() <= self.tables.heads().array().capacity() {
                grow!(self.tables.entries());
            }
            grow!(self.tables.heads().array());
        }
        while self.mappings.left() < need.mappings {
            grow!(self.mappings.array());
        }
        while self.frames.left() < need.frames {
            grow!(self.frames.array());
        }
        Ok(())
    }

    /// Reserves free addresses, and returns the first one after the guard. O(log n).
    pub fn alloc<B: Backend>(&mut self, backend: &mut B, request: &Request) -> Result<u64, Error<B::Error>> {
        let Request { size, guard, .. } = *request;
        let alignment = request.alignment.max(PAGE);
        if !is_range(0, size) || !alignment.is_power_of_two() || !guard.is_multiple_of(PAGE) {
            return Err(Error::BadRange);
        }
        self.ensure(backend, Need { regions: 2, ..Need::default() })?;
        // The guard is enlarged so that the address after it is aligned.
        let lead = guard.checked_next_multiple_of(alignment).ok_or(Error::BadRange)?;
        let total = lead.checked_add(size).ok_or(Error::BadRange)?;
        let (start, next) = self.regions.search(total, alignment).ok_or(Error::NoAddresses)?;
        Ok(self.reserve(next, start + lead, request))
    }

    /// Reserves the given addresses, and the guard before them. O(log n).
    pub fn alloc_fixed<B: Backend>(
        &mut self,
        backend: &mut B,
        address: u64,
        request: &Request,
    ) -> Result<(), Error<B::Error>> {
        let Request { size, guard, .. } = *request;
        let start = address.checked_sub(guard).ok_or(Error::BadRange)?;
        let total = size.checked_add(guard).ok_or(Error::BadRange)?;
        if !is_range(start, total) || !is_range(address, size) {
            return Err(Error::BadRange);
        }
        self.ensure(backend, Need { regions: 2, ..Need::default() })?;
        let next = self.regions.free_at(start, total).ok_or(Error::Taken)?;
        self.reserve(next, address, request);
        Ok(())
    }

    /// Inserts a region and its guard into the gap before `next`.
    fn reserve(&mut self, next: Id, address: u64, request: &Request) -> u64 {
        let &Request { size, kind, flags, fault_around, guard, .. } = request;
        if guard > 0 {
            let start = address - guard;
            let flags = MapFlags::empty();
            self.regions.insert_at(next, Region { start, size: guard, kind: Kind::Guard, flags, fault_around: 0 });
        }
        let fault_around = fault_around.min(MAX_BITS);
        self.regions.insert_at(next, Region { start: address, size, kind, flags, fault_around });
        address
    }

    /// Maps a whole frame at free addresses, and returns the first.
    pub fn map<B: Backend>(
        &mut self,
        backend: &mut B,
        frame: FrameCap,
        flags: MapFlags,
    ) -> Result<u64, Error<B::Error>> {
        if !(PAGE_BITS as u8..=MAX_BITS).contains(&frame.bits) {
            return Err(Error::BadRange);
        }
        let size = 1 << frame.bits;
        // Large pages need aligned addresses; more than the largest page gains nothing.
        let alignment = if size >> entry_bits(2) == 0 { PAGE } else { size.min(1 << entry_bits(1)) };
        let request = Request { alignment, flags, ..Request::reserved(size, Kind::Frame) };
        let address = self.alloc(backend, &request)?;
        self.map_reserved(backend, FrameRange { frame: frame.cap, owner: 0, offset: 0, address, size, flags })
    }

    /// Maps part of a frame at an address: into a region that contains all of the addresses, or, if all are free, into
    /// a new one.
    pub fn map_fixed<B: Backend>(
        &mut self,
        backend: &mut B,
        address: u64,
        frame: FrameCap,
        offset: u64,
        size: u64,
        flags: MapFlags,
    ) -> Result<(), Error<B::Error>> {
        let in_frame = offset.is_multiple_of(PAGE) && frame.bits <= MAX_BITS;
        if !in_frame || !is_range(address, size) || offset.checked_add(size).is_none_or(|end| end > 1 << frame.bits) {
            return Err(Error::BadRange);
        }
        let range = FrameRange { frame: frame.cap, owner: 0, offset, address, size, flags };
        if self.regions.is_free(address, size) {
            let request = Request { flags, ..Request::reserved(size, Kind::Frame) };
            self.alloc_fixed(backend, address, &request)?;
            return self.map_reserved(backend, range).map(|_| ());
        }
        let region = self.regions.find(address).ok_or(Error::NotAllocated)?;
        if region.kind == Kind::Guard || region.kind == Kind::Foreign {
            return Err(Error::NotAllocated);
        }
        if address + size > region.end() {
            return Err(Error::SeveralRegions);
        }
        self.show(backend, &range)
    }

    /// Maps into a region that was made for it, and frees that region if nothing could be mapped.
    fn map_reserved<B: Backend>(&mut self, backend: &mut B, range: FrameRange) -> Result<u64, Error<B::Error>> {
        let mapped = self.show(backend, &range);
        // Addresses that could not be unmapped again stay reserved.
        if mapped.is_err() && self.tables.first_mapping(range.address, range.address + range.size).is_none() {
            self.regions.free(range.address, range.size);
        }
        mapped.map(|()| range.address)
    }

    /// Returns the region in which an address lies. O(log n).
    pub fn find(&self, address: u64) -> Option<Region> {
        self.regions.find(address)
    }

    /// Returns the first region that ends after an address. O(log n).
    pub fn first_from(&self, address: u64) -> Option<Region> {
        self.regions.first_from(address)
    }

    /// Returns the mapping of an address: its capability, the frame's, the offset in the frame in bytes, and the
    /// rights. O(1).
    pub fn shown(&self, address: u64) -> Option<(CapAddress, CapAddress, u64, MapFlags)> {
        let (_, Entry::Mapping(index)) = self.tables.walk(address) else { return None };
        let mapping = self.mappings.get(index);
        let offset = mapping.offset + (address & !(PAGE - 1)) - self.start_of(mapping);
        Some((mapping.slot, mapping.frame, offset, mapping.flags()))
    }

    /// Returns the numbers of objects in the metadata.
    pub fn account(&self) -> Account {
        Account {
            regions: self.regions.count(),
            tables: self.tables.count(),
            mappings: self.mappings.used(),
            frames: self.frames.used(),
        }
    }

    /// Ensures that nothing is mapped where a range goes, and that the metadata has room for it.
    pub(crate) fn prepare<B: Backend>(&mut self, backend: &mut B, range: &FrameRange) -> Result<(), Error<B::Error>> {
        if self.tables.first_mapping(range.address, range.address + range.size).is_some() {
            return Err(Error::Mapped);
        }
        let runs = runs(range).count();
        self.ensure(backend, Need { tables: self.missing_tables(range, runs), mappings: runs, ..Need::default() })
    }

    /// Panics unless the metadata is consistent.
    pub fn check_invariants(&self) {
        self.regions.check_invariants();
        self.mappings.check_invariants();
        self.frames.check_invariants();
        let mut mappings = 0;
        let mut owned = 0;
        self.tables.check_invariants(|table, first, count, index| {
            mappings += 1;
            let mapping = self.mappings.get(index);
            let covered = (mapping.table as usize, mapping.first, mapping.count);
            assert_eq!(covered, (table, first, count), "a mapping covers the entries that name it");
            let (start, size) = (self.start_of(mapping), self.size_of(mapping));
            assert!(mapping.made().contains(mapping.flags()), "a mapping has at most the rights it was made with");
            let mut at = start;
            while at < start + size {
                let region = self.regions.find(at).filter(|region| region.kind != Kind::Guard);
                assert!(region.is_some(), "what is mapped is reserved");
                at = region.map_or(start + size, |region| region.end());
            }
            if let Some(frame) = mapping.owner.checked_sub(1) {
                owned += 1;
                assert_eq!(self.frames.get(frame as usize).object.cap, mapping.frame, "a mapping shows its frame");
            }
        });
        assert_eq!(mappings, self.mappings.used(), "every mapping covers entries");
        let parts = |index: usize| u64::from(self.frames.get(index).mappings);
        let counted: u64 = (0..self.frames.used() + self.frames.left()).map(parts).sum();
        assert_eq!(counted, owned, "a frame counts its mappings");
    }
}

impl Default for Paging {
    fn default() -> Self {
        Paging::new()
    }
}

/// Returns whether a range consists of whole pages that a program can have.
pub(crate) fn is_range(start: u64, size: u64) -> bool {
    let whole = start.is_multiple_of(PAGE) && size.is_multiple_of(PAGE) && size > 0;
    whole && start.checked_add(size).is_some_and(|end| end <= USER_END)
}
