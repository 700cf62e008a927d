//! Bundles of requested objects, described by size and number alone. The backend decides what the objects are.

use crate::slabs::Slabs;

/// Size in bytes of the smallest object to which the kernel can retype.
pub const MIN_SIZE: u64 = 16;
/// Maximum number of objects of one descriptor.
pub const MAX_COUNT: u32 = 1 << 20;

/// Objects of one size that lie side by side in one slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Size of one object in bytes: a power of two, at least [`MIN_SIZE`].
    pub size: u64,
    /// Number of objects: 1 to [`MAX_COUNT`].
    pub count: u32,
}

impl Descriptor {
    /// Returns a descriptor of `count` objects of `size` bytes.
    pub const fn new(size: u64, count: u32) -> Descriptor {
        Descriptor { size, count }
    }

    /// Returns whether such objects are possible.
    pub const fn is_valid(self) -> bool {
        self.size.is_power_of_two()
            && self.size >= MIN_SIZE
            && self.size <= 1 << 40
            && self.count > 0
            && self.count <= MAX_COUNT
    }

    /// Returns the size of all objects in bytes. Cannot overflow for a valid descriptor.
    pub const fn bytes(self) -> u64 {
        self.size.wrapping_mul(self.count as u64)
    }
}

/// Lifetime of objects, as far as the requester knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// Objects that live until they are freed.
    #[default]
    Dynamic,
    /// Objects that live for ever. These come from slabs of their own, because one permanent object keeps a slab from
    /// being reset.
    Static,
}

/// Position of the objects of one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Index of the slab in [`Slabs::slabs`].
    pub slab: usize,
    /// Offset of the first object from the slab's base in bytes.
    pub offset: u64,
    /// Size of one object in bytes.
    pub size: u64,
    /// Number of objects, side by side.
    pub count: u32,
}

impl Allocation {
    /// Returns address and size in bytes of each object, lowest first.
    pub fn objects(self, slabs: &Slabs) -> impl DoubleEndedIterator<Item = (u64, u64)> + use<> {
        let first = slabs.slabs()[self.slab].base() + self.offset;
        (0..u64::from(self.count)).map(move |i| (first + i * self.size, self.size))
    }

    /// Returns the size of all objects in bytes.
    pub const fn bytes(self) -> u64 {
        self.size * self.count as u64
    }
}
