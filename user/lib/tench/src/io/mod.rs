//! Standard input and output, and other streams of bytes.
//!
//! The parent of a process may give it streams as input, output and error output (`STDIN`, `STDOUT`, `STDERR` in
//! [`slot`]); the default is the console. Output is sent as it is printed, a message for each call of `print!` or
//! `println!`, so that lines of several programs are not mixed. A process without a console that holds the kernel
//! capability (the first servers) prints on the kernel's early output. Any other process prints nowhere.
//!
//! A program that prints when nobody reads any more ends with exit code [`BROKEN`]; if its output cannot be written for
//! another reason, such as lack of space for a file, it ends with a message and exit code 1. [`write()`] returns an
//! error instead.

mod buffered;
mod end;
mod print;

use alloc::boxed::Box;
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

use tench_abi::layout::slot;
use tench_abi::{CapAddress, Kind};
use tench_console_interface::Console;
use tench_stream::Stream;
use tench_stream::protocol::{Error as StreamError, MAX_DATA};
use tench_sys::{Cap, Kernel, OWN_CSPACE};

pub use buffered::{Lines, Output};
pub use end::{End, pipe};
pub use print::{BROKEN, Gather, print, print_error_line, print_line, put};

use crate::process;

/// Reason why bytes could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The console refused.
    Console(tench_console_interface::Failure),
    /// The stream refused.
    Stream(tench_stream::Failure),
    /// The file server refused.
    Files(tench_files_interface::Failure),
    /// The process server refused to give a stream to a process.
    Procs(tench_procs_interface::Failure),
    /// There was no slot for the stream.
    Memory(crate::memory::Error),
    /// The kernel refused.
    Kernel(tench_abi::Error),
    /// The process has nothing to read from or write to.
    Nowhere,
}

impl Error {
    /// Returns whether nobody reads what would be written.
    pub fn is_broken(&self) -> bool {
        use tench_protocol::Failure;
        matches!(self, Error::Stream(Failure::Refused(StreamError::Broken) | Failure::Lost(_)))
    }

    /// Returns whether Ctrl-C was typed while the console was read.
    pub fn is_interrupted(&self) -> bool {
        use tench_console_interface::Error as ConsoleError;
        use tench_protocol::Failure;
        matches!(self, Error::Console(Failure::Refused(ConsoleError::Interrupted)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Console(failure) => failure.fmt(f),
            Error::Stream(failure) => failure.fmt(f),
            Error::Files(failure) => failure.fmt(f),
            Error::Procs(failure) => failure.fmt(f),
            Error::Memory(error) => error.fmt(f),
            Error::Kernel(error) => error.fmt(f),
            Error::Nowhere => f.write_str("there is neither a console nor a stream"),
        }
    }
}

impl core::error::Error for Error {}

impl From<tench_stream::Failure> for Error {
    fn from(failure: tench_stream::Failure) -> Error {
        Error::Stream(failure)
    }
}

impl From<tench_files_interface::Failure> for Error {
    fn from(failure: tench_files_interface::Failure) -> Error {
        Error::Files(failure)
    }
}

/// A source of bytes.
pub trait Read {
    /// Waits until there are bytes, and reads as many as are available and fit. Returns their number; 0 is the end.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error>;
}

/// A target of bytes.
pub trait Write {
    /// Writes all bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error>;
}

impl<T: Read + ?Sized> Read for Box<T> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        (**self).read(buffer)
    }
}

impl<T: Write + ?Sized> Write for Box<T> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        (**self).write(bytes)
    }
}

/// Destination of a standard stream, determined once.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Destination {
    Unknown = 0,
    Stream = 1,
    Console = 2,
    Kernel = 3,
    Nowhere = 4,
}

/// A standard stream: its slot and its destination.
#[derive(Debug)]
struct Standard {
    slot: CapAddress,
    destination: AtomicU8,
}

static INPUT: Standard = Standard::at(slot::STDIN);
static OUTPUT: Standard = Standard::at(slot::STDOUT);
static ERRORS: Standard = Standard::at(slot::STDERR);

impl Standard {
    const fn at(slot: CapAddress) -> Standard {
        Standard { slot, destination: AtomicU8::new(Destination::Unknown as u8) }
    }

    /// Returns the destination.
    fn destination(&self) -> Destination {
        const KNOWN: [Destination; 4] =
            [Destination::Stream, Destination::Console, Destination::Kernel, Destination::Nowhere];
        let code = self.destination.load(Ordering::Relaxed);
        if let Some(known) = KNOWN.into_iter().find(|known| *known as u8 == code) {
            return known;
        }
        let holds = |address, kind| OWN_CSPACE.identify_at(address).is_ok_and(|found| found.kind == kind);
        // The first process has other capabilities in the slots for streams.
        let found = if !process::is_first() && holds(self.slot, Kind::Endpoint) {
            Destination::Stream
        } else if holds(slot::CONSOLE, Kind::Endpoint) {
            Destination::Console
        } else if holds(slot::KERNEL, Kind::Kernel) {
            Destination::Kernel
        } else {
            Destination::Nowhere
        };
        self.destination.store(found as u8, Ordering::Relaxed);
        found
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        match self.destination() {
            Destination::Stream => write_all(Stream::at(Cap::new(self.slot)), bytes),
            Destination::Console => Console::STANDARD.write(bytes).map_err(Error::Console),
            Destination::Kernel => Cap::<Kernel>::new(slot::KERNEL).print(bytes).map_err(Error::Kernel),
            Destination::Unknown | Destination::Nowhere => Err(Error::Nowhere),
        }
    }

    fn read(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        match self.destination() {
            Destination::Stream => read_some(Stream::at(Cap::new(self.slot)), buffer),
            Destination::Console => Console::STANDARD.read(buffer).map_err(Error::Console),
            Destination::Kernel | Destination::Unknown | Destination::Nowhere => Err(Error::Nowhere),
        }
    }
}

/// Writes all bytes to a stream.
fn write_all(stream: Stream, bytes: &[u8]) -> Result<(), Error> {
    bytes.chunks(MAX_DATA).try_for_each(|part| stream.write(part).map_err(Error::Stream))
}

/// Reads the bytes that are available from a stream.
fn read_some(stream: Stream, buffer: &mut [u8]) -> Result<usize, Error> {
    let bytes = stream.read(buffer.len().min(MAX_DATA))?;
    let place = buffer.get_mut(..bytes.len()).ok_or(Error::Stream(tench_protocol::Failure::Malformed))?;
    place.copy_from_slice(&bytes);
    Ok(bytes.len())
}

/// Writes bytes to standard output.
pub fn write(bytes: &[u8]) -> Result<(), Error> {
    OUTPUT.write(bytes)
}

/// Writes bytes to the standard error output.
pub fn write_error(bytes: &[u8]) -> Result<(), Error> {
    ERRORS.write(bytes)
}

/// Returns which of standard input, output and error output are the console.
pub fn are_console() -> [bool; 3] {
    [&INPUT, &OUTPUT, &ERRORS].map(|stream| stream.destination() == Destination::Console)
}

/// Reads from standard input: waits until there are bytes, and returns their number; 0 is the end.
pub fn read(buffer: &mut [u8]) -> Result<usize, Error> {
    INPUT.read(buffer)
}

/// Standard input.
#[derive(Clone, Copy, Debug)]
pub struct Stdin;

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        read(buffer)
    }
}

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        write(bytes)
    }
}

/// Standard error output.
#[derive(Clone, Copy, Debug)]
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        write_error(bytes)
    }
}
