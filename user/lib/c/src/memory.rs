//! `malloc` and its relatives, on the heap of the user library.
//!
//! The heap wants to know the size of what it takes back, so the size lies before each piece.

use alloc::alloc::{alloc, alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ffi::c_void;

/// Alignment of all memory, and bytes before each piece.
const HEADER: usize = 16;

/// How a piece of `size` bytes lies in memory, its header included.
fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEADER)?, HEADER).ok()
}

/// Writes the header, and answers what the program gets.
///
/// # Safety
/// `start` is null or was allocated with the layout for `size`.
unsafe fn finish(start: *mut u8, size: usize) -> *mut c_void {
    if start.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: there is room for the header, which is aligned.
    unsafe { start.cast::<usize>().write(size) };
    start.wrapping_add(HEADER).cast()
}

/// The start and size of a piece.
///
/// # Safety
/// `memory` came from here and was not freed.
unsafe fn piece(memory: *mut c_void) -> (*mut u8, usize) {
    let start = memory.cast::<u8>().wrapping_sub(HEADER);
    // SAFETY: the header was written when the piece was made.
    (start, unsafe { start.cast::<usize>().read() })
}

/// Allocates memory, or answers null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn malloc(size: usize) -> *mut c_void {
    let Some(layout) = layout(size) else { return core::ptr::null_mut() };
    // SAFETY: the size is not zero.
    let start = unsafe { alloc(layout) };
    // SAFETY: it was just allocated with this layout.
    unsafe { finish(start, size) }
}

/// Allocates zeroed memory for `count` objects of `size` bytes, or answers null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return core::ptr::null_mut() };
    let Some(layout) = layout(size) else { return core::ptr::null_mut() };
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    // SAFETY: it was just allocated with this layout.
    unsafe { finish(start, size) }
}

/// Frees memory.
///
/// # Safety
/// `memory` is null, or came from `malloc` or its relatives and is not used any more.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn free(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // SAFETY: the caller says where it came from.
    let (start, size) = unsafe { piece(memory) };
    if let Some(layout) = layout(size) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(start, layout) };
    }
}

/// Makes memory larger or smaller, elsewhere if need be; answers null, and changes nothing, if that cannot be.
///
/// # Safety
/// As for `free`; where null is answered, the memory is still in use.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    if memory.is_null() {
        return malloc(size);
    }
    // SAFETY: the caller says where it came from.
    let (start, old_size) = unsafe { piece(memory) };
    let (Some(old), Some(new)) = (layout(old_size), layout(size)) else { return core::ptr::null_mut() };
    // SAFETY: it was allocated with the old layout, and the new size is not zero and fits the alignment.
    let start = unsafe { alloc::alloc::realloc(start, old, new.size()) };
    // SAFETY: it is allocated with the new layout now.
    unsafe { finish(start, size) }
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

    #[test]
    fn too_much_is_refused() {
        assert!(malloc(usize::MAX).is_null() && malloc(usize::MAX - HEADER).is_null());
        assert!(calloc(usize::MAX, 2).is_null());
        let zeroed = calloc(3, 8).cast::<[u64; 3]>();
        // SAFETY: 24 bytes are there, and they are zero.
        assert_eq!(unsafe { *zeroed }, [0; 3]);
        // SAFETY: it came from `calloc`.
        unsafe { free(zeroed.cast()) };
        // SAFETY: null is allowed.
        unsafe { free(core::ptr::null_mut()) };
    }
}
