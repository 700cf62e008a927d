//! Directories.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::NodeId;

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Position behind the entry, from which a reader goes on.
    pub next: u64,
    /// The name.
    pub name: &'a [u8],
    /// The node.
    pub node: NodeId,
}

/// Position of the first entry that was made; `.` and `..` come before.
const FIRST: u64 = 2;

/// The entries of a directory. Each keeps its position, so that a reader misses none and sees none twice, whatever
/// others add and remove meanwhile.
#[derive(Debug)]
pub struct Directory {
    /// The directory in which this one has its entry, or had it before it was removed; itself for the root.
    pub(crate) parent: NodeId,
    /// Set if this one was removed while somebody used it. It is a user of its parent then: `..` leads there still.
    pub(crate) keeps_parent: bool,
    /// Positions and nodes by names.
    names: BTreeMap<Box<[u8]>, (u64, NodeId)>,
    /// Names by positions.
    positions: BTreeMap<u64, Box<[u8]>>,
    /// Position of the next entry.
    next: u64,
}

impl Directory {
    pub(crate) const fn new(parent: NodeId) -> Directory {
        Directory { parent, keeps_parent: false, names: BTreeMap::new(), positions: BTreeMap::new(), next: FIRST }
    }

    /// Returns the directory in which this one has its entry, or had it before it was removed; itself for the root.
    pub const fn parent(&self) -> NodeId {
        self.parent
    }

    /// Returns the node of a name.
    pub fn get(&self, name: &[u8]) -> Option<NodeId> {
        self.names.get(name).map(|(_, node)| *node)
    }

    /// Returns whether there is no entry but `.` and `..`.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the number of entries without `.` and `..`.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the name of a node, if it has one here.
    pub fn name_of(&self, node: NodeId) -> Option<&[u8]> {
        self.names.iter().find(|(_, (_, other))| *other == node).map(|(name, _)| &**name)
    }

    /// Returns the entries from a position on, in order.
    pub fn entries(&self, own: NodeId, position: u64) -> impl Iterator<Item = Entry<'_>> {
        let dots = [Entry { next: 1, name: b".", node: own }, Entry { next: FIRST, name: b"..", node: self.parent }];
        let dots = dots.into_iter().filter(move |entry| entry.next > position);
        let named = self
            .positions
            .range(position.max(FIRST)..)
            .filter_map(|(position, name)| Some(Entry { next: position + 1, name, node: self.get(name)? }));
        dots.chain(named)
    }

    pub(crate) fn insert(&mut self, name: &[u8], node: NodeId) {
        let position = self.next;
        self.next += 1;
        self.positions.insert(position, name.into());
        if let Some((old, _)) = self.names.insert(name.into(), (position, node)) {
            self.positions.remove(&old);
        }
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<NodeId> {
        let (position, node) = self.names.remove(name)?;
        self.positions.remove(&position);
        Some(node)
    }

    /// Returns all names, with their nodes.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&[u8], NodeId)> {
        self.names.iter().map(|(name, (_, node))| (&**name, *node))
    }

    /// Returns all nodes with an entry here.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.names.values().map(|(_, node)| *node)
    }
}
