//! One slab and its books.

use crate::bundle::Lifetime;
use crate::holes::Holes;

/// A slab as its owner knows it, without asking the kernel.
///
/// As long as the watermark rule holds, `watermark = live + alignment_loss + watermark_loss`: every byte below the mark
/// is in a live object, was skipped so that an object could be aligned, or was an object.
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
    /// The same of the object placed last since then.
    last_bits: u8,
    /// Free ranges; used only while the watermark rule is lifted.
    holes: Holes,
    lifted: bool,
}

/// What placing objects changes in the books of a slab, to take it back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    watermark: u64,
    live: u64,
    objects: u64,
    alignment_loss: u64,
    largest_bits: u8,
    last_bits: u8,
}

/// What the kernel can say about a slab, to compare the books with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes below the watermark; 0 where objects were placed by offset.
    pub watermark: u64,
    /// Live objects.
    pub objects: u64,
    /// Bytes in them.
    pub live: u64,
}

impl Slab {
    /// An empty slab. `size` is a power of two, `base` a multiple of it.
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

    /// Physical address of the first byte.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// What objects it is for.
    pub const fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Bytes below the watermark. 0 while the rule is lifted, because then no object is placed by it.
    pub const fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Bytes in live objects.
    pub const fn live(&self) -> u64 {
        self.live
    }

    /// Live objects.
    pub const fn objects(&self) -> u64 {
        self.objects
    }

    /// Bytes below the watermark that were skipped to align objects.
    pub const fn alignment_loss(&self) -> u64 {
        self.alignment_loss
    }

    /// Bytes below the watermark that were objects.
    pub const fn watermark_loss(&self) -> u64 {
        self.watermark_loss
    }

    /// How often its last object was deleted.
    pub const fn resets(&self) -> u64 {
        self.resets
    }

    /// Free bytes below the highest object. With the watermark rule that is what is lost; without, it is what would be,
    /// and can be used for whatever fits.
    pub fn gaps(&self) -> u64 {
        if self.lifted {
            self.size - self.live - self.holes.tail(self.size)
        } else {
            self.alignment_loss + self.watermark_loss
        }
    }

    /// What the kernel should say.
    pub const fn account(&self) -> Account {
        Account { watermark: self.watermark, objects: self.objects, live: self.live }
    }

    /// Log2 of the largest object placed since the last reset; 0 if there is none.
    pub(crate) const fn largest_bits(&self) -> u8 {
        self.largest_bits
    }

    /// Log2 of the object placed last since the last reset; 0 if there is none.
    pub(crate) const fn last_bits(&self) -> u8 {
        self.last_bits
    }

    /// Whether objects may go to any free offset.
    pub(crate) const fn lifted(&self) -> bool {
        self.lifted
    }

    /// The free ranges, while the rule is lifted.
    pub(crate) const fn holes(&self) -> &Holes {
        &self.holes
    }

    /// Lifts the watermark rule or brings it back. Only for an empty slab.
    pub(crate) fn lift(&mut self, lifted: bool) {
        self.holes = if lifted { Holes::whole(self.size) } else { Holes::default() };
        self.lifted = lifted;
    }

    /// Whether the books have room for what may follow if `count` more objects are placed here.
    pub(crate) fn reserve(&mut self, count: u32) -> bool {
        !self.lifted || self.holes.reserve(self.objects + u64::from(count))
    }

    /// Books objects at `offset`. Under the rule, `offset` is at or above the watermark; otherwise the range is free.
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

    /// The books as they are before something is placed.
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

    /// Takes back the placement that came last: as if it had never been planned.
    pub(crate) fn unplace(&mut self, mark: Mark, offset: u64, bytes: u64) {
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

    /// Books that an object is gone. False, and nothing changes, if there cannot have been such an object.
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

    /// The last object is gone: so is everything that was lost.
    fn reset(&mut self) {
        self.watermark = 0;
        self.alignment_loss = 0;
        self.watermark_loss = 0;
        self.largest_bits = 0;
        self.last_bits = 0;
        self.resets += 1;
    }

    /// Forgets how often it was reset, when a new measurement begins.
    pub(crate) fn forget_resets(&mut self) {
        self.resets = 0;
    }

    /// What is wrong, if something is.
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

/// The next multiple of `size`, a power of two.
pub(crate) const fn align_up(value: u64, size: u64) -> u64 {
    (value + (size - 1)) & !(size - 1)
}
