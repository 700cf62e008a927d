//! Buffering, for fewer and larger messages when programs read lines or write small parts.

use alloc::vec::Vec;

use tench_stream::protocol::MAX_DATA;

use super::{Error, Read, Write};

/// A buffered reader of lines.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    bytes: [u8; MAX_DATA],
    /// Bytes that have been read and not been returned yet.
    rest: core::ops::Range<usize>,
}

impl<R: Read> Lines<R> {
    /// Returns a reader of the lines of `source`.
    pub const fn new(source: R) -> Lines<R> {
        Lines { source, bytes: [0; MAX_DATA], rest: 0..0 }
    }

    /// Returns whether the next line is buffered, so that reading it does not wait.
    pub fn has_line(&self) -> bool {
        self.bytes[self.rest.clone()].contains(&b'\n')
    }

    /// Replaces `line` by the next line, with its line feed; the last line may have none. Returns whether there was
    /// one.
    pub fn next_line(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        line.clear();
        loop {
            let rest = &self.bytes[self.rest.clone()];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&rest[..=end]);
                self.rest.start += end + 1;
                return Ok(true);
            }
            line.extend_from_slice(rest);
            self.rest = 0..self.source.read(&mut self.bytes)?;
            if self.rest.is_empty() {
                return Ok(!line.is_empty());
            }
        }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        if self.rest.is_empty() {
            return self.source.read(buffer);
        }
        let rest = &self.bytes[self.rest.clone()];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.rest.start += count;
        Ok(count)
    }
}

/// A buffered writer that passes its contents on when it is full and when it is [flushed](Self::flush). Contents not
/// flushed before it is dropped are lost, because only flushing reports whether they arrived.
#[derive(Debug)]
pub struct Output<W> {
    target: W,
    bytes: [u8; MAX_DATA],
    length: usize,
}

impl<W: Write> Output<W> {
    /// Returns an empty buffer for `target`.
    pub const fn new(target: W) -> Output<W> {
        Output { target, bytes: [0; MAX_DATA], length: 0 }
    }

    /// Writes the buffered contents to the target.
    pub fn flush(&mut self) -> Result<(), Error> {
        let length = core::mem::take(&mut self.length);
        self.target.write(&self.bytes[..length])
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = rest.len().min(MAX_DATA - self.length);
            let (now, later) = rest.split_at(count);
            self.bytes[self.length..self.length + count].copy_from_slice(now);
            self.length += count;
            rest = later;
            if self.length == MAX_DATA {
                self.flush()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that returns a given number of bytes at a time.
    struct Parts(&'static [u8], usize);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(count);
            buffer[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        for size in 1..12 {
            let mut lines = Lines::new(Parts(b"one\n\ntwo\nthe rest", size));
            let mut line = Vec::from(*b"old");
            for expected in [&b"one\n"[..], b"\n", b"two\n", b"the rest"] {
                let was_there = lines.has_line();
                assert!(!was_there || expected.ends_with(b"\n") && size > 1);
                assert_eq!(lines.next_line(&mut line), Ok(true));
                assert_eq!(line, expected);
            }
            assert_eq!(lines.next_line(&mut line), Ok(false));
            assert!(line.is_empty());
        }
    }

    #[test]
    fn bytes_behind_a_line_can_be_read() {
        let mut lines = Lines::new(Parts(b"one\nmore", 8));
        assert_eq!(lines.next_line(&mut Vec::new()), Ok(true));
        let mut buffer = [0; 3];
        assert_eq!((lines.read(&mut buffer), &buffer), (Ok(3), b"mor"));
        assert_eq!((lines.read(&mut buffer), buffer[0]), (Ok(1), b'e'));
        assert_eq!(lines.read(&mut buffer), Ok(0));
    }

    /// A target that keeps the bytes and the length of each write.
    #[derive(Default)]
    struct Kept(Vec<u8>, Vec<usize>);

    impl Write for &mut Kept {
        fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
            self.0.extend_from_slice(bytes);
            self.1.push(bytes.len());
            Ok(())
        }
    }

    #[test]
    fn output_is_gathered_until_it_is_flushed() {
        let mut kept = Kept::default();
        let mut output = Output::new(&mut kept);
        for number in 0..=255 {
            output.write(&[number; 3]).unwrap();
        }
        output.flush().unwrap();
        output.write(b"lost").unwrap();
        assert_eq!(kept.1, [MAX_DATA, 768 - MAX_DATA]);
        assert!(kept.0.chunks(3).zip(0..=255).all(|(bytes, number)| bytes == [number; 3]));
    }
}
