//! The server's heap has a fixed size; the books must fit into it whatever they hold.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use tench_mem::books::{Books, Region};
use tench_mem::{ARENA_SIZE, MAX_BLOCKS};

/// Counts bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size().next_multiple_of(16), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size().next_multiple_of(16), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn full_books_fit_into_the_arena() {
    let before = IN_USE.load(Ordering::Relaxed);
    let mut books = Books::new(MAX_BLOCKS);
    for number in 0..200 {
        books.add(Region { address: number << 30, size_bits: 30 }).unwrap();
    }
    // Fill them, then free every block but the last of each eleven and fill the gaps with others: the trees end up
    // with as many sparse nodes as they can have, and the free lists with as many fragments.
    let mut peak = 0;
    for round in 0..6 {
        let mut number = 0;
        while books.allocate(number % 1000, number % 1000, 12 + (number + round) % 3, 0).is_ok() {
            number += 1;
        }
        peak = peak.max(IN_USE.load(Ordering::Relaxed) - before);
        for account in 0..1000 {
            for (n, block) in books.blocks_of(account).into_iter().enumerate() {
                if !(n as u64 + account + round).is_multiple_of(5) {
                    books.release(block.address).unwrap();
                }
            }
        }
        peak = peak.max(IN_USE.load(Ordering::Relaxed) - before);
    }
    // Half of it is for the allocator's own fragmentation and the list of slots.
    assert!(peak * 2 <= ARENA_SIZE, "{peak} bytes");
}
