//! A wrapper with a dirty flag, set by every mutable access.
//!
//! After each request and each message the main thread checks whether the capability ledger has anything to send, which
//! takes a search through all its lists. Most requests do not concern the ledger: if it was found quiet and has not
//! been accessed since, it still is.

use core::ops::{Deref, DerefMut};

/// A value with its dirty flag.
pub struct Flagged<T> {
    thing: T,
    is_dirty: bool,
}

impl<T> Flagged<T> {
    /// Returns the value with the flag set, because it has not been checked yet.
    pub const fn new(thing: T) -> Flagged<T> {
        Flagged { thing, is_dirty: true }
    }

    /// Returns whether the flag is set.
    pub const fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// Clears the flag, before the value is checked.
    pub const fn clear_dirty(&mut self) {
        self.is_dirty = false;
    }
}

impl<T> Deref for Flagged<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> DerefMut for Flagged<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.is_dirty = true;
        &mut self.thing
    }
}
