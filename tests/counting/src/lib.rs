//! An allocator for tests on the host that counts the heap bytes that a function needs while it runs.
//!
//! A test names it as its global allocator and calls [`peak`]. Sizes are counted as the allocator of the target has
//! them: a header, and multiples of 16 bytes. An allocation that grows is counted twice, because old and new exist
//! while it is copied.

#![deny(missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes of an allocation's header, and its smallest size.
const HEADER: usize = 16;
const SMALLEST: usize = 32;

thread_local! {
    /// Bytes that this thread has allocated and not freed, since [`peak`] began.
    static NOW: Cell<isize> = const { Cell::new(0) };
    /// Maximum of these bytes.
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The allocator.
pub struct Counting;

/// Returns the bytes that an allocation takes on the target.
fn size(layout: Layout) -> isize {
    (layout.size() + HEADER).next_multiple_of(16).max(SMALLEST) as isize
}

fn count(bytes: isize) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    MOST.set(MOST.get().max(now));
}

// SAFETY: every allocation comes from the system's allocator, and returns there with the same layout. (Growing is the
// trait's default: a new allocation, a copy, and the old one freed.)
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-size(layout));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns what a function returns, and the most bytes that were allocated at a time while it ran, beyond those before.
pub fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    NOW.set(0);
    MOST.set(0);
    let result = run();
    (result, MOST.get() as usize)
}
