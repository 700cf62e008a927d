//! Bytes on their way to the line.

use alloc::collections::VecDeque;

/// A buffer between writers and the line. A line feed becomes carriage return and line feed.
pub struct Output {
    bytes: VecDeque<u8>,
    limit: usize,
    last: u8,
    /// Bytes that were taken so far.
    taken: u64,
}

impl Output {
    /// An empty buffer for `limit` bytes.
    pub fn new(limit: usize) -> Output {
        Output { bytes: VecDeque::with_capacity(limit), limit, last: 0, taken: 0 }
    }

    /// A buffer from which so many bytes were taken, and which holds these.
    pub fn resume(limit: usize, taken: u64, bytes: &[u8]) -> Output {
        let mut output = Output { taken, last: bytes.last().copied().unwrap_or(0), ..Output::new(limit) };
        output.bytes.extend(bytes.iter().take(limit));
        output
    }

    /// Bytes that were taken so far.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Bytes on their way, in order.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &u8> {
        self.bytes.iter()
    }

    /// The next byte for the line.
    pub fn front(&self) -> Option<u8> {
        self.bytes.front().copied()
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
        self.bytes.pop_front().inspect(|_| self.taken += 1)
    }

    /// Whether everything has gone to the line.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
