//! The owner's table: objects of this core that have copies on other cores, and the cores that have them.

use alloc::vec::Vec;

use tench_abi::Rights;

use crate::error::Error;
use crate::object::{Core, Cores, ObjectId, Shape};

/// An object of this core that was exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Export {
    /// Shape of the object.
    pub shape: Shape,
    /// The borrowed memory from which it was made, if any.
    pub within: Option<ObjectId>,
    /// Set while copies of the object are being withdrawn; then no new ones are sent.
    pub withdrawing: bool,
    /// Lost cores that may have spread objects made from it.
    pub tainted: Cores,
    /// Set if objects that a lost core may have spread are left to the withdrawal of the memory around this object; the
    /// exported capability goes with that memory.
    pub given_up: bool,
}

/// A core that may have copies of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    number: u32,
    /// The holder's core.
    pub core: Core,
    /// Number of copies sent there since it was last added to this table.
    pub sent: u64,
    /// Number of those that it has confirmed or refused.
    pub taken: u64,
    /// Union of the rights of its copies.
    pub rights: Rights,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    generation: u32,
    export: Option<Export>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exports {
    core: Core,
    entries: Vec<Entry>,
    /// Holders in order of (object, core).
    holders: Vec<Holder>,
    most_holders: usize,
}

/// Reason why a name refers to no object.
pub(crate) enum Missing {
    /// The name referred to an object that has no copies any more.
    Over,
    /// The name was never assigned.
    Never,
}

impl Exports {
    pub fn new(core: Core, limit: usize, most_holders: usize) -> Exports {
        Exports {
            core,
            entries: (0..limit.min(1 << 24)).map(|_| Entry { generation: 0, export: None }).collect(),
            holders: Vec::with_capacity(most_holders),
            most_holders,
        }
    }

    pub fn get(&self, object: ObjectId) -> Result<&Export, Missing> {
        let entry = self.entries.get(object.number as usize).ok_or(Missing::Never)?;
        match &entry.export {
            Some(export) if object.owner == self.core && entry.generation == object.generation => Ok(export),
            _ if object.owner == self.core && object.generation < entry.generation => Err(Missing::Over),
            _ => Err(Missing::Never),
        }
    }

    pub fn get_mut(&mut self, object: ObjectId) -> Option<&mut Export> {
        let entry = self.entries.get_mut(object.number as usize)?;
        entry.export.as_mut().filter(|_| object.owner == self.core && entry.generation == object.generation)
    }

    /// Returns the name of the object of this shape.
    pub fn find(&self, shape: &Shape) -> Option<ObjectId> {
        self.iter().find(|(_, export)| export.shape == *shape).map(|(object, _)| object)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Export)> {
        let owner = self.core;
        (0..).zip(&self.entries).filter_map(move |(number, entry)| {
            Some((ObjectId { owner, number, generation: entry.generation }, entry.export.as_ref()?))
        })
    }

    /// Returns the name that the next new object will have.
    pub fn free(&self) -> Result<ObjectId, Error> {
        // An entry whose generations are used up is not reused.
        let is_free = |entry: &Entry| entry.export.is_none() && entry.generation < u32::MAX;
        let (number, entry) =
            (0..).zip(&self.entries).find(|(_, entry)| is_free(entry)).ok_or(Error::TooManyExports)?;
        Ok(ObjectId { owner: self.core, number, generation: entry.generation })
    }

    pub fn add(&mut self, object: ObjectId, shape: Shape, within: Option<ObjectId>) {
        if let Some(entry) = self.entries.get_mut(object.number as usize) {
            entry.export = Some(Export { shape, within, withdrawing: false, tainted: Cores::NONE, given_up: false });
        }
    }

    pub fn remove(&mut self, object: ObjectId) -> Option<Export> {
        self.get(object).ok()?;
        let entry = self.entries.get_mut(object.number as usize)?;
        entry.generation = entry.generation.saturating_add(1);
        entry.export.take()
    }

    fn search(&self, object: ObjectId, core: Core) -> Result<usize, usize> {
        self.holders.binary_search_by_key(&(object.number, core), |holder| (holder.number, holder.core))
    }

    pub fn holder(&self, object: ObjectId, core: Core) -> Option<&Holder> {
        self.get(object).ok()?;
        self.holders.get(self.search(object, core).ok()?)
    }

    pub fn holder_mut(&mut self, object: ObjectId, core: Core) -> Option<&mut Holder> {
        self.get(object).ok()?;
        let index = self.search(object, core).ok()?;
        self.holders.get_mut(index)
    }

    /// Returns all cores that may have copies of the object.
    pub fn holders(&self, object: ObjectId) -> &[Holder] {
        let first = self.holders.partition_point(|holder| holder.number < object.number);
        let end = self.holders.partition_point(|holder| holder.number <= object.number);
        self.holders.get(first..end).unwrap_or_default()
    }

    /// Fails unless one more copy can be sent to `core`.
    pub fn check_capacity(&self, object: ObjectId, core: Core) -> Result<(), Error> {
        if self.holder(object, core).is_some() || self.holders.len() < self.most_holders {
            Ok(())
        } else {
            Err(Error::TooManyHolders)
        }
    }

    /// Counts one more copy as sent to `core`, and returns the new count.
    pub fn count(&mut self, object: ObjectId, core: Core, rights: Rights) -> u64 {
        let index = match self.search(object, core) {
            Ok(index) => index,
            Err(index) => {
                let holder = Holder { number: object.number, core, sent: 0, taken: 0, rights: Rights::empty() };
                self.holders.insert(index, holder);
                index
            }
        };
        let holder = &mut self.holders[index];
        holder.sent += 1;
        holder.rights |= rights;
        holder.sent
    }

    pub fn forget(&mut self, object: ObjectId, core: Core) {
        if let Ok(index) = self.search(object, core) {
            self.holders.remove(index);
        }
    }
}
