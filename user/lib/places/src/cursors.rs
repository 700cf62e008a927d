//! Where to go on looking for those who have given up.
//!
//! Somebody who waits at a server can give up without a word, and the server has to ask the kernel about each. It asks
//! about a few at a time, so that no request takes long, and about others the next time.

use alloc::vec::Vec;

/// Families of which it is known where to go on. Of more, one begins anew.
const KNOWN: usize = 64;
/// The number of everybody together, which is no family's.
pub const EVERYBODY: u64 = u64::MAX;

/// Places at which looking goes on, for each family.
pub struct Cursors<T> {
    /// Who has looked last comes last.
    known: Vec<(u64, T)>,
}

impl<T> Cursors<T> {
    /// Everybody begins anew.
    pub const fn new() -> Cursors<T> {
        Cursors { known: Vec::new() }
    }

    /// Takes out where a family goes on.
    pub fn take(&mut self, family: u64) -> Option<T> {
        let place = self.known.iter().position(|(other, _)| *other == family)?;
        Some(self.known.remove(place).1)
    }

    /// A family goes on there. It has none so far.
    pub fn put(&mut self, family: u64, place: T) {
        if self.known.len() == KNOWN {
            self.known.remove(0);
        }
        self.known.push((family, place));
    }
}

impl<T> Default for Cursors<T> {
    fn default() -> Self {
        Cursors::new()
    }
}

/// Looks at no more than so many of those who wait, in their order, from the one on with this number, or from the first
/// if there are not so many. Returns the numbers of those for whom `has_gone` holds, and from where to go on when these
/// are not there any more.
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
