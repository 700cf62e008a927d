//! Something that remembers whether anybody has had it in hand to change it.
//!
//! The main thread asks after each request and each message whether the books of capabilities have anything to say,
//! which they know only by looking at all their lists. Most requests have nothing to do with them: what was found
//! quiet, and was not touched since, still is.

use core::ops::{Deref, DerefMut};

/// The thing, with its mark.
pub struct Marked<T> {
    thing: T,
    is_touched: bool,
}

impl<T> Marked<T> {
    /// Touched: nobody has looked through it yet.
    pub const fn new(thing: T) -> Marked<T> {
        Marked { thing, is_touched: true }
    }

    /// Whether it was touched since the mark was taken.
    pub const fn is_touched(&self) -> bool {
        self.is_touched
    }

    /// Takes the mark away, before it is looked through.
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
