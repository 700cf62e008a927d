//! The holder's books: which objects of other cores have copies here.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::error::Error;
use crate::object::{Core, Cores, Kind, ObjectId, Shape};

/// How far a foreign object is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It is not.
    Held,
    /// What was made of it and sent on is being withdrawn.
    Withdrawing,
    /// The kernel is deleting all copies and all that was made of them.
    Deleting,
}

/// A foreign object of which there are copies on this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    /// Its name.
    pub object: ObjectId,
    /// What it is.
    pub shape: Shape,
    /// How many copies have come.
    pub count: u64,
    /// Of untyped memory: how much had been borrowed before.
    order: u64,
    /// How far it is on its way out.
    pub stage: Stage,
    /// Lost cores to which parts of it were lent.
    pub tainted: Cores,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Copies {
    /// In order of name.
    copies: Vec<Copy>,
    limit: usize,
    borrowed: u64,
}

impl Copies {
    pub fn new(limit: usize) -> Copies {
        Copies { copies: Vec::with_capacity(limit), limit, borrowed: 0 }
    }

    fn place(&self, object: ObjectId) -> Result<usize, usize> {
        self.copies.binary_search_by_key(&object, |copy| copy.object)
    }

    pub fn get(&self, object: ObjectId) -> Option<&Copy> {
        self.copies.get(self.place(object).ok()?)
    }

    pub fn get_mut(&mut self, object: ObjectId) -> Option<&mut Copy> {
        let place = self.place(object).ok()?;
        self.copies.get_mut(place)
    }

    pub fn has_room(&self) -> Result<(), Error> {
        if self.copies.len() < self.limit { Ok(()) } else { Err(Error::TooManyCopies) }
    }

    pub fn add(&mut self, object: ObjectId, shape: Shape, count: u64) {
        if let Err(place) = self.place(object) {
            let order = self.borrowed;
            self.borrowed += u64::from(shape.kind == Kind::Untyped);
            self.copies.insert(place, Copy { object, shape, count, order, stage: Stage::Held, tainted: Cores::NONE });
        }
    }

    pub fn remove(&mut self, object: ObjectId) -> Option<Copy> {
        let place = self.place(object).ok()?;
        Some(self.copies.remove(place))
    }

    /// The borrowed memory that an object of this shape was made of: the smallest around it. Of two with the same
    /// extent the later was made of the earlier, all of which had been lent on.
    pub fn innermost(&self, shape: &Shape) -> Option<&Copy> {
        self.copies
            .iter()
            .filter(|copy| copy.shape.contains(shape))
            .min_by_key(|copy| (copy.shape.bytes, Reverse(copy.order)))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Copy> {
        self.copies.iter()
    }

    /// Whether any object of `owner` is left.
    pub fn has_any_of(&self, owner: Core) -> bool {
        self.copies.iter().any(|copy| copy.object.owner == owner)
    }
}
