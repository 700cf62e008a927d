//! A ring of bytes whose positions count on, so that those who read and write it agree without wrapping.

use alloc::boxed::Box;
use alloc::vec;

/// Number of places.
pub(crate) const SIZE: usize = 4096;

/// Values at positions, of which the last [`SIZE`] are kept.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T>(Box<[T]>);

impl<T: Copy + Default> Ring<T> {
    pub(crate) fn new() -> Ring<T> {
        Ring(vec![T::default(); SIZE].into_boxed_slice())
    }

    pub(crate) fn get(&self, position: usize) -> T {
        self.0[position % SIZE]
    }

    pub(crate) fn set(&mut self, position: usize, value: T) {
        self.0[position % SIZE] = value;
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(T::default());
    }
}

/// Returns whether two positions have the same place.
pub(crate) const fn same(one: usize, other: usize) -> bool {
    one % SIZE == other % SIZE
}
