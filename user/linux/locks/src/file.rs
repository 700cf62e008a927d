//! The locks of one file.

use alloc::vec::Vec;

use crate::Range;

/// The kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Others may have shared locks, too.
    Shared,
    /// Nobody else has a lock.
    Exclusive,
}

/// The owner of locks of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<D> {
    /// A process, by its number.
    Process(u32),
    /// An open file.
    Description(D),
}

/// A lock of a range that somebody has or wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<D> {
    /// The owner.
    pub owner: Owner<D>,
    /// The kind.
    pub kind: Kind,
    /// The bytes.
    pub range: Range,
}

impl<D: Copy + Eq> Record<D> {
    /// Returns whether two owners cannot have both locks.
    fn conflicts(&self, other: &Record<D>) -> bool {
        let is_exclusive = self.kind == Kind::Exclusive || other.kind == Kind::Exclusive;
        is_exclusive && self.owner != other.owner && self.range.overlaps(other.range)
    }
}

/// The locks of one file.
#[derive(Debug)]
pub(crate) struct FileLocks<D> {
    /// Locks of ranges: those of an owner are neighbours, in the order of their ranges.
    records: Vec<Record<D>>,
    /// Locks of the whole file.
    pub(crate) whole: Vec<(D, Kind)>,
}

impl<D> Default for FileLocks<D> {
    fn default() -> FileLocks<D> {
        FileLocks { records: Vec::new(), whole: Vec::new() }
    }
}

impl<D: Copy + Eq> FileLocks<D> {
    /// Returns the number of locks.
    pub(crate) const fn count(&self) -> usize {
        self.records.len() + self.whole.len()
    }

    /// Returns the locks of ranges.
    pub(crate) fn records(&self) -> &[Record<D>] {
        &self.records
    }

    /// Returns all locks of others that are in the way of a lock.
    pub(crate) fn conflicts(&self, wanted: &Record<D>) -> impl Iterator<Item = &Record<D>> {
        self.records.iter().filter(move |record| record.conflicts(wanted))
    }

    /// Gives an owner's bytes in a range a kind, or no lock. Returns false, and changes nothing, if there would be more
    /// than so many locks of ranges, or there is no memory for them.
    pub(crate) fn set(&mut self, owner: Owner<D>, range: Range, kind: Option<Kind>, limit: usize) -> bool {
        let is_own = |record: &Record<D>| record.owner == owner;
        let from = self.records.iter().position(is_own).unwrap_or(self.records.len());
        let old = self.records[from..].iter().take_while(|record| is_own(record)).count();
        let mut new = Vec::new();
        if new.try_reserve(old + 2).is_err() {
            return false;
        }
        let outside = |record: &Record<D>| {
            let record = *record;
            record.range.without(range).map(move |range| Record { range, ..record })
        };
        new.extend(self.records[from..from + old].iter().flat_map(outside));
        if let Some(kind) = kind {
            let place = new.partition_point(|record| record.range.first < range.first);
            new.insert(place, Record { owner, kind, range });
        }
        new.dedup_by(|next, before| {
            let is_one = before.kind == next.kind && before.range.last + 1 == next.range.first;
            if is_one {
                before.range.last = next.range.last;
            }
            is_one
        });
        let more = new.len().saturating_sub(old);
        if more > 0 && self.records.len() + more > limit || self.records.try_reserve(more).is_err() {
            return false;
        }
        self.records.splice(from..from + old, new);
        true
    }

    /// Removes all locks of ranges that an owner has. Returns whether there were some.
    pub(crate) fn remove(&mut self, owner: Owner<D>) -> bool {
        let before = self.records.len();
        self.records.retain(|record| record.owner != owner);
        self.records.len() < before
    }

    /// Returns whether a lock of the whole file is in the way of an open file's.
    pub(crate) fn is_whole_held(&self, description: D, kind: Kind) -> bool {
        let mut others = self.whole.iter().filter(|(owner, _)| *owner != description);
        others.any(|(_, held)| kind == Kind::Exclusive || *held == Kind::Exclusive)
    }

    /// Removes the lock of the whole file that an open file has. Returns whether there was one.
    pub(crate) fn remove_whole(&mut self, description: D) -> bool {
        let before = self.whole.len();
        self.whole.retain(|(owner, _)| *owner != description);
        self.whole.len() < before
    }

    /// Checks that an owner's locks are together, in order, and as few as possible, and that no two locks conflict.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        for pair in self.records.windows(2).filter(|pair| pair[0].owner == pair[1].owner) {
            let (before, next) = (pair[0], pair[1]);
            if before.range.last >= next.range.first {
                return Err("locks of one owner overlap, or are not in order");
            }
            if before.kind == next.kind && before.range.last + 1 == next.range.first {
                return Err("neighbours of one kind are two locks");
            }
        }
        for (index, record) in self.records.iter().enumerate() {
            let mut behind = self.records[index..].iter().skip_while(|other| other.owner == record.owner);
            if behind.any(|other| other.owner == record.owner) {
                return Err("the locks of an owner are not together");
            }
            if record.range.first > record.range.last || record.range.last > Range::END {
                return Err("a lock has no bytes, or some that no file has");
            }
            if self.conflicts(record).next().is_some() {
                return Err("two owners have locks that conflict");
            }
        }
        for (index, (owner, kind)) in self.whole.iter().enumerate() {
            if self.is_whole_held(*owner, *kind) {
                return Err("two open files have locks of the whole file that conflict");
            }
            if self.whole[index + 1..].iter().any(|(other, _)| other == owner) {
                return Err("an open file has two locks of the whole file");
            }
        }
        Ok(())
    }
}
