//! `print!`, `println!` and `eprintln!`.

use core::fmt::{self, Write};

use tench_console_interface::protocol::MAX_TEXT;

use super::{Destination, OUTPUT, write, write_error};
use crate::process;

/// Exit code of a program that prints when nobody reads any more: as on other systems, where `SIGPIPE` ends the program
/// (128 plus the signal's number).
pub const BROKEN: i32 = 141;

/// A buffer that gathers text to write it in as few messages as possible: when it is full, and when it is dropped.
pub struct Gather<To: FnMut(&[u8]) = fn(&[u8])> {
    bytes: [u8; MAX_TEXT],
    length: usize,
    to: To,
}

impl Gather {
    /// Returns an empty buffer for standard output.
    pub const fn new() -> Gather {
        Gather::to(put)
    }
}

impl<To: FnMut(&[u8])> Gather<To> {
    /// Returns an empty buffer that passes its contents to `to`.
    pub const fn to(to: To) -> Gather<To> {
        Gather { bytes: [0; MAX_TEXT], length: 0, to }
    }

    /// Appends text.
    pub fn push(&mut self, text: &[u8]) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.length == MAX_TEXT {
                self.flush();
            }
            let count = rest.len().min(MAX_TEXT - self.length);
            let (now, later) = rest.split_at(count);
            self.bytes[self.length..self.length + count].copy_from_slice(now);
            self.length += count;
            rest = later;
        }
    }

    /// Writes the buffered text.
    pub fn flush(&mut self) {
        if self.length > 0 {
            (self.to)(&self.bytes[..self.length]);
            self.length = 0;
        }
    }
}

impl Default for Gather {
    fn default() -> Self {
        Self::new()
    }
}

impl<To: FnMut(&[u8])> Drop for Gather<To> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<To: FnMut(&[u8])> Write for Gather<To> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Writes bytes to standard output for a program that does not check whether they arrive.
pub fn put(bytes: &[u8]) {
    if let Err(error) = write(bytes) {
        // A program whose console is gone continues: there is nobody who would miss the text.
        if OUTPUT.destination() != Destination::Stream {
            return;
        }
        if error.is_broken() {
            process::exit(BROKEN);
        }
        print_error_line(format_args!("{}: standard output: {error}", process::name()));
        process::exit(1);
    }
}

/// Writes bytes to the error output. A failure is ignored, because there is nobody to tell.
fn put_error(bytes: &[u8]) {
    let _ = write_error(bytes);
}

/// Implements `print!`.
#[doc(hidden)]
pub fn print(text: fmt::Arguments<'_>) {
    match text.as_str() {
        Some(text) => put(text.as_bytes()),
        None => gather(Gather::new(), text, ""),
    }
}

/// Implements `println!`.
#[doc(hidden)]
pub fn print_line(text: fmt::Arguments<'_>) {
    gather(Gather::new(), text, "\n");
}

/// Implements `eprintln!`.
#[doc(hidden)]
pub fn print_error_line(text: fmt::Arguments<'_>) {
    gather(Gather::to(put_error), text, "\n");
}

/// Writes text and `end` in as few messages as possible.
fn gather(mut gather: Gather<impl FnMut(&[u8])>, text: fmt::Arguments<'_>, end: &str) {
    // Gathering never fails; a failing `Display` only loses its own output.
    let _ = gather.write_fmt(text);
    gather.push(end.as_bytes());
}

/// Prints to standard output.
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::io::print(core::format_args!($($argument)*)) };
}

/// Prints a line to standard output.
#[macro_export]
macro_rules! println {
    ($($argument:tt)*) => { $crate::io::print_line(core::format_args!($($argument)*)) };
}

/// Prints a line about an error to the standard error output.
#[macro_export]
macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::io::print_error_line(core::format_args!($($argument)*)) };
}
