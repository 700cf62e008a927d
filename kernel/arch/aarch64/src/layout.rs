//! Memory layout, physical and in the kernel's half of the address space.
//!
//! ```text
//!   0xffff_fff0_0000_0000 + physical     the linear map: all RAM, the kernel itself, its devices
//!   0x0000_0000_0000_0000 …              programs
//! ```
//! The linear map is the last 64 GiB of the address space. So the number of an address, in units of 32 or 64 bytes,
//! becomes the address again by sign extension alone ([`locate`]): the kernel names slots and queue nodes by such
//! numbers.
//!
//! The kernel is linked at its address in the linear map, so every object has one address, and translating between
//! physical and virtual addresses is an addition.

use tench_abi::object::LINES;

/// Kernel virtual address of physical address 0.
pub const BASE: usize = 0xffff_fff0_0000_0000;

/// Log2 of the size in bytes of the large pages in the linear map.
pub const LARGE_BITS: u32 = 21;

/// Maximum number of memory banks of a machine.
pub const MAX_BANKS: usize = 16;
/// Maximum number of cores of a machine.
pub const MAX_CORES: usize = 64;

/// Interrupt line of the virtual timer. A constant is compared faster than a field, and Arm's Base System Architecture
/// gives it this line; a machine with another is refused.
pub const TIMER_LINE: u32 = 27;

/// A set of interrupt lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineSet([u32; LINES / 32]);

impl LineSet {
    /// The empty set.
    pub const EMPTY: LineSet = LineSet([0; LINES / 32]);

    /// Returns the lines for which `is_in` is true.
    pub fn of(is_in: impl Fn(u32) -> bool) -> LineSet {
        let mut set = LineSet::EMPTY;
        (0..LINES as u32).filter(|line| is_in(*line)).for_each(|line| set.insert(line));
        set
    }

    /// Adds a line, if kernels serve it.
    pub fn insert(&mut self, line: u32) {
        if let Some(word) = self.0.get_mut(line as usize / 32) {
            *word |= 1 << (line % 32);
        }
    }

    /// Returns whether a line is in the set.
    pub fn contains(&self, line: u32) -> bool {
        self.0.get(line as usize / 32).is_some_and(|word| word >> (line % 32) & 1 != 0)
    }

    /// Returns those lines of devices in the set that the controller has (`32 * words` in all), together with the
    /// private lines (below 32) whose bits are set in `private`.
    pub fn with_private(&self, private: u32, words: usize) -> LineSet {
        let exists = |index| if index < words { u32::MAX } else { 0 };
        let word = |index| if index == 0 { private } else { self.word(index) & exists(index) };
        LineSet(core::array::from_fn(word))
    }

    /// Returns the 32 lines from `32 * index` on, one bit for each, as in the interrupt controller's registers.
    pub fn word(&self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// First physical address beyond the linear map. Memory there is not used as RAM.
pub const RAM_END: u64 = 1 << 36;

const _: () = assert!(RAM_END == (BASE as u64).wrapping_neg());

/// Returns the address in the linear map that has a [`number`].
#[inline(always)]
pub const fn locate(number: u32, shift: u32) -> usize {
    ((number as i32 as isize) << shift) as usize
}

/// Returns the low 32 bits of an address of the linear map in units of `1 << shift` bytes, at least 32.
#[inline(always)]
pub const fn number(address: usize, shift: u32) -> u32 {
    (address >> shift) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_lines_that_kernels_serve() {
        let mut set = LineSet::of(|line| line % 100 == 33);
        set.insert(40);
        set.insert(LINES as u32);
        set.insert(u32::MAX);
        let found = (0..1024).filter(|line| set.contains(*line));
        assert!(found.eq([33, 40, 133, 233]));
        assert!(!set.contains(u32::MAX));
        assert!((0..1024).filter(|line| set.with_private(0b110, 5).contains(*line)).eq([1, 2, 33, 40, 133]));
        assert_eq!([0, 1, 2, LINES / 32].map(|index| set.word(index)), [0, 1 << 1 | 1 << 8, 0, 0]);
    }

    #[test]
    fn numbers_stand_for_addresses() {
        for shift in [5, 6] {
            for physical in [0, 64, 0x4000_0000, RAM_END / 2 - 64, RAM_END / 2, RAM_END - 64] {
                let address = BASE + physical as usize;
                let number = number(address, shift);
                assert_eq!(locate(number, shift), address);
                assert_ne!(number, 0);
            }
        }
    }
}

/// A range of physical addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
}

impl Region {
    /// Returns the range of `size` bytes from `start` on; `None` if it exceeds the address type.
    pub const fn new(start: u64, size: u64) -> Option<Region> {
        match start.checked_add(size) {
            Some(end) => Some(Region { start, end }),
            None => None,
        }
    }

    /// Returns the size in bytes.
    pub const fn size(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the range is empty.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns the smallest range of whole units of `1 << bits` bytes that contains this one.
    pub const fn widen(self, bits: u32) -> Region {
        let mask = (1 << bits) - 1;
        Region { start: self.start & !mask, end: self.end.saturating_add(mask) & !mask }
    }

    /// Returns the largest range of whole units of `1 << bits` bytes within this one.
    pub const fn narrow(self, bits: u32) -> Region {
        let mask = (1 << bits) - 1;
        Region { start: self.start.saturating_add(mask) & !mask, end: self.end & !mask }
    }
}

/// Returns the kernel virtual address of a physical address.
pub const fn kernel_address(physical: u64) -> usize {
    BASE + physical as usize
}

/// Returns the physical address of a kernel virtual address.
pub const fn physical(address: usize) -> u64 {
    (address - BASE) as u64
}
