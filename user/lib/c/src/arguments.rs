//! The variable arguments of a C function.

use core::ffi::{c_char, c_int};

use crate::float;
use crate::format::{Conversion, Values};
use crate::text::bytes;

/// Number of bytes between floating-point arguments that were saved.
const FLOAT: c_int = 16;

/// `va_list`, as the procedure-call standard defines it: arguments passed in registers were saved below `top`, the
/// others lie on the stack.
#[repr(C)]
pub struct VaList {
    stack: *const u64,
    top: *const u8,
    /// Null if they were not saved: `variadic.rs` leaves them in the registers.
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
    /// As many arguments must exist as will be taken, of the kinds as which they will be taken.
    pub const unsafe fn new(list: &'a mut VaList) -> Arguments<'a> {
        Arguments { list }
    }
}

impl VaList {
    /// Returns the next argument on the stack, where there must be one.
    fn on_stack(&mut self) -> u64 {
        let place = self.stack;
        self.stack = place.wrapping_add(1);
        // SAFETY: an argument exists (`Arguments::new`), and it lies on the stack.
        unsafe { place.read_unaligned() }
    }

    /// Returns the next argument, a floating-point value, which must exist.
    pub fn float(&mut self) -> f64 {
        if self.float_offset >= 0 {
            return f64::from_bits(self.on_stack());
        }
        let offset = self.float_offset;
        self.float_offset += FLOAT;
        if self.float_top.is_null() {
            return f64::from_bits(register(8 + offset / FLOAT));
        }
        // SAFETY: an argument exists (`Arguments::new`), and it was saved here.
        unsafe { self.float_top.wrapping_offset(offset as isize).cast::<f64>().read_unaligned() }
    }
}

/// Returns what is in the floating-point register of this number, from 0 to 7.
#[cfg(target_os = "none")]
fn register(number: c_int) -> u64 {
    macro_rules! read {
        ($name:literal) => {{
            let value;
            // SAFETY: this reads a register that Rust does not use.
            unsafe { core::arch::asm!(".arch_extension fp", concat!("fmov {value}, ", $name), value = out(reg) value) };
            value
        }};
    }
    match number {
        0 => read!("d0"),
        1 => read!("d1"),
        2 => read!("d2"),
        3 => read!("d3"),
        4 => read!("d4"),
        5 => read!("d5"),
        6 => read!("d6"),
        _ => read!("d7"),
    }
}

/// Fails: on the host, arguments are always saved.
#[cfg(not(target_os = "none"))]
fn register(number: c_int) -> u64 {
    panic!("argument {number} was not saved")
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
        list.on_stack()
    }

    fn string(&mut self, limit: usize) -> &[u8] {
        let text = core::ptr::with_exposed_provenance::<c_char>(self.word() as usize);
        if text.is_null() {
            return b"(null)";
        }
        // SAFETY: the argument is a string (`new`).
        unsafe { bytes(text, limit) }
    }

    fn write_float(&mut self, letter: u8, how: &Conversion, out: &mut dyn FnMut(&[u8])) -> bool {
        float::write_next(letter, how, self.list, out)
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

    #[test]
    fn floating_point_has_registers_of_its_own() {
        let registers = [1_u64, 2];
        let floats = [[1.5_f64, f64::NAN], [2.5, f64::NAN]];
        let stack = [3.5_f64.to_bits(), 3, 4.5_f64.to_bits()];
        let mut list = VaList {
            stack: stack.as_ptr(),
            top: registers.as_ptr_range().end.cast(),
            float_top: floats.as_ptr_range().end.cast(),
            offset: -16,
            float_offset: -32,
        };
        // SAFETY: there are seven arguments of these kinds.
        let mut arguments = unsafe { Arguments::new(&mut list) };
        assert_eq!((arguments.word(), arguments.list.float()), (1, 1.5));
        assert_eq!((arguments.list.float(), arguments.word()), (2.5, 2));
        assert_eq!((arguments.list.float(), arguments.word(), arguments.list.float()), (3.5, 3, 4.5));
    }
}
