//! One slab and its metadata.

use crate::bundle::Lifetime;
use crate::holes::Holes;

/// A slab as its owner knows it, without asking the kernel.
///
/// As long as the watermark rule holds, `watermark = live + alignment_loss + watermark_loss`: every byte below the
/// watermark is in a live object, was skipped to align an object, or was in a deleted object.
#[derive(Clone, Debug)]
pub struct Slab {
    base: u64,
    size: u64,
    lifetime: Lifetime,
    watermark: u64,
    live: u64,
    objects: u64,
    alignment_loss: u64,
    watermark_loss: u64,
    resets: u64,
    /// Log2 of the size of the largest object placed since the last reset; 0 for none.
    largest_bits: u8,
    /// Log2 of the size of the object placed last since the last reset; 0 for none.
    last_bits: u8,
    /// Free ranges; used only while the watermark rule is lifted.
    holes: Holes,
    lifted: bool,
}

/// The part of a slab's metadata that placing objects changes, saved to undo the placement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    watermark: u64,
    live: u64,
    objects: u64,
    alignment_loss: u64,
    largest_bits: u8,
    last_bits: u8,
}

/// A slab as the kernel describes it, for comparison with the metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Number of bytes below the watermark; 0 where objects were placed by offset.
    pub watermark: u64,
    /// Number of live objects.
    pub objects: u64,
    /// Their size in bytes.
    pub live: u64,
}

impl Slab {
    /// Returns an empty slab. `size` must be a power of two, `base` a multiple of it.
    pub(crate) fn new(base: u64, size: u64, lifetime: Lifetime) -> Slab {
        Slab {
            base,
            size,
            lifetime,
            watermark: 0,
            live: 0,
            objects: 0,
            alignment_loss: 0,
            watermark_loss: 0,
            resets: 0,
            largest_bits: 0,
            last_bits: 0,
            holes: Holes::default(),
            lifted: false,
        }
    }

    /// Returns the physical address of the first byte.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the lifetime of the slab's objects.
    pub const fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Returns the number of bytes below the watermark; 0 while the rule is lifted, because then no object is placed by
    /// it.
    pub const fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Returns the number of bytes in live objects.
    pub const fn live(&self) -> u64 {
        self.live
    }

    /// Returns the number of live objects.
    pub const fn objects(&self) -> u64 {
        self.objects
    }

    /// Returns the number of bytes below the watermark that were skipped to align objects.
    pub const fn alignment_loss(&self) -> u64 {
        self.alignment_loss
    }

    /// Returns the number of bytes below the watermark that were in deleted objects.
    pub const fn watermark_loss(&self) -> u64 {
        self.watermark_loss
    }

    /// Returns how often the last object of the slab was deleted.
    pub const fn resets(&self) -> u64 {
        self.resets
    }

    /// Returns the number of free bytes below the highest object. With the watermark rule these are lost; without it
    /// they would be, and can be used.
    pub fn gaps(&self) -> u64 {
        if self.lifted {
            self.size - self.live - self.holes.tail(self.size)
        } else {
            self.alignment_loss + self.watermark_loss
        }
    }

    /// Returns the account that the kernel should return.
    pub const fn account(&self) -> Account {
        Account { watermark: self.watermark, objects: self.objects, live: self.live }
    }

    /// Returns log2 of the size of the largest object placed since the last reset; 0 if there is none.
    pub(crate) const fn largest_bits(&self) -> u8 {
        self.largest_bits
    }

    /// Returns log2 of the size of the object placed last since the last reset; 0 if there is none.
    pub(crate) const fn last_bits(&self) -> u8 {
        self.last_bits
    }

    /// Returns whether objects may go to any free offset.
    pub(crate) const fn lifted(&self) -> bool {
        self.lifted
    }

    /// Returns the free ranges, while the rule is lifted.
    pub(crate) const fn holes(&self) -> &Holes {
        &self.holes
    }

    /// Lifts the watermark rule or restores it. The slab must be empty.
    pub(crate) fn lift(&mut self, lifted: bool) {
        self.holes = if lifted { Holes::whole(self.size) } else { Holes::default() };
        self.lifted = lifted;
    }

    /// Makes room in the metadata for `count` more objects. Returns false if there is no memory for that.
    pub(crate) fn reserve(&mut self, count: u32) -> bool {
        !self.lifted || self.holes.reserve(self.objects + u64::from(count))
    }

    /// Records objects at `offset`. Under the rule, `offset` must be at or above the watermark; otherwise the range
    /// must be free.
    pub(crate) fn place(&mut self, offset: u64, size: u64, count: u32) {
        let bytes = size * u64::from(count);
        if self.lifted {
            let taken = self.holes.take(offset, offset + bytes);
            debug_assert!(taken, "objects were placed where others are");
        } else {
            self.alignment_loss += offset - self.watermark;
            self.watermark = offset + bytes;
        }
        self.live += bytes;
        self.objects += u64::from(count);
        let size_bits = size.trailing_zeros() as u8;
        self.largest_bits = self.largest_bits.max(size_bits);
        self.last_bits = size_bits;
    }

    /// Returns the metadata for undoing a placement.
    pub(crate) const fn mark(&self) -> Mark {
        Mark {
            watermark: self.watermark,
            live: self.live,
            objects: self.objects,
            alignment_loss: self.alignment_loss,
            largest_bits: self.largest_bits,
            last_bits: self.last_bits,
        }
    }

    /// Undoes the last placement completely.
    pub(crate) fn undo_placement(&mut self, mark: Mark, offset: u64, bytes: u64) {
        if self.lifted {
            let given = self.holes.give(offset, offset + bytes);
            debug_assert!(given, "what was placed is free");
        }
        self.watermark = mark.watermark;
        self.live = mark.live;
        self.objects = mark.objects;
        self.alignment_loss = mark.alignment_loss;
        self.largest_bits = mark.largest_bits;
        self.last_bits = mark.last_bits;
    }

    /// Records that an object was deleted. Returns false and changes nothing if there cannot have been such an object.
    pub(crate) fn free(&mut self, offset: u64, size: u64) -> bool {
        let top = if self.lifted { self.size } else { self.watermark };
        if self.objects == 0 || self.live < size || offset + size > top || !offset.is_multiple_of(size) {
            return false;
        }
        if self.lifted && !self.holes.give(offset, offset + size) {
            return false;
        }
        self.live -= size;
        self.objects -= 1;
        if !self.lifted {
            self.watermark_loss += size;
        }
        if self.objects == 0 {
            self.reset();
        }
        true
    }

    /// Resets the slab after its last object was deleted: nothing is lost any more.
    fn reset(&mut self) {
        self.watermark = 0;
        self.alignment_loss = 0;
        self.watermark_loss = 0;
        self.largest_bits = 0;
        self.last_bits = 0;
        self.resets += 1;
    }

    /// Clears the count of resets, when a new measurement begins.
    pub(crate) fn forget_resets(&mut self) {
        self.resets = 0;
    }

    /// Returns the violated invariant, if any.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        if !self.size.is_power_of_two() || !self.base.is_multiple_of(self.size) {
            return Err("a slab is not aligned to its size");
        }
        if (self.objects == 0) != (self.live == 0) || (self.objects == 0) != (self.largest_bits == 0) {
            return Err("a slab has objects without bytes or bytes without objects");
        }
        if self.lifted {
            self.holes.check_invariants(self.size)?;
            if self.holes.bytes() + self.live != self.size {
                return Err("free ranges and objects do not make up the slab");
            }
            if self.watermark + self.alignment_loss + self.watermark_loss != 0 {
                return Err("something is lost although the watermark rule is lifted");
            }
            return Ok(());
        }
        if self.watermark != self.live + self.alignment_loss + self.watermark_loss {
            return Err("objects and losses do not make up what is below the watermark");
        }
        if self.watermark > self.size {
            return Err("a watermark lies beyond the end");
        }
        if self.objects == 0 && self.watermark != 0 {
            return Err("an empty slab has a watermark");
        }
        Ok(())
    }
}

/// Returns the next multiple of `size`, a power of two.
pub(crate) const fn align_up(value: u64, size: u64) -> u64 {
    (value + (size - 1)) & !(size - 1)
}
