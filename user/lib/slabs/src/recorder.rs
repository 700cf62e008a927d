//! Recorder of the requests to a running system, as the text of a trace.
//!
//! The buffer has a fixed size and is allocated at once, so recording never allocates memory while a request is served.
//! When it is full, recording ends with a comment that says so; the text is still a trace.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::bundle::{Descriptor, Lifetime};
use crate::trace::write_bundle;

/// Last line of a recording that did not fit.
const FULL: &str = "# the buffer was full\n";

/// A recording.
#[derive(Debug, Default)]
pub struct Recorder {
    text: String,
    limit: usize,
    /// Number of requests written so far, which is the number of the next.
    next: u32,
    full: bool,
}

/// A writer that counts bytes instead of storing them.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

impl Recorder {
    /// Returns a recording of at most `bytes` bytes; `None` if there is not enough memory.
    pub fn new(bytes: usize) -> Option<Recorder> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(bytes).ok()?;
        Some(Recorder { text: String::from_utf8(buffer).ok()?, limit: bytes, next: 0, full: false })
    }

    /// Records a granted bundle. Returns its number for recording that it is freed; `None` if it was not recorded.
    pub fn alloc(&mut self, bundle: &[Descriptor], lifetime: Lifetime) -> Option<u32> {
        self.line(|out| {
            out.write_str("alloc")?;
            write_bundle(out, bundle, lifetime)
        })
    }

    /// Records a bundle that found no room.
    pub fn failed(&mut self, bundle: &[Descriptor], lifetime: Lifetime) {
        self.line(|out| {
            out.write_str("failed")?;
            write_bundle(out, bundle, lifetime)
        });
    }

    /// Records that the bundle with that number was freed.
    pub fn free(&mut self, number: u32) {
        self.line(|out| write!(out, "free {number}"));
    }

    /// Returns the recorded text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a request was not recorded for lack of room.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    fn line(&mut self, write: impl Fn(&mut dyn Write) -> fmt::Result) -> Option<u32> {
        if self.full {
            return None;
        }
        let mut length = Length(1);
        write(&mut length).ok()?;
        if self.text.len() + length.0 + FULL.len() > self.limit {
            self.full = true;
            if self.text.len() + FULL.len() <= self.limit {
                self.text.push_str(FULL);
            }
            return None;
        }
        write(&mut self.text).ok()?;
        self.text.push('\n');
        self.next += 1;
        Some(self.next - 1)
    }
}
