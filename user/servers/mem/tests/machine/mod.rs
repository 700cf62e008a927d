//! A fake kernel that implements only the store's calls, keeps its own account, and fails the call that a test chooses.

use std::collections::{BTreeMap, BTreeSet};

use tench_abi::{CapAddress, Error, Kind};
use tench_mem::machine::{Machine, STEP_BITS, Step, Use};

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: Kind,
    pub address: u64,
    pub bits: u32,
    /// Slot of the untyped from which the object was made; 0 for a region.
    pub parent: u32,
}

impl Object {
    fn end(&self) -> u64 {
        self.address + (1 << self.bits)
    }

    /// Returns the key of the object among those made from the same untyped.
    fn key(&self) -> (u32, u64) {
        (self.parent, self.address)
    }
}

/// The fake kernel.
pub struct Model {
    pub objects: BTreeMap<u32, Object>,
    /// Capability nodes in the root, by index.
    pub nodes: BTreeMap<u32, Object>,
    /// Objects made from an untyped, by its slot and the object's address: end address, and slot (0: in the root).
    made: BTreeMap<(u32, u64), (u64, u32)>,
    /// Number of calls so far that can fail.
    pub calls: u64,
    /// The first call that fails, and how many after it fail, too.
    pub refused: Option<(u64, u64)>,
    /// Number of frames of arrays.
    pub frames: u64,
    /// Number of page tables of level 3 for arrays.
    pub tables: u64,
    /// Number of bytes of each step that are used.
    pub growth: usize,
    /// Set if arrays can grow no more.
    pub is_full: bool,
    /// Slots of objects of which other cores have a part.
    pub abroad: BTreeSet<u32>,
}

impl Default for Model {
    fn default() -> Model {
        let (objects, nodes, made) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let abroad = BTreeSet::new();
        let (refused, is_full) = (None, false);
        Model { objects, nodes, made, calls: 0, refused, frames: 0, tables: 0, growth: GROWTH, is_full, abroad }
    }
}

impl Model {
    /// Counts a call that can run out of something. Fails if the test has chosen it.
    fn call(&mut self) -> Result<(), Error> {
        self.calls += 1;
        match self.refused {
            Some((first, count)) if (first..first + count).contains(&self.calls) => Err(Error::OutOfMemory),
            _ => Ok(()),
        }
    }

    fn children(&self, slot: u32) -> Vec<u32> {
        self.made.range((slot, 0)..(slot + 1, 0)).map(|(_, (_, child))| *child).collect()
    }

    /// Returns the bytes and number of objects that were made from regions: in the root and in slots.
    pub fn in_use(&self, regions: &[u32]) -> (u64, u64) {
        let all = regions.iter().flat_map(|&region| self.made.range((region, 0)..(region + 1, 0)));
        all.fold((0, 0), |(bytes, objects), ((_, start), (end, _))| (bytes + end - start, objects + 1))
    }

    /// Makes this many frames from an untyped for a client, in slots from `to` on.
    pub fn make_frames(&mut self, untyped: u32, count: u32, to: u32) {
        let Object { address, .. } = self.objects[&untyped];
        for number in 0..count {
            let frame = address + (u64::from(number) << 12);
            self.put(to + number, Object { kind: Kind::Frame, address: frame, bits: 12, parent: untyped });
        }
    }

    /// Moves a slot's capability to another slot, as a message does.
    pub fn carry(&mut self, from: CapAddress, to: u32) {
        let object = self.take(from.0).expect("there is something to move");
        self.put(to, object);
    }

    /// Removes the content of a slot.
    fn take(&mut self, slot: u32) -> Option<Object> {
        let object = self.objects.remove(&slot)?;
        if object.kind != Kind::Mapping {
            self.made.remove(&object.key());
        }
        Some(object)
    }

    /// Puts an object into an empty slot.
    fn put(&mut self, slot: u32, object: Object) {
        assert!(self.objects.insert(slot, object).is_none(), "slot {slot} was empty");
        self.made.insert(object.key(), (object.end(), slot));
    }
}

/// An array that grows by a frame at a time.
pub struct Steps<T> {
    items: Vec<T>,
    bytes: usize,
}

impl<T> AsRef<[T]> for Steps<T> {
    fn as_ref(&self) -> &[T] {
        &self.items
    }
}

impl<T> AsMut<[T]> for Steps<T> {
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

/// Bytes that one page table of level 3 covers.
const TABLE_BYTES: usize = 2 << 20;
/// Bytes of a step that the model's arrays use: few, so that they grow often.
const GROWTH: usize = 12 << 10;

impl Machine for Model {
    type Array<T: Copy> = Steps<T>;

    fn prepare(&mut self, upper: CapAddress, middle: CapAddress) -> Result<(), Error> {
        for table in [upper, middle] {
            assert_eq!(self.objects.get(&table.0).map(|object| object.kind), Some(Kind::PageTable));
        }
        Ok(())
    }

    fn array<T: Copy>(&mut self, _: Use) -> Steps<T> {
        Steps { items: Vec::new(), bytes: 0 }
    }

    fn wants_table<T: Copy>(&self, array: &Steps<T>) -> bool {
        array.bytes.is_multiple_of(TABLE_BYTES)
    }

    fn grow<T: Copy>(&mut self, array: &mut Steps<T>, step: &Step, fill: T) -> Result<(), Error> {
        self.call()?;
        if self.is_full {
            return Err(Error::OutOfMemory);
        }
        assert_eq!(self.wants_table(array), step.table.is_some());
        assert_eq!(self.objects[&step.frame.0].bits, STEP_BITS);
        assert!(!self.objects.contains_key(&step.mapping.0), "the mapping's slot is empty");
        // The mapping stays in its slot for ever; it takes no memory.
        let frame = self.objects[&step.frame.0];
        self.objects.insert(step.mapping.0, Object { kind: Kind::Mapping, bits: 0, parent: step.frame.0, ..frame });
        self.frames += 1;
        self.tables += u64::from(step.table.is_some());
        array.bytes += self.growth;
        array.items.resize(array.bytes / size_of::<T>(), fill);
        Ok(())
    }

    fn retype(
        &mut self,
        untyped: CapAddress,
        kind: Kind,
        size: u64,
        offset: u64,
        slot: CapAddress,
    ) -> Result<(), Error> {
        self.call()?;
        let from = *self.objects.get(&untyped.0).ok_or(Error::InvalidCapability)?;
        assert_eq!(from.kind, Kind::Untyped);
        let bits = kind.object_bits(size).ok_or(Error::InvalidArgument)?;
        let object = Object { kind, address: from.address + offset, bits, parent: untyped.0 };
        assert!(object.end() <= from.end() && object.address.is_multiple_of(1 << bits), "the ledger knows better");
        let below = self.made.range((untyped.0, 0)..(untyped.0, object.end())).next_back();
        if below.is_some_and(|(_, (end, _))| *end > object.address) {
            return Err(Error::Overlap);
        }
        if self.objects.contains_key(&slot.0) {
            return Err(Error::SlotOccupied);
        }
        self.put(slot.0, object);
        Ok(())
    }

    fn split(&mut self, untyped: CapAddress, upper: CapAddress) -> Result<(), Error> {
        self.call()?;
        if !self.children(untyped.0).is_empty() {
            // The client's untyped, of the same size, lies across; the tests divide blocks whose untyped is gone.
            return Err(Error::Overlap);
        }
        let whole = self.take(untyped.0).ok_or(Error::InvalidCapability)?;
        let lower = Object { bits: whole.bits - 1, ..whole };
        self.put(untyped.0, lower);
        self.put(upper.0, Object { address: lower.end(), ..lower });
        Ok(())
    }

    fn take_in(&mut self, from: CapAddress, slot: CapAddress) -> Result<(), Error> {
        self.call()?;
        let object = self.take(from.0).ok_or(Error::InvalidCapability)?;
        self.put(slot.0, object);
        Ok(())
    }

    fn revoke(&mut self, slot: CapAddress, preemption_points: u64) -> Result<u64, Error> {
        let (mut revoked, mut passed) = (Ok(()), 0);
        for child in self.children(slot.0) {
            if self.abroad.contains(&child) {
                revoked = Err(Error::RemoteCopies);
                continue;
            }
            // Each takes a preemption point of its own.
            passed += self.revoke(CapAddress(child), preemption_points - passed)?;
            self.take(child);
            if passed == preemption_points {
                return Err(Error::Unfinished);
            }
            passed += 1;
        }
        revoked.map(|()| passed)
    }

    fn delete(&mut self, slot: CapAddress) -> Result<(), Error> {
        assert!(self.children(slot.0).is_empty(), "what was made of it is gone before");
        self.take(slot.0).map(drop).ok_or(Error::InvalidCapability)
    }

    fn install_node(&mut self, index: u32, node: CapAddress) -> Result<(), Error> {
        self.call()?;
        let object = self.take(node.0).ok_or(Error::InvalidCapability)?;
        assert_eq!(object.kind, Kind::CapNode);
        self.made.insert(object.key(), (object.end(), 0));
        assert!(self.nodes.insert(index, object).is_none(), "the entry was empty");
        Ok(())
    }

    fn remove_node(&mut self, index: u32, slot: CapAddress) -> Result<(), Error> {
        let slots = CapAddress::new(index, 0).0..CapAddress::new(index + 1, 0).0;
        assert_eq!(self.objects.range(slots).next(), None, "the node's slots are empty");
        let object = self.nodes.remove(&index).ok_or(Error::NoSuchSlot)?;
        self.made.remove(&object.key());
        self.put(slot.0, object);
        Ok(())
    }
}
