//! Free ranges of a slab whose watermark rule is lifted, in the order of their addresses.
//!
//! They are a sorted array rather than a tree: there are few ranges, most policies iterate over all of them, and an
//! array can be enlarged ahead of need, so that freeing, which may split a range, never has to allocate memory.

use alloc::vec::Vec;

/// A free range, in bytes from the slab's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub start: u64,
    pub end: u64,
}

/// The free ranges of a slab; none touches the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(Vec<Hole>);

impl Holes {
    /// Returns the single free range of an empty slab of `size` bytes.
    pub fn whole(size: u64) -> Holes {
        Holes(alloc::vec![Hole { start: 0, end: size }])
    }

    /// Returns an iterator over the ranges, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = Hole> + '_ {
        self.0.iter().copied()
    }

    /// Makes room for the maximum number of ranges among `objects` objects. Returns false if there is no memory for
    /// that.
    pub fn reserve(&mut self, objects: u64) -> bool {
        let wanted = usize::try_from(objects + 1).unwrap_or(usize::MAX);
        self.0.try_reserve(wanted.saturating_sub(self.0.len())).is_ok()
    }

    /// Takes a range out of the hole around it. Returns false and changes nothing if it is not all free.
    pub fn take(&mut self, start: u64, end: u64) -> bool {
        let at = self.0.partition_point(|hole| hole.end <= start);
        let Some(hole) = self.0.get_mut(at) else { return false };
        if hole.start > start || hole.end < end {
            return false;
        }
        let rest = Hole { start: end, end: hole.end };
        let keeps_front = hole.start < start;
        let keeps_back = rest.start < rest.end;
        match (keeps_front, keeps_back) {
            (false, false) => drop(self.0.remove(at)),
            (false, true) => *hole = rest,
            (true, false) => hole.end = start,
            (true, true) => {
                hole.end = start;
                self.0.insert(at + 1, rest);
            }
        }
        true
    }

    /// Frees a range. Returns false and changes nothing if part of it is free already.
    pub fn give(&mut self, start: u64, end: u64) -> bool {
        let at = self.0.partition_point(|hole| hole.end < start);
        let touches_below = self.0.get(at).is_some_and(|hole| hole.end == start);
        let above = at + usize::from(touches_below);
        if self.0.get(above).is_some_and(|hole| hole.start < end) {
            return false;
        }
        let touches_above = self.0.get(above).is_some_and(|hole| hole.start == end);
        match (touches_below, touches_above) {
            (false, false) => self.0.insert(at, Hole { start, end }),
            (false, true) => self.0[above].start = start,
            (true, false) => self.0[at].end = end,
            (true, true) => {
                self.0[at].end = self.0[above].end;
                self.0.remove(above);
            }
        }
        true
    }

    /// Returns the number of free bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|hole| hole.end - hole.start).sum()
    }

    /// Returns the size of the range that ends at the slab's end; the others are holes between objects.
    pub fn tail(&self, size: u64) -> u64 {
        self.0.last().filter(|hole| hole.end == size).map_or(0, |hole| hole.end - hole.start)
    }

    /// Returns the violated invariant, if any.
    pub fn check_invariants(&self, size: u64) -> Result<(), &'static str> {
        if self.0.iter().any(|hole| hole.start >= hole.end || hole.end > size) {
            return Err("a hole is empty or ends beyond its slab");
        }
        if self.0.windows(2).any(|pair| pair[0].end >= pair[1].start) {
            return Err("holes overlap, touch or are out of order");
        }
        Ok(())
    }
}
