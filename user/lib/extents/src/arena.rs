//! The arena of nodes, used and free.

use tench_tree::Id;

use crate::Error;
use crate::node::{Node, State};

/// Nodes in storage that may grow at its end.
pub struct Arena<S> {
    pub storage: S,
    /// First of the nodes that were used before and are free now.
    spare: Option<Id>,
    /// Index from which on nodes were never used.
    untouched: usize,
    /// Number of nodes in use.
    used: usize,
}

impl<S: AsRef<[Node]> + AsMut<[Node]>> Arena<S> {
    /// Returns an arena of which no node is in use, whatever the storage holds.
    pub const fn new(storage: S) -> Arena<S> {
        Arena { storage, spare: None, untouched: 0, used: 0 }
    }

    /// Returns the number of nodes in use.
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of nodes that can be taken.
    pub fn left(&self) -> usize {
        self.storage.as_ref().len() - self.used
    }

    /// Fails unless `count` nodes can be taken.
    pub fn require(&self, count: usize) -> Result<(), Error> {
        if self.left() < count { Err(Error::NeedsNodes) } else { Ok(()) }
    }

    #[inline(always)]
    pub fn nodes(&self) -> &[Node] {
        self.storage.as_ref()
    }

    #[inline(always)]
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        self.storage.as_mut()
    }

    #[inline(always)]
    pub fn node(&self, id: Id) -> &Node {
        &self.storage.as_ref()[id.index()]
    }

    #[inline(always)]
    pub fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.storage.as_mut()[id.index()]
    }

    /// Takes a node for an extent. Its links and its summary are set when it is inserted into a tree.
    pub fn take(&mut self, base: u64, size: u64, state: State, region: u32) -> Result<Id, Error> {
        let id = match self.spare {
            Some(spare) => {
                self.spare = if let State::Spare(next) = self.node(spare).state { next } else { None };
                spare
            }
            None if self.untouched < self.storage.as_ref().len() => {
                self.untouched += 1;
                Id::new(self.untouched as u32 - 1)
            }
            None => return Err(Error::NeedsNodes),
        };
        self.used += 1;
        let node = self.node_mut(id);
        (node.base, node.size, node.state, node.region) = (base, size, state, region);
        Ok(id)
    }

    /// Frees the node of an extent that is in no tree.
    pub fn give_back(&mut self, id: Id) {
        self.node_mut(id).state = State::Spare(self.spare);
        self.spare = Some(id);
        self.used -= 1;
    }

    /// Panics if a node is lost.
    pub fn check_invariants(&self) {
        let mut spare = 0;
        let mut next = self.spare;
        while let Some(id) = next {
            let State::Spare(following) = self.node(id).state else { panic!("a spare node is nothing else") };
            next = following;
            spare += 1;
        }
        assert_eq!(self.used + spare, self.untouched, "no node is lost");
    }
}
