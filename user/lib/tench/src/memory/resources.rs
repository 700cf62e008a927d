//! Slots, untyped memory and kernel objects of this process.
//!
//! Operations here do not recurse without bound: making an object takes a slot and a chunk; a chunk may need a block
//! from the memory server, whose capability needs one more slot; a new node of slots needs a block and two slots. So
//! the last few slots, and nodes for free chunks, are reserved for that. No operation here touches memory that comes on
//! demand, or changes the message in the IPC buffer.

use tench_abi::layout::slot;
use tench_abi::memory::{MapFlags, PAGE_BITS};
use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind};
use tench_mem_interface::Mem;
use tench_paging::{Backend, Object, Run};
use tench_slots::{MAX_NODES, Part, SlotMap};
use tench_sys::{Cap, CapNode, Frame, Mapping, OWN_CSPACE, PageTable, Placement, Untyped, offer_slots, offered_slots};

use super::Error;
use super::chunks::{Chunk, FreeChunks};
use super::frame_cache::{BATCH, FrameCache, MEMORY_BITS};
use super::metadata::Metadata;

/// Number of slots reserved for this module itself.
const RESERVED_SLOTS: usize = 4;
/// Log2 of the smallest block, in bytes, requested from the memory server: room for the first page tables and a small
/// heap.
const BLOCK_BITS: u8 = 16;
/// Log2 of the smallest block, in bytes, requested after the first [`FEW_REQUESTS`].
const LARGE_BLOCK_BITS: u8 = 18;
/// Number of requests for small blocks.
const FEW_REQUESTS: u64 = 4;
/// Log2 of the size of a second-level node in bytes.
const NODE_SIZE_BITS: u8 = (NODE_BITS + SLOT_SIZE.trailing_zeros()) as u8;

/// Number of nodes before the map of slots is full from which on each is an occasion to extend it.
const OCCASIONS: usize = 64;

/// Number of free chunks whose nodes exist from the start: enough for a small program.
const CHUNKS: usize = 256;
/// Number of free chunks for permanent objects whose nodes exist from the start. There is at most one of each size,
/// because only a size of which there is none requests a block.
const LASTING_CHUNKS: usize = 128;

/// The resources of this process.
pub struct Resources {
    slots: SlotMap,
    chunks: FreeChunks<CHUNKS>,
    /// Blocks for permanent objects, separate so that these do not keep other blocks from being returned.
    lasting: FreeChunks<LASTING_CHUNKS>,
    metadata: Metadata,
    /// The frame cache.
    frame_cache: FrameCache,
    /// Number of blocks requested.
    requests: u64,
}

impl Resources {
    /// Returns the initial value, which is the same as zeroed memory.
    pub(super) const fn new() -> Resources {
        Resources {
            slots: SlotMap::new(),
            chunks: FreeChunks::new(),
            lasting: FreeChunks::new(),
            metadata: Metadata::new(),
            frame_cache: FrameCache::new(),
            requests: 0,
        }
    }

    /// Enters the free slots. In the first process those from `BOOT_UNTYPED` on are not free: the kernel filled them.
    pub(super) fn initialise(&mut self, is_first_process: bool) {
        let end = if is_first_process { slot::BOOT_UNTYPED } else { CapAddress::new(1, 0) };
        self.slots.add_range(slot::FIRST_FREE, end);
    }

    /// Returns how often the memory server was asked for a block.
    pub(super) const fn requests(&self) -> u64 {
        self.requests
    }

    /// Takes a free slot.
    pub(super) fn slot(&mut self) -> Result<CapAddress, Error> {
        self.keep_reserve(1)?;
        self.slots.take().ok_or(Error::NoSlots)
    }

    /// Takes adjacent slots in one node.
    pub(super) fn slot_run(&mut self, count: usize) -> Result<CapAddress, Error> {
        self.keep_reserve(count)?;
        if let Some(first) = self.slots.take_run(count) {
            return Ok(first);
        }
        self.grow_slots()?;
        self.slots.take_run(count).ok_or(Error::NoSlots)
    }

    /// Frees an empty slot.
    pub(super) fn free_slot(&mut self, slot: CapAddress) {
        self.slots.free(slot);
    }

    /// Ensures that `count` slots can be taken without touching the reserved ones.
    fn keep_reserve(&mut self, count: usize) -> Result<(), Error> {
        if self.slots.count() < RESERVED_SLOTS + count { self.grow_slots() } else { Ok(()) }
    }

    /// Installs one more node in the root of the CSpace.
    fn grow_slots(&mut self) -> Result<(), Error> {
        let index = self.slots.next_node();
        let root = Cap::<CapNode>::new(slot::CSPACE);
        let entries = 1usize << root.identify()?.size_bits.saturating_sub(SLOT_SIZE.trailing_zeros());
        if index as usize >= entries.min(self.slots.capacity()) {
            return Err(Error::NoSlots);
        }
        let slot = self.slots.take().ok_or(Error::NoSlots)?;
        let chunk = match self.take_lasting_chunk(NODE_SIZE_BITS) {
            Ok(chunk) => chunk,
            Err(error) => {
                self.slots.free(slot);
                return Err(error);
            }
        };
        let installed = retype(&chunk, Kind::CapNode, u64::from(NODE_BITS), slot)
            .and_then(|()| Ok(root.install_node(index, Cap::new(slot))?));
        if installed.is_err() {
            // The node was not made or is not needed; deleting from an empty slot does no harm.
            let _ = Cap::<CapNode>::new(slot).delete();
            self.give_back_lasting(chunk);
        }
        self.slots.free(slot);
        installed?;
        self.slots.add_node().ok_or(Error::NoSlots)?;
        if entries > MAX_NODES && self.slots.next_node() as usize + OCCASIONS > MAX_NODES {
            self.extend_slots(entries);
        }
        Ok(())
    }

    /// Makes room in the map of slots for all nodes of a large root, once. This needs slots itself, so it comes before
    /// the map is full. If there is no memory for it, the next node is another occasion.
    #[cold]
    fn extend_slots(&mut self, entries: usize) {
        if self.slots.capacity() == MAX_NODES
            && let Some(parts) = Backend::grow(self, (entries - MAX_NODES).div_ceil(Part::NODES))
        {
            self.slots.extend(parts);
        }
    }

    /// Takes untyped memory, if needed from the memory server.
    fn take_chunk(&mut self, bits: u8) -> Result<Chunk, Error> {
        if self.chunks.is_short() {
            self.grow_chunks()?;
        }
        self.take_chunk_at_hand(bits)
    }

    /// As [`take_chunk`](Self::take_chunk), without growing the metadata, of which some is reserved.
    fn take_chunk_at_hand(&mut self, bits: u8) -> Result<Chunk, Error> {
        if let Some(chunk) = self.chunks.take(bits) {
            return Ok(chunk);
        }
        if self.destroy_kept(usize::MAX)
            && let Some(chunk) = self.chunks.take(bits)
        {
            return Ok(chunk);
        }
        if !self.chunks.has_capacity() {
            return Err(Error::NoMetadata);
        }
        // A process that has much will want more; but a block of the needed size suffices.
        let wanted = if self.requests < FEW_REQUESTS { BLOCK_BITS } else { LARGE_BLOCK_BITS };
        let mut refusal = Error::NoMetadata;
        for bits in [bits.max(wanted), bits.max(BLOCK_BITS), bits] {
            match self.request_block(bits) {
                Ok(block) => {
                    self.chunks.push(block);
                    break;
                }
                Err(error) => refusal = error,
            }
        }
        if let Some(chunk) = self.chunks.take(bits) {
            return Ok(chunk);
        }
        // The memory may be held only by the frame cache.
        self.drain_frame_cache();
        self.chunks.take(bits).ok_or(refusal)
    }

    /// Makes room for more free chunks.
    fn grow_chunks(&mut self) -> Result<(), Error> {
        let count = self.chunks.array().next_chunk().ok_or(Error::NoMetadata)?;
        match Backend::grow(self, count) {
            Some(nodes) => self.chunks.array().add(nodes),
            None if self.chunks.has_capacity() => {}
            None => return Err(Error::NoMetadata),
        }
        Ok(())
    }

    /// Takes untyped memory for a permanent object. In the first process, all memory is what it was given.
    fn take_lasting_chunk(&mut self, bits: u8) -> Result<Chunk, Error> {
        if let Some(chunk) = self.lasting.take_for_ever(bits) {
            return Ok(chunk);
        }
        if let Ok(block) = self.request_block(bits.max(BLOCK_BITS)) {
            self.lasting.push(block);
        }
        self.lasting.take_for_ever(bits).map_or_else(|| self.take_chunk_at_hand(bits), Ok)
    }

    /// Frees untyped memory that was taken for a permanent object.
    fn give_back_lasting(&mut self, chunk: Chunk) {
        if let Some(block) = self.lasting.put_back(chunk) {
            self.lasting.push(block);
        }
    }

    /// Makes an object that stays until the process ends. All else as [`make`](Self::make).
    pub(super) fn make_lasting(&mut self, kind: Kind, size: u64) -> Result<CapAddress, Error> {
        let bits = kind.object_bits(size).ok_or(Error::BadSize)?;
        let slot = self.slot()?;
        let made = self
            .take_lasting_chunk(bits as u8)
            .and_then(|chunk| retype(&chunk, kind, size, slot).inspect_err(|_| self.give_back_lasting(chunk)));
        if let Err(error) = made {
            self.free_slot(slot);
            return Err(error);
        }
        Ok(slot)
    }

    /// Adds untyped memory that the process got from elsewhere.
    pub(super) fn donate(&mut self, untyped: Cap<Untyped>, bits: u8) -> Result<(), Error> {
        if self.chunks.is_short() {
            self.grow_chunks()?;
        }
        self.chunks.push(Chunk::block(untyped.address(), 0, bits));
        Ok(())
    }

    /// Frees untyped memory, from which nothing is made any more.
    fn give_back(&mut self, chunk: Chunk) {
        let Some(block) = self.chunks.free(chunk) else { return };
        // One free block stays, so that a program that makes and destroys objects in turn does not call the server each
        // time.
        if !self.chunks.has_block() || self.return_block(&block).is_err() {
            self.chunks.push(block);
        }
    }

    /// Requests a block from the memory server.
    fn request_block(&mut self, bits: u8) -> Result<Chunk, Error> {
        let slot = self.slots.take().ok_or(Error::NoSlots)?;
        // This may run in a page fault, while the program is about to send a message, or to receive in slots that it
        // offered. The request and its reply have few words, which travel in registers; a capability comes but none
        // goes.
        let offered = offered_slots();
        self.requests += 1;
        let block = Mem::STANDARD.allocate(u32::from(bits), slot);
        offer_slots(&offered);
        match block {
            Ok(block) => Ok(Chunk::block(slot, block.number, block.size_bits as u8)),
            Err(failure) => {
                self.slots.free(slot);
                Err(Error::Memory(failure))
            }
        }
    }

    /// Returns a block to the memory server, which deletes the capability.
    fn return_block(&mut self, block: &Chunk) -> Result<(), Error> {
        Mem::STANDARD.free(block.number).map_err(Error::Memory)?;
        self.slots.free(block.untyped);
        Ok(())
    }

    /// Makes an object. `size` is that of `UntypedRetype`.
    pub(super) fn make(&mut self, kind: Kind, size: u64) -> Result<(CapAddress, Chunk), Error> {
        let bits = kind.object_bits(size).ok_or(Error::BadSize)?;
        let slot = self.slot()?;
        let chunk = match self.take_chunk(bits as u8) {
            Ok(chunk) => chunk,
            Err(error) => {
                self.slots.free(slot);
                return Err(error);
            }
        };
        if let Err(error) = retype(&chunk, kind, size, slot) {
            self.give_back(chunk);
            self.slots.free(slot);
            return Err(error);
        }
        Ok((slot, chunk))
    }

    /// Makes a frame of one page, or takes one from the frame cache.
    fn make_page(&mut self) -> Result<(CapAddress, Chunk), Error> {
        if self.frame_cache.need() {
            // If a batch cannot be made, a single frame perhaps can.
            let _ = self.fill_frame_cache();
        }
        match self.frame_cache.take() {
            Some(page) => Ok(page),
            None => self.make(Kind::Frame, u64::from(PAGE_BITS)),
        }
    }

    /// Fills the frame cache.
    fn fill_frame_cache(&mut self) -> Result<(), Error> {
        self.keep_reserve(BATCH as usize)?;
        let slot = self.slots.take_run_nearby(BATCH as usize).ok_or(Error::NoSlots)?;
        let made = self.take_chunk(MEMORY_BITS).and_then(|memory| {
            let untyped = Cap::<Untyped>::new(memory.untyped);
            let (size, count) = (u64::from(PAGE_BITS), u64::from(BATCH));
            match untyped.retype_many(Kind::Frame, size, count, Placement::At(memory.offset), OWN_CSPACE, slot) {
                Ok(_) => Ok(memory),
                Err(error) => {
                    self.give_back(memory);
                    Err(Error::Kernel(error))
                }
            }
        });
        match made {
            Ok(memory) => {
                self.chunks.divide(BATCH as usize);
                self.frame_cache.add(memory, slot);
                Ok(())
            }
            Err(error) => {
                (slot.0..slot.0 + BATCH).for_each(|slot| self.slots.free(CapAddress(slot)));
                Err(error)
            }
        }
    }

    /// Destroys the unused frames of the cache.
    pub(super) fn drain_frame_cache(&mut self) {
        while let Some((slot, memory)) = self.frame_cache.take() {
            // A capability that the kernel cannot delete stays; there is nobody to tell.
            let _ = self.destroy(slot, memory);
        }
    }

    /// Destroys an object that `make` made, and every capability to it. If it was exported, this also requests its
    /// revocation on other cores; it is destroyed when they no longer have it, and its slot and memory are kept until
    /// then.
    pub(super) fn destroy(&mut self, slot: CapAddress, chunk: Chunk) -> Result<(), Error> {
        match self.try_to_destroy(slot, chunk) {
            Err(tench_abi::Error::RemoteCopies) => {
                // For each that is queued, two may be destroyed: so the queue is no longer than necessary.
                self.destroy_kept(2);
                self.chunks.keep(slot, chunk);
                Ok(())
            }
            other => Ok(other?),
        }
    }

    fn try_to_destroy(&mut self, slot: CapAddress, chunk: Chunk) -> Result<(), tench_abi::Error> {
        OWN_CSPACE.revoke_at(slot)?;
        OWN_CSPACE.delete_at(slot)?;
        self.was_destroyed(slot, chunk);
        Ok(())
    }

    /// Tries to destroy `most` of the queued objects, or all. Returns whether any was destroyed.
    fn destroy_kept(&mut self, most: usize) -> bool {
        let mut is_any = false;
        for _ in 0..self.chunks.kept().min(most) {
            let Some((slot, chunk)) = self.chunks.take_kept() else { break };
            match self.try_to_destroy(slot, chunk) {
                Ok(()) => is_any = true,
                Err(_) => self.chunks.keep(slot, chunk),
            }
        }
        is_any
    }

    /// Frees the slot and memory of an object that was destroyed.
    pub(super) fn was_destroyed(&mut self, slot: CapAddress, chunk: Chunk) {
        self.slots.free(slot);
        self.give_back(chunk);
    }
}

impl Backend for Resources {
    type Error = Error;

    fn make_frame(&mut self, bits: u8) -> Result<Object, Error> {
        let (cap, chunk) =
            if u32::from(bits) == PAGE_BITS { self.make_page()? } else { self.make(Kind::Frame, u64::from(bits))? };
        Ok(Object { cap, token: chunk.to_words() })
    }

    fn make_table(&mut self, level: u8) -> Result<Object, Error> {
        let (cap, chunk) = self.make(Kind::PageTable, u64::from(level))?;
        Ok(Object { cap, token: chunk.to_words() })
    }

    fn destroy(&mut self, object: Object) {
        // A capability that the kernel cannot delete stays; there is nobody to tell.
        let _ = Resources::destroy(self, object.cap, Chunk::from_words(object.token));
    }

    fn install(&mut self, table: CapAddress, parent: CapAddress, entry: u16) -> Result<(), Error> {
        Ok(Cap::<PageTable>::new(table).install(Cap::new(parent), u64::from(entry))?)
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
        // The frame may have been deleted, and its mappings with it.
        match Cap::<Mapping>::new(mapping).delete() {
            Ok(_) | Err(tench_abi::Error::InvalidCapability) => Ok(()),
            Err(error) => Err(Error::Kernel(error)),
        }
    }

    fn grow<T: Copy + Default + 'static>(&mut self, count: usize) -> Option<&'static mut [T]> {
        let address = Metadata::grow(self, size_of::<T>() * count).ok()?;
        // SAFETY: the memory is mapped, readable and writable, for ever, large enough, aligned to a page, and nobody
        // else refers to it.
        Some(unsafe { super::metadata::nodes(address, count) })
    }
}

impl Resources {
    /// Returns the memory in which the metadata grows.
    pub(super) const fn metadata(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

/// Makes one object from a chunk.
fn retype(chunk: &Chunk, kind: Kind, size: u64, slot: CapAddress) -> Result<(), Error> {
    let untyped = Cap::<Untyped>::new(chunk.untyped);
    untyped.retype_many(kind, size, 1, Placement::At(chunk.offset), OWN_CSPACE, slot)?;
    Ok(())
}
