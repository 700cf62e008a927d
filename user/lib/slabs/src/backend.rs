//! Backends, which make the objects of a slab: the kernel on the target, and here a model of its rule.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::bundle::Allocation;
use crate::slab::{Account, align_up};
use crate::slabs::Slabs;

/// Position for new objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The slab's watermark, aligned to the objects' size.
    Watermark,
    /// This offset in bytes from the slab's base.
    At(u64),
}

/// Reason why no objects were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room, or not at that position.
    Full,
    /// Another slab would not help, for instance because there is no slot.
    Otherwise,
}

/// A backend makes and deletes objects.
pub trait Backend {
    /// Makes the objects of descriptor number `part` of the bundle: `count` objects of `size` bytes, side by side in
    /// slab number `slab`. All or none. Returns the offset of the first.
    fn retype(&mut self, slab: usize, part: usize, placement: Placement, size: u64, count: u32)
    -> Result<u64, Refused>;

    /// Deletes the objects made for descriptor number `part`, because another one of the bundle found no room.
    fn undo(&mut self, part: usize, allocation: Allocation);
}

/// A model of the kernel: its results for retype and delete, and its own account of each slab.
#[derive(Clone, Debug)]
pub struct Model {
    slabs: Vec<ModelSlab>,
    /// Slabs by address.
    bases: BTreeMap<u64, usize>,
    retypes: u64,
    refused: u64,
}

#[derive(Clone, Debug, Default)]
struct ModelSlab {
    base: u64,
    size: u64,
    watermark: u64,
    live: u64,
    /// Size in bytes of each object, by its offset.
    objects: BTreeMap<u64, u64>,
}

impl Model {
    /// Returns the kernel's side of these slabs, all of them empty.
    pub fn new(slabs: &Slabs) -> Model {
        let of = |slab: &crate::Slab| ModelSlab { base: slab.base(), size: slab.size(), ..ModelSlab::default() };
        let bases = slabs.slabs().iter().enumerate().map(|(number, slab)| (slab.base(), number)).collect();
        Model { slabs: slabs.slabs().iter().map(of).collect(), bases, retypes: 0, refused: 0 }
    }

    /// Returns the kernel's account of a slab.
    pub fn account(&self, slab: usize) -> Account {
        let slab = &self.slabs[slab];
        Account { watermark: slab.watermark, objects: slab.objects.len() as u64, live: slab.live }
    }

    /// Returns the numbers of successful and of failed retypes.
    pub const fn retypes(&self) -> (u64, u64) {
        (self.retypes, self.refused)
    }

    /// Deletes the object at a physical address. Returns false if there is none of that size.
    pub fn delete(&mut self, address: u64, size: u64) -> bool {
        let Some((base, number)) = self.bases.range(..=address).next_back() else { return false };
        let slab = &mut self.slabs[*number];
        let offset = address - base;
        if slab.objects.get(&offset) != Some(&size) {
            return false;
        }
        slab.objects.remove(&offset);
        slab.live -= size;
        if slab.objects.is_empty() {
            slab.watermark = 0;
        }
        true
    }
}

impl ModelSlab {
    /// Returns the offset at which objects would go, if there is room.
    fn offset_for(&self, placement: Placement, size: u64, bytes: u64) -> Option<u64> {
        let offset = match placement {
            Placement::Watermark => align_up(self.watermark, size),
            Placement::At(offset) => offset,
        };
        let fits = offset.is_multiple_of(size) && offset.checked_add(bytes)? <= self.size;
        let below = self.objects.range(..offset + bytes).next_back();
        let free = below.is_none_or(|(start, length)| start + length <= offset);
        (fits && free).then_some(offset)
    }
}

impl Backend for Model {
    fn retype(
        &mut self,
        slab: usize,
        _part: usize,
        placement: Placement,
        size: u64,
        count: u32,
    ) -> Result<u64, Refused> {
        let slab = &mut self.slabs[slab];
        let bytes = size * u64::from(count);
        let Some(offset) = slab.offset_for(placement, size, bytes) else {
            self.refused += 1;
            return Err(Refused::Full);
        };
        slab.objects.extend((0..u64::from(count)).map(|i| (offset + i * size, size)));
        slab.live += bytes;
        if placement == Placement::Watermark {
            slab.watermark = offset + bytes;
        }
        self.retypes += 1;
        Ok(offset)
    }

    fn undo(&mut self, _part: usize, allocation: Allocation) {
        let first = self.slabs[allocation.slab].base + allocation.offset;
        for i in 0..u64::from(allocation.count) {
            self.delete(first + i * allocation.size, allocation.size);
        }
    }
}
