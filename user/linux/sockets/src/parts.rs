//! Bytes in several pieces of a program's memory, from or into which a queue is copied.

use alloc::collections::VecDeque;

/// Bytes that a program sends.
pub(crate) struct Source<'a> {
    parts: &'a [&'a [u8]],
    /// Bytes of the first part that are taken.
    taken: usize,
}

impl<'a> Source<'a> {
    pub(crate) const fn new(parts: &'a [&'a [u8]]) -> Source<'a> {
        Source { parts, taken: 0 }
    }

    /// Moves so many bytes, which must be there, to the end of a ring with room for them.
    pub(crate) fn take(&mut self, mut count: usize, ring: &mut VecDeque<u8>) {
        while let [first, rest @ ..] = self.parts {
            let left = &first[self.taken..];
            if count < left.len() {
                ring.extend(&left[..count]);
                self.taken += count;
                return;
            }
            ring.extend(left);
            count -= left.len();
            (self.parts, self.taken) = (rest, 0);
        }
    }
}

/// Room for bytes that a program receives.
pub(crate) struct Sink<'a, 'b> {
    parts: &'a mut [&'b mut [u8]],
    /// Index of the part that is being filled, and bytes in it.
    part: usize,
    filled: usize,
}

impl<'a, 'b> Sink<'a, 'b> {
    pub(crate) const fn new(parts: &'a mut [&'b mut [u8]]) -> Sink<'a, 'b> {
        Sink { parts, part: 0, filled: 0 }
    }

    fn put_slice(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty()
            && let Some(part) = self.parts.get_mut(self.part)
        {
            let room = &mut part[self.filled..];
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            self.filled += count;
            if count == room.len() {
                (self.part, self.filled) = (self.part + 1, 0);
            }
        }
    }

    /// Copies bytes of a ring.
    pub(crate) fn put(&mut self, ring: &VecDeque<u8>, from: usize, count: usize) {
        let (first, second) = ring.as_slices();
        let split = first.len();
        if from < split {
            self.put_slice(&first[from..split.min(from + count)]);
        }
        if from + count > split {
            self.put_slice(&second[from.max(split) - split..from + count - split]);
        }
    }
}

/// Returns the number of bytes in several parts.
pub(crate) fn total(parts: &[&[u8]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// Returns the number of bytes for which several parts have room.
pub(crate) fn room(parts: &[&mut [u8]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn bytes_keep_their_order_whatever_the_parts_are() {
        let parts: [&[u8]; 5] = [b"ab", b"", b"cdefg", b"h", b""];
        let mut ring: VecDeque<u8> = VecDeque::with_capacity(11);
        // The ring begins near its end, so that its bytes are in two pieces.
        for _ in 0..7 {
            ring.push_back(0);
            ring.pop_front();
        }
        let mut source = Source::new(&parts);
        for count in [1, 2, 0, 5] {
            source.take(count, &mut ring);
        }
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), b"abcdefgh");
        assert!(!ring.as_slices().1.is_empty());
        for from in 0..8 {
            for count in 0..=8 - from {
                let (mut one, mut two) = ([0; 3], [0; 5]);
                let mut parts: [&mut [u8]; 3] = [&mut one, &mut [], &mut two];
                let mut sink = Sink::new(&mut parts);
                sink.put(&ring, from, count / 2);
                sink.put(&ring, from + count / 2, count - count / 2);
                let all = [&one[..], &two].concat();
                assert_eq!(all[..count], b"abcdefgh"[from..from + count]);
                assert!(all[count..].iter().all(|byte| *byte == 0));
            }
        }
    }
}
