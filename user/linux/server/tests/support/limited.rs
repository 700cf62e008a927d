//! A heap with a limit.

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::cell::Cell;

/// A heap in which each thread may have so many bytes.
pub struct Limited;

thread_local! {
    /// Number of bytes that the thread may still allocate, if there is a limit.
    pub static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

// SAFETY: all memory is that of the host's heap.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Who reports a failure needs memory.
        let left = LEFT.get().filter(|_| !std::thread::panicking());
        match left.map(|left| left.checked_sub(layout.size())) {
            Some(None) => return std::ptr::null_mut(),
            Some(left) => LEFT.set(left),
            None => {}
        }
        // SAFETY: the caller guarantees what the host's heap wants.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LEFT.set(LEFT.get().map(|left| left + layout.size()));
        // SAFETY: as above; the memory is that of the host's heap.
        unsafe { Heap.dealloc(pointer, layout) }
    }
}

/// Returns whether so many bytes can be allocated.
pub fn can_allocate(bytes: usize) -> bool {
    LEFT.get().is_none_or(|left| left >= bytes)
}
