//! Opening a path.

use tench_linux_calls::numbers::open;
use tench_linux_memory::{Hardware, Memory};

use crate::generated::{Class, Generated, Nothing};
use crate::node::{Kind, NodeId};
use crate::path::{Found, Last};
use crate::tree::{NewNode, Tree};
use crate::{Errno, Time};

/// Returns whether a file that does not exist is to be made.
const fn makes(flags: u32) -> bool {
    flags & open::CREAT != 0 && flags & open::PATH == 0
}

impl Tree {
    /// Opens a path: finds or makes its node, which gets another user. The caller cuts the contents off if the flags
    /// say so. Generated directories are empty.
    ///
    /// # Errors
    /// - `ENOENT`: there is no node, and none is to be made.
    /// - `EEXIST`: there is one, which is to be made.
    /// - `EISDIR`: it is a directory, to be written or made.
    /// - `ENOTDIR`: it is none, but has to be.
    /// - `ELOOP`: it is a symbolic link, which is not to be followed.
    /// - `ENXIO`: it is a socket, or something without a name that is no file.
    /// - Those of [`walk`](Self::walk).
    pub fn open<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        places: (NodeId, NodeId),
        path: &[u8],
        flags: u32,
        permissions: u32,
    ) -> Result<NodeId, Errno> {
        let found = self.walk_to_open(&Nothing, places, path, flags)?;
        self.open_found(memory, &found, flags, permissions)
    }

    /// Returns where a path leads that is to be opened.
    ///
    /// # Errors
    /// Those of [`walk_with`](Self::walk_with).
    pub fn walk_to_open(
        &self,
        generated: &dyn Generated,
        places: (NodeId, NodeId),
        path: &[u8],
        flags: u32,
    ) -> Result<Found, Errno> {
        let makes = makes(flags);
        let last = match (makes, flags & open::NOFOLLOW != 0) {
            (false, false) => Last::Follow,
            (false, true) => Last::Keep,
            (true, false) if flags & open::EXCL == 0 => Last::FollowWithoutSlash,
            (true, _) => Last::Name,
        };
        self.walk_with(generated, places, path, last)
    }

    /// Opens what was found. See [`open`](Self::open).
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_found<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        found: &Found,
        flags: u32,
        permissions: u32,
    ) -> Result<NodeId, Errno> {
        let makes = makes(flags);
        let has_to_make = makes && flags & open::EXCL != 0;
        if makes && found.slash && found.is_named() {
            return Err(Errno::EISDIR);
        }
        let node = match found.entry()? {
            Some(_) if has_to_make => return Err(Errno::EEXIST),
            Some(node) if found.slash => self.may_open(node, flags | open::DIRECTORY, makes)?,
            Some(node) => self.may_open(node, flags, makes)?,
            None if makes => self.make(memory, found, NewNode::Regular(&[]), permissions)?,
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
            Kind::Directory(_) | Kind::Generated(Class::Directory) if makes || (writes && !path_only) => {
                Err(Errno::EISDIR)
            }
            Kind::Directory(_) | Kind::Generated(Class::Directory) => Ok(node),
            Kind::Link(_) | Kind::Generated(Class::Link) if has_to_be_directory => Err(Errno::ENOTDIR),
            Kind::Link(_) | Kind::Generated(Class::Link) if !path_only => Err(Errno::ELOOP),
            _ if has_to_be_directory => Err(Errno::ENOTDIR),
            Kind::Socket | Kind::Special(_) if !path_only => Err(Errno::ENXIO),
            _ => Ok(node),
        }
    }

    /// Returns the path to which a symbolic link of the tree leads.
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
