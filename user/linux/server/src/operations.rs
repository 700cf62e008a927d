//! Contexts of Linux's asynchronous I/O, which hold results until they are read.

use alloc::collections::{BTreeMap, VecDeque};

use tench_linux_files::Errno;
use tench_linux_memory::PAGE_SIZE;

/// Size of a result in a program's memory.
pub(crate) const RESULT: usize = 32;
/// Size of the header of the ring of results that Linux maps into the process.
const HEAD: u64 = 32;
/// The most operations for which all contexts of an instance together can be made.
pub const MOST: u64 = 65_536;

/// A context.
#[derive(Debug)]
pub struct Context {
    /// Number of operations for which the context was made.
    pub wanted: u32,
    /// The most results in the context.
    pub room: usize,
    /// Size of the ring in the process's memory.
    pub length: u64,
    /// Results, the oldest first.
    pub results: VecDeque<[u8; RESULT]>,
}

impl Context {
    /// Returns a context for at least `wanted` operations, with the memory for all their results, so that none is
    /// missing when they are over. `check` checks that there is so much.
    ///
    /// # Errors
    /// Those of `check`, or `ENOMEM`.
    pub(crate) fn new(wanted: u32, check: impl FnOnce(usize) -> Result<(), Errno>) -> Result<Context, Errno> {
        // The room is Linux's on one processor: a ring of whole pages, whose places are given out in quarters.
        let results = u64::from(wanted).max(4) * 2 + 2;
        let length = (HEAD + results * RESULT as u64).next_multiple_of(PAGE_SIZE);
        let places = (length - HEAD) / RESULT as u64 - 1;
        let room = (places / 4 * 4) as usize;
        check(room * RESULT)?;
        let mut results = VecDeque::new();
        results.try_reserve_exact(room).map_err(|_| Errno::ENOMEM)?;
        Ok(Context { wanted, room, length, results })
    }
}

/// The contexts of an address space. Each is named by the address of its ring.
#[derive(Debug, Default)]
pub struct Contexts {
    all: BTreeMap<u64, Context>,
}

impl Contexts {
    /// Adds a context.
    pub(crate) fn add(&mut self, address: u64, context: Context) {
        self.all.insert(address, context);
    }

    /// Returns the context with this name.
    pub(crate) fn get(&mut self, address: u64) -> Option<&mut Context> {
        self.all.get_mut(&address)
    }

    /// Removes the context with this name.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Context> {
        self.all.remove(&address)
    }

    /// Returns the number of operations for which all contexts were made.
    pub(crate) fn wanted(&self) -> u64 {
        self.all.values().map(|context| u64::from(context.wanted)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_the_memory_for_its_results() {
        for wanted in [1, 100, 65_536] {
            let mut asked = 0;
            let context = Context::new(wanted, |bytes| {
                asked = bytes;
                Ok(())
            });
            let context = context.unwrap();
            assert!(context.room > wanted as usize && asked == context.room * RESULT);
            assert!(context.results.capacity() >= context.room, "{wanted}");
        }
        assert_eq!(Context::new(1, |_| Err(Errno::ENOMEM)).map(|context| context.room), Err(Errno::ENOMEM));
    }
}
