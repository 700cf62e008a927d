//! A process's memory and the slots for its objects, designed for little work when the process begins and ends.
//!
//! ```text
//!  loader's root                                     a node of the process's own, made from its own memory
//! ┌───┬───┬───┬────────┐                            ┌───────────────────────────────────────────────┐
//! │ 0 │ 1 │ … │ range ─┼── only while it is loaded ─▶ tables, frames, mappings, further blocks, …   │
//! └───┴───┴───┴────────┘                            └───────────────────────────────────────────────┘
//! ```
//! The capabilities that make up an address space must lie somewhere, and only the loader uses them. So they lie in
//! nodes that are made from the process's memory and are installed in a range of the loader's CSpace while the process
//! is loaded. Afterwards the loader keeps one slot for each such node, and for the first block of memory, the process's
//! root, its thread and its address space. When the memory is taken back, everything in the nodes is deleted with it,
//! without iterating over the process's objects.
//!
//! One process at a time is loaded through the same CSpace range.

use arrayvec::ArrayVec;
use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, NODE_SLOTS, SLOT_SIZE};
use tench_abi::{CapAddress, Error, Kind};
use tench_sys::{Cap, CapNode, OWN_CSPACE, Placement, Untyped};

use crate::holes::Holes;
use crate::machine::Resources;
use crate::space::LoadError;

/// Size of the loader's CSpace range: the nodes that the objects of one process can fill, with room for the frames and
/// tables of some gigabytes.
pub const CSPACE_RANGE_ENTRIES: u32 = 4;
/// Maximum number of the loader's slots for a process: its nodes, its root, its thread and its address space, and the
/// blocks of memory from which the nodes were made.
const MAX_SLOTS: usize = 2 * CSPACE_RANGE_ENTRIES as usize + 4;
/// Log2 of the first block's size in bytes: enough for the start of an ordinary process.
const FIRST_BITS: u32 = 17;
/// Log2 of the smallest further block's size in bytes.
const FURTHER_BITS: u32 = 15;

/// Source of memory and slots for a loader.
pub trait Source {
    /// Takes an empty slot of the own CSpace.
    fn slot(&mut self) -> Result<CapAddress, LoadError>;

    /// Frees an empty slot.
    fn free_slot(&mut self, slot: CapAddress);

    /// Takes a block of 2^`size_bits` bytes for the process, with its capability in an empty slot.
    fn block(&mut self, size_bits: u32, slot: CapAddress) -> Result<Cap<Untyped>, LoadError>;

    /// Takes all blocks back, and with them everything made from them, or does a part of that. Returns whether nothing
    /// is left to do.
    fn take_back(&mut self) -> bool;
}

/// Memory and slots of one process.
pub struct Objects<S> {
    source: S,
    /// First root entry of the loader's CSpace range.
    cspace_range: u32,
    /// Slots of the own CSpace that belong to the process until it ends.
    slots: ArrayVec<CapAddress, MAX_SLOTS>,
    /// For each node, the one of those slots to which it moves when the process is loaded.
    nodes: ArrayVec<CapAddress, { CSPACE_RANGE_ENTRIES as usize }>,
    /// Set while the nodes are installed in the range.
    is_open: bool,
    /// The next empty slot in the range, and the number of empty slots after it.
    next: u32,
    left: u32,
    holes: Holes<Cap<Untyped>>,
    has_block: bool,
}

/// Returns the first root entry of the CSpace range: it is at the end of the root, away from the library's own nodes.
pub fn cspace_range() -> Result<u32, Error> {
    let root = Cap::<CapNode>::new(slot::CSPACE).identify()?;
    let entries = 1u32 << root.size_bits.saturating_sub(SLOT_SIZE.ilog2());
    entries.checked_sub(CSPACE_RANGE_ENTRIES).filter(|first| *first > 0).ok_or(Error::NoSuchSlot)
}

impl<S: Source> Objects<S> {
    /// Returns an empty set. The own root's [`CSPACE_RANGE_ENTRIES`] entries from `cspace_range` on must be empty.
    pub fn new(source: S, cspace_range: u32) -> Objects<S> {
        Objects {
            source,
            cspace_range,
            slots: ArrayVec::new(),
            nodes: ArrayVec::new(),
            is_open: true,
            next: 0,
            left: 0,
            holes: Holes::default(),
            has_block: false,
        }
    }

    /// Takes a slot of the own CSpace that belongs to the process until it ends.
    fn own_slot(&mut self) -> Result<CapAddress, LoadError> {
        if self.slots.is_full() {
            return Err(LoadError::OutOfMemory);
        }
        let slot = self.source.slot()?;
        self.slots.push(slot);
        Ok(slot)
    }

    /// Installs one more node in the range.
    fn add_node(&mut self) -> Result<(), LoadError> {
        if self.nodes.is_full() {
            return Err(LoadError::OutOfMemory);
        }
        let slot = self.own_slot()?;
        self.make_of(Kind::CapNode, u64::from(NODE_BITS), slot, Self::own_slot)?;
        let index = self.cspace_range + self.nodes.len() as u32;
        OWN_ROOT.install_node(index, Cap::new(slot))?;
        self.nodes.push(slot);
        (self.next, self.left) = (index << NODE_BITS, NODE_SLOTS as u32);
        Ok(())
    }

    /// Makes an object; `slot_for_block` says where the capability to a further block of memory goes.
    fn make_of(
        &mut self,
        kind: Kind,
        size: u64,
        slot: CapAddress,
        slot_for_block: fn(&mut Self) -> Result<CapAddress, LoadError>,
    ) -> Result<(), LoadError> {
        let bits = kind.object_bits(size).ok_or(Error::InvalidArgument)?;
        let (block, offset) = match self.holes.take(bits) {
            Some(found) => found,
            None => {
                let least = if self.has_block { FURTHER_BITS } else { FIRST_BITS };
                let (block_slot, bits_of_block) = (slot_for_block(self)?, bits.max(least));
                let block = self.source.block(bits_of_block, block_slot)?;
                self.has_block = true;
                self.holes.add(block, bits_of_block);
                self.holes.take(bits).ok_or(LoadError::OutOfMemory)?
            }
        };
        block.retype_many(kind, size, 1, Placement::At(offset), OWN_CSPACE, slot)?;
        Ok(())
    }

    /// Completes loading: removes the process's nodes from the range, so that their capabilities can no longer be
    /// named.
    pub fn put_away(&mut self) -> Result<(), Error> {
        if !core::mem::replace(&mut self.is_open, false) {
            return Ok(());
        }
        let mut all = Ok(());
        for (index, slot) in (self.cspace_range..).zip(&self.nodes) {
            // A node that cannot be removed does not keep the others there.
            all = all.and(OWN_ROOT.remove_node(index, *slot).map(drop));
        }
        all
    }

    /// Takes all memory of the process back, with all objects made from it.
    pub fn close(mut self) {
        while !self.close_part() {}
    }

    /// Does a part of [`close`](Self::close). Returns whether nothing is left to do.
    pub fn close_part(&mut self) -> bool {
        // Nodes that stay in the range are deleted with the memory, too.
        let _ = self.put_away();
        if !self.source.take_back() {
            return false;
        }
        for slot in self.slots.drain(..) {
            // The capability may have been deleted with the memory; then this fails, which does no harm.
            let _ = OWN_CSPACE.delete_at(slot);
            self.source.free_slot(slot);
        }
        true
    }
}

/// The root of the own CSpace by its capability, as operations on nodes of the root need it.
const OWN_ROOT: Cap<CapNode> = Cap::new(slot::CSPACE);

impl<S: Source> Resources for Objects<S> {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        if self.left == 0 {
            self.add_node()?;
        }
        self.left -= 1;
        self.next += 1;
        Ok(CapAddress(self.next - 1))
    }

    fn lasting_slot(&mut self) -> Result<CapAddress, LoadError> {
        self.own_slot()
    }

    fn make(&mut self, kind: Kind, size: u64, slot: CapAddress) -> Result<(), LoadError> {
        self.make_of(kind, size, slot, <Self as Resources>::slot)
    }
}
