//! A heap of fixed size, for slab mode, and for the table of families, which is allocated at the start. Its contents
//! are limited so that they fit, which a test measures. No other request needs the heap.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use linked_list_allocator::Heap;
use tench_mem::ARENA_SIZE;

/// The heap's memory.
struct Arena(UnsafeCell<[u8; ARENA_SIZE]>);

/// The heap. The server has one thread, so no lock is needed.
struct Allocator(UnsafeCell<Heap>);

// SAFETY: the server has one thread.
unsafe impl Sync for Arena {}
// SAFETY: as above.
unsafe impl Sync for Allocator {}

static ARENA: Arena = Arena(UnsafeCell::new([0; ARENA_SIZE]));

#[global_allocator]
static ALLOCATOR: Allocator = Allocator(UnsafeCell::new(Heap::empty()));

/// Makes the heap usable. Called once.
pub fn set_up() {
    // SAFETY: there is one thread, and no other reference to the heap exists while this one does.
    let heap = unsafe { &mut *ALLOCATOR.0.get() };
    // SAFETY: the arena is used for nothing else and lives for ever; this happens once.
    unsafe { heap.init(ARENA.0.get().cast(), ARENA_SIZE) };
}

// SAFETY: the allocator behind it fulfils the contract; there is one thread, so calls do not overlap.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: there is one thread, and no other reference to the heap exists while this one does.
        let heap = unsafe { &mut *self.0.get() };
        heap.allocate_first_fit(layout).map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        let heap = unsafe { &mut *self.0.get() };
        if let Some(pointer) = NonNull::new(pointer) {
            // SAFETY: the caller guarantees that the memory came from `alloc` with this layout.
            unsafe { heap.deallocate(pointer, layout) };
        }
    }
}
