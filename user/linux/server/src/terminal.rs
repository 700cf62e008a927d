//! The console as a terminal: what was typed, and whose it is.

use alloc::collections::VecDeque;

/// The terminal of an instance. The console below edits lines and shows what is typed.
#[derive(Debug, Default)]
pub struct Terminal {
    typed: VecDeque<u8>,
    /// Set if the end was typed, or there will be no more.
    at_end: bool,
    /// The group of processes that uses the terminal, if one has said so.
    pub group: Option<u32>,
}

impl Terminal {
    /// Takes what was typed; nothing at the end.
    pub fn input(&mut self, bytes: &[u8]) {
        self.typed.extend(bytes);
        self.at_end |= bytes.is_empty();
    }

    /// Returns whether a read would return at once.
    pub fn is_ready(&self) -> bool {
        self.at_end || !self.typed.is_empty()
    }

    /// Returns the number of bytes that can be read.
    pub fn len(&self) -> usize {
        self.typed.len()
    }

    /// Reads a line, or as much of it as fits. Returns the number of bytes, 0 at the end, which is read once; `None` if
    /// nothing was typed.
    pub fn read(&mut self, into: &mut [u8]) -> Option<usize> {
        if self.typed.is_empty() {
            return core::mem::take(&mut self.at_end).then_some(0);
        }
        let line = self.typed.iter().position(|byte| *byte == b'\n').map_or(self.typed.len(), |end| end + 1);
        let count = line.min(into.len());
        for (byte, typed) in into.iter_mut().zip(self.typed.drain(..count)) {
            *byte = typed;
        }
        Some(count)
    }
}
