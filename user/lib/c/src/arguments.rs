//! The variable arguments of a C function.

use core::ffi::{c_char, c_int};

use crate::format::Values;
use crate::text::bytes;

/// `va_list`, as the procedure-call standard defines it: arguments passed in registers were saved below `top`, the
/// others lie on the stack.
#[repr(C)]
pub struct VaList {
    stack: *const u64,
    top: *const u8,
    float_top: *const u8,
    /// Negated number of bytes of saved registers that are left.
    offset: c_int,
    float_offset: c_int,
}

/// An argument list in use.
pub struct Arguments<'a> {
    list: &'a mut VaList,
}

impl<'a> Arguments<'a> {
    /// Returns the arguments of a call.
    ///
    /// # Safety
    /// As many arguments must exist as will be taken, of the kinds as which they will be taken, none of them floating
    /// point.
    pub const unsafe fn new(list: &'a mut VaList) -> Arguments<'a> {
        Arguments { list }
    }
}

impl Values for Arguments<'_> {
    fn word(&mut self) -> u64 {
        let list = &mut *self.list;
        if list.offset < 0 {
            let place = list.top.wrapping_offset(list.offset as isize).cast::<u64>();
            list.offset += 8;
            // SAFETY: an argument exists (`new`), and it was saved here.
            return unsafe { place.read_unaligned() };
        }
        let place = list.stack;
        list.stack = place.wrapping_add(1);
        // SAFETY: an argument exists (`new`), and it lies on the stack.
        unsafe { place.read_unaligned() }
    }

    fn string(&mut self, limit: usize) -> &[u8] {
        let text = core::ptr::with_exposed_provenance::<c_char>(self.word() as usize);
        if text.is_null() {
            return b"(null)";
        }
        // SAFETY: the argument is a string (`new`).
        unsafe { bytes(text, limit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_before_the_stack() {
        let registers = [1_u64, 2, 3];
        let stack = [4_u64, 5];
        let mut list = VaList {
            stack: stack.as_ptr(),
            top: registers.as_ptr_range().end.cast(),
            float_top: core::ptr::null(),
            offset: -24,
            float_offset: 0,
        };
        // SAFETY: five words are there.
        let mut arguments = unsafe { Arguments::new(&mut list) };
        assert_eq!([(); 5].map(|()| arguments.word()), [1, 2, 3, 4, 5]);
    }
}
