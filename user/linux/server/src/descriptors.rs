//! Open files, and the descriptors by which a process names them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use slab::Slab;
use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, NodeId};

use crate::terminals::End;

/// Number of descriptors that a process may have, unless it sets another limit.
pub const MAX_DESCRIPTORS: u32 = 1024;

/// Name of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DescriptionId(u32);

/// Where a file was found when it was opened. Neither need exist any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub directory: NodeId,
    /// The name.
    pub name: Box<[u8]>,
}

/// Contents of a generated file, from which an open file reads on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// All of them.
    pub bytes: Box<[u8]>,
    /// Position behind what was read last.
    pub next: u64,
}

/// An open file. Descriptors that were duplicated or inherited share it, and with it the position.
#[derive(Debug)]
pub struct Description {
    /// The node.
    pub node: NodeId,
    /// How it was opened: access and flags that can be changed later.
    pub flags: u32,
    /// Position of the next byte, or of the next entry of a directory.
    pub position: u64,
    /// For a pipe that was opened while nobody wrote: how often it had been opened to be written.
    pub without_writers: Option<u32>,
    /// Number of entries of `epoll`s that watch it, and one more if it has an owner.
    pub watchers: u32,
    /// Where it was found.
    pub place: Option<Place>,
    /// For a generated file: what was read last.
    pub contents: Option<Contents>,
    /// For a file with a process's memory: how many programs that had started. It does not show the memory of another.
    pub programs: u64,
    /// For a terminal: which one, and from which side.
    pub end: Option<End>,
    users: u32,
}

impl Description {
    /// Returns whether the file may be read.
    pub const fn reads(&self) -> bool {
        self.flags & (open::ACCESS | open::PATH) != open::WRONLY && self.flags & open::PATH == 0
    }

    /// Returns the number of its users.
    pub const fn users(&self) -> u32 {
        self.users
    }

    /// Returns whether it names a place in the tree, and nothing else.
    pub const fn is_path(&self) -> bool {
        self.flags & open::PATH != 0
    }

    /// Returns whether the file may be written.
    pub const fn writes(&self) -> bool {
        self.flags & open::ACCESS != open::RDONLY && self.flags & open::PATH == 0
    }
}

/// All open files of an instance.
#[derive(Debug, Default)]
pub struct Descriptions {
    pub(crate) all: Slab<Description>,
}

impl Descriptions {
    /// Adds an open file with one user. Its node has got a user for it.
    pub fn add(&mut self, node: NodeId, flags: u32) -> DescriptionId {
        let (place, contents, end, watchers) = (None, None, None, 0);
        let without_writers = None;
        let programs = 0;
        let new = Description {
            node,
            flags,
            position: 0,
            without_writers,
            watchers,
            place,
            contents,
            programs,
            end,
            users: 1,
        };
        DescriptionId(self.all.insert(new) as u32)
    }

    /// Returns an open file.
    ///
    /// # Panics
    /// Panics if it was closed: whoever has its name is one of its users.
    pub fn get(&mut self, id: DescriptionId) -> &mut Description {
        match self.all.get_mut(id.0 as usize) {
            Some(description) => description,
            None => panic!("a file was closed before its user"),
        }
    }

    /// Returns an open file, to be looked at.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    pub fn find(&self, id: DescriptionId) -> &Description {
        match self.all.get(id.0 as usize) {
            Some(description) => description,
            None => panic!("a file was closed before its user"),
        }
    }

    /// Lets the open files that were found at a place have another one, where their file is now.
    pub fn move_place(&mut self, node: NodeId, old: &Place, new: &Place) {
        for description in self.all.iter_mut().map(|(_, description)| description) {
            if description.node == node && description.place.as_ref() == Some(old) {
                description.place = Some(new.clone());
            }
        }
    }

    /// Returns the number of open files.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns all open files.
    pub fn all(&self) -> impl Iterator<Item = &Description> {
        self.all.iter().map(|(_, description)| description)
    }

    /// Adds a user to an open file.
    pub fn share(&mut self, id: DescriptionId) {
        self.get(id).users += 1;
    }

    /// Returns whether an open file has one user.
    pub fn is_last(&mut self, id: DescriptionId) -> bool {
        self.get(id).users == 1
    }

    /// Removes a user from an open file. The last one closes it; then returns its node.
    pub fn release(&mut self, id: DescriptionId) -> Option<NodeId> {
        let description = self.get(id);
        description.users -= 1;
        if description.users > 0 {
            return None;
        }
        Some(self.all.remove(id.0 as usize).node)
    }
}

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The open file.
    pub description: DescriptionId,
    /// The descriptor is closed when the process starts another program.
    pub closes_on_exec: bool,
}

/// The descriptors of a process.
#[derive(Clone, Debug)]
pub struct Descriptors {
    all: Vec<Option<Descriptor>>,
    /// All numbers below are used.
    first_free: u32,
    /// Number behind the highest that may be used.
    pub limit: u32,
}

impl Default for Descriptors {
    fn default() -> Descriptors {
        Descriptors { all: Vec::new(), first_free: 0, limit: MAX_DESCRIPTORS }
    }
}

impl Descriptors {
    /// Returns how many bytes all descriptors take.
    pub fn size(&self) -> usize {
        size_of_val(&self.all[..])
    }

    /// Returns a descriptor.
    ///
    /// # Errors
    /// `EBADF`
    pub fn get(&self, number: u64) -> Result<Descriptor, Errno> {
        // Only 32 bits of the register count.
        self.all.get(number as u32 as usize).copied().flatten().ok_or(Errno::EBADF)
    }

    /// Returns the lowest free number, which is not less than `from`.
    ///
    /// # Errors
    /// `EMFILE`
    pub fn free(&self, from: u32) -> Result<u32, Errno> {
        let from = from.max(self.first_free);
        (from..self.limit).find(|number| self.get(u64::from(*number)).is_err()).ok_or(Errno::EMFILE)
    }

    /// Returns how many bytes the descriptors take at most when a number is used, if they have to grow for it.
    pub fn growth(&self, number: u32) -> Option<usize> {
        let needed = number as usize + 1;
        (needed > self.all.capacity()).then(|| 2 * needed * size_of::<Option<Descriptor>>())
    }

    /// Changes what a number means. Returns what it meant before.
    pub fn set(&mut self, number: u32, descriptor: Option<Descriptor>) -> Option<Descriptor> {
        let index = number as usize;
        if index >= self.all.len() && descriptor.is_some() {
            self.all.resize(index + 1, None);
        }
        match descriptor {
            Some(_) if number == self.first_free => self.first_free += 1,
            None => self.first_free = self.first_free.min(number),
            _ => {}
        }
        core::mem::replace(self.all.get_mut(index)?, descriptor)
    }

    /// Returns the first descriptor from a number on, with its number.
    pub fn next(&self, from: u32) -> Option<(u32, Descriptor)> {
        let rest = self.all.get(from as usize..)?;
        (from..).zip(rest).find_map(|(number, descriptor)| Some((number, (*descriptor)?)))
    }

    /// Returns all descriptors with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, Descriptor)> {
        self.all.iter().enumerate().filter_map(|(number, descriptor)| Some((number as u32, (*descriptor)?)))
    }
}
