//! The state of one address space, and what only adds to it.

use tench_abi::CapAddress;
use tench_abi::fault::Access;
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE, TABLE_ENTRIES, USER_END, entry_bits};

use crate::backend::{Backend, Object, Run};
use crate::pool::{Node, Pool};
use crate::regions::{Kind, Region, Regions};
use crate::shadow::{Entry, ROOT, Tables};

const PAGE: u64 = PAGE_SIZE as u64;
/// Log2 of the largest frame or granule.
const MAX_BITS: u8 = 47;

/// Mappings and frames that need no further memory.
const BUILT_IN: usize = 64;

/// Why an operation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The backend could not do it.
    Backend(E),
    /// No free range is large enough.
    NoAddresses,
    /// Some address of the range is taken.
    Taken,
    /// Some address of the range belongs to no region, or to one that is never mapped.
    NotAllocated,
    /// The range belongs to several regions.
    SeveralRegions,
    /// Something is mapped in the range.
    Mapped,
    /// Not whole pages, none at all, beyond the frame, or beyond the address space.
    BadRange,
    /// What is mapped can always be read, and never both written and executed.
    BadRights,
    /// There is no memory for the books.
    NoBooks,
}

impl<E> From<E> for Error<E> {
    fn from(error: E) -> Error<E> {
        Error::Backend(error)
    }
}

/// Addresses that are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Bytes, whole pages.
    pub size: u64,
    /// A power of two that the first address is a multiple of; less than a page means a page.
    pub alignment: u64,
    /// What for.
    pub kind: Kind,
    /// Rights and attributes of memory that is found on access.
    pub flags: MapFlags,
    /// As in [`Region::granule`].
    pub granule: u8,
    /// Bytes right before the first address that are never mapped, whole pages.
    pub guard: u64,
}

impl Request {
    /// Addresses for readable and writable memory, a page of which is found on the first access to it.
    pub const fn lazy(size: u64, kind: Kind) -> Request {
        let flags = MapFlags::READ.union(MapFlags::WRITE);
        Request { size, alignment: PAGE, kind, flags, granule: PAGE_BITS as u8, guard: 0 }
    }

    /// Addresses where nothing is until something is mapped.
    pub const fn reserved(size: u64, kind: Kind) -> Request {
        Request { granule: 0, ..Request::lazy(size, kind) }
    }
}

/// A frame that somebody gave.
#[derive(Clone, Copy, Debug)]
pub struct FrameCap {
    /// Its capability.
    pub cap: CapAddress,
    /// Log2 of its size. Its physical address is a multiple of that.
    pub bits: u8,
}

/// What a page fault means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An access to the first page.
    Null,
    /// An access to a region that is never mapped.
    Guard(Region),
    /// The address belongs to no region.
    NotAllocated,
    /// The address belongs to a region in which nothing is mapped there, or to what somebody else mapped.
    NotBacked(Region),
    /// The region does not allow such an access.
    Rights(Region),
    /// Memory is to be found: [`Paging::back`].
    Lazy(Region),
    /// This mapping covers the address and allows the access: somebody was faster, or the mapping is gone.
    Mapped(Region, CapAddress),
}

/// What the books hold, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Regions.
    pub regions: usize,
    /// Page tables, the root included.
    pub tables: usize,
    /// Mappings.
    pub mappings: usize,
    /// Frames that were made for lazily backed regions.
    pub frames: usize,
}

/// A mapping: one kernel object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mapping {
    pub(crate) slot: CapAddress,
    pub(crate) frame: CapAddress,
    /// Where in the frame, in bytes.
    pub(crate) offset: u64,
    pub(crate) table: u32,
    /// One more than the place of the frame in the books, if it was made here; otherwise 0.
    pub(crate) owner: u32,
    pub(crate) first: u16,
    pub(crate) count: u16,
    pub(crate) flags: u8,
    /// Rights with which it was made, to which it can be protected.
    pub(crate) made: u8,
    unused: u32,
}

impl Mapping {
    const ZERO: Mapping = Mapping {
        slot: CapAddress::NULL,
        frame: CapAddress::NULL,
        offset: 0,
        table: 0,
        owner: 0,
        first: 0,
        count: 0,
        flags: 0,
        made: 0,
        unused: 0,
    };

    pub(crate) fn flags(&self) -> MapFlags {
        MapFlags::from_bits_truncate(u64::from(self.flags))
    }

    pub(crate) fn made(&self) -> MapFlags {
        MapFlags::from_bits_truncate(u64::from(self.made))
    }
}

impl Node for Mapping {
    fn link(&mut self) -> &mut u32 {
        &mut self.unused
    }
}

/// A frame that was made for a lazily backed region. It goes with the last mapping that shows a part of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    object: Object,
    mappings: u32,
    unused: u32,
}

impl Frame {
    const ZERO: Frame = Frame { object: Object::NONE, mappings: 0, unused: 0 };
}

impl Node for Frame {
    fn link(&mut self) -> &mut u32 {
        &mut self.unused
    }
}

/// What an operation may add to the books.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    pub(crate) regions: usize,
    pub(crate) tables: usize,
    pub(crate) mappings: usize,
    pub(crate) frames: usize,
}

/// Memory that is to be shown somewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) frame: CapAddress,
    pub(crate) owner: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) flags: MapFlags,
}

/// An address space.
#[derive(Debug)]
pub struct Paging {
    pub(crate) regions: Regions,
    pub(crate) tables: Tables,
    pub(crate) mappings: Pool<Mapping, BUILT_IN>,
    pub(crate) frames: Pool<Frame, BUILT_IN>,
    /// Where addresses are chosen: from, to.
    choice: (u64, u64),
}

impl Paging {
    /// As it lies in zeroed memory.
    pub const fn new() -> Paging {
        Paging {
            regions: Regions::new(),
            tables: Tables::new(),
            mappings: Pool::new([Mapping::ZERO; BUILT_IN]),
            frames: Pool::new([Frame::ZERO; BUILT_IN]),
            choice: (0, 0),
        }
    }

    /// Begins with an empty address space whose table of level 0 is `root`. Its addresses are all above the first page;
    /// those from `low` to before `high` are given to whoever does not mind.
    pub fn initialise(&mut self, root: CapAddress, low: u64, high: u64) {
        self.regions.initialise(PAGE, USER_END);
        self.tables.initialise(root);
        self.choice = (low, high);
    }

    /// Lets the books grow until they hold what an operation may need.
    pub(crate) fn ensure<B: Backend>(&mut self, backend: &mut B, need: Need) -> Result<(), Error<B::Error>> {
        /// Adds a chunk to one array.
        macro_rules! grow {
            ($array:expr) => {{
                let array = $array;
                let count = array.next_chunk().ok_or(Error::NoBooks)?;
                array.add(backend.grow(count).ok_or(Error::NoBooks)?);
            }};
        }
        while self.regions.left() < need.regions {
            grow!(self.regions.pool().array());
        }
        while self.tables.left() < need.tables {
            // Heads grow last: only with both is there room for tables.
            while self.tables.entries().len() <= self.tables.heads().array().len() {
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

    /// Reserves addresses, wherever they are free, and answers the first behind the guard. O(log n).
    pub fn alloc<B: Backend>(&mut self, backend: &mut B, request: &Request) -> Result<u64, Error<B::Error>> {
        let Request { size, guard, .. } = *request;
        let alignment = request.alignment.max(PAGE);
        if !is_range(0, size) || !alignment.is_power_of_two() || !guard.is_multiple_of(PAGE) {
            return Err(Error::BadRange);
        }
        self.ensure(backend, Need { regions: 2, ..Need::default() })?;
        // The guard is enlarged so that what follows is aligned.
        let lead = guard.checked_next_multiple_of(alignment).ok_or(Error::BadRange)?;
        let total = lead.checked_add(size).ok_or(Error::BadRange)?;
        let start = self.regions.search(total, alignment, self.choice.0, self.choice.1).ok_or(Error::NoAddresses)?;
        Ok(self.reserve(start + lead, request))
    }

    /// Reserves these addresses, and the guard before them. O(log n).
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
        if !self.regions.is_free(start, total) {
            return Err(Error::Taken);
        }
        self.reserve(address, request);
        Ok(())
    }

    /// Enters a region and its guard.
    fn reserve(&mut self, address: u64, request: &Request) -> u64 {
        let &Request { size, kind, flags, granule, guard, .. } = request;
        if guard > 0 {
            let start = address - guard;
            let flags = MapFlags::empty();
            self.regions.insert(Region { start, size: guard, kind: Kind::Guard, flags, granule: 0 });
        }
        self.regions.insert(Region { start: address, size, kind, flags, granule: granule.min(MAX_BITS) });
        address
    }

    /// Maps a whole frame wherever there is room, and answers where.
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
        // Large pages need aligned addresses; more than the largest page brings nothing.
        let alignment = if size >> entry_bits(2) == 0 { PAGE } else { size.min(1 << entry_bits(1)) };
        let request = Request { alignment, flags, ..Request::reserved(size, Kind::Frame) };
        let address = self.alloc(backend, &request)?;
        self.map_reserved(backend, Piece { frame: frame.cap, owner: 0, offset: 0, address, size, flags })
    }

    /// Maps part of a frame at an address: into a region that has all of the addresses, or, if all are free, into a new
    /// one.
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
        let piece = Piece { frame: frame.cap, owner: 0, offset, address, size, flags };
        if self.regions.is_free(address, size) {
            let request = Request { flags, ..Request::reserved(size, Kind::Frame) };
            self.alloc_fixed(backend, address, &request)?;
            return self.map_reserved(backend, piece).map(|_| ());
        }
        let region = self.regions.find(address).ok_or(Error::NotAllocated)?;
        if region.kind == Kind::Guard || region.kind == Kind::Foreign {
            return Err(Error::NotAllocated);
        }
        if address + size > region.end() {
            return Err(Error::SeveralRegions);
        }
        self.prepare(backend, &piece)?;
        self.map_piece(backend, &piece, &mut Reserve::new())
    }

    /// Maps into a region that was made for it, and frees that again if nothing could be mapped.
    fn map_reserved<B: Backend>(&mut self, backend: &mut B, piece: Piece) -> Result<u64, Error<B::Error>> {
        let mapped = self.prepare(backend, &piece).and_then(|()| self.map_piece(backend, &piece, &mut Reserve::new()));
        // What could not be unmapped again stays reserved.
        if mapped.is_err() && self.tables.first_mapping(piece.address, piece.address + piece.size).is_none() {
            self.regions.free(piece.address, piece.size);
        }
        mapped.map(|()| piece.address)
    }

    /// Finds memory for the page of a lazily backed region in which an address lies, and for as many neighbours as the
    /// region's granule says, if they have none yet either. Nothing happens where something is mapped.
    pub fn back<B: Backend>(&mut self, backend: &mut B, address: u64) -> Result<(), Error<B::Error>> {
        let region = self.regions.find(address).filter(Region::is_lazy).ok_or(Error::NotAllocated)?;
        if let (_, Entry::Mapping(_)) = self.tables.walk(address) {
            return Ok(());
        }
        let (start, bits) = self.granule(&region, address);
        let piece = Piece {
            frame: CapAddress::NULL,
            owner: 0,
            offset: 0,
            address: start,
            size: 1 << bits,
            flags: region.flags,
        };
        self.prepare(backend, &piece)?;
        self.ensure(backend, Need { frames: 1, ..Need::default() })?;
        let object = match backend.make_frame(bits) {
            Err(_) if bits > PAGE_BITS as u8 => return self.back_page(backend, address & !(PAGE - 1), &piece),
            made => made?,
        };
        self.map_own(backend, object, piece)
    }

    /// Finds memory for one page, when there was not enough for more.
    fn back_page<B: Backend>(&mut self, backend: &mut B, address: u64, piece: &Piece) -> Result<(), Error<B::Error>> {
        let page = Piece { address, size: PAGE, ..*piece };
        self.prepare(backend, &page)?;
        let object = backend.make_frame(PAGE_BITS as u8)?;
        self.map_own(backend, object, page)
    }

    /// Maps a frame that was made for it.
    fn map_own<B: Backend>(&mut self, backend: &mut B, object: Object, piece: Piece) -> Result<(), Error<B::Error>> {
        let frame = self.frames.take(Frame { object, ..Frame::ZERO });
        let piece = Piece { frame: object.cap, owner: frame as u32 + 1, ..piece };
        let mapped = self.map_piece(backend, &piece, &mut Reserve::new());
        if self.frames.get(frame).mappings == 0 && mapped.is_err() {
            self.frames.give(frame);
            backend.destroy(object);
        }
        mapped
    }

    /// What is backed at once with an address of a lazily backed region: first address, and log2 of its size.
    fn granule(&self, region: &Region, address: u64) -> (u64, u8) {
        let mut bits = region.granule.max(PAGE_BITS as u8);
        loop {
            let (start, size) = (address & !((1 << bits) - 1), 1 << bits);
            let inside = start >= region.start && start + size <= region.end();
            if bits == PAGE_BITS as u8 || inside && self.tables.first_mapping(start, start + size).is_none() {
                return (start, bits);
            }
            bits -= 1;
        }
    }

    /// Backs every page of a range, which must lie in lazily backed regions.
    pub fn populate<B: Backend>(&mut self, backend: &mut B, start: u64, size: u64) -> Result<(), Error<B::Error>> {
        if !is_range(start, size) {
            return Err(Error::BadRange);
        }
        for page in (start..start + size).step_by(PAGE_SIZE) {
            self.back(backend, page)?;
        }
        Ok(())
    }

    /// What a page fault means.
    pub fn classify(&self, address: u64, access: Access) -> Verdict {
        if address < PAGE {
            return Verdict::Null;
        }
        let Some(region) = self.regions.find(address) else { return Verdict::NotAllocated };
        if region.kind == Kind::Guard {
            return Verdict::Guard(region);
        }
        let right = match access {
            Access::Read => MapFlags::READ,
            Access::Write => MapFlags::WRITE,
            Access::Execute => MapFlags::EXECUTE,
        };
        match self.tables.walk(address).1 {
            Entry::Mapping(mapping) if self.mappings.get(mapping).flags().contains(right) => {
                Verdict::Mapped(region, self.mappings.get(mapping).slot)
            }
            Entry::Mapping(_) => Verdict::Rights(region),
            _ if !region.flags.contains(right) => Verdict::Rights(region),
            _ if region.is_lazy() => Verdict::Lazy(region),
            _ => Verdict::NotBacked(region),
        }
    }

    /// The region in which an address lies. O(log n).
    pub fn find(&self, address: u64) -> Option<Region> {
        self.regions.find(address)
    }

    /// The first region that ends behind an address. O(log n).
    pub fn first_from(&self, address: u64) -> Option<Region> {
        self.regions.first_from(address)
    }

    /// The mapping that shows an address: its capability, the frame's, the offset in the frame in bytes, and the rights.
    /// O(1).
    pub fn shown(&self, address: u64) -> Option<(CapAddress, CapAddress, u64, MapFlags)> {
        let (_, Entry::Mapping(place)) = self.tables.walk(address) else { return None };
        let mapping = self.mappings.get(place);
        let offset = mapping.offset + (address & !(PAGE - 1)) - self.start_of(mapping);
        Some((mapping.slot, mapping.frame, offset, mapping.flags()))
    }

    /// What the books hold.
    pub fn account(&self) -> Account {
        Account {
            regions: self.regions.count(),
            tables: self.tables.count(),
            mappings: self.mappings.used(),
            frames: self.frames.used(),
        }
    }

    /// First address that a mapping shows.
    pub(crate) fn start_of(&self, mapping: &Mapping) -> u64 {
        self.tables.address(mapping.table as usize, mapping.first)
    }

    /// Bytes that a mapping shows.
    pub(crate) fn size_of(&self, mapping: &Mapping) -> u64 {
        u64::from(mapping.count) << entry_bits(u32::from(self.tables.level(mapping.table as usize)))
    }

    /// Sees to it that nothing is mapped where a piece goes, and that the books can hold it.
    fn prepare<B: Backend>(&mut self, backend: &mut B, piece: &Piece) -> Result<(), Error<B::Error>> {
        if self.tables.first_mapping(piece.address, piece.address + piece.size).is_some() {
            return Err(Error::Mapped);
        }
        let runs = runs(piece).count();
        self.ensure(backend, Need { tables: self.missing_tables(piece, runs), mappings: runs, ..Need::default() })
    }

    /// Page tables that mapping a piece takes at most.
    pub(crate) fn missing_tables(&self, piece: &Piece, runs: usize) -> usize {
        let there = usize::from(self.tables.level(self.tables.walk(piece.address).0));
        let last = piece.address + piece.size - 1;
        let crossed = |level| (last >> entry_bits(level)) - (piece.address >> entry_bits(level));
        // Each further run begins another table of its level, and perhaps one further up.
        3 - there + runs - 1 + (crossed(1) + crossed(0)) as usize
    }

    /// Maps a piece where nothing is mapped; the books have room. If it fails, nothing of the piece is mapped, unless
    /// unmapping fails too.
    pub(crate) fn map_piece<B: Backend>(
        &mut self,
        backend: &mut B,
        piece: &Piece,
        reserve: &mut Reserve,
    ) -> Result<(), Error<B::Error>> {
        for (address, size, level) in runs(piece) {
            if let Err(error) = self.map_run(backend, piece, address, size, level, reserve) {
                while let Some(mapping) = self.tables.first_mapping(piece.address, address) {
                    if self.drop_mapping(backend, mapping, Some(reserve)).is_err() {
                        break;
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Maps neighbouring entries of one table.
    fn map_run<B: Backend>(
        &mut self,
        backend: &mut B,
        piece: &Piece,
        address: u64,
        size: u64,
        level: u8,
        reserve: &mut Reserve,
    ) -> Result<(), Error<B::Error>> {
        let table = self.table(backend, address, level, reserve)?;
        let (first, count) = (Tables::index(address, level), (size >> entry_bits(u32::from(level))) as u16);
        if level < 3 {
            for entry in first..first + count {
                while let Some(object) = self.tables.take_empty(table, entry) {
                    backend.destroy(object);
                }
            }
        }
        let slot = match reserve.take_slot() {
            Some(slot) => slot,
            None => backend.take_slot()?,
        };
        let offset = piece.offset + (address - piece.address);
        let run =
            Run { frame: piece.frame, offset, table: self.tables.cap(table), first, count, flags: piece.flags, slot };
        if let Err(error) = backend.map(&run) {
            reserve.keep_slot(backend, slot);
            return Err(Error::Backend(error));
        }
        let flags = piece.flags.bits() as u8;
        let mapping = Mapping {
            slot,
            frame: piece.frame,
            offset,
            table: table as u32,
            owner: piece.owner,
            first,
            count,
            flags,
            made: flags,
            unused: 0,
        };
        let mapping = self.mappings.take(mapping);
        self.tables.cover(table, first, count, mapping);
        if let Some(frame) = piece.owner.checked_sub(1) {
            self.frames.get_mut(frame as usize).mappings += 1;
        }
        Ok(())
    }

    /// The table of `level` that shows an address, made if need be. The books have room.
    fn table<B: Backend>(
        &mut self,
        backend: &mut B,
        address: u64,
        level: u8,
        reserve: &mut Reserve,
    ) -> Result<usize, Error<B::Error>> {
        let mut table = ROOT;
        while self.tables.level(table) < level {
            let index = Tables::index(address, self.tables.level(table));
            table = match self.tables.entry(table, index) {
                Entry::Table(next) => next,
                Entry::Mapping(_) => return Err(Error::Mapped),
                Entry::Empty => {
                    let next = self.tables.level(table) + 1;
                    let object = match reserve.take_table(next) {
                        Some(object) => object,
                        None => backend.make_table(next)?,
                    };
                    if let Err(error) = backend.hang(object.cap, self.tables.cap(table), index) {
                        backend.destroy(object);
                        return Err(Error::Backend(error));
                    }
                    self.tables.add(table, index, object)
                }
            };
        }
        Ok(table)
    }

    /// Unmaps a whole mapping, and lets a frame go that was made for it and is shown nowhere else. Its slot goes to the
    /// reserve, or back.
    pub(crate) fn drop_mapping<B: Backend>(
        &mut self,
        backend: &mut B,
        place: usize,
        reserve: Option<&mut Reserve>,
    ) -> Result<(), Error<B::Error>> {
        let mapping = *self.mappings.get(place);
        backend.unmap(mapping.slot)?;
        match reserve {
            Some(reserve) => reserve.keep_slot(backend, mapping.slot),
            None => backend.give_slot(mapping.slot),
        }
        self.tables.uncover(mapping.table as usize, mapping.first, mapping.count);
        self.mappings.give(place);
        self.release(backend, mapping.owner);
        Ok(())
    }

    /// One mapping fewer shows a frame.
    pub(crate) fn release<B: Backend>(&mut self, backend: &mut B, owner: u32) {
        let Some(place) = owner.checked_sub(1) else { return };
        let frame = self.frames.get_mut(place as usize);
        frame.mappings -= 1;
        if frame.mappings == 0 {
            let object = frame.object;
            self.frames.give(place as usize);
            backend.destroy(object);
        }
    }

    /// One mapping more will show a frame, which so stays while its mappings are replaced.
    pub(crate) fn hold(&mut self, owner: u32) {
        if let Some(place) = owner.checked_sub(1) {
            self.frames.get_mut(place as usize).mappings += 1;
        }
    }

    /// Panics unless the books agree with each other.
    pub fn check_invariants(&self) {
        self.regions.check_invariants();
        self.mappings.check_invariants();
        self.frames.check_invariants();
        let mut mappings = 0;
        let mut owned = 0;
        self.tables.check_invariants(|table, first, count, place| {
            mappings += 1;
            let mapping = self.mappings.get(place);
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
        let parts = |place: usize| u64::from(self.frames.get(place).mappings);
        let counted: u64 = (0..self.frames.used() + self.frames.left()).map(parts).sum();
        assert_eq!(counted, owned, "a frame counts its mappings");
    }
}

impl Default for Paging {
    fn default() -> Self {
        Paging::new()
    }
}

/// What is kept ready while a mapping is replaced, so that it cannot fail for want of it.
#[derive(Debug)]
pub(crate) struct Reserve {
    slots: [CapAddress; SLOTS],
    slot_count: usize,
    tables: [(u8, Object); TABLES],
    table_count: usize,
    /// Slots that become free are kept.
    keeps: bool,
}

/// Slots for the rests of a mapping: to each side of what goes, pages of three sizes; and one.
const SLOTS: usize = 7 + 6;
/// Tables for them: two levels on each side.
const TABLES: usize = 4;

impl Reserve {
    /// Nothing.
    pub(crate) const fn new() -> Reserve {
        Reserve {
            slots: [CapAddress::NULL; SLOTS],
            slot_count: 0,
            tables: [(0, Object::NONE); TABLES],
            table_count: 0,
            keeps: false,
        }
    }

    /// Takes slots and tables from the backend; those of the tables by level from 2 on. If it fails, nothing is taken.
    pub(crate) fn fill<B: Backend>(
        &mut self,
        backend: &mut B,
        slots: usize,
        tables: [usize; 2],
    ) -> Result<(), B::Error> {
        self.keeps = true;
        for _ in 0..slots.min(SLOTS) {
            match backend.take_slot() {
                Ok(slot) => self.keep_slot(backend, slot),
                Err(error) => {
                    self.empty(backend);
                    return Err(error);
                }
            }
        }
        for (level, count) in [2, 3].into_iter().zip(tables) {
            for _ in 0..count {
                match backend.make_table(level) {
                    Ok(object) => self.keep_table(backend, level, object),
                    Err(error) => {
                        self.empty(backend);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives everything back.
    pub(crate) fn empty<B: Backend>(&mut self, backend: &mut B) {
        self.keeps = false;
        while let Some(slot) = self.take_slot() {
            backend.give_slot(slot);
        }
        while self.table_count > 0 {
            self.table_count -= 1;
            backend.destroy(self.tables[self.table_count].1);
        }
    }

    fn take_slot(&mut self) -> Option<CapAddress> {
        self.slot_count = self.slot_count.checked_sub(1)?;
        Some(self.slots[self.slot_count])
    }

    /// Takes in a slot that is empty.
    pub(crate) fn keep_slot<B: Backend>(&mut self, backend: &mut B, slot: CapAddress) {
        if self.keeps && self.slot_count < SLOTS {
            self.slots[self.slot_count] = slot;
            self.slot_count += 1;
        } else {
            backend.give_slot(slot);
        }
    }

    fn keep_table<B: Backend>(&mut self, backend: &mut B, level: u8, object: Object) {
        if self.table_count < TABLES {
            self.tables[self.table_count] = (level, object);
            self.table_count += 1;
        } else {
            backend.destroy(object);
        }
    }

    fn take_table(&mut self, level: u8) -> Option<Object> {
        let place = self.tables[..self.table_count].iter().position(|(has, _)| *has == level)?;
        self.table_count -= 1;
        self.tables.swap(place, self.table_count);
        Some(self.tables[self.table_count].1)
    }
}

/// Whether a range is whole pages that a program can have.
pub(crate) fn is_range(start: u64, size: u64) -> bool {
    let whole = start.is_multiple_of(PAGE) && size.is_multiple_of(PAGE) && size > 0;
    whole && start.checked_add(size).is_some_and(|end| end <= USER_END)
}

/// Cuts a piece into runs of entries of one table: address, bytes, level. The largest pages that fit are used.
pub(crate) fn runs(piece: &Piece) -> impl Iterator<Item = (u64, u64, u8)> + use<> {
    let end = piece.address + piece.size;
    let (start, offset) = (piece.address, piece.offset);
    let mut address = start;
    core::iter::from_fn(move || {
        if address >= end {
            return None;
        }
        let place = address | (offset + (address - start));
        let fits = |level: u8| {
            let bits = entry_bits(u32::from(level));
            place.trailing_zeros() >= bits && (end - address) >> bits > 0
        };
        let level = [1, 2].into_iter().find(|level| fits(*level)).unwrap_or(3);
        let bits = entry_bits(u32::from(level));
        let in_table = (TABLE_ENTRIES as u64 - u64::from(Tables::index(address, level))) << bits;
        let size = in_table.min((end - address) >> bits << bits);
        let run = (address, size, level);
        address += size;
        Some(run)
    })
}
