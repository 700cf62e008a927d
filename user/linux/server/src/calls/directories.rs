//! Calls about directories.

use alloc::vec::Vec;

use tench_linux_calls::numbers::{AT_FDCWD, capability, file_type, permission};
use tench_linux_files::{Entry, Errno, Last, MAX_PATH, NodeId, Tree};

use crate::Machine;
use crate::caller::{Caller, Result};

/// Bytes of a directory's entry before the name.
const ENTRY_HEAD: usize = 19;

/// The most bytes that one call reads.
const MAX_RECORDS: u64 = 64 * 1024;

/// Records of entries, as programs read them.
struct Records {
    bytes: Vec<u8>,
    /// The most bytes.
    most: u64,
    /// There was no room for an entry.
    is_full: bool,
}

impl Records {
    /// Adds an entry for a file of a type, if there is room.
    fn add(&mut self, entry: Entry<'_>, inode: u64, kind: u32) -> bool {
        let records = &mut self.bytes;
        let size = (ENTRY_HEAD + entry.name.len() + 1).next_multiple_of(8);
        if (records.len() + size) as u64 > self.most {
            self.is_full = true;
            return false;
        }
        let end = records.len() + size;
        records.extend_from_slice(&inode.to_le_bytes());
        records.extend_from_slice(&entry.next.to_le_bytes());
        records.extend_from_slice(&(size as u16).to_le_bytes());
        records.push((kind / file_type::FIFO) as u8);
        records.extend_from_slice(entry.name);
        records.resize(end, 0);
        true
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Changes the working directory.
    pub fn chdir(&mut self, path: u64) -> Result {
        let node = self.find(AT_FDCWD as u64, path, Last::Follow)?;
        self.change_directory(node)
    }

    /// Changes the working directory to that of a descriptor.
    pub fn fchdir(&mut self, descriptor: u64) -> Result {
        let description = self.descriptor(descriptor)?;
        let node = self.system.descriptions.get(description).node;
        self.change_directory(node)
    }

    fn change_directory(&mut self, node: NodeId) -> Result {
        if !self.system.tree.node(node).is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if node.is_generated() && self.generated_path(node).is_none() {
            return Err(Errno::ESRCH);
        }
        self.may_access(node, permission::EXECUTE)?;
        self.system.tree.share(node);
        let old = core::mem::replace(&mut self.process.directory, node);
        self.system.release_node(old);
        Ok(0)
    }

    /// Changes the root directory, at which paths that begin with a slash start. The working directory stays.
    pub fn chroot(&mut self, path: u64) -> Result {
        let node = self.find(AT_FDCWD as u64, path, Last::Follow)?;
        if !self.system.tree.node(node).is_directory() {
            return Err(Errno::ENOTDIR);
        }
        self.may_access(node, permission::EXECUTE)?;
        if !self.identity().has(capability::SYS_CHROOT) {
            return Err(Errno::EPERM);
        }
        self.system.tree.share(node);
        let old = core::mem::replace(&mut self.process.root, node);
        self.system.release_node(old);
        Ok(0)
    }

    /// Reads the path of the working directory. Returns its length with the zero at its end.
    pub fn getcwd(&mut self, into: u64, length: u64) -> Result {
        let directory = self.process.directory;
        let mut path = match directory.is_generated() {
            true => self.generated_path(directory),
            false => self.system.tree.path_of(Tree::ROOT, directory),
        }
        .ok_or(Errno::ENOENT)?;
        if self.process.root != Tree::ROOT {
            path = self.below_root(path);
        }
        if path.len() > MAX_PATH {
            return Err(Errno::ENAMETOOLONG);
        }
        path.push(0);
        if (path.len() as u64) > length {
            return Err(Errno::ERANGE);
        }
        self.write(into, &path)?;
        Ok(path.len() as u64)
    }

    /// Returns a path relative to the process's root. As on Linux, a path outside it begins with `(unreachable)`.
    fn below_root(&self, path: Vec<u8>) -> Vec<u8> {
        let root = self.process.root;
        let above =
            if root.is_generated() { self.generated_path(root) } else { self.system.tree.path_of(Tree::ROOT, root) };
        match above.and_then(|above| path.strip_prefix(&above[..])) {
            Some([]) => b"/".to_vec(),
            Some(rest) if rest[0] == b'/' => rest.to_vec(),
            _ => [b"(unreachable)", &path[..]].concat(),
        }
    }

    /// Reads entries of a directory.
    pub fn getdents64(&mut self, descriptor: u64, into: u64, length: u64) -> Result {
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        if !open_file.reads() {
            return Err(Errno::EBADF);
        }
        let (node, mut position) = (open_file.node, open_file.position);
        let mut records =
            Records { bytes: Vec::new(), most: u64::from(length as u32).min(MAX_RECORDS), is_full: false };
        let kind = |node| self.system.tree.node(node).kind.file_type();
        if node.is_generated() {
            for entry in self.view().entries(node, position)? {
                let next = entry.position + 1;
                let (inode, kind) = (Tree::number(entry.node), kind(entry.node));
                if !records.add(Entry { next, name: &entry.name, node: entry.node }, inode, kind) {
                    break;
                }
                position = next;
            }
        } else {
            let directory = self.system.tree.node(node).directory().ok_or(Errno::ENOTDIR)?;
            for entry in directory.entries(node, position) {
                let (inode, kind) = (self.system.tree.inode(entry.node), kind(entry.node));
                if !records.add(entry, inode, kind) {
                    break;
                }
                position = entry.next;
            }
        }
        let Records { bytes: records, is_full, .. } = records;
        if records.is_empty() && is_full {
            return Err(Errno::EINVAL);
        }
        self.write(into, &records)?;
        self.system.descriptions.get(description).position = position;
        Ok(records.len() as u64)
    }
}
