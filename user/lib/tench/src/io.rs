//! Standard input and output.
//!
//! Output goes to the console server, a message for each call of `print!` or `println!`, so that lines of several
//! programs are not mixed. A process without a console that holds the kernel capability (the first servers) prints on
//! the kernel's early output. Any other process prints nowhere. Errors go the same way as output.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU8, Ordering};

use tench_abi::Kind;
use tench_abi::layout::slot;
use tench_console_client::protocol::MAX_TEXT;
use tench_console_client::{Console, Failure};
use tench_sys::{Cap, Kernel, OWN_SPACE};

/// Where output goes; found out once.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Destination {
    Unknown = 0,
    Console = 1,
    Kernel = 2,
    Nowhere = 3,
}

static DESTINATION: AtomicU8 = AtomicU8::new(Destination::Unknown as u8);

/// Where output goes.
fn destination() -> Destination {
    const KNOWN: [Destination; 3] = [Destination::Console, Destination::Kernel, Destination::Nowhere];
    let code = DESTINATION.load(Ordering::Relaxed);
    if let Some(known) = KNOWN.into_iter().find(|known| *known as u8 == code) {
        return known;
    }
    let holds = |address, kind| OWN_SPACE.identify_at(address).is_ok_and(|found| found.kind == kind);
    let found = if holds(slot::CONSOLE, Kind::Endpoint) {
        Destination::Console
    } else if holds(slot::KERNEL, Kind::Kernel) {
        Destination::Kernel
    } else {
        Destination::Nowhere
    };
    DESTINATION.store(found as u8, Ordering::Relaxed);
    found
}

/// Writes bytes to standard output.
pub fn write(bytes: &[u8]) {
    // Where output fails there is nobody to tell.
    match destination() {
        Destination::Console => drop(Console::STANDARD.write(bytes)),
        Destination::Kernel => drop(Cap::<Kernel>::new(slot::KERNEL).print(bytes)),
        Destination::Unknown | Destination::Nowhere => {}
    }
}

/// Reads from standard input: waits until there is some, and answers how many bytes there were; 0 is the end.
pub fn read(buffer: &mut [u8]) -> Result<usize, Failure> {
    Console::STANDARD.read(buffer)
}

/// Gathers parts of text, to write them in as few messages as possible: when it is full, and when it is dropped.
pub struct Gather {
    bytes: [u8; MAX_TEXT],
    length: usize,
}

impl Gather {
    /// Empty.
    pub const fn new() -> Gather {
        Gather { bytes: [0; MAX_TEXT], length: 0 }
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

    /// Writes what there is.
    pub fn flush(&mut self) {
        if self.length > 0 {
            write(&self.bytes[..self.length]);
            self.length = 0;
        }
    }
}

impl Default for Gather {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Write for Gather {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// What `print!` calls.
#[doc(hidden)]
pub fn print(text: fmt::Arguments<'_>) {
    match text.as_str() {
        Some(text) => write(text.as_bytes()),
        None => gather(text, ""),
    }
}

/// What `println!` calls.
#[doc(hidden)]
pub fn print_line(text: fmt::Arguments<'_>) {
    gather(text, "\n");
}

/// Writes text and what follows it in as few messages as possible.
fn gather(text: fmt::Arguments<'_>, end: &str) {
    let mut gather = Gather::new();
    // Gathering never fails; a `Display` that does has itself to blame for its missing output.
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

/// Prints a line about an error: to standard output, since there is one console.
#[macro_export]
macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::io::print_line(core::format_args!($($argument)*)) };
}
