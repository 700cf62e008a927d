//! Contexts of Linux's own asynchronous I/O, with the results of operations that nobody has read yet.

use alloc::collections::{BTreeMap, VecDeque};

use tench_linux_memory::PAGE_SIZE;

/// Size of a result, as programs read it.
pub(crate) const RESULT: usize = 32;
/// Size of the head before the results in the ring that Linux maps into the process.
const HEAD: u64 = 32;
/// How many operations all contexts of an instance may have together, by what they were made for.
pub const MOST: u64 = 65_536;

/// Results of operations.
#[derive(Debug)]
pub struct Context {
    /// How many operations it was made for.
    pub wanted: u32,
    /// How many results it can have.
    pub room: usize,
    /// Bytes of its ring in the process's memory.
    pub length: u64,
    /// Results, the oldest first.
    pub results: VecDeque<[u8; RESULT]>,
}

impl Context {
    /// Returns a context for at least so many operations.
    pub(crate) fn new(wanted: u32) -> Context {
        // As many as Linux has: a ring of whole pages, whose places are given to the processor in quarters.
        let results = u64::from(wanted).max(4) * 2 + 2;
        let length = (HEAD + results * RESULT as u64).next_multiple_of(PAGE_SIZE);
        let places = (length - HEAD) / RESULT as u64 - 1;
        Context { wanted, room: (places / 4 * 4) as usize, length, results: VecDeque::new() }
    }

    /// Returns how many bytes its results take at most for a further one, if they have to grow for it.
    pub(crate) fn growth(&self) -> usize {
        if self.results.len() < self.results.capacity() { 0 } else { 2 * (self.results.len() + 4) * RESULT }
    }

    /// Returns how many bytes its results take at most.
    pub(crate) const fn size(&self) -> usize {
        2 * self.room * RESULT
    }
}

/// The contexts of a memory, by the addresses of their rings, which are their names.
#[derive(Debug, Default)]
pub struct Contexts {
    all: BTreeMap<u64, Context>,
}

impl Contexts {
    /// Adds one.
    pub(crate) fn add(&mut self, address: u64, context: Context) {
        self.all.insert(address, context);
    }

    /// Returns one.
    pub(crate) fn get(&mut self, address: u64) -> Option<&mut Context> {
        self.all.get_mut(&address)
    }

    /// Removes one.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Context> {
        self.all.remove(&address)
    }

    /// Returns how many operations all were made for.
    pub(crate) fn wanted(&self) -> u64 {
        self.all.values().map(|context| u64::from(context.wanted)).sum()
    }
}
