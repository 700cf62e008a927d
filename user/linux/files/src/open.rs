//! Opening a path.

use tench_linux_calls::numbers::open;
use tench_linux_memory::{Hardware, Memory};

use crate::node::{Kind, NodeId};
use crate::path::Last;
use crate::tree::{NewNode, Tree};
use crate::{Errno, Time};

impl Tree {
    /// Opens a path: finds or makes its node, which gets another user. The caller cuts the contents off if the flags
    /// say so.
    ///
    /// # Errors
    /// - `ENOENT`: there is no node, and none is to be made.
    /// - `EEXIST`: there is one, which is to be made.
    /// - `EISDIR`: it is a directory, to be written or made.
    /// - `ENOTDIR`: it is none, but has to be.
    /// - `ELOOP`: it is a symbolic link, which is not to be followed.
    /// - `ENXIO`: it is a socket.
    /// - Those of [`walk`](Self::walk).
    pub fn open<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        (root, from): (NodeId, NodeId),
        path: &[u8],
        flags: u32,
        permissions: u32,
    ) -> Result<NodeId, Errno> {
        let makes = flags & open::CREAT != 0 && flags & open::PATH == 0;
        let has_to_make = makes && flags & open::EXCL != 0;
        let last = match (makes, flags & open::NOFOLLOW != 0) {
            (false, false) => Last::Follow,
            (false, true) => Last::Keep,
            (true, false) if !has_to_make => Last::FollowWithoutSlash,
            (true, _) => Last::Name,
        };
        let found = self.walk(root, from, path, last)?;
        if makes && found.slash && found.is_named() {
            return Err(Errno::EISDIR);
        }
        let node = match found.entry()? {
            Some(_) if has_to_make => return Err(Errno::EEXIST),
            Some(node) if found.slash => self.may_open(node, flags | open::DIRECTORY, makes)?,
            Some(node) => self.may_open(node, flags, makes)?,
            None if makes => self.make(memory, &found, NewNode::Regular(&[]), permissions)?,
            None => return Err(Errno::ENOENT),
        };
        self.share(node);
        Ok(node)
    }

    /// Returns the node if it may be opened.
    fn may_open(&self, node: NodeId, flags: u32, makes: bool) -> Result<NodeId, Errno> {
        let path_only = flags & open::PATH != 0;
        let writes = flags & open::ACCESS != open::RDONLY || flags & open::TRUNC != 0;
        let has_to_be_directory = flags & open::DIRECTORY != 0;
        match &self.node(node).kind {
            Kind::Directory(_) if makes || (writes && !path_only) => Err(Errno::EISDIR),
            Kind::Directory(_) => Ok(node),
            Kind::Link(_) if has_to_be_directory => Err(Errno::ENOTDIR),
            Kind::Link(_) if !path_only => Err(Errno::ELOOP),
            _ if has_to_be_directory => Err(Errno::ENOTDIR),
            Kind::Socket if !path_only => Err(Errno::ENXIO),
            _ => Ok(node),
        }
    }

    /// Returns the path to which a symbolic link leads.
    ///
    /// # Errors
    /// `EINVAL` if the node is none.
    pub fn link_target(&self, node: NodeId) -> Result<&[u8], Errno> {
        match &self.node(node).kind {
            Kind::Link(path) => Ok(path),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Sets the times at which a node was accessed and modified, each if it is given.
    pub fn set_times(&mut self, node: NodeId, accessed: Option<Time>, modified: Option<Time>) {
        let now = self.now;
        let attributes = &mut self.node_mut(node).attributes;
        attributes.accessed = accessed.unwrap_or(attributes.accessed);
        attributes.modified = modified.unwrap_or(attributes.modified);
        attributes.changed = now;
    }
}
