//! Which parts of the address space are free.
//!
//! The free ranges lie in a fixed array, because the heap itself is mapped with its help. A range that is given back
//! when the array is full and that touches no other is forgotten; there is room for so many more that this does no harm.

/// Free ranges that are remembered.
const MAX_RANGES: usize = 64;

/// Free ranges of addresses, by rising address, none of which touch.
pub struct Ranges {
    ranges: [(u64, u64); MAX_RANGES],
    count: usize,
}

impl Ranges {
    /// None.
    pub const fn new() -> Ranges {
        Ranges { ranges: [(0, 0); MAX_RANGES], count: 0 }
    }

    /// Takes `size` bytes at a multiple of `alignment` (a power of two): the lowest place there is.
    pub fn take(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let (index, address) = self.ranges[..self.count].iter().enumerate().find_map(|(index, &(start, end))| {
            let address = start.checked_next_multiple_of(alignment)?;
            (address.checked_add(size)? <= end).then_some((index, address))
        })?;
        let (start, end) = self.ranges[index];
        let (before, after) = ((start, address), (address + size, end));
        match (before.0 < before.1, after.0 < after.1) {
            (true, true) => {
                self.ranges[index] = before;
                self.insert(index + 1, after);
            }
            (true, false) => self.ranges[index] = before,
            (false, true) => self.ranges[index] = after,
            (false, false) => self.remove(index),
        }
        Some(address)
    }

    /// Adds a range, or gives one back.
    pub fn free(&mut self, address: u64, size: u64) {
        let end = address + size;
        let index = self.ranges[..self.count].partition_point(|range| range.0 < address);
        let joins_before = index > 0 && self.ranges[index - 1].1 == address;
        let joins_after = index < self.count && self.ranges[index].0 == end;
        match (joins_before, joins_after) {
            (true, true) => {
                self.ranges[index - 1].1 = self.ranges[index].1;
                self.remove(index);
            }
            (true, false) => self.ranges[index - 1].1 = end,
            (false, true) => self.ranges[index].0 = address,
            (false, false) => self.insert(index, (address, end)),
        }
    }

    /// Free bytes.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.ranges[..self.count].iter().map(|range| range.1 - range.0).sum()
    }

    fn insert(&mut self, index: usize, range: (u64, u64)) {
        if self.count == MAX_RANGES {
            return;
        }
        self.ranges.copy_within(index..self.count, index + 1);
        self.ranges[index] = range;
        self.count += 1;
    }

    fn remove(&mut self, index: usize) {
        self.ranges.copy_within(index + 1..self.count, index);
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    fn ranges(start: u64, end: u64) -> Ranges {
        let mut ranges = Ranges::new();
        ranges.free(start, end - start);
        ranges
    }

    #[test]
    fn the_lowest_aligned_place_is_taken() {
        let mut ranges = ranges(0x1000, 0x10_0000);
        assert_eq!(ranges.take(0x1000, 0x4000), Some(0x4000));
        assert_eq!(ranges.take(0x1000, 0x1000), Some(0x1000));
        assert_eq!(ranges.take(0x2000, 0x1000), Some(0x2000));
        assert_eq!(ranges.take(0x1000, 0x1000), Some(0x5000));
        assert_eq!(ranges.take(u64::MAX, 0x1000), None);
        assert_eq!(ranges.take(0x10_0000, 0x1000), None);
    }

    #[test]
    fn freed_ranges_join() {
        let mut ranges = ranges(0, 0x8000);
        let places: Vec<u64> = (0..8).map(|_| ranges.take(0x1000, 0x1000).unwrap()).collect();
        assert_eq!(ranges.bytes(), 0);
        for index in [1, 3, 2, 7, 0, 5, 6, 4] {
            ranges.free(places[index], 0x1000);
        }
        assert_eq!((ranges.count, ranges.ranges[0]), (1, (0, 0x8000)));
    }

    #[test]
    fn a_full_array_forgets_but_stays_right() {
        let mut ranges = ranges(0, 0x100_0000);
        let places: Vec<u64> = (0..400).map(|_| ranges.take(0x1000, 0x1000).unwrap()).collect();
        for place in places.iter().step_by(2) {
            ranges.free(*place, 0x1000);
        }
        assert_eq!(ranges.count, MAX_RANGES);
        for pair in ranges.ranges.windows(2) {
            assert!(pair[0].1 < pair[1].0);
        }
        let mut again: Vec<u64> = Vec::new();
        while let Some(place) = ranges.take(0x1000, 0x1000) {
            assert!(!again.contains(&place) && (place >= 400 * 0x1000 || place % 0x2000 == 0));
            again.push(place);
        }
    }
}
