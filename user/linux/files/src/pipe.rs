//! Pipes.

use alloc::collections::VecDeque;

use crate::Errno;

/// Bytes that go from those who write to those who read.
#[derive(Debug)]
pub struct Pipe {
    bytes: VecDeque<u8>,
    /// The most bytes that the pipe can hold.
    capacity: usize,
    readers: u32,
    writers: u32,
    /// How often the pipe was opened to be read. Who waits for that also sees it if the other one has closed it again.
    read_openings: u32,
    /// How often the pipe was opened to be written.
    write_openings: u32,
}

impl Default for Pipe {
    fn default() -> Pipe {
        let (readers, writers, read_openings, write_openings) = (0, 0, 0, 0);
        Pipe { bytes: VecDeque::new(), capacity: Pipe::CAPACITY, readers, writers, read_openings, write_openings }
    }
}

impl Pipe {
    /// The capacity of a new pipe in bytes.
    pub const CAPACITY: usize = 64 * 1024;
    /// The largest capacity.
    pub const MOST: usize = 1 << 20;
    /// So many bytes are written at once or not at all.
    pub const ATOMIC: usize = 4096;

    /// Adds an open file that may be read or written.
    pub fn open(&mut self, reads: bool, writes: bool) {
        self.readers += u32::from(reads);
        self.writers += u32::from(writes);
        self.read_openings = self.read_openings.wrapping_add(u32::from(reads));
        self.write_openings = self.write_openings.wrapping_add(u32::from(writes));
    }

    /// Removes an open file that may be read or written. When the last one goes, the bytes go, too.
    pub fn close(&mut self, reads: bool, writes: bool) {
        self.readers -= u32::from(reads);
        self.writers -= u32::from(writes);
        if self.readers == 0 && self.writers == 0 {
            self.bytes = VecDeque::new();
        }
    }

    /// Returns whether somebody could read.
    pub const fn has_readers(&self) -> bool {
        self.readers > 0
    }

    /// Returns whether somebody could write.
    pub const fn has_writers(&self) -> bool {
        self.writers > 0
    }

    /// Returns how often the pipe was opened to be read, and how often to be written.
    pub const fn openings(&self) -> (u32, u32) {
        (self.read_openings, self.write_openings)
    }

    /// Returns the number of bytes that can be read.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there is nothing to be read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the most bytes that the pipe can hold.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets the capacity, rounded up to a power of two of pages. Returns the capacity in bytes.
    ///
    /// # Errors
    /// - `EPERM`: more than [`Pipe::MOST`] bytes are wanted.
    /// - `EINVAL`: more than 2 GiB are wanted.
    /// - `EBUSY`: the pipe holds more bytes than are wanted.
    pub fn resize(&mut self, wanted: usize) -> Result<usize, Errno> {
        const POSSIBLE: usize = 1 << 31;
        if wanted > Pipe::MOST {
            return Err(if wanted > POSSIBLE { Errno::EINVAL } else { Errno::EPERM });
        }
        let capacity = wanted.max(Pipe::ATOMIC).next_power_of_two();
        if capacity < self.bytes.len() {
            return Err(Errno::EBUSY);
        }
        self.capacity = capacity;
        self.bytes.shrink_to(capacity);
        Ok(capacity)
    }

    /// Returns whether a write would do something: there is room for what has to be written at once.
    pub fn has_room(&self, length: usize) -> bool {
        let needed = if length <= Pipe::ATOMIC { length } else { 1 };
        self.capacity - self.bytes.len() >= needed
    }

    /// Reads bytes that are there. Returns their number.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.peek(into);
        self.drop_first(count);
        count
    }

    /// Copies the first bytes that are there, which stay. Returns their number.
    pub fn peek(&self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.bytes.len());
        let (first, second) = self.bytes.as_slices();
        let split = count.min(first.len());
        into[..split].copy_from_slice(&first[..split]);
        into[split..count].copy_from_slice(&second[..count - split]);
        count
    }

    /// Removes the first bytes, of which there are so many.
    pub fn drop_first(&mut self, count: usize) {
        self.bytes.drain(..count);
    }

    /// Returns how many bytes there is room for.
    pub fn room(&self) -> usize {
        self.capacity - self.bytes.len()
    }

    /// Returns how many bytes of memory the pipe takes when so many bytes are written, if it has to grow for them.
    pub fn growth(&self, length: usize) -> Option<usize> {
        let needed = (self.bytes.len() + length).min(self.capacity);
        (needed > self.bytes.capacity()).then_some(2 * needed)
    }

    /// Writes as many bytes as there is room for. Returns their number.
    pub fn write(&mut self, from: &[u8]) -> usize {
        let count = from.len().min(self.capacity - self.bytes.len());
        self.bytes.extend(&from[..count]);
        count
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    #[test]
    fn a_pipe_is_resized_if_its_bytes_still_fit() {
        let mut pipe = Pipe::default();
        assert_eq!((pipe.resize(1), pipe.resize(4097), pipe.capacity()), (Ok(4096), Ok(8192), 8192));
        assert_eq!((pipe.write(&[1; 9000]), pipe.room()), (8192, 0));
        assert_eq!((pipe.resize(4096), pipe.resize(Pipe::MOST + 1)), (Err(Errno::EBUSY), Err(Errno::EPERM)));
        assert_eq!((pipe.resize(1 << 31), pipe.resize((1 << 31) + 1)), (Err(Errno::EPERM), Err(Errno::EINVAL)));
        assert_eq!((pipe.resize(Pipe::MOST), pipe.room()), (Ok(Pipe::MOST), Pipe::MOST - 8192));
        assert_eq!(pipe.read(&mut [0; 9000]), 8192);
    }

    #[test]
    fn bytes_come_out_in_order_also_around_the_end() {
        let mut pipe = Pipe::default();
        let (mut next_in, mut next_out) = (0u8, 0u8);
        for round in 1..2000usize {
            let from: vec::Vec<u8> = (0..round * 7 % 300).map(|index| next_in.wrapping_add(index as u8)).collect();
            next_in = next_in.wrapping_add(pipe.write(&from) as u8);
            let mut into = vec![0; round * 5 % 310];
            let count = pipe.read(&mut into);
            for byte in &into[..count] {
                assert_eq!(*byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
        }
    }

    #[test]
    fn small_writes_need_room_for_all_of_them() {
        let mut pipe = Pipe::default();
        assert_eq!(pipe.write(&vec![1; Pipe::CAPACITY + 1]), Pipe::CAPACITY);
        assert!(!pipe.has_room(1) && !pipe.has_room(Pipe::ATOMIC + 1));
        assert_eq!(pipe.read(&mut [0; 100]), 100);
        assert!(pipe.has_room(100) && !pipe.has_room(101) && !pipe.has_room(Pipe::ATOMIC));
        assert!(pipe.has_room(Pipe::ATOMIC + 1), "a long write may be divided");
    }

    #[test]
    fn openings_are_counted_even_if_they_are_over() {
        let mut pipe = Pipe::default();
        pipe.open(true, false);
        pipe.open(false, true);
        assert_eq!(pipe.write(b"abc"), 3);
        pipe.close(false, true);
        assert!(pipe.has_readers() && !pipe.has_writers());
        assert_eq!((pipe.openings(), pipe.len()), ((1, 1), 3));
        pipe.close(true, false);
        assert!(pipe.is_empty(), "nobody can read that any more");
    }
}
