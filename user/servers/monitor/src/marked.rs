//! A wrapper with a dirty flag, set by every mutable access.
//!
//! After each request and each message the main thread checks whether the capability ledger has anything to send, which
//! takes a search through all its lists. Most requests do not concern the ledger: if it was found quiet and has not
//! been accessed since, it still is.

use core::ops::{Deref, DerefMut};

/// A value with its dirty flag.
pub struct Marked<T> {
    thing: T,
    is_touched: bool,
}

impl<T> Marked<T> {
    /// Returns the value with the flag set, because it has not been checked yet.
    pub const fn new(thing: T) -> Marked<T> {
        Marked { thing, is_touched: true }
    }

    /// Returns whether the flag is set.
    pub const fn is_touched(&self) -> bool {
        self.is_touched
    }

    /// Clears the flag, before the value is checked.
    pub const fn take_mark(&mut self) {
        self.is_touched = false;
    }
}

impl<T> Deref for Marked<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> DerefMut for Marked<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.is_touched = true;
        &mut self.thing
    }
}
