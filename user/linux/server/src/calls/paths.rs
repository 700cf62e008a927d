//! Calls that name files by paths.

use alloc::vec::Vec;

use tench_linux_calls::numbers::{AT_FDCWD, at, capability, file_type, open, permission};
use tench_linux_files::{Device, Errno, Found, Kind, Last, MAX_PATH, NewNode, NodeId, Rename};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::Place;

impl<M: Machine> Caller<'_, M> {
    /// Reads a path. Returns the directory from which it leads, too.
    pub(crate) fn path(&mut self, directory: u64, path: u64) -> Result<(NodeId, Vec<u8>)> {
        let path = self.read_path(path)?;
        let from =
            if path.first() == Some(&b'/') { self.process.root } else { self.directory(directory, path.is_empty())? };
        Ok((from, path))
    }

    /// Returns the directory with a descriptor, or the working directory.
    pub(super) fn directory(&mut self, descriptor: u64, may_be_file: bool) -> Result<NodeId> {
        if (descriptor as u32).cast_signed() == AT_FDCWD {
            return Ok(self.process.directory);
        }
        let description = self.descriptor(descriptor)?;
        let node = self.system.descriptions.get(description).node;
        if self.system.tree.node(node).is_directory() || may_be_file { Ok(node) } else { Err(Errno::ENOTDIR) }
    }

    /// Returns the node to which a path leads.
    pub(crate) fn find(&mut self, directory: u64, path: u64, last: Last) -> Result<NodeId> {
        let (from, path) = self.path(directory, path)?;
        self.system.tree.find_with(&self.view(), (self.process.root, from), &path, last)
    }

    /// Returns the node to which a path leads. With `AT_EMPTY_PATH` and an empty path that is the descriptor's.
    pub(crate) fn find_at(&mut self, directory: u64, path: u64, flags: u64) -> Result<NodeId> {
        let flags = flags as u32;
        let (from, path) = self.path(directory, path)?;
        if path.is_empty() && flags & at::EMPTY_PATH != 0 {
            return Ok(from);
        }
        let last = if flags & at::SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        self.system.tree.find_with(&self.view(), (self.process.root, from), &path, last)
    }

    /// Returns the place of a path's last name.
    fn place(&mut self, directory: u64, path: u64) -> Result<Found> {
        self.system.update_time();
        let (from, path) = self.path(directory, path)?;
        self.system.tree.walk_with(&self.view(), (self.process.root, from), &path, Last::Name)
    }

    fn make(&mut self, place: &Found, new: NewNode<'_>, mode: u64) -> Result {
        self.may_make(place)?;
        self.may_enter(place, new == NewNode::Directory)?;
        let is_device = matches!(new, NewNode::Character(_) | NewNode::Block(_));
        let is_new = place.is_named() && place.entry()?.is_none();
        if is_device && is_new && !self.identity().has(capability::MKNOD) {
            return Err(Errno::EPERM);
        }
        if self.make_in_mount(place, &new)? {
            return Ok(0);
        }
        let permissions = mode as u32 & 0o7777 & !self.process.mask;
        let node = self.system.tree.make(&mut self.system.memory, place, new, permissions)?;
        self.own_in(place.parent, node);
        self.adopt(place, node);
        Ok(0)
    }

    /// Makes a directory.
    pub fn mkdirat(&mut self, directory: u64, path: u64, mode: u64) -> Result {
        let place = self.place(directory, path)?;
        self.make(&place, NewNode::Directory, mode & 0o1777)
    }

    /// Makes a node that is no directory.
    pub fn mknodat(&mut self, directory: u64, path: u64, mode: u64, device: u64) -> Result {
        let device = Device(device as u32);
        let new = match mode as u32 & file_type::MASK {
            0 | file_type::REGULAR => NewNode::Regular(&[]),
            file_type::CHARACTER => NewNode::Character(device),
            file_type::BLOCK => NewNode::Block(device),
            file_type::FIFO => NewNode::Fifo,
            file_type::SOCKET => NewNode::Socket,
            file_type::DIRECTORY => return Err(Errno::EPERM),
            _ => return Err(Errno::EINVAL),
        };
        let place = self.place(directory, path)?;
        self.make(&place, new, mode)
    }

    /// Removes an entry.
    pub fn unlinkat(&mut self, directory: u64, path: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !at::REMOVEDIR != 0 {
            return Err(Errno::EINVAL);
        }
        let place = self.place(directory, path)?;
        self.may_remove(&place, flags & at::REMOVEDIR != 0)?;
        self.may_leave(&place)?;
        if self.remove_in_mount(&place, flags & at::REMOVEDIR != 0)? {
            return Ok(0);
        }
        if flags & at::REMOVEDIR != 0 {
            self.system.tree.remove_directory(&mut self.system.memory, &place)?;
        } else {
            self.system.tree.unlink(&mut self.system.memory, &place)?;
        }
        if self.system.is_watching() {
            self.system.tell_of_removal(&place, flags & at::REMOVEDIR != 0);
        }
        Ok(0)
    }

    /// Makes a symbolic link.
    pub fn symlinkat(&mut self, target: u64, directory: u64, path: u64) -> Result {
        let target = self.read_path(target)?;
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        let place = self.place(directory, path)?;
        self.may_make(&place)?;
        // Permissions of links mean nothing, and show as all of them.
        self.may_enter(&place, false)?;
        let new = NewNode::Link(&target);
        self.make_in_mount(&place, &new)?;
        let node = self.system.tree.make(&mut self.system.memory, &place, new, 0o777)?;
        self.own_in(place.parent, node);
        Ok(0)
    }

    /// Adds another entry for a node.
    pub fn linkat(&mut self, old_at: u64, old: u64, new_at: u64, new: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !(at::SYMLINK_FOLLOW | at::EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL);
        }
        // Who was sent a descriptor could give the file a name otherwise.
        if flags & at::EMPTY_PATH != 0 && !self.identity().has(capability::DAC_READ_SEARCH) {
            return Err(Errno::ENOENT);
        }
        let keep = if flags & at::SYMLINK_FOLLOW != 0 { 0 } else { at::SYMLINK_NOFOLLOW };
        let node = self.find_at(old_at, old, (flags & at::EMPTY_PATH | keep).into())?;
        let place = self.place(new_at, new)?;
        self.may_link(node, &place)?;
        if place.node.is_none() && self.lies_nowhere(node) {
            return Err(Errno::EXDEV);
        }
        self.may_add_name(node, &place)?;
        self.link_in_mount(node, &place)?;
        self.system.tree.link(node, &place).map(|()| 0)
    }

    /// Returns whether a node was made without a name, so that it lies in no file system in which it could get one.
    fn lies_nowhere(&self, node: NodeId) -> bool {
        let node = self.system.tree.node(node);
        match node.kind {
            Kind::Fifo(_) | Kind::Special(_) | Kind::Socket => node.links() == 0,
            Kind::Regular(object) => self.system.memory.objects.get(object).name().is_some(),
            _ => false,
        }
    }

    /// Gives a node another name.
    pub fn renameat(&mut self, old_at: u64, old: u64, new_at: u64, new: u64, flags: u64) -> Result {
        let how = match flags {
            0 => Rename::Replace,
            1 => Rename::KeepExisting,
            2 => Rename::Exchange,
            _ => return Err(Errno::EINVAL),
        };
        let (old, new) = (self.place(old_at, old)?, self.place(new_at, new)?);
        self.may_rename(&old, &new)?;
        self.may_move(&old, &new, how)?;
        if self.rename_in_mount(&old, &new, how)? {
            return Ok(0);
        }
        self.system.tree.rename(&mut self.system.memory, &old, &new, how)?;
        if self.system.is_watching() {
            self.system.tell_of_renaming(&old, &new, how == Rename::Exchange);
        }
        let other = new.node.filter(|_| how == Rename::Exchange);
        let [from, to] = [old, new].map(|found| (found.node, Place { directory: found.parent, name: found.name }));
        for (node, old, new) in [(from.0, &from.1, &to.1), (other, &to.1, &from.1)] {
            if let Some(node) = node {
                self.system.descriptions.move_place(node, old, new);
            }
        }
        Ok(0)
    }

    /// Reads where a symbolic link leads.
    pub fn readlinkat(&mut self, directory: u64, path: u64, into: u64, length: u64) -> Result {
        if (length as u32).cast_signed() <= 0 {
            return Err(Errno::EINVAL);
        }
        let (from, path) = self.path(directory, path)?;
        let node = match path.is_empty() {
            true => from,
            false => self.system.tree.find_with(&self.view(), (self.process.root, from), &path, Last::Keep)?,
        };
        let target = self.link_text(node)?;
        if target.len() > MAX_PATH {
            return Err(Errno::ENAMETOOLONG);
        }
        let length = target.len().min(length as u32 as usize);
        self.write(into, &target[..length])?;
        Ok(length as u64)
    }

    /// Returns whether the process's real user may access a file.
    pub fn faccessat(&mut self, directory: u64, path: u64, wanted: u64) -> Result {
        if wanted & !7 != 0 {
            return Err(Errno::EINVAL);
        }
        let wanted = wanted as u32;
        let real = self.identity().as_real();
        let own = core::mem::replace(&mut self.process.thread_mut().identity, real);
        let result = self.find(directory, path, Last::Follow).and_then(|node| {
            if wanted & permission::WRITE != 0 {
                self.may_open_generated(node, open::WRONLY)?;
                self.may_write_in_mount(node)?;
            }
            if wanted == 0 { Ok(()) } else { self.may_access(node, wanted) }
        });
        self.process.thread_mut().identity = own;
        result.map(|()| 0)
    }
}
