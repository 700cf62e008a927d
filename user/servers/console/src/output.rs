//! Bytes on their way to the line.

use alloc::collections::VecDeque;

/// A buffer between writers and the line. A line feed becomes carriage return and line feed.
pub struct Output {
    bytes: VecDeque<u8>,
    limit: usize,
    last: u8,
}

impl Output {
    /// An empty buffer for `limit` bytes.
    pub fn new(limit: usize) -> Output {
        Output { bytes: VecDeque::with_capacity(limit), limit, last: 0 }
    }

    /// Whether `text` fits, however many line feeds are in it.
    pub fn has_room_for(&self, text: &[u8]) -> bool {
        self.bytes.len() + 2 * text.len() <= self.limit
    }

    /// Appends text. What does not fit is dropped; who must not lose anything asks for room first.
    pub fn write(&mut self, text: &[u8]) {
        for &byte in text {
            if byte == b'\n' && self.last != b'\r' {
                self.push(b'\r');
            }
            self.push(byte);
        }
    }

    fn push(&mut self, byte: u8) {
        if self.bytes.len() < self.limit {
            self.bytes.push_back(byte);
            self.last = byte;
        }
    }

    /// Whether what was written so far, gone or not, ends in the middle of a line.
    pub const fn is_mid_line(&self) -> bool {
        !matches!(self.last, 0 | b'\n')
    }

    /// Takes the next byte for the line.
    pub fn pop(&mut self) -> Option<u8> {
        self.bytes.pop_front()
    }

    /// Whether everything has gone to the line.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
