//! Slots, untyped memory and kernel objects of this process.
//!
//! Nothing here nests: making an object takes a slot and a piece; a piece may need a block from the memory server,
//! whose capability needs one more slot; a new node of slots needs a block and two slots. So the last few slots are
//! kept back for that, and nodes for free pieces are kept back likewise. And nothing here touches memory that comes on
//! demand, or leaves another message than before in the message area.

use tench_abi::layout::slot;
use tench_abi::memory::{MapFlags, PAGE_BITS};
use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind};
use tench_mem_client::Mem;
use tench_paging::{Backend, Object, Run};
use tench_slots::SlotMap;
use tench_sys::{Cap, CapNode, Frame, Mapping, OWN_SPACE, PageTable, Place, Untyped, offer_slots, offered_slots};

use super::Error;
use super::ahead::{AHEAD, Ahead, MEMORY_BITS};
use super::books::Books;
use super::pieces::{Piece, Pieces};

/// Slots that only this module itself may use.
const RESERVED_SLOTS: usize = 4;
/// Log2 of the smallest block that the memory server is asked for: room for the first page tables and a small heap.
const BLOCK_BITS: u8 = 16;
/// Log2 of the smallest block that is asked for after some requests.
const LARGE_BLOCK_BITS: u8 = 18;
/// As many requests are for small blocks.
const FEW_REQUESTS: u64 = 4;
/// Log2 of bytes of a second-level node.
const NODE_SIZE_BITS: u8 = (NODE_BITS + SLOT_SIZE.trailing_zeros()) as u8;

/// Free pieces whose nodes are there from the start: enough for a small program.
const PIECES: usize = 256;
/// The same of pieces that do not come back. There is one of each size at most, because only a size of which there is
/// none asks for a block.
const LASTING_PIECES: usize = 128;

/// All of it.
pub struct Resources {
    slots: SlotMap,
    pieces: Pieces<PIECES>,
    /// Blocks for what stays until the process ends, so that it does not keep others from going back.
    lasting: Pieces<LASTING_PIECES>,
    books: Books,
    /// Frames for pages that will be needed.
    ahead: Ahead,
    /// Blocks that were asked for.
    requests: u64,
}

impl Resources {
    /// As it lies in zeroed memory.
    pub(super) const fn new() -> Resources {
        Resources {
            slots: SlotMap::new(),
            pieces: Pieces::new(),
            lasting: Pieces::new(),
            books: Books::new(),
            ahead: Ahead::new(),
            requests: 0,
        }
    }

    /// Fills in what is free. The slots of the first process from `BOOT_UNTYPED` on are not: the kernel filled them.
    pub(super) fn initialise(&mut self, is_first_process: bool) {
        let end = if is_first_process { slot::BOOT_UNTYPED } else { CapAddress::new(1, 0) };
        self.slots.add_range(slot::FIRST_FREE, end);
    }

    /// How often the memory server was asked for a block.
    pub(super) const fn requests(&self) -> u64 {
        self.requests
    }

    /// Takes a free slot.
    pub(super) fn slot(&mut self) -> Result<CapAddress, Error> {
        self.keep_reserve(1)?;
        self.slots.take().ok_or(Error::NoSlots)
    }

    /// Takes slots side by side in one node.
    pub(super) fn slot_run(&mut self, count: usize) -> Result<CapAddress, Error> {
        self.keep_reserve(count)?;
        if let Some(first) = self.slots.take_run(count) {
            return Ok(first);
        }
        self.grow_slots()?;
        self.slots.take_run(count).ok_or(Error::NoSlots)
    }

    /// Gives a slot back. It is empty.
    pub(super) fn free_slot(&mut self, slot: CapAddress) {
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
        let piece = match self.lasting_piece(NODE_SIZE_BITS) {
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
            self.give_back_lasting(piece);
        }
        self.slots.free(place);
        installed?;
        self.slots.add_node().map(|_| ()).ok_or(Error::NoSlots)
    }

    /// Takes untyped memory, from the memory server if need be.
    fn piece(&mut self, bits: u8) -> Result<Piece, Error> {
        if self.pieces.is_short() {
            self.grow_pieces()?;
        }
        self.piece_at_hand(bits)
    }

    /// The same without making room in the books for it, of which some is kept back.
    fn piece_at_hand(&mut self, bits: u8) -> Result<Piece, Error> {
        if let Some(piece) = self.pieces.take(bits) {
            return Ok(piece);
        }
        if self.destroy_kept(usize::MAX)
            && let Some(piece) = self.pieces.take(bits)
        {
            return Ok(piece);
        }
        if !self.pieces.has_room() {
            return Err(Error::NoBooks);
        }
        // A process that has much will want more; but what is needed will do.
        let wanted = if self.requests < FEW_REQUESTS { BLOCK_BITS } else { LARGE_BLOCK_BITS };
        let mut refusal = Error::NoBooks;
        for bits in [bits.max(wanted), bits.max(BLOCK_BITS), bits] {
            match self.request_block(bits) {
                Ok(block) => {
                    self.pieces.push(block);
                    break;
                }
                Err(error) => refusal = error,
            }
        }
        if let Some(piece) = self.pieces.take(bits) {
            return Ok(piece);
        }
        // Perhaps it was only kept for pages.
        self.release_ahead();
        self.pieces.take(bits).ok_or(refusal)
    }

    /// Makes room for more free pieces.
    fn grow_pieces(&mut self) -> Result<(), Error> {
        let count = self.pieces.array().next_chunk().ok_or(Error::NoBooks)?;
        match Backend::grow(self, count) {
            Some(nodes) => self.pieces.array().add(nodes),
            None if self.pieces.has_room() => {}
            None => return Err(Error::NoBooks),
        }
        Ok(())
    }

    /// Takes untyped memory for what stays until the process ends. In the first process, all memory is what it was
    /// given.
    fn lasting_piece(&mut self, bits: u8) -> Result<Piece, Error> {
        if let Some(piece) = self.lasting.take_for_ever(bits) {
            return Ok(piece);
        }
        if let Ok(block) = self.request_block(bits.max(BLOCK_BITS)) {
            self.lasting.push(block);
        }
        self.lasting.take_for_ever(bits).map_or_else(|| self.piece_at_hand(bits), Ok)
    }

    /// Gives back what was taken for something that stays.
    fn give_back_lasting(&mut self, piece: Piece) {
        if let Some(block) = self.lasting.put_back(piece) {
            self.lasting.push(block);
        }
    }

    /// Makes an object that stays until the process ends. Otherwise as [`make`](Self::make).
    pub(super) fn make_lasting(&mut self, kind: Kind, size: u64) -> Result<CapAddress, Error> {
        let bits = kind.object_bits(size).ok_or(Error::BadSize)?;
        let place = self.slot()?;
        let made = self
            .lasting_piece(bits as u8)
            .and_then(|piece| retype(&piece, kind, size, place).inspect_err(|_| self.give_back_lasting(piece)));
        if let Err(error) = made {
            self.free_slot(place);
            return Err(error);
        }
        Ok(place)
    }

    /// Adds untyped memory that the process got in another way.
    pub(super) fn donate(&mut self, untyped: Cap<Untyped>, bits: u8) -> Result<(), Error> {
        if self.pieces.is_short() {
            self.grow_pieces()?;
        }
        self.pieces.push(Piece::block(untyped.address(), 0, bits));
        Ok(())
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
        // This may be a page fault, and the program about to send something, or to receive in slots that it offered.
        // The request and its answer have few words, which travel in registers, and a capability comes but none goes.
        let offered = offered_slots();
        self.requests += 1;
        let block = Mem::STANDARD.allocate(u32::from(bits), place);
        offer_slots(&offered);
        match block {
            Ok(block) => Ok(Piece::block(place, block.number, block.size_bits as u8)),
            Err(failure) => {
                self.slots.free(place);
                Err(Error::Memory(failure))
            }
        }
    }

    /// Gives a block back to the memory server, which deletes the capability.
    fn return_block(&mut self, block: &Piece) -> Result<(), Error> {
        Mem::STANDARD.free(block.number).map_err(Error::Memory)?;
        self.slots.free(block.untyped);
        Ok(())
    }

    /// Makes an object. `size` as `Retype` understands it.
    pub(super) fn make(&mut self, kind: Kind, size: u64) -> Result<(CapAddress, Piece), Error> {
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

    /// Makes a frame of one page, or takes one that was made ahead.
    fn make_page(&mut self) -> Result<(CapAddress, Piece), Error> {
        if self.ahead.need() {
            // If they cannot be had, one may.
            let _ = self.make_ahead();
        }
        match self.ahead.take() {
            Some(page) => Ok(page),
            None => self.make(Kind::Frame, u64::from(PAGE_BITS)),
        }
    }

    /// Makes frames ahead of need.
    fn make_ahead(&mut self) -> Result<(), Error> {
        self.keep_reserve(AHEAD as usize)?;
        let slot = self.slots.take_run_nearby(AHEAD as usize).ok_or(Error::NoSlots)?;
        let made = self.piece(MEMORY_BITS).and_then(|memory| {
            let untyped = Cap::<Untyped>::new(memory.untyped);
            let (size, count) = (u64::from(PAGE_BITS), u64::from(AHEAD));
            match untyped.retype_many(Kind::Frame, size, count, Place::At(memory.offset), OWN_SPACE, slot) {
                Ok(_) => Ok(memory),
                Err(error) => {
                    self.give_back(memory);
                    Err(Error::Kernel(error))
                }
            }
        });
        match made {
            Ok(memory) => {
                self.pieces.divide(AHEAD as usize);
                self.ahead.add(memory, slot);
                Ok(())
            }
            Err(error) => {
                (slot.0..slot.0 + AHEAD).for_each(|slot| self.slots.free(CapAddress(slot)));
                Err(error)
            }
        }
    }

    /// Destroys the frames that were made ahead and are left.
    pub(super) fn release_ahead(&mut self) {
        while let Some((slot, memory)) = self.ahead.take() {
            // What the kernel does not let go stays; there is nobody to tell.
            let _ = self.destroy(slot, memory);
        }
    }

    /// Destroys an object that `make` made, and every capability to it. If other cores have it, they are asked for it
    /// by that, and it is destroyed when they do not have it any more: until then its slot and memory are kept.
    pub(super) fn destroy(&mut self, place: CapAddress, piece: Piece) -> Result<(), Error> {
        match self.try_to_destroy(place, piece) {
            Err(tench_abi::Error::ForeignCopies) => {
                // For each that comes, two may go: so there are no more of them than there have to be.
                self.destroy_kept(2);
                self.pieces.keep(place, piece);
                Ok(())
            }
            other => Ok(other?),
        }
    }

    fn try_to_destroy(&mut self, place: CapAddress, piece: Piece) -> Result<(), tench_abi::Error> {
        OWN_SPACE.revoke_at(place)?;
        OWN_SPACE.delete_at(place)?;
        self.was_destroyed(place, piece);
        Ok(())
    }

    /// Tries to destroy so many of those that other cores had, or all. Answers whether any was.
    fn destroy_kept(&mut self, most: usize) -> bool {
        let mut is_any = false;
        for _ in 0..self.pieces.kept().min(most) {
            let Some((place, piece)) = self.pieces.take_kept() else { break };
            match self.try_to_destroy(place, piece) {
                Ok(()) => is_any = true,
                Err(_) => self.pieces.keep(place, piece),
            }
        }
        is_any
    }

    /// An object is gone.
    pub(super) fn was_destroyed(&mut self, place: CapAddress, piece: Piece) {
        self.slots.free(place);
        self.give_back(piece);
    }
}

impl Backend for Resources {
    type Error = Error;

    fn make_frame(&mut self, bits: u8) -> Result<Object, Error> {
        let (cap, piece) =
            if u32::from(bits) == PAGE_BITS { self.make_page()? } else { self.make(Kind::Frame, u64::from(bits))? };
        Ok(Object { cap, token: piece.to_words() })
    }

    fn make_table(&mut self, level: u8) -> Result<Object, Error> {
        let (cap, piece) = self.make(Kind::PageTable, u64::from(level))?;
        Ok(Object { cap, token: piece.to_words() })
    }

    fn destroy(&mut self, object: Object) {
        // What the kernel does not let go stays; there is nobody to tell.
        let _ = Resources::destroy(self, object.cap, Piece::from_words(object.token));
    }

    fn hang(&mut self, table: CapAddress, parent: CapAddress, entry: u16) -> Result<(), Error> {
        Ok(Cap::<PageTable>::new(table).hang(Cap::new(parent), u64::from(entry))?)
    }

    fn take_slot(&mut self) -> Result<CapAddress, Error> {
        self.slot()
    }

    fn give_slot(&mut self, slot: CapAddress) {
        self.free_slot(slot);
    }

    fn map(&mut self, run: &Run) -> Result<(), Error> {
        let frame = Cap::<Frame>::new(run.frame);
        let (first, count) = (u64::from(run.first), u64::from(run.count));
        frame.map(Cap::new(run.table), first, count, run.offset, run.flags, run.slot)?;
        Ok(())
    }

    fn protect(&mut self, mapping: CapAddress, flags: MapFlags) -> Result<(), Error> {
        Ok(Cap::<Mapping>::new(mapping).protect(flags)?)
    }

    fn unmap(&mut self, mapping: CapAddress) -> Result<(), Error> {
        // The frame may have gone, and its mappings with it.
        match Cap::<Mapping>::new(mapping).delete() {
            Ok(_) | Err(tench_abi::Error::InvalidCapability) => Ok(()),
            Err(error) => Err(Error::Kernel(error)),
        }
    }

    fn grow<T: Copy + Default + 'static>(&mut self, count: usize) -> Option<&'static mut [T]> {
        let place = Books::grow(self, size_of::<T>() * count).ok()?;
        // SAFETY: the memory is mapped, readable and writable, for ever, large enough, aligned to a page, and nobody
        // else knows of it.
        Some(unsafe { super::books::nodes(place, count) })
    }
}

impl Resources {
    /// Where the books grow.
    pub(super) const fn books(&mut self) -> &mut Books {
        &mut self.books
    }
}

/// Makes one object of a piece.
fn retype(piece: &Piece, kind: Kind, size: u64, place: CapAddress) -> Result<(), Error> {
    let untyped = Cap::<Untyped>::new(piece.untyped);
    untyped.retype_many(kind, size, 1, Place::At(piece.offset), OWN_SPACE, place)?;
    Ok(())
}
