//! Nodes that are not in the tree: somebody else makes them up when a path leads there.
//!
//! An entry of the tree may lead to such a node, which is a directory. What it contains, only whoever implements
//! [`Generated`] knows; the tree keeps nothing of it, so that nodes which nobody looks at cost nothing.

use alloc::vec::Vec;

use crate::Errno;
use crate::access::Credentials;
use crate::node::{Attributes, Kind, Node, NodeId, Time};
use crate::tree::Tree;

/// Type of a generated node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A regular file.
    File,
}

/// Set in the names of generated nodes.
const GENERATED: u64 = 1 << 63;
/// Position of the type in such a name.
const CLASS: u32 = 61;
/// Bits of a generated node's number.
const NUMBER: u64 = (1 << CLASS) - 1;

impl NodeId {
    /// Returns the name of a generated node with a number of 61 bits.
    pub const fn generated(class: Class, number: u64) -> NodeId {
        NodeId(GENERATED | (class as u64) << CLASS | number & NUMBER)
    }

    /// Returns the number of a generated node; nothing for those of the tree.
    pub const fn number_of_generated(self) -> Option<u64> {
        if self.is_generated() { Some(self.0 & NUMBER) } else { None }
    }

    /// Returns whether the node is a generated one.
    pub const fn is_generated(self) -> bool {
        self.0 & GENERATED != 0
    }
}

/// Where a generated link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a path, from the link's directory or the root.
    Path(Vec<u8>),
    /// To a node, whether or not that has a path.
    Node(NodeId),
}

/// Knows what generated directories contain.
pub trait Generated {
    /// Returns the node with a name in a generated directory.
    ///
    /// # Errors
    /// `ESRCH` if what the directory describes does not exist any more.
    fn get(&self, directory: NodeId, name: &[u8]) -> Result<Option<NodeId>, Errno>;

    /// Returns the directory in which a generated directory has its entry.
    fn parent(&self, directory: NodeId) -> NodeId;

    /// Returns where a generated link leads.
    ///
    /// # Errors
    /// `ENOENT` if that does not exist any more.
    fn target(&self, link: NodeId) -> Result<Target, Errno>;

    /// Compares an entry of a directory that is a [mirror](crate::Mirror) with its original.
    ///
    /// # Errors
    /// Any, if that has not been done yet: the path is to be walked again later.
    fn compare(&self, _directory: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Ok(())
    }

    /// Returns the caller's credentials; nothing if it may search every directory.
    fn searcher(&self) -> Option<Credentials<'_>> {
        None
    }

    /// Returns the caller's user; nothing if it may follow all links.
    fn user(&self) -> Option<u32> {
        None
    }

    /// Returns whether a generated directory may be searched.
    fn may_search(&self, _: NodeId, _: &Credentials<'_>) -> bool {
        true
    }
}

/// Stands for generated directories that contain nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Generated for Nothing {
    fn get(&self, _: NodeId, _: &[u8]) -> Result<Option<NodeId>, Errno> {
        Ok(None)
    }

    fn parent(&self, _: NodeId) -> NodeId {
        Tree::ROOT
    }

    fn target(&self, _: NodeId) -> Result<Target, Errno> {
        Err(Errno::ENOENT)
    }
}

/// Returns a node that stands for all generated ones of a type.
const fn node(class: Class) -> Node {
    let never = Time { seconds: 0, nanoseconds: 0 };
    let permissions = if matches!(class, Class::Directory) { 0o555 } else { 0o444 };
    let attributes = Attributes { permissions, user: 0, group: 0, accessed: never, modified: never, changed: never };
    Node { inode: 0, kind: Kind::Generated(class), attributes, mirror: None, links: 1, users: 1 }
}

static DIRECTORY: Node = node(Class::Directory);
static LINK: Node = node(Class::Link);
static FILE: Node = node(Class::File);

/// Returns the node that stands for a generated one.
pub(crate) const fn stand_in(id: NodeId) -> Option<&'static Node> {
    if !id.is_generated() {
        return None;
    }
    match (id.0 & !GENERATED) >> CLASS {
        0 => Some(&DIRECTORY),
        1 => Some(&LINK),
        _ => Some(&FILE),
    }
}
