//! Floating point.
//!
//! Rust passes a floating-point value in a general register, because Tench's programs in Rust do not use the unit; C
//! passes it in `d0` to `d7`. So what C calls here is a few instructions that move the values (`entry.rs`), and the
//! rest is Rust.
//!
//! ```text
//! entry   what C calls, but for math.h      write   floating point in printf
//! math    what C calls of math.h            read    floating point in strtod
//! ```
//! A program that does not compute with floating-point values does without the formatting of them, which is longer than
//! the rest of `printf`: the host tool, which sees whether the program has such instructions, links `some` or `none`.

#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod math;
mod read;
pub mod write;

use crate::arguments::VaList;
use crate::format::Conversion;

#[cfg(target_os = "none")]
unsafe extern "Rust" {
    /// Is [`some`] or [`none`], as the linker's command says.
    safe fn tench_write_float(letter: u8, how: &Conversion, list: &mut VaList, out: &mut dyn FnMut(&[u8])) -> bool;
}

#[cfg(not(target_os = "none"))]
use some as tench_write_float;

/// Writes the next value of a list as a conversion with this letter wants it. Returns whether the program has such
/// values.
pub fn write_next(letter: u8, how: &Conversion, list: &mut VaList, out: &mut dyn FnMut(&[u8])) -> bool {
    tench_write_float(letter, how, list, out)
}

/// Writes the next value.
#[cfg_attr(target_os = "none", unsafe(export_name = "tench_write_some"))]
fn some(letter: u8, how: &Conversion, list: &mut VaList, out: &mut dyn FnMut(&[u8])) -> bool {
    write::write(letter, how, list.float(), out);
    true
}

/// Writes nothing, because there are no values.
#[cfg(target_os = "none")]
#[unsafe(export_name = "tench_write_none")]
fn none(_: u8, _: &Conversion, _: &mut VaList, _: &mut dyn FnMut(&[u8])) -> bool {
    false
}
