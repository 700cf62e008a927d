//! What is asked for: bundles of objects, by size and number alone. What the objects are is the backend's affair.

use crate::slabs::Slabs;

/// The smallest object, in bytes: what the kernel can retype to.
pub const MIN_SIZE: u64 = 16;
/// Objects that one descriptor can ask for.
pub const MAX_COUNT: u32 = 1 << 20;

/// Objects of one size that lie side by side in one slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Bytes of one object: a power of two, at least [`MIN_SIZE`].
    pub size: u64,
    /// How many: 1 to [`MAX_COUNT`].
    pub count: u32,
}

impl Descriptor {
    /// `count` objects of `size` bytes.
    pub const fn new(size: u64, count: u32) -> Descriptor {
        Descriptor { size, count }
    }

    /// Whether there can be such objects.
    pub const fn is_valid(self) -> bool {
        self.size.is_power_of_two()
            && self.size >= MIN_SIZE
            && self.size <= 1 << 40
            && self.count > 0
            && self.count <= MAX_COUNT
    }

    /// Bytes of all of them. Cannot overflow for a valid descriptor.
    pub const fn bytes(self) -> u64 {
        self.size.wrapping_mul(self.count as u64)
    }
}

/// How long objects live, as far as the one who asks knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// Until they are freed.
    #[default]
    Dynamic,
    /// For ever. These come from slabs of their own, because one object that stays keeps a slab from being reset.
    Static,
}

/// Where the objects of one descriptor have gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The slab, as its place among [`Slabs::slabs`].
    pub slab: usize,
    /// Of the first object, in bytes from the slab's base.
    pub offset: u64,
    /// Bytes of one object.
    pub size: u64,
    /// Objects, side by side.
    pub count: u32,
}

impl Piece {
    /// Address and size in bytes of each object, lowest first.
    pub fn objects(self, slabs: &Slabs) -> impl DoubleEndedIterator<Item = (u64, u64)> + use<> {
        let first = slabs.slabs()[self.slab].base() + self.offset;
        (0..u64::from(self.count)).map(move |i| (first + i * self.size, self.size))
    }

    /// Bytes of all of them.
    pub const fn bytes(self) -> u64 {
        self.size * self.count as u64
    }
}
