//! Where things lie, physically and in the kernel's half of the address space.
//!
//! ```text
//!   0xffff_0000_0000_0000 + physical     the linear map: all RAM, the kernel itself, its devices
//!   0x0000_0000_0000_0000 …              programs
//! ```
//! The kernel is linked where the linear map shows it, so there is one address for everything and translating between
//! the two kinds is an addition.

/// Kernel virtual address of physical address 0.
pub const BASE: usize = 0xffff_0000_0000_0000;

/// Log2 of the large pages that the linear map is made of.
pub const LARGE_BITS: u32 = 21;

/// First physical address that is of no use as RAM: the kernel numbers objects in 31 bits of 64 bytes.
pub const RAM_END: u64 = 1 << 37;

/// A range of physical addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
}

impl Region {
    /// `size` bytes from `start` on; `None` if that goes beyond what addresses can express.
    pub const fn new(start: u64, size: u64) -> Option<Region> {
        match start.checked_add(size) {
            Some(end) => Some(Region { start, end }),
            None => None,
        }
    }

    /// Bytes.
    pub const fn size(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The smallest range of whole units of `1 << bits` bytes that contains it.
    pub const fn widen(self, bits: u32) -> Region {
        let mask = (1 << bits) - 1;
        Region { start: self.start & !mask, end: self.end.saturating_add(mask) & !mask }
    }

    /// The largest range of whole units of `1 << bits` bytes that it contains.
    pub const fn narrow(self, bits: u32) -> Region {
        let mask = (1 << bits) - 1;
        Region { start: self.start.saturating_add(mask) & !mask, end: self.end & !mask }
    }
}

/// Kernel virtual address of a physical one.
pub const fn kernel_address(physical: u64) -> usize {
    BASE + physical as usize
}

/// Physical address of a kernel virtual one.
pub const fn physical(address: usize) -> u64 {
    (address - BASE) as u64
}
