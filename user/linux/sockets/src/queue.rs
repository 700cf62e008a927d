//! The queue of what a socket has received.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::Errno;
use crate::control::{Credentials, Ipv6Header};
use crate::parts::Source;

/// Room in a ring that is kept while it is empty.
const KEPT: usize = 64 * 1024;

/// Memory that Linux needs beside the bytes of a buffer: a record of its own, and one at the end of the bytes.
const RECORD: usize = 256;
const END: usize = 320;
/// The smallest piece of memory that Linux takes for bytes with a record at their end.
const LEAST_PIECE: usize = 512;
const PAGE: usize = 4096;

/// Bytes of a stream's buffer that are in one piece with the record at their end, and those that are in pages.
const STREAM_HEAD: usize = PAGE - END;
const STREAM_PAGES: usize = 32 * 1024;
/// Bytes of a message that are in one piece with the record at their end.
pub(crate) const MESSAGE_HEAD: usize = 4 * PAGE - END;

/// Returns how many bytes of a stream become one segment at most, if so many may be sent at once.
pub(crate) fn segment_limit(send_buffer: usize) -> usize {
    (send_buffer / 2).saturating_sub(64).min(STREAM_HEAD + STREAM_PAGES)
}

/// Returns how much of its sender's room a buffer takes: its memory under Linux. So programs can write as much before
/// they have to wait.
const fn charge(length: usize, most_in_head: usize) -> usize {
    let pages = if length > most_in_head { (length - most_in_head).next_multiple_of(PAGE) } else { 0 };
    let head = (length.saturating_sub(pages) + END).next_power_of_two();
    RECORD + pages + if head < LEAST_PIECE { LEAST_PIECE } else { head }
}

/// Returns what a segment of a stream takes of its sender's room.
pub(crate) const fn stream_charge(length: usize) -> usize {
    charge(length, STREAM_HEAD)
}

/// Returns what a message takes of its sender's room, or of the receiver's.
pub(crate) const fn message_charge(length: usize) -> usize {
    charge(length, MESSAGE_HEAD)
}

/// The sender of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A Unix socket, which pays for the segment.
    Unix(u32),
    /// An internet address, and the header fields of the message.
    Internet(SocketAddr, Ipv6Header),
}

/// A message, or bytes of a stream that were sent at once.
#[derive(Debug)]
pub(crate) struct Segment<R> {
    /// Number of its bytes that are not read yet.
    pub(crate) length: usize,
    pub(crate) charge: usize,
    pub(crate) origin: Origin,
    pub(crate) credentials: Credentials,
    pub(crate) rights: Vec<R>,
}

/// Bytes, and how they are divided. Those of TCP are not.
#[derive(Debug)]
pub(crate) struct Queue<R> {
    pub(crate) bytes: VecDeque<u8>,
    pub(crate) segments: VecDeque<Segment<R>>,
    /// Charges of all segments.
    pub(crate) charge: usize,
}

impl<R> Queue<R> {
    pub(crate) const fn new() -> Queue<R> {
        Queue { bytes: VecDeque::new(), segments: VecDeque::new(), charge: 0 }
    }

    /// Returns how many bytes of memory the queue has taken.
    pub(crate) fn size(&self) -> usize {
        self.bytes.capacity() + self.segments.capacity() * size_of::<Segment<R>>()
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// `ENOBUFS`
    pub(crate) fn push_bytes(&mut self, source: &mut Source<'_>, count: usize) -> Result<(), Errno> {
        self.bytes.try_reserve(count).map_err(|_| Errno::ENOBUFS)?;
        source.take(count, &mut self.bytes);
        Ok(())
    }

    /// Adds a segment with its bytes. Its rights are taken only if that succeeds.
    ///
    /// # Errors
    /// `ENOBUFS`
    pub(crate) fn push(
        &mut self,
        source: &mut Source<'_>,
        mut segment: Segment<R>,
        rights: &mut Vec<R>,
    ) -> Result<(), Errno> {
        self.segments.try_reserve(1).map_err(|_| Errno::ENOBUFS)?;
        self.push_bytes(source, segment.length)?;
        segment.rights = core::mem::take(rights);
        self.charge += segment.charge;
        self.segments.push_back(segment);
        Ok(())
    }

    /// Removes bytes at the beginning. Memory of a ring that was large is given back when it is empty.
    pub(crate) fn drop_bytes(&mut self, count: usize) {
        self.bytes.drain(..count);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = VecDeque::new();
        }
    }

    /// Returns whether there is nothing to receive.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.segments.is_empty()
    }

    /// Removes the first segment, whose bytes are removed already.
    pub(crate) fn pop(&mut self) -> Option<Segment<R>> {
        let segment = self.segments.pop_front()?;
        self.charge -= segment.charge;
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_what_they_take_under_linux() {
        for (length, stream, message) in [
            (1, 768, 768),
            (192, 768, 768),
            (193, 1280, 1280),
            (704, 1280, 1280),
            (3776, 4352, 4352),
            (3777, 4096 + 768, 8192 + 256),
            (16064, 4096 * 3 + 4352, 16384 + 256),
            (36544, 32768 + 4352, 5 * 4096 + 16384 + 256),
        ] {
            assert_eq!((stream_charge(length), message_charge(length)), (stream, message), "of {length} bytes");
        }
    }
}
