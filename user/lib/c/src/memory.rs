//! `malloc` and its relatives, on the heap of the user library.
//!
//! The heap needs the size and alignment of memory that is freed, so they are stored before each allocation:
//!
//! ```text
//!   start                     address that the program gets
//!   │ … │ bytes │ lead │      │
//!       └── 16 bytes ──┘
//!   └──────── lead ───────────┘   16, or the alignment if that is more
//! ```
//! Allocations of 0 bytes are allocations like others: no two have the same address. Without enough memory, all
//! functions return null and set `errno`; existing allocations stay as they are.

use alloc::alloc::{alloc, alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use crate::errno::{self, EINVAL, ENOMEM};

/// Alignment of all memory, and size of a header, in bytes.
const HEADER: usize = 16;

/// Returns the layout of an allocation of `size` bytes after a lead.
fn layout(size: usize, lead: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(lead)?, lead).ok()
}

/// Sets `errno`, and returns null.
fn refuse(reason: c_int) -> *mut c_void {
    errno::set(reason);
    null_mut()
}

/// Writes the header, and returns the address that the program gets.
///
/// # Safety
/// `start` must be null or allocated with the layout for `size` and `lead`.
unsafe fn finish(start: *mut u8, size: usize, lead: usize) -> *mut c_void {
    if start.is_null() {
        return refuse(ENOMEM);
    }
    let allocation = start.wrapping_add(lead);
    // SAFETY: there is room for the header before the address, which is aligned.
    unsafe { allocation.cast::<[usize; 2]>().wrapping_sub(1).write([size, lead]) };
    allocation.cast()
}

/// Returns the size and lead of an allocation.
///
/// # Safety
/// `memory` must have come from here and not have been freed.
unsafe fn header(memory: *mut c_void) -> [usize; 2] {
    // SAFETY: the header was written when the memory was allocated.
    unsafe { memory.cast::<[usize; 2]>().wrapping_sub(1).read() }
}

/// Allocates memory after a lead, or returns null.
fn allocate(size: usize, lead: usize) -> *mut c_void {
    let Some(layout) = layout(size, lead) else { return refuse(ENOMEM) };
    // SAFETY: the size is not zero.
    let start = unsafe { alloc(layout) };
    // SAFETY: it was just allocated with this layout.
    unsafe { finish(start, size, lead) }
}

/// Allocates memory, or returns null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate(size, HEADER)
}

/// Allocates zeroed memory for `count` objects of `size` bytes, or returns null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return refuse(ENOMEM) };
    let Some(layout) = layout(size, HEADER) else { return refuse(ENOMEM) };
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    // SAFETY: it was just allocated with this layout.
    unsafe { finish(start, size, HEADER) }
}

/// Allocates memory at a multiple of `alignment`, a power of two, or returns null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return refuse(EINVAL);
    }
    allocate(size, alignment.max(HEADER))
}

/// Frees memory.
///
/// # Safety
/// `memory` must be null, or have come from `malloc` or its relatives and not be used any more.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn free(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // SAFETY: the caller says where it came from.
    let [size, lead] = unsafe { header(memory) };
    if let Some(layout) = layout(size, lead) {
        // SAFETY: it was allocated with this layout, as many bytes before.
        unsafe { dealloc(memory.cast::<u8>().wrapping_sub(lead), layout) };
    }
}

/// Makes memory larger or smaller, and moves it if necessary; returns null and changes nothing if there is not enough
/// memory. Moved memory has the alignment of `malloc`.
///
/// # Safety
/// As for `free`; if null is returned, the memory is still in use.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    if memory.is_null() {
        return malloc(size);
    }
    // SAFETY: the caller says where it came from.
    let [old_size, lead] = unsafe { header(memory) };
    if lead == HEADER {
        let (Some(old), Some(new)) = (layout(old_size, HEADER), layout(size, HEADER)) else { return refuse(ENOMEM) };
        let start = memory.cast::<u8>().wrapping_sub(HEADER);
        // SAFETY: it was allocated with the old layout, and the new size is not zero and fits the alignment.
        let start = unsafe { alloc::alloc::realloc(start, old, new.size()) };
        // SAFETY: it is allocated with the new layout now.
        return unsafe { finish(start, size, HEADER) };
    }
    let new = malloc(size);
    if !new.is_null() {
        // SAFETY: both have as many bytes, and they are apart.
        unsafe { core::ptr::copy_nonoverlapping(memory.cast::<u8>(), new.cast(), size.min(old_size)) };
        // SAFETY: the caller gives it up.
        unsafe { free(memory) };
    }
    new
}

/// Returns how often the heap of this process has asked for addresses.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_heap_requests() -> u64 {
    tench::memory::heap_requests()
}

/// Returns the size in bytes of the heap's addresses.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_heap_size() -> u64 {
    tench::memory::heap_size()
}

/// Returns how often this process has asked the memory server for a block.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_memory_requests() -> u64 {
    tench::memory::requests()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_contents() {
        let memory = malloc(5).cast::<u8>();
        assert_eq!(memory.addr() % HEADER, 0);
        // SAFETY: five bytes are there.
        unsafe { memory.copy_from(b"hello".as_ptr(), 5) };
        // SAFETY: it came from `malloc`.
        let memory = unsafe { realloc(memory.cast(), 100_000) }.cast::<u8>();
        // SAFETY: the first five bytes were kept.
        assert_eq!(unsafe { core::slice::from_raw_parts(memory, 5) }, b"hello");
        // SAFETY: it came from `realloc`.
        unsafe { free(memory.cast()) };
    }

    // One test, because `errno` is shared by the process.
    #[test]
    fn impossible_requests_fail_with_a_reason() {
        /// A call that fails.
        type Call = fn() -> *mut c_void;
        let refused: [(Call, c_int); 10] = [
            (|| malloc(usize::MAX), ENOMEM),
            (|| malloc(usize::MAX - HEADER), ENOMEM),
            (|| calloc(usize::MAX, 2), ENOMEM),
            (|| calloc(1 << 32, 1 << 32), ENOMEM),
            (|| aligned_alloc(4096, usize::MAX - 100), ENOMEM),
            (|| aligned_alloc(1 << 63, 1), ENOMEM),
            (|| aligned_alloc(0, 8), EINVAL),
            (|| aligned_alloc(3, 8), EINVAL),
            (|| aligned_alloc(24, 8), EINVAL),
            (|| aligned_alloc(usize::MAX, 8), EINVAL),
        ];
        for (refused, reason) in refused {
            errno::set(0);
            assert!(refused().is_null());
            assert_eq!(errno::get(), reason);
        }
    }

    #[test]
    fn a_block_that_cannot_grow_stays_unchanged() {
        let zeroed = calloc(3, 8).cast::<[u64; 3]>();
        // SAFETY: 24 bytes are there, and they are zero.
        assert_eq!(unsafe { *zeroed }, [0; 3]);
        // SAFETY: it came from `calloc`; without room it stays.
        assert!(unsafe { realloc(zeroed.cast(), usize::MAX) }.is_null());
        // SAFETY: as above.
        assert_eq!(unsafe { *zeroed }, [0; 3]);
        // SAFETY: it came from `calloc`.
        unsafe { free(zeroed.cast()) };
        // SAFETY: null is allowed.
        unsafe { free(null_mut()) };
    }

    #[test]
    fn allocations_of_no_bytes_are_distinct() {
        let allocations = [malloc(0), calloc(0, 8), calloc(8, 0), aligned_alloc(64, 0), malloc(0)];
        for (index, allocation) in allocations.iter().enumerate() {
            assert!(!allocation.is_null() && !allocations[..index].contains(allocation));
        }
        for allocation in allocations {
            // SAFETY: it came from here.
            let allocation = unsafe { realloc(allocation, 0) };
            assert!(!allocation.is_null());
            // SAFETY: as above.
            unsafe { free(allocation) };
        }
    }

    #[test]
    fn an_alignment_is_kept() {
        for bits in 0..17 {
            let allocation = aligned_alloc(1 << bits, 100);
            assert_eq!(allocation.addr() % (1 << bits), 0);
            // SAFETY: a hundred bytes are there.
            unsafe { allocation.cast::<u8>().write_bytes(bits, 100) };
            // SAFETY: it came from `aligned_alloc`.
            let longer = unsafe { realloc(allocation, 3000) }.cast::<u8>();
            // SAFETY: a hundred bytes were kept.
            assert_eq!(unsafe { core::slice::from_raw_parts(longer, 100) }, [bits; 100]);
            // SAFETY: it came from `realloc`.
            unsafe { free(longer.cast()) };
        }
    }
}
