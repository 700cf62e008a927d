//! The manager behind the functions of [`memory`](super): slots, untyped pieces, addresses and page tables of this
//! process, in one place because each needs the others.
//!
//! It lies in zeroed static memory and uses no heap, because the heap grows with its help. Nothing in it nests: making
//! an object takes a slot and a piece; a piece may need a block from the memory server, whose capability needs one more
//! slot; a new node of slots needs a block and two slots. So the last few slots are kept back for that.

use tench_abi::layout::{address, slot};
use tench_abi::memory::{MapFlags, TABLE_ENTRIES, entry_bits};
use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind};
use tench_mem_client::Mem;
use tench_sys::{Cap, CapNode, Frame, Mapping, OWN_SPACE, PageTable, Place, Untyped, offer_slots, offered_slots};

use super::Error;
use super::pieces::{Piece, Pieces};
use super::ranges::Ranges;
use super::slots::SlotMap;
use super::tables::Tables;

/// Slots that only the manager itself may use.
const RESERVED_SLOTS: usize = 4;
/// Log2 of the smallest block that the memory server is asked for: room for the first page tables and a small heap.
const BLOCK_BITS: u8 = 16;
/// Log2 of bytes of a second-level node.
const NODE_SIZE_BITS: u8 = (NODE_BITS + SLOT_SIZE.trailing_zeros()) as u8;
/// Log2 of the largest frame that is mapped whole.
pub const MAX_REGION_BITS: u8 = 30;

/// Where the heap lies.
pub const HEAP: (u64, u64) = (address::DYNAMIC, address::DYNAMIC + (1 << 42));

/// All of it.
pub struct Manager {
    slots: SlotMap,
    pieces: Pieces,
    ranges: Ranges,
    tables: Tables,
    ready: bool,
}

/// A frame with its memory and its place in the address space.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// First address.
    pub address: u64,
    /// Log2 of its size.
    pub bits: u8,
    /// The mapping.
    pub mapping: Cap<Mapping>,
    /// The range to give back.
    range: (u64, u64),
}

impl Manager {
    /// As it lies in zeroed memory.
    pub const fn new() -> Manager {
        Manager {
            slots: SlotMap::new(),
            pieces: Pieces::new(),
            ranges: Ranges::new(),
            tables: Tables::new(),
            ready: false,
        }
    }

    /// Fills in what is free. The slots of the first process from `BOOT_UNTYPED` on are not: the kernel filled them.
    pub fn initialise(&mut self, is_first_process: bool) {
        if !self.ready {
            let end = if is_first_process { slot::BOOT_UNTYPED } else { CapAddress::new(1, 0) };
            self.slots.add_range(slot::FIRST_FREE, end);
            self.ranges.free(HEAP.1, address::DYNAMIC_END - HEAP.1);
            self.ready = true;
        }
    }

    /// Takes a free slot.
    pub fn slot(&mut self) -> Result<CapAddress, Error> {
        self.keep_reserve(1)?;
        self.slots.take().ok_or(Error::NoSlots)
    }

    /// Takes slots side by side in one node.
    pub fn slot_run(&mut self, count: usize) -> Result<CapAddress, Error> {
        self.keep_reserve(count)?;
        if let Some(first) = self.slots.take_run(count) {
            return Ok(first);
        }
        self.grow_slots()?;
        self.slots.take_run(count).ok_or(Error::NoSlots)
    }

    /// Gives a slot back. It is empty.
    pub fn free_slot(&mut self, slot: CapAddress) {
        self.slots.free(slot);
    }

    /// Sees to it that `count` slots can be taken without touching those kept back.
    fn keep_reserve(&mut self, count: usize) -> Result<(), Error> {
        if self.slots.count() < RESERVED_SLOTS + count { self.grow_slots() } else { Ok(()) }
    }

    /// Hangs one more node into the root of the capability space.
    fn grow_slots(&mut self) -> Result<(), Error> {
        let index = self.slots.next_node();
        let root = Cap::<CapNode>::new(slot::CSPACE);
        let entries = 1 << root.identify()?.size_bits.saturating_sub(SLOT_SIZE.trailing_zeros());
        if index >= entries {
            return Err(Error::NoSlots);
        }
        let place = self.slots.take().ok_or(Error::NoSlots)?;
        let piece = match self.piece(NODE_SIZE_BITS) {
            Ok(piece) => piece,
            Err(error) => {
                self.slots.free(place);
                return Err(error);
            }
        };
        let installed = retype(&piece, Kind::CapNode, u64::from(NODE_BITS), place)
            .and_then(|()| Ok(root.install_node(index, Cap::new(place))?));
        if installed.is_err() {
            // Nothing was made, or it goes again; an empty slot is no harm either.
            let _ = Cap::<CapNode>::new(place).delete();
            self.give_back(piece);
        }
        self.slots.free(place);
        installed?;
        self.slots.add_node().map(|_| ()).ok_or(Error::NoSlots)
    }

    /// Takes untyped memory, from the memory server if need be.
    fn piece(&mut self, bits: u8) -> Result<Piece, Error> {
        if let Some(piece) = self.pieces.take(bits) {
            return Ok(piece);
        }
        let block = self.request_block(bits.max(BLOCK_BITS))?;
        self.pieces.push(block);
        self.pieces.take(bits).ok_or(Error::NoSlots)
    }

    /// Adds untyped memory that the process got in another way.
    pub fn donate(&mut self, untyped: Cap<Untyped>, bits: u8) {
        self.pieces.push(Piece::block(untyped.address(), bits));
    }

    /// Gives untyped memory back. Nothing is made of it any more.
    fn give_back(&mut self, piece: Piece) {
        let Some(block) = self.pieces.free(piece) else { return };
        // One free block stays, so that whoever makes and destroys in turn does not ask the server each time.
        if !self.pieces.has_block() || self.return_block(&block).is_err() {
            self.pieces.push(block);
        }
    }

    /// Asks the memory server for a block.
    fn request_block(&mut self, bits: u8) -> Result<Piece, Error> {
        let place = self.slots.take().ok_or(Error::NoSlots)?;
        // The program may be about to receive something in slots that it offered.
        let offered = offered_slots();
        let block = Mem::STANDARD.allocate(u32::from(bits), place);
        offer_slots(&offered);
        match block {
            Ok(block) => Ok(Piece::block(place, block.size_bits as u8)),
            Err(failure) => {
                self.slots.free(place);
                Err(Error::Memory(failure))
            }
        }
    }

    /// Gives a block back to the memory server, which deletes the capability.
    fn return_block(&mut self, block: &Piece) -> Result<(), Error> {
        let physical = Cap::<Untyped>::new(block.untyped).identify()?.address;
        Mem::STANDARD.free(physical).map_err(Error::Memory)?;
        self.slots.free(block.untyped);
        Ok(())
    }

    /// Makes an object. `size` as `Retype` understands it.
    pub fn make(&mut self, kind: Kind, size: u64) -> Result<(CapAddress, Piece), Error> {
        let bits = kind.object_bits(size).ok_or(Error::BadSize)?;
        let place = self.slot()?;
        let piece = match self.piece(bits as u8) {
            Ok(piece) => piece,
            Err(error) => {
                self.slots.free(place);
                return Err(error);
            }
        };
        if let Err(error) = retype(&piece, kind, size, place) {
            self.give_back(piece);
            self.slots.free(place);
            return Err(error);
        }
        Ok((place, piece))
    }

    /// Destroys an object that `make` made, and every capability to it.
    pub fn destroy(&mut self, place: CapAddress, piece: Piece) -> Result<(), Error> {
        OWN_SPACE.revoke_at(place)?;
        OWN_SPACE.delete_at(place)?;
        self.slots.free(place);
        self.give_back(piece);
        Ok(())
    }

    /// Maps a whole frame of `1 << bits` bytes at a free place, with as much unmapped before it if `guarded`.
    pub fn map(&mut self, frame: Cap<Frame>, bits: u8, flags: MapFlags, guarded: bool) -> Result<Mapped, Error> {
        if !(12..=MAX_REGION_BITS).contains(&bits) {
            return Err(Error::BadSize);
        }
        let size = 1 << bits;
        // Aligned to its size, so that it lies in one table.
        let range = if guarded { 2 * size } else { size };
        let start = self.ranges.take(range, size).ok_or(Error::NoAddresses)?;
        let address = start + range - size;
        match self.map_at(frame, bits, address, flags) {
            Ok(mapping) => Ok(Mapped { address, bits, mapping, range: (start, range) }),
            Err(error) => {
                self.ranges.free(start, range);
                Err(error)
            }
        }
    }

    /// Maps a whole frame of `1 << bits` bytes at an address that is a multiple of its size.
    pub fn map_at(
        &mut self,
        frame: Cap<Frame>,
        bits: u8,
        address: u64,
        flags: MapFlags,
    ) -> Result<Cap<Mapping>, Error> {
        // A table of level 3 shows 2 MiB; what is larger needs no table of that level.
        let level = if u32::from(bits) < entry_bits(2) { 3 } else { 2 };
        let table = self.table(address, level)?;
        let first = (address >> entry_bits(level)) % TABLE_ENTRIES as u64;
        let count = 1 << (u32::from(bits) - entry_bits(level));
        let place = self.slot()?;
        match frame.map(table, first, count, 0, flags, place) {
            Ok(mapping) => Ok(mapping),
            Err(error) => {
                self.slots.free(place);
                Err(Error::Kernel(error))
            }
        }
    }

    /// Unmaps what `map` mapped.
    pub fn unmap(&mut self, mapped: &Mapped) -> Result<(), Error> {
        mapped.mapping.delete()?;
        self.slots.free(mapped.mapping.address());
        self.ranges.free(mapped.range.0, mapped.range.1);
        Ok(())
    }

    /// The table of `level` (1 to 3) that shows `address`, made if need be.
    fn table(&mut self, address: u64, level: u32) -> Result<Cap<PageTable>, Error> {
        if level == 0 {
            return Ok(Cap::new(slot::VSPACE));
        }
        if let Some(table) = self.tables.find(address, level) {
            return Ok(table);
        }
        let parent = self.table(address, level - 1)?;
        if self.tables.is_full() {
            return Err(Error::TooManyTables);
        }
        let (place, piece) = self.make(Kind::PageTable, u64::from(level))?;
        let table = Cap::<PageTable>::new(place);
        let entry = (address >> entry_bits(level - 1)) % TABLE_ENTRIES as u64;
        if let Err(error) = table.hang(parent, entry) {
            self.destroy(place, piece)?;
            return Err(Error::Kernel(error));
        }
        self.tables.push(address, level, table);
        Ok(table)
    }
}

/// Makes one object of a piece.
fn retype(piece: &Piece, kind: Kind, size: u64, place: CapAddress) -> Result<(), Error> {
    let untyped = Cap::<Untyped>::new(piece.untyped);
    untyped.retype_many(kind, size, 1, Place::At(piece.offset), OWN_SPACE, place)?;
    Ok(())
}
