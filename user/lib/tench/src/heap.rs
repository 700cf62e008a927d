//! The heap: `alloc` for programs.
//!
//! The allocator is talc (boundary tags in bins by size). It lies in a range of addresses of its own and grows in
//! pieces that double, from 32 KiB to 4 MiB, so that few requests go to the memory server. It never shrinks.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use talc::{OomHandler, Span, Talc};
use tench_abi::memory::PAGE_BITS;

use crate::memory::{HEAP, extend_heap};
use crate::sync::Mutex;

/// Log2 of the first piece.
const FIRST_BITS: u8 = 15;
/// Log2 of the pieces that the heap grows by, unless more is needed at once.
const USUAL_BITS: u8 = 22;
/// What the allocator itself needs for its bins and tags.
const OVERHEAD: usize = 2048;

/// How far the heap has grown.
struct Growth {
    /// One past its last address.
    end: u64,
    /// Its last contiguous part, as the allocator knows it.
    last: Span,
}

// SAFETY: the span says which memory the allocator manages; it is no more bound to a thread than the allocator.
unsafe impl Send for Growth {}

/// The next piece of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    address: u64,
    bits: u8,
}

impl Growth {
    const fn new() -> Growth {
        Growth { end: HEAP.0, last: Span::empty() }
    }

    /// Where a piece of `1 << bits` bytes would lie, if there is room for it.
    fn step(&self, bits: u8) -> Option<Step> {
        let address = self.end.checked_next_multiple_of(1 << bits)?;
        (address + (1 << bits) <= HEAP.1).then_some(Step { address, bits })
    }

    /// Log2 of the piece by which the heap should grow, and of the smallest that would do.
    fn bits(&self, need: usize) -> Option<(u8, u8)> {
        let least = need.checked_add(OVERHEAD)?.checked_next_power_of_two()?.ilog2() as u8;
        let size = (self.end - HEAP.0).max(1).ilog2() as u8;
        Some((least.max(size.clamp(FIRST_BITS, USUAL_BITS)), least.max(PAGE_BITS as u8)))
    }
}

impl OomHandler for Growth {
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        let need = layout.size().checked_add(layout.align()).ok_or(())?;
        let (wanted, least) = talc.oom_handler.bits(need).ok_or(())?;
        // If there is not as much memory as one would like, as much as is needed will do.
        let grown = [wanted, least].into_iter().find_map(|bits| {
            let step = talc.oom_handler.step(bits)?;
            extend_heap(step.address, step.bits).ok().map(|()| step)
        });
        let step = grown.ok_or(())?;
        let (old_end, last) = (talc.oom_handler.end, talc.oom_handler.last);
        talc.oom_handler.end = step.address + (1 << step.bits);
        let start = core::ptr::with_exposed_provenance_mut::<u8>(step.address as usize);
        let end = start.wrapping_add(1 << step.bits);
        talc.oom_handler.last = match last.get_base_acme() {
            Some((base, _)) if step.address == old_end => {
                // SAFETY: `last` is what the allocator answered for the part that ends where the new memory begins;
                // that was just mapped, is readable and writable, and nothing else knows of it.
                unsafe { talc.extend(last, Span::new(base, end)) }
            }
            // SAFETY: the memory was just mapped, is readable and writable, and nothing else knows of it.
            _ => unsafe { talc.claim(Span::new(start, end)) }?,
        };
        Ok(())
    }
}

/// The allocator behind a lock.
struct Heap {
    talc: Mutex<Talc<Growth>>,
}

// SAFETY: talc answers distinct, aligned, large enough memory until it is freed, and the lock lets one thread at a time
// use it.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller says that the size is not zero.
        unsafe { self.talc.lock().malloc(layout) }.map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let Some(place) = NonNull::new(place) else { return };
        // SAFETY: the caller says that this allocator gave the memory, with this layout.
        unsafe { self.talc.lock().free(place, layout) };
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(old) = NonNull::new(place) else { return place };
        if new_size <= layout.size() {
            // SAFETY: as in `dealloc`; the new size is not zero.
            unsafe { self.talc.lock().shrink(old, layout, new_size) };
            return place;
        }
        // SAFETY: as in `dealloc`; the new size is larger.
        if unsafe { self.talc.lock().grow_in_place(old, layout, new_size) }.is_ok() {
            return place;
        }
        // SAFETY: the caller says that the new size is not zero and fits the alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: as above.
        let new = unsafe { self.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: both are allocated, apart, and at least as large as the old one was.
            unsafe { core::ptr::copy_nonoverlapping(place, new, layout.size()) };
            // SAFETY: as in `dealloc`.
            unsafe { self.dealloc(place, layout) };
        }
        new
    }
}

#[cfg_attr(target_os = "none", global_allocator)]
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
static HEAP_ALLOCATOR: Heap = Heap { talc: Mutex::new(Talc::new(Growth::new())) };

#[cfg(test)]
mod tests {
    use super::*;

    /// Grows by `need` and answers the piece.
    fn grow(growth: &mut Growth, need: usize) -> Step {
        let (wanted, _) = growth.bits(need).unwrap();
        let step = growth.step(wanted).unwrap();
        growth.end = step.address + (1 << step.bits);
        step
    }

    #[test]
    fn pieces_double_up_to_the_usual_size() {
        let mut growth = Growth::new();
        let bits: Vec<u8> = (0..12).map(|_| grow(&mut growth, 8).bits).collect();
        assert_eq!(bits, [15, 15, 16, 17, 18, 19, 20, 21, 22, 22, 22, 22]);
        // Without holes: what was mapped is what the heap is long.
        assert_eq!(growth.end - HEAP.0, (1 << 22) + 4 * (1 << 22));
    }

    #[test]
    fn a_thousand_small_allocations_grow_the_heap_once() {
        let growth = Growth::new();
        let (wanted, _) = growth.bits(8).unwrap();
        assert!(1 << wanted >= 1024 * 24 + OVERHEAD);
    }

    #[test]
    fn large_requests_get_a_piece_of_their_own_size() {
        let mut growth = Growth::new();
        assert_eq!(growth.bits(1 << 20), Some((21, 21)));
        assert_eq!(growth.bits(100), Some((15, 12)));
        let step = grow(&mut growth, 256 << 20);
        assert_eq!((step.bits, step.address % (1 << 29)), (29, HEAP.0 % (1 << 29)));
        assert_eq!(growth.bits(usize::MAX), None);
        growth.end = HEAP.1 - 4096;
        assert_eq!(growth.step(13), None);
        assert!(growth.step(12).is_some());
    }

    #[test]
    fn without_memory_there_is_none() {
        // SAFETY: the layout's size is not zero.
        let place = unsafe { HEAP_ALLOCATOR.alloc(Layout::new::<u64>()) };
        assert!(place.is_null());
    }
}
