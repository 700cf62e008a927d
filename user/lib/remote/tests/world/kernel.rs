//! Model of one core's kernel, as far as the protocol needs it: the objects with capabilities there, and their
//! derivation.
//!
//! The model does what it is told, and is otherwise as unhelpful as a kernel may be: everything that the protocol does
//! not forbid happens.

use tench_remote::{Error, Kind, ObjectId, Shape};

/// An object of a script, by its index there. It is the same on all cores, which no real kernel could know.
pub type Name = u8;

/// All capabilities to one object on one core.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub name: Name,
    pub shape: Shape,
    /// The object on this core from which it was made.
    pub parent: Option<Name>,
    /// Number of capabilities that clients hold.
    pub copies: u8,
    /// The exported capability: the monitor's capability to an object that was exported.
    pub exported: Option<ObjectId>,
    /// The root: the monitor's capability to a remote object.
    pub root: Option<ObjectId>,
    /// Set while the kernel is deleting the object.
    pub deleting: bool,
}

impl Node {
    /// Returns whether objects can be made from it on this core.
    pub fn is_retypable(&self) -> bool {
        self.shape.kind == Kind::Untyped && self.copies > 0 && self.exported.is_none()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Nodes in order of their names.
    pub nodes: Vec<Node>,
}

pub fn overlap(a: &Shape, b: &Shape) -> bool {
    a.base < b.base.saturating_add(b.bytes) && b.base < a.base.saturating_add(a.bytes)
}

impl Kernel {
    pub fn get(&self, name: Name) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    pub fn get_mut(&mut self, name: Name) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.name == name)
    }

    pub fn add(&mut self, name: Name, shape: Shape, parent: Option<Name>, root: Option<ObjectId>) {
        let node = Node { name, shape, parent, copies: 1, exported: None, root, deleting: false };
        let index = self.nodes.partition_point(|node| node.name < name);
        self.nodes.insert(index, node);
    }

    fn remove(&mut self, name: Name) {
        self.nodes.retain(|node| node.name != name);
    }

    pub fn has_children(&self, name: Name) -> bool {
        self.nodes.iter().any(|node| node.parent == Some(name))
    }

    /// Returns whether a client can make `name` from `of`.
    pub fn can_retype(&self, of: Name, shape: &Shape) -> bool {
        let rivals = |node: &&Node| node.parent == Some(of) && overlap(&node.shape, shape);
        self.get(of).is_some_and(|node| node.is_retypable()) && !self.nodes.iter().any(|node| rivals(&node))
    }

    /// Deletes one of a client's capabilities; memory from which something was made stays.
    pub fn delete_copy(&mut self, name: Name) {
        if let Some(node) = self.get_mut(name) {
            node.copies -= 1;
        }
        self.forget_unused(name);
    }

    fn forget_unused(&mut self, name: Name) {
        if self.get(name).is_some_and(|node| node.copies == 0 && node.exported.is_none() && node.root.is_none()) {
            self.remove(name);
        }
    }

    /// Returns the first exported object among `name` and the objects made from it.
    pub fn remote_copies(&self, name: Name) -> Option<ObjectId> {
        let below = self.below(name);
        self.nodes.iter().filter(|node| below.contains(&node.name)).find_map(|node| node.exported)
    }

    /// Returns `name` and everything made from it.
    fn below(&self, name: Name) -> Vec<Name> {
        let mut below = vec![name];
        let mut next = 0;
        while let Some(&parent) = below.get(next) {
            below.extend(self.nodes.iter().filter(|node| node.parent == Some(parent)).map(|node| node.name));
            next += 1;
        }
        below
    }

    /// Deletes everything made from `name`, and all but `left` of its copies.
    pub fn revoke(&mut self, name: Name, left: u8) {
        let below = self.below(name);
        self.nodes.retain(|node| node.name == name || !below.contains(&node.name));
        if let Some(node) = self.get_mut(name) {
            node.copies = left;
        }
    }

    pub fn export(&mut self, name: Name, object: ObjectId) -> Result<(), Error> {
        if self.has_children(name) {
            return Err(Error::InUse);
        }
        let node = self.get_mut(name).ok_or(Error::Kernel)?;
        if node.exported.is_some() {
            return Err(Error::Lent);
        }
        node.exported = Some(object);
        Ok(())
    }

    pub fn unexport(&mut self, object: ObjectId) -> Result<(), &'static str> {
        let node = self.nodes.iter_mut().find(|node| node.exported == Some(object));
        let node = node.ok_or("an exported capability was deleted that is not there")?;
        node.exported = None;
        let name = node.name;
        self.forget_unused(name);
        Ok(())
    }

    pub fn root(&self, object: ObjectId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.root == Some(object))
    }

    /// Deletes a root with at most `at_most` capabilities below it, and nothing made from them.
    pub fn close(&mut self, object: ObjectId, at_most: u8) -> Result<(), Error> {
        let node = self.root(object).ok_or(Error::Kernel)?;
        if node.copies > at_most || node.deleting || self.has_children(node.name) {
            return Err(Error::InUse);
        }
        let name = node.name;
        self.remove(name);
        Ok(())
    }

    /// Completes the deletion of a remote object; returns the exported capabilities that were deleted with it.
    pub fn finish_deleting(&mut self, name: Name) -> Vec<ObjectId> {
        let below = self.below(name);
        let met =
            self.nodes.iter().filter(|node| below.contains(&node.name)).filter_map(|node| node.exported).collect();
        self.revoke(name, 0);
        self.remove(name);
        met
    }
}
