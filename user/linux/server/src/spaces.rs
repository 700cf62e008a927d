//! Memory of processes. Two processes have the same memory if `clone` was asked for that, as `vfork` does.

use slab::Slab;
use tench_linux_memory::{Hardware, Space};

use crate::operations::Contexts;

/// Name of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpaceId(u32);

/// Memory of one or several processes.
#[derive(Debug)]
pub struct Used<H: Hardware> {
    /// Everything that is mapped.
    pub space: Space<H>,
    /// Where the heap begins.
    pub heap: u64,
    /// Where the heap ends, to the byte.
    pub heap_end: u64,
    /// Kinds of barriers that its threads have said they use.
    pub barriers: u32,
    /// Contexts of asynchronous I/O, which children do not inherit.
    pub operations: Contexts,
    /// Number of processes.
    users: u32,
}

impl<H: Hardware> Used<H> {
    /// Returns memory for one process. The heap is empty, and begins at an address.
    pub fn new(space: Space<H>, heap: u64) -> Used<H> {
        Used { space, heap, heap_end: heap, barriers: 0, operations: Contexts::default(), users: 1 }
    }

    /// Returns whether several processes have this memory.
    pub const fn is_shared(&self) -> bool {
        self.users > 1
    }
}

/// Memory of all processes.
#[derive(Debug)]
pub struct Spaces<H: Hardware> {
    pub(crate) all: Slab<Used<H>>,
}

impl<H: Hardware> Spaces<H> {
    /// Returns no memory.
    pub const fn new() -> Spaces<H> {
        Spaces { all: Slab::new() }
    }

    /// Adds memory.
    pub fn add(&mut self, used: Used<H>) -> SpaceId {
        SpaceId(self.all.insert(used) as u32)
    }

    /// Returns the memory of a process.
    ///
    /// # Panics
    /// Panics if it has ended: whoever has its name is one of its users.
    pub fn get(&mut self, id: SpaceId) -> &mut Used<H> {
        match self.all.get_mut(id.0 as usize) {
            Some(used) => used,
            None => panic!("a memory ended before its process"),
        }
    }

    /// Returns the memory of a process, to be read.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    pub fn find(&self, id: SpaceId) -> &Used<H> {
        match self.all.get(id.0 as usize) {
            Some(used) => used,
            None => panic!("a memory ended before its process"),
        }
    }

    /// Adds a process to a memory.
    pub fn share(&mut self, id: SpaceId) {
        self.get(id).users += 1;
    }

    /// Removes a process from a memory. Returns what is mapped if it was the last one.
    pub fn release(&mut self, id: SpaceId) -> Option<Space<H>> {
        let used = self.get(id);
        used.users -= 1;
        if used.users > 0 {
            return None;
        }
        Some(self.all.remove(id.0 as usize).space)
    }

    /// Returns all memory.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Used<H>> {
        self.all.iter_mut().map(|(_, used)| used)
    }

    /// Returns all memory, to be read.
    pub fn iter(&self) -> impl Iterator<Item = &Used<H>> {
        self.all.iter().map(|(_, used)| used)
    }
}

impl<H: Hardware> Default for Spaces<H> {
    fn default() -> Spaces<H> {
        Spaces::new()
    }
}
