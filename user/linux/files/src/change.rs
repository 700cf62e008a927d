//! Operations that change directories.

use tench_linux_memory::{Hardware, Memory};

use crate::directory::Directory;
use crate::node::{Kind, NodeId};
use crate::path::Found;
use crate::pipe::Pipe;
use crate::tree::{NewNode, Tree};
use crate::{Errno, Last};

/// Ways to treat a node that has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// Replaces the node.
    Replace,
    /// Fails.
    KeepExisting,
    /// Exchanges the names of the two nodes.
    Exchange,
}

impl Tree {
    /// Makes a node with an entry.
    ///
    /// # Errors
    /// - `EEXIST`: there is one, or the path ends with `.` or `..`.
    /// - `ENOENT`: the directory was removed or is a generated one; or a slash follows the name, which is not to be
    ///   that of a directory.
    pub fn make<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        place: &Found,
        new: NewNode<'_>,
        permissions: u32,
    ) -> Result<NodeId, Errno> {
        if !place.is_named() || place.entry()?.is_some() {
            return Err(Errno::EEXIST);
        }
        let is_removed = place.parent.is_generated() || self.is_removed(place.parent);
        if (place.slash && new != NewNode::Directory) || is_removed {
            return Err(Errno::ENOENT);
        }
        let kind = match new {
            NewNode::Regular(contents) => Kind::Regular(memory.objects.make(contents.len() as u64, contents)),
            NewNode::Directory => Kind::Directory(Directory::new(place.parent)),
            NewNode::Link(path) => Kind::Link(path.into()),
            NewNode::Character(device) => Kind::Character(device),
            NewNode::Block(device) => Kind::Block(device),
            NewNode::Fifo => Kind::Fifo(Pipe::default()),
            NewNode::Socket => Kind::Socket,
        };
        let node = self.add(kind, permissions);
        self.enter(place.parent, &place.name, node);
        if new == NewNode::Directory {
            // Its own entry `.`.
            self.node_mut(node).links += 1;
        }
        Ok(node)
    }

    /// Returns whether a directory was removed.
    pub fn is_removed(&self, directory: NodeId) -> bool {
        self.node(directory).links == 0
    }

    /// Adds an entry for a node.
    pub(crate) fn enter(&mut self, parent: NodeId, name: &[u8], node: NodeId) {
        if let Some(directory) = self.node_mut(parent).directory_mut() {
            directory.insert(name, node);
        }
        let now = self.now;
        let child = self.node_mut(node);
        child.links += 1;
        child.attributes.changed = now;
        if let Some(mirror) = &mut child.mirror {
            mirror.place = (parent, name.into());
        }
        if let Some(directory) = child.directory_mut() {
            directory.parent = parent;
            self.node_mut(parent).links += 1;
        }
        self.touch(parent);
    }

    /// Removes an entry. Its node may end up without any.
    pub(crate) fn leave(&mut self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        let node = self.node_mut(parent).directory_mut()?.remove(name)?;
        let now = self.now;
        let child = self.node_mut(node);
        child.links -= 1;
        child.attributes.changed = now;
        if child.directory().is_some() {
            self.node_mut(parent).links -= 1;
        }
        self.touch(parent);
        Some(node)
    }

    /// Removes an entry that is not that of a directory.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`; `ENOTDIR` if a slash follows the name; `EPERM` if it is a generated one.
    pub fn unlink<H: Hardware>(&mut self, memory: &mut Memory<H>, place: &Found) -> Result<(), Errno> {
        if !place.is_named() {
            return Err(Errno::EISDIR);
        }
        let node = place.existing()?;
        if self.node(node).is_directory() {
            return Err(Errno::EISDIR);
        }
        if place.slash {
            return Err(Errno::ENOTDIR);
        }
        if node.is_generated() {
            return Err(Errno::EPERM);
        }
        self.leave(place.parent, &place.name);
        self.end_if_unused(memory, node);
        Ok(())
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// - `ENOENT`, `ENOTDIR`
    /// - `ENOTEMPTY`: it has entries, or the path ends with `..`.
    /// - `EINVAL`: the path ends with `.`.
    /// - `EBUSY`: it is the root, or generated directories begin there.
    /// - `EPERM`: it lies in a generated directory.
    pub fn remove_directory<H: Hardware>(&mut self, memory: &mut Memory<H>, place: &Found) -> Result<(), Errno> {
        match &*place.name {
            b"" => return Err(Errno::EBUSY),
            b"." => return Err(Errno::EINVAL),
            b".." => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        let node = place.existing()?;
        if node.is_generated() && self.node(node).is_directory() {
            return Err(if place.parent.is_generated() { Errno::EPERM } else { Errno::EBUSY });
        }
        let directory = self.node(node).directory().ok_or(Errno::ENOTDIR)?;
        if !directory.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.leave(place.parent, &place.name);
        self.end_directory(memory, node);
        Ok(())
    }

    /// Adds another entry for a node.
    ///
    /// # Errors
    /// - `EEXIST`: there is one, or the path ends with `.` or `..`.
    /// - `ENOENT`: the directory was removed, the node has no entry any more, or a slash follows the name.
    /// - `EPERM`: the node is a directory, or a generated one.
    /// - `EXDEV`: either the node or the directory is a generated one.
    pub fn link(&mut self, node: NodeId, place: &Found) -> Result<(), Errno> {
        if !place.is_named() || place.entry()?.is_some() {
            return Err(Errno::EEXIST);
        }
        if place.slash || self.is_removed(place.parent) {
            return Err(Errno::ENOENT);
        }
        if node.is_generated() != place.parent.is_generated() {
            return Err(Errno::EXDEV);
        }
        if self.node(node).directory().is_some() || node.is_generated() {
            return Err(Errno::EPERM);
        }
        if self.node(node).links == 0 {
            return Err(Errno::ENOENT);
        }
        self.enter(place.parent, &place.name, node);
        Ok(())
    }

    /// Gives a node another name.
    ///
    /// # Errors
    /// - `ENOENT`: there is no node with the old name; to be exchanged, none with the new one; or the new directory was
    ///   removed.
    /// - `EBUSY`: one of the paths ends with `.` or `..`, is the root, or generated directories begin there.
    /// - `EPERM`, `EXDEV`: both directories are generated ones, or one of them is.
    /// - `EEXIST`: there is one with the new name, which is to be kept.
    /// - `EINVAL`: a directory would be moved into itself.
    /// - `ENOTEMPTY`: a directory with the new name has entries, or is above the old name.
    /// - `ENOTDIR`: a directory would replace something else, or a slash follows a name that is not a directory's.
    /// - `EISDIR`: something else would replace a directory.
    pub fn rename<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        from: &Found,
        to: &Found,
        how: Rename,
    ) -> Result<(), Errno> {
        let Some((node, is_directory)) = self.check_rename(from, to, how)? else { return Ok(()) };
        if how == Rename::Exchange {
            return self.exchange(from, to);
        }
        if self.is_removed(to.parent) {
            return Err(Errno::ENOENT);
        }
        if let Some(replaced) = to.node {
            self.replace(memory, to, replaced, is_directory)?;
        }
        self.leave(from.parent, &from.name);
        self.enter(to.parent, &to.name, node);
        Ok(())
    }

    /// Checks that a node can have another name, before it matters who wants that. Returns the node, and whether it is
    /// a directory; nothing if there is nothing to do.
    ///
    /// # Errors
    /// Those of [`rename`](Self::rename) but that the new directory was removed, or about what is replaced.
    pub fn check_rename(&self, from: &Found, to: &Found, how: Rename) -> Result<Option<(NodeId, bool)>, Errno> {
        if !from.is_named() {
            return Err(Errno::EBUSY);
        }
        if !to.is_named() {
            return Err(if how == Rename::KeepExisting { Errno::EEXIST } else { Errno::EBUSY });
        }
        if from.parent.is_generated() != to.parent.is_generated() {
            return Err(Errno::EXDEV);
        }
        let node = from.existing()?;
        if to.entry()?.is_some() && how == Rename::KeepExisting {
            return Err(Errno::EEXIST);
        }
        if how == Rename::Exchange {
            let other = to.existing()?;
            if to.slash && self.node(other).directory().is_none() {
                return Err(Errno::ENOTDIR);
            }
        }
        if from.parent.is_generated() {
            return Err(if to.node.is_some() { Errno::EPERM } else { Errno::ENOENT });
        }
        if node.is_generated() || to.node.is_some_and(NodeId::is_generated) {
            return Err(Errno::EBUSY);
        }
        let is_directory = self.node(node).directory().is_some();
        if !is_directory && (from.slash || (to.slash && how != Rename::Exchange)) {
            return Err(Errno::ENOTDIR);
        }
        if self.is_within(to.parent, node) {
            return Err(Errno::EINVAL);
        }
        if let Some(replaced) = to.node
            && self.is_within(from.parent, replaced)
        {
            return Err(if how == Rename::Exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
        }
        Ok((to.node != Some(node)).then_some((node, is_directory)))
    }

    /// Returns whether a directory is another one or lies below it.
    fn is_within(&self, directory: NodeId, other: NodeId) -> bool {
        let mut here = directory;
        loop {
            if here == other {
                return true;
            }
            match self.node(here).directory().map(|directory| directory.parent) {
                Some(parent) if parent != here => here = parent,
                _ => return false,
            }
        }
    }

    /// Removes what a renamed node replaces.
    fn replace<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        place: &Found,
        node: NodeId,
        by_directory: bool,
    ) -> Result<(), Errno> {
        match self.node(node).directory() {
            None if by_directory => Err(Errno::ENOTDIR),
            Some(_) if !by_directory => Err(Errno::EISDIR),
            Some(directory) if !directory.is_empty() => Err(Errno::ENOTEMPTY),
            Some(_) => self.remove_directory(memory, place),
            None => self.unlink(memory, place),
        }
    }

    /// Exchanges the names of two nodes.
    fn exchange(&mut self, from: &Found, to: &Found) -> Result<(), Errno> {
        let first = self.leave(from.parent, &from.name).ok_or(Errno::ENOENT)?;
        let second = self.leave(to.parent, &to.name).ok_or(Errno::ENOENT)?;
        self.enter(to.parent, &to.name, first);
        self.enter(from.parent, &from.name, second);
        Ok(())
    }

    /// Lets a name in the root lead to a generated directory.
    ///
    /// # Errors
    /// `EEXIST` if something has the name.
    pub fn enter_generated(&mut self, name: &[u8], directory: NodeId) -> Result<(), Errno> {
        let root = self.node_mut(Tree::ROOT).directory_mut().ok_or(Errno::ENOTDIR)?;
        if root.get(name).is_some() {
            return Err(Errno::EEXIST);
        }
        root.insert(name, directory);
        Ok(())
    }

    /// Makes the directories of a path from the root that do not exist, and returns the last one.
    ///
    /// # Errors
    /// `ENOTDIR` if something on the way is no directory, and those of [`walk`](Self::walk).
    pub fn make_directories<H: Hardware>(&mut self, memory: &mut Memory<H>, path: &[u8]) -> Result<NodeId, Errno> {
        let mut here = Tree::ROOT;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let found = self.walk(Tree::ROOT, here, name, Last::Follow)?;
            here = match found.node {
                Some(node) => node,
                None => self.make(memory, &found, NewNode::Directory, 0o755)?,
            };
        }
        Ok(here)
    }
}
