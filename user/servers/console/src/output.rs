//! The output buffer in front of the serial line.

use alloc::collections::VecDeque;

/// A buffer between writers and the line. A line feed becomes carriage return and line feed.
pub struct Output {
    bytes: VecDeque<u8>,
    limit: usize,
    last: u8,
    /// Number of bytes sent so far.
    taken: u64,
}

impl Output {
    /// Returns an empty buffer for `limit` bytes.
    pub fn new(limit: usize) -> Output {
        Output { bytes: VecDeque::with_capacity(limit), limit, last: 0, taken: 0 }
    }

    /// Returns a buffer that contains `bytes` and from which `taken` bytes have been sent.
    pub fn resume(limit: usize, taken: u64, bytes: &[u8]) -> Output {
        let mut output = Output { taken, last: bytes.last().copied().unwrap_or(0), ..Output::new(limit) };
        output.bytes.extend(bytes.iter().take(limit));
        output
    }

    /// Returns the number of bytes sent so far.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the buffered bytes, in order.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &u8> {
        self.bytes.iter()
    }

    /// Returns the next byte to be sent.
    pub fn front(&self) -> Option<u8> {
        self.bytes.front().copied()
    }

    /// Returns whether `text` fits, however many line feeds are in it.
    pub fn has_capacity_for(&self, text: &[u8]) -> bool {
        self.bytes.len() + 2 * text.len() <= self.limit
    }

    /// Appends text. What does not fit is dropped; a caller that must not lose anything checks for room first.
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

    /// Returns whether the text written so far, sent or not, ends in the middle of a line.
    pub const fn is_mid_line(&self) -> bool {
        !matches!(self.last, 0 | b'\n')
    }

    /// Removes the next byte to be sent.
    pub fn pop(&mut self) -> Option<u8> {
        self.bytes.pop_front().inspect(|_| self.taken += 1)
    }

    /// Returns whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
