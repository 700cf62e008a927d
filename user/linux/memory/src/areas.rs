//! The areas of an address space: what may be where.

use alloc::collections::BTreeMap;
use core::ops::Range;

use crate::{ObjectId, PAGE_SIZE, Rights};

/// From where an area has its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Zeros.
    Anonymous,
    /// An object, from this offset on, a multiple of the size of a page.
    Object(ObjectId, u64),
}

impl Backing {
    /// Returns the backing of what lies so many bytes further.
    pub(crate) fn advanced(self, bytes: u64) -> Backing {
        match self {
            Backing::Anonymous => Backing::Anonymous,
            Backing::Object(id, offset) => Backing::Object(id, offset + bytes),
        }
    }
}

/// Neighbouring pages of an address space with equal properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Address behind the last byte.
    pub end: u64,
    /// Rights of the process.
    pub rights: Rights,
    /// Rights that the process can give itself.
    pub allowed: Rights,
    /// Others see what is written, instead of a copy being made.
    pub shared: bool,
    /// From where the contents are.
    pub backing: Backing,
    /// The area grows downwards if memory below it is touched.
    pub grows: bool,
}

impl Area {
    /// Returns whether an area that begins at `first` goes on as another one that begins at `start`.
    fn continues_as(&self, first: u64, start: u64, next: &Area) -> bool {
        let backing = self.backing.advanced(start.wrapping_sub(first));
        self.end == start && *next == Area { end: next.end, backing, ..*self }
    }
}

/// The areas of an address space, by their first addresses. They do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Areas(BTreeMap<u64, Area>);

impl Areas {
    /// Returns no areas.
    pub const fn new() -> Areas {
        Areas(BTreeMap::new())
    }

    /// Returns the number of areas.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the area in which an address lies, with its first address.
    pub fn at(&self, address: u64) -> Option<(u64, &Area)> {
        let (start, area) = self.0.range(..=address).next_back()?;
        (address < area.end).then_some((*start, area))
    }

    /// Returns the first area that begins above an address.
    pub fn above(&self, address: u64) -> Option<(u64, &Area)> {
        self.0.range(address..).map(|(start, area)| (*start, area)).next()
    }

    /// Returns the last area that ends at or below an address.
    pub fn below(&self, address: u64) -> Option<(u64, &Area)> {
        self.0.range(..address).map(|(start, area)| (*start, area)).next_back().filter(|(_, area)| area.end <= address)
    }

    /// Returns all areas in order, with their first addresses.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Area)> {
        self.0.iter().map(|(start, area)| (*start, area))
    }

    /// Returns the parts of areas that lie in a range, in order.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &Area)> {
        let first = self.at(range.start).map_or(range.start, |(start, _)| start);
        let areas = self.0.range(first..range.end.max(first));
        areas.map(move |(start, area)| (range.start.max(*start)..range.end.min(area.end), area))
    }

    /// Returns whether every address of a range lies in an area.
    pub fn cover(&self, range: Range<u64>) -> bool {
        let mut next = range.start;
        for (part, _) in self.within(range.clone()) {
            if part.start != next {
                return false;
            }
            next = part.end;
        }
        next >= range.end
    }

    /// Divides the area in which an address lies, so that one begins there.
    fn split_at(&mut self, address: u64) -> Option<ObjectId> {
        let (start, area) = self.at(address)?;
        if start == address {
            return None;
        }
        let upper = Area { backing: area.backing.advanced(address - start), ..*area };
        self.0.insert(address, upper);
        if let Some(lower) = self.0.get_mut(&start) {
            lower.end = address;
        }
        match upper.backing {
            Backing::Anonymous => None,
            Backing::Object(id, _) => Some(id),
        }
    }

    /// Divides areas so that none lies across an end of a range. Returns the objects that have another user because of
    /// that.
    pub fn split(&mut self, range: &Range<u64>) -> impl Iterator<Item = ObjectId> + use<> {
        let (first, second) = (self.split_at(range.start), self.split_at(range.end));
        first.into_iter().chain(second)
    }

    /// Adds an area where there is none.
    pub fn insert(&mut self, start: u64, area: Area) {
        self.0.insert(start, area);
    }

    /// Removes the first area in a range, at whose ends areas were [split](Self::split).
    pub fn remove_first(&mut self, range: Range<u64>) -> Option<Area> {
        let start = *self.0.range(range).next()?.0;
        self.0.remove(&start)
    }

    /// Changes the areas in a range, at whose ends they were [split](Self::split).
    pub fn change(&mut self, range: Range<u64>, change: impl Fn(&mut Area)) {
        for (_, area) in self.0.range_mut(range) {
            change(area);
        }
    }

    /// Moves the beginning of an area that grows downwards.
    pub fn grow(&mut self, start: u64, new: u64) {
        if let Some(area) = self.0.remove(&start) {
            self.0.insert(new, area);
        }
    }

    /// Moves the end of an area, behind which nothing is.
    pub fn extend(&mut self, start: u64, end: u64) {
        if let Some(area) = self.0.get_mut(&start) {
            area.end = end;
        }
    }

    /// Joins neighbouring areas from the one before a range to the one behind it, if they differ in nothing. `release`
    /// names an object that has a user less because of that, and returns false if it must not.
    pub fn join(&mut self, range: Range<u64>, mut release: impl FnMut(ObjectId) -> bool) {
        let mut before = self.0.range(..range.start).next_back().map(|(start, area)| (*start, *area));
        let mut next = range.start;
        while let Some((start, area)) = self.0.range(next..range.end + 1).next().map(|(start, area)| (*start, *area)) {
            next = start + 1;
            let mut may_join = || match area.backing {
                Backing::Object(id, _) => release(id),
                Backing::Anonymous => true,
            };
            before = match before {
                Some((first, lower)) if lower.continues_as(first, start, &area) && may_join() => {
                    self.0.remove(&start);
                    if let Some(lower) = self.0.get_mut(&first) {
                        lower.end = area.end;
                    }
                    Some((first, Area { end: area.end, ..lower }))
                }
                _ => Some((start, area)),
            };
        }
    }

    /// Returns the highest free range of a length in a range.
    pub fn find_free(&self, length: u64, within: Range<u64>) -> Option<u64> {
        let mut end = within.end;
        for (start, area) in self.0.range(..within.end).rev() {
            if end.checked_sub(area.end.max(within.start)).is_some_and(|free| free >= length) {
                break;
            }
            end = end.min(*start);
        }
        end.checked_sub(length).filter(|start| *start >= within.start)
    }

    /// Checks that areas are not empty, consist of whole pages and do not overlap.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut last = 0;
        for (start, area) in self.iter() {
            if start < last {
                return Err("areas overlap");
            }
            if start >= area.end || start % PAGE_SIZE != 0 || area.end % PAGE_SIZE != 0 {
                return Err("an area is empty, or has a part of a page");
            }
            if !area.allowed.contains(area.rights) {
                return Err("an area has a right that it may not have");
            }
            last = area.end;
        }
        Ok(())
    }
}
