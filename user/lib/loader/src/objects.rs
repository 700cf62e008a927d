//! A process's memory and the slots for its objects, for as little work as possible when it begins and when it ends.
//!
//! ```text
//!  loader's root                                     a node of the process's own, made of its own memory
//! ┌───┬───┬───┬────────┐                            ┌───────────────────────────────────────────────┐
//! │ 0 │ 1 │ … │ shelf ─┼── only while it is loaded ─▶ tables, frames, mappings, further blocks, …   │
//! └───┴───┴───┴────────┘                            └───────────────────────────────────────────────┘
//! ```
//! The capabilities that keep an address space together must lie somewhere, and only their maker needs to name them. So
//! they lie in nodes that are made of the process's memory and hang in the maker's capability space while the process
//! is loaded. Afterwards the maker keeps one slot for each such node, and for the first block of memory, the process's
//! root, its thread and its address space. When the memory is taken back, everything in the node goes with it: nobody
//! has to walk through what the process was made of.
//!
//! One process at a time is loaded over the same shelf.

use arrayvec::ArrayVec;
use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, NODE_SLOTS, SLOT_SIZE};
use tench_abi::{CapAddress, Error, Kind};
use tench_sys::{Cap, CapNode, OWN_SPACE, Place, Untyped};

use crate::holes::Holes;
use crate::machine::Resources;
use crate::space::LoadError;

/// Nodes that the objects of one process can fill: room for the frames and tables of some gigabytes.
pub const SHELF: u32 = 4;
/// Slots of the loader's that a process can have: its nodes, its root, its thread and its address space, and blocks of
/// memory of which the nodes were made.
const MAX_SLOTS: usize = 2 * SHELF as usize + 4;
/// Log2 of the first block: enough for what a usual process begins with.
const FIRST_BITS: u32 = 17;
/// Log2 of the smallest further block.
const FURTHER_BITS: u32 = 15;

/// Where a loader takes memory and slots of its own space from.
pub trait Source {
    /// Takes an empty slot of the own space.
    fn slot(&mut self) -> Result<CapAddress, LoadError>;

    /// Gives a slot back, which is empty.
    fn free_slot(&mut self, slot: CapAddress);

    /// Takes a block of 2^`size_bits` bytes for the process, with its capability in an empty slot.
    fn block(&mut self, size_bits: u32, slot: CapAddress) -> Result<Cap<Untyped>, LoadError>;

    /// Takes all blocks back, and with them everything that was made of them, or does a part of that. Answers whether
    /// nothing is left to do.
    fn take_back(&mut self) -> bool;
}

/// Memory and slots of one process.
pub struct Objects<S> {
    source: S,
    /// First of the entries of the own root that are the shelf.
    shelf: u32,
    /// Slots of the own space that are the process's until it ends.
    slots: ArrayVec<CapAddress, MAX_SLOTS>,
    /// Where a node goes when it leaves the shelf: one of those slots.
    nodes: ArrayVec<CapAddress, { SHELF as usize }>,
    /// Whether the nodes hang on the shelf.
    is_open: bool,
    /// The next empty slot on the shelf, and how many follow.
    next: u32,
    left: u32,
    holes: Holes<Cap<Untyped>>,
    has_block: bool,
}

/// The first of the own root's entries that are a shelf: the last ones, so that the library's own nodes find theirs.
pub fn shelf() -> Result<u32, Error> {
    let root = Cap::<CapNode>::new(slot::CSPACE).identify()?;
    let entries = 1u32 << root.size_bits.saturating_sub(SLOT_SIZE.ilog2());
    entries.checked_sub(SHELF).filter(|first| *first > 0).ok_or(Error::NoSuchSlot)
}

impl<S: Source> Objects<S> {
    /// Nothing yet. The entries of the own root from `shelf` on, as many as [`SHELF`], are empty.
    pub fn new(source: S, shelf: u32) -> Objects<S> {
        Objects {
            source,
            shelf,
            slots: ArrayVec::new(),
            nodes: ArrayVec::new(),
            is_open: true,
            next: 0,
            left: 0,
            holes: Holes::default(),
            has_block: false,
        }
    }

    /// Takes a slot of the own space that stays the process's.
    fn own_slot(&mut self) -> Result<CapAddress, LoadError> {
        if self.slots.is_full() {
            return Err(LoadError::OutOfMemory);
        }
        let slot = self.source.slot()?;
        self.slots.push(slot);
        Ok(slot)
    }

    /// Hangs one more node on the shelf.
    fn add_node(&mut self) -> Result<(), LoadError> {
        if self.nodes.is_full() {
            return Err(LoadError::OutOfMemory);
        }
        let place = self.own_slot()?;
        self.make_of(Kind::CapNode, u64::from(NODE_BITS), place, Self::own_slot)?;
        let index = self.shelf + self.nodes.len() as u32;
        OWN_ROOT.install_node(index, Cap::new(place))?;
        self.nodes.push(place);
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
                let (place, bits_of_block) = (slot_for_block(self)?, bits.max(least));
                let block = self.source.block(bits_of_block, place)?;
                self.has_block = true;
                self.holes.add(block, bits_of_block);
                self.holes.take(bits).ok_or(LoadError::OutOfMemory)?
            }
        };
        block.retype_many(kind, size, 1, Place::At(offset), OWN_SPACE, slot)?;
        Ok(())
    }

    /// The process is loaded: its nodes leave the shelf. What lies in them can be named no more.
    pub fn put_away(&mut self) -> Result<(), Error> {
        if !core::mem::replace(&mut self.is_open, false) {
            return Ok(());
        }
        let mut all = Ok(());
        for (index, place) in (self.shelf..).zip(&self.nodes) {
            // One that is not removed does not keep the others there.
            all = all.and(OWN_ROOT.remove_node(index, *place).map(drop));
        }
        all
    }

    /// Takes everything back: all memory of the process, and all objects made of it, are gone afterwards.
    pub fn close(mut self) {
        while !self.close_part() {}
    }

    /// Does a part of that. Answers whether nothing is left to do.
    pub fn close_part(&mut self) -> bool {
        // Nodes that stay on the shelf go with the memory, too.
        let _ = self.put_away();
        if !self.source.take_back() {
            return false;
        }
        for slot in self.slots.drain(..) {
            // What lay there has gone with the memory; deleting what is not there is an error to ignore.
            let _ = OWN_SPACE.delete_at(slot);
            self.source.free_slot(slot);
        }
        true
    }
}

/// The root of the own space, by its capability: operations on nodes of the root name it.
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
