//! Input that was received and edited, and is not read yet.

use alloc::vec::Vec;

use crate::ring::{Ring, SIZE, same};

/// The bytes from `tail` to `head`. In canonical mode the line being edited begins at `canonical`, and what is before
/// it can be read; in non-canonical mode, what is before `committed`.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    bytes: Ring<u8>,
    /// Marks of bytes with which a line ends. A 0 that ends a line stands for the end of a file, and is not read.
    ends: Ring<bool>,
    pub(crate) tail: usize,
    pub(crate) canonical: usize,
    pub(crate) committed: usize,
    pub(crate) head: usize,
}

/// The byte that stands for the end of a file.
const END_OF_FILE: u8 = 0;

impl Lines {
    pub(crate) fn new() -> Lines {
        Lines { bytes: Ring::new(), ends: Ring::new(), tail: 0, canonical: 0, committed: 0, head: 0 }
    }

    pub(crate) fn clear(&mut self) {
        (self.tail, self.canonical, self.committed, self.head) = (0, 0, 0, 0);
        self.ends.clear();
    }

    pub(crate) const fn count(&self) -> usize {
        self.head - self.tail
    }

    pub(crate) fn get(&self, position: usize) -> u8 {
        self.bytes.get(position)
    }

    pub(crate) fn push(&mut self, byte: u8) {
        self.bytes.set(self.head, byte);
        self.head += 1;
    }

    /// Ends the line being edited with a byte.
    pub(crate) fn end_line(&mut self, byte: u8) {
        self.ends.set(self.head, true);
        self.push(byte);
        self.canonical = self.head;
    }

    /// Ends the line being edited with the end of a file.
    pub(crate) fn end_file(&mut self) {
        self.end_line(END_OF_FILE);
    }

    /// Returns whether the line being edited is empty.
    pub(crate) const fn is_new_line(&self) -> bool {
        self.canonical == self.head
    }

    /// Begins another way of reading: what is here is one line, or, without canonical mode, no lines.
    pub(crate) fn convert(&mut self, is_canonical: bool) {
        self.ends.clear();
        if is_canonical && self.count() > 0 {
            self.ends.set(self.head - 1, true);
            self.canonical = self.head;
        } else {
            self.canonical = self.tail;
        }
        self.committed = self.head;
    }

    /// Moves bytes of a line, at most `wanted`, and no further than the line's end. Returns whether the line goes on.
    pub(crate) fn take_line(&mut self, wanted: usize, into: &mut Vec<u8>) -> bool {
        let limit = self.tail + wanted.min(self.canonical - self.tail);
        let end = (self.tail..limit).find(|position| self.ends.get(*position));
        let mut last = end.unwrap_or(limit);
        let mut next = last;
        if let Some(end) = end {
            next = end + 1;
            if self.bytes.get(end) != END_OF_FILE {
                last = next;
            }
            self.ends.set(end, false);
        }
        into.extend((self.tail..last).map(|position| self.bytes.get(position)));
        self.tail = next;
        end.is_none() && self.tail != self.canonical
    }

    /// Removes an end of a file that comes next: it ends the line that was just read.
    pub(crate) fn skip_end_of_file(&mut self) {
        let tail = self.tail;
        if tail != self.canonical && self.ends.get(tail) && self.bytes.get(tail) == END_OF_FILE {
            self.ends.set(tail, false);
            self.tail += 1;
        }
    }

    /// Moves bytes without regard to lines, at most `wanted`. Returns whether there are more.
    pub(crate) fn take(&mut self, wanted: usize, into: &mut Vec<u8>) -> bool {
        let count = wanted.min(self.committed - self.tail);
        into.extend((self.tail..self.tail + count).map(|position| self.bytes.get(position)));
        self.tail += count;
        count > 0 && self.tail != self.committed
    }

    /// Returns the number of bytes that reading whole lines would give.
    pub(crate) fn count_canonical(&self) -> usize {
        let mut count = self.canonical - self.tail;
        let mut position = self.tail;
        // If the line fills the ring, Linux counts an end of a file as a byte.
        while !same(position, self.canonical) {
            if self.ends.get(position) && self.bytes.get(position) == END_OF_FILE {
                count -= 1;
            }
            position += 1;
        }
        count
    }

    /// Returns the number of bytes that can still be received, from 0. `parts` are the places that one may need.
    pub(crate) const fn room(&self, parts: usize) -> usize {
        SIZE.saturating_sub(self.count()).div_ceil(parts).saturating_sub(1)
    }
}
