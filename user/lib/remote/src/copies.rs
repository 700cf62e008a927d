//! The holder's table: objects of other cores that have copies here.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::error::Error;
use crate::object::{Core, Cores, Kind, ObjectId, Shape};

/// Stage of the withdrawal of a remote object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The object is not being withdrawn.
    Held,
    /// Objects that were made from it and sent on are being withdrawn.
    Withdrawing,
    /// The kernel is deleting all copies and everything made from them.
    Deleting,
}

/// A remote object of which there are copies on this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    /// Name of the object.
    pub object: ObjectId,
    /// Shape of the object.
    pub shape: Shape,
    /// Number of copies received.
    pub count: u64,
    /// For untyped memory: a number that says in which order memory was borrowed.
    order: u64,
    /// Stage of its withdrawal.
    pub stage: Stage,
    /// Lost cores to which parts of it were lent.
    pub tainted: Cores,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Copies {
    /// Copies in order of their names.
    copies: Vec<Copy>,
    limit: usize,
    borrowed: u64,
}

impl Copies {
    pub fn new(limit: usize) -> Copies {
        Copies { copies: Vec::with_capacity(limit), limit, borrowed: 0 }
    }

    fn search(&self, object: ObjectId) -> Result<usize, usize> {
        self.copies.binary_search_by_key(&object, |copy| copy.object)
    }

    pub fn get(&self, object: ObjectId) -> Option<&Copy> {
        self.copies.get(self.search(object).ok()?)
    }

    pub fn get_mut(&mut self, object: ObjectId) -> Option<&mut Copy> {
        let index = self.search(object).ok()?;
        self.copies.get_mut(index)
    }

    pub fn check_capacity(&self) -> Result<(), Error> {
        if self.copies.len() < self.limit { Ok(()) } else { Err(Error::TooManyCopies) }
    }

    pub fn add(&mut self, object: ObjectId, shape: Shape, count: u64) {
        if let Err(index) = self.search(object) {
            let order = self.borrowed;
            self.borrowed += u64::from(shape.kind == Kind::Untyped);
            self.copies.insert(index, Copy { object, shape, count, order, stage: Stage::Held, tainted: Cores::NONE });
        }
    }

    pub fn remove(&mut self, object: ObjectId) -> Option<Copy> {
        let index = self.search(object).ok()?;
        Some(self.copies.remove(index))
    }

    /// Returns the borrowed memory from which an object of this shape was made: the smallest that contains it. Of two
    /// with the same extent, the later one was made from the earlier one, all of which had been lent on.
    pub fn innermost(&self, shape: &Shape) -> Option<&Copy> {
        self.copies
            .iter()
            .filter(|copy| copy.shape.contains(shape))
            .min_by_key(|copy| (copy.shape.bytes, Reverse(copy.order)))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Copy> {
        self.copies.iter()
    }

    /// Returns whether any object of `owner` is left.
    pub fn has_any_of(&self, owner: Core) -> bool {
        self.copies.iter().any(|copy| copy.object.owner == owner)
    }
}
