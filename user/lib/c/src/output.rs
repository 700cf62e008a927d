//! `printf` and its relatives.

use core::ffi::{c_char, c_int};

use tench::io::{self, Gather};

use crate::arguments::{Arguments, VaList};
use crate::format::format;
use crate::text::bytes;

/// Writes a byte.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn putchar(character: c_int) -> c_int {
    io::put(&[character as u8]);
    c_int::from(character as u8)
}

/// Writes a line.
///
/// # Safety
/// `text` must be a string.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn puts(text: *const c_char) -> c_int {
    // SAFETY: the caller guarantees that it is a string.
    let text = unsafe { bytes(text, usize::MAX) };
    let mut gather = Gather::new();
    gather.push(text);
    gather.push(b"\n");
    text.len() as c_int + 1
}

/// Writes formatted text.
///
/// # Safety
/// `text` must be a string, and the arguments are those that it takes.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
pub unsafe extern "C" fn vprintf(text: *const c_char, list: &mut VaList) -> c_int {
    // SAFETY: the caller guarantees that it is a string.
    let text = unsafe { bytes(text, usize::MAX) };
    // SAFETY: the caller guarantees that the arguments fit.
    let mut arguments = unsafe { Arguments::new(list) };
    let mut gather = Gather::new();
    let mut count = 0;
    format(text, &mut arguments, &mut |part| {
        gather.push(part);
        count += part.len();
    });
    count as c_int
}

/// Writes formatted text into a buffer, cut to `size` bytes including the zero byte. Returns the length of the whole
/// text.
///
/// # Safety
/// `size` is 0 or `buffer` has room for `size` bytes; the rest as for `vprintf`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
pub unsafe extern "C" fn vsnprintf(buffer: *mut c_char, size: usize, text: *const c_char, list: &mut VaList) -> c_int {
    // SAFETY: the caller guarantees that it is a string.
    let text = unsafe { bytes(text, usize::MAX) };
    // SAFETY: the caller guarantees that the arguments fit.
    let mut arguments = unsafe { Arguments::new(list) };
    let mut count = 0;
    format(text, &mut arguments, &mut |part| {
        for byte in part {
            if count + 1 < size {
                // SAFETY: below `size`, for which there is room.
                unsafe { buffer.wrapping_add(count).write(*byte as c_char) };
            }
            count += 1;
        }
    });
    if size > 0 {
        // SAFETY: as above.
        unsafe { buffer.wrapping_add(count.min(size - 1)).write(0) };
    }
    count as c_int
}
