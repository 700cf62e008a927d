//! `__thread` and `_Thread_local`.
//!
//! Programs are compiled so that each such variable has a control block, and each access calls the function here. A
//! thread's copy is made when it is first accessed, and freed when the thread ends.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use tench::thread::{Number, find_local, put_local};

/// Control block that the compiler emits for a variable.
#[repr(C)]
pub struct Control {
    size: usize,
    alignment: usize,
    /// For the runtime: 0, or the variable's number plus 1.
    number: AtomicUsize,
    /// The initial value; null for zeros.
    template: *const u8,
}

/// Size in bytes of the header before each copy: its size and alignment.
const HEADER: usize = 16;

/// Returns the offset of a copy from the start of its memory, and the layout of that memory.
fn layout(size: usize, alignment: usize) -> Option<(usize, Layout)> {
    let alignment = alignment.max(HEADER);
    Some((alignment, Layout::from_size_align(size.checked_add(alignment)?, alignment).ok()?))
}

/// Returns the number of a variable.
fn number(control: &Control) -> usize {
    match control.number.load(Ordering::Relaxed) {
        0 => {
            let new = Number::new().get() + 1;
            let given = control.number.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
            given.err().unwrap_or(new) - 1
        }
        given => given - 1,
    }
}

/// Makes a copy of a variable.
///
/// # Safety
/// The template must be null or have the variable's size.
unsafe fn make(control: &Control) -> Option<NonNull<u8>> {
    let (offset, layout) = layout(control.size, control.alignment)?;
    // SAFETY: the size is not zero.
    let start = unsafe { alloc(layout) };
    let copy = NonNull::new(start)?.as_ptr().wrapping_add(offset);
    // SAFETY: there is room for two words before the copy.
    unsafe { copy.wrapping_sub(HEADER).cast::<[usize; 2]>().write([control.size, control.alignment]) };
    if control.template.is_null() {
        // SAFETY: the copy has this size.
        unsafe { copy.write_bytes(0, control.size) };
    } else {
        // SAFETY: the copy has this size, and so has the template, as the caller guarantees.
        unsafe { copy.copy_from_nonoverlapping(control.template, control.size) };
    }
    NonNull::new(copy)
}

/// Frees a copy.
///
/// # Safety
/// The copy must have come from `make` and must not be used any more.
unsafe fn free(copy: NonNull<u8>) {
    // SAFETY: the header was written when the copy was made.
    let [size, alignment] = unsafe { copy.as_ptr().wrapping_sub(HEADER).cast::<[usize; 2]>().read() };
    if let Some((offset, layout)) = layout(size, alignment) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(copy.as_ptr().wrapping_sub(offset), layout) };
    }
}

/// Returns the running thread's copy of a variable.
///
/// # Safety
/// `control` must be a variable's control block.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn __emutls_get_address(control: *const Control) -> *mut c_void {
    // SAFETY: the caller guarantees it.
    let control = unsafe { &*control };
    let number = number(control);
    if let Some(copy) = find_local(number) {
        return copy.as_ptr().cast();
    }
    // SAFETY: the compiler makes templates of the variable's size.
    let Some(copy) = (unsafe { make(control) }) else { panic!("no memory for data of a thread") };
    // SAFETY: the number is unused, and the table owns the copy from now on.
    let put = unsafe { put_local(number, copy, free) };
    assert!(put, "a thread that did not begin in this library has no data of its own");
    copy.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_the_value_and_the_alignment() {
        let value = [7_u8, 8, 9];
        for alignment in [1, 8, 16, 256] {
            let template = value.as_ptr();
            let control = Control { size: 3, alignment, number: AtomicUsize::new(0), template };
            // SAFETY: the template has three bytes.
            let copy = unsafe { make(&control) }.unwrap();
            assert!(copy.as_ptr().addr().is_multiple_of(alignment));
            // SAFETY: the copy has three bytes.
            assert_eq!(unsafe { copy.cast::<[u8; 3]>().read() }, value);
            // SAFETY: it came from `make`.
            unsafe { free(copy) };
            assert_eq!(number(&control), number(&control));
        }
        let control = Control { size: 8, alignment: 8, number: AtomicUsize::new(0), template: core::ptr::null() };
        // SAFETY: there is no template.
        let copy = unsafe { make(&control) }.unwrap();
        // SAFETY: the copy has eight bytes.
        assert_eq!(unsafe { copy.cast::<u64>().read() }, 0);
        // SAFETY: it came from `make`.
        unsafe { free(copy) };
    }
}
