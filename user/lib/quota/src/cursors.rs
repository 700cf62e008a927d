//! Cursors for the search for waiters that have given up.
//!
//! A thread that waits at a server can give up without telling it, and the server has to ask the kernel about each. It
//! asks about a few at a time, so that no request takes long, and about others the next time.

use alloc::vec::Vec;

/// Maximum number of families with a cursor. Others begin anew.
const KNOWN: usize = 64;
/// Pseudo-family of all waiters together, which no family has as its number.
pub const EVERYBODY: u64 = u64::MAX;

/// Positions at which the search continues, for each family.
pub struct Cursors<T> {
    /// Cursors in the order of their last use.
    known: Vec<(u64, T)>,
}

impl<T> Cursors<T> {
    /// Returns an empty set: every search begins anew.
    pub const fn new() -> Cursors<T> {
        Cursors { known: Vec::new() }
    }

    /// Removes a family's cursor, and returns it.
    pub fn take(&mut self, family: u64) -> Option<T> {
        let index = self.known.iter().position(|(other, _)| *other == family)?;
        Some(self.known.remove(index).1)
    }

    /// Adds a family's cursor. The family must have none.
    pub fn put(&mut self, family: u64, position: T) {
        if self.known.len() == KNOWN {
            self.known.remove(0);
        }
        self.known.push((family, position));
    }
}

impl<T> Default for Cursors<T> {
    fn default() -> Self {
        Cursors::new()
    }
}

/// Examines at most `looks` waiters, in their order, from the one with the given number on, or from the first if there
/// are not so many. Returns the numbers of those for which `has_gone` holds, and the position from which to continue
/// when these have been removed.
pub fn look<'a, R: 'a>(
    from: Option<usize>,
    looks: usize,
    waiters: impl Iterator<Item = &'a R> + Clone,
    mut has_gone: impl FnMut(&R) -> bool,
) -> (Vec<usize>, usize) {
    let count = waiters.clone().count();
    let first = from.filter(|from| *from < count).unwrap_or(0);
    let seen = waiters.enumerate().skip(first).take(looks);
    let gone: Vec<usize> = seen.filter(|(_, reply)| has_gone(reply)).map(|(number, _)| number).collect();
    let next = first + looks - gone.len();
    (gone, next)
}
