//! Ranges of bytes.

use crate::Errno;

/// A range of bytes of a file, with at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub first: u64,
    /// The last byte; [`END`](Self::END) if the range has all that follow, however long the file becomes.
    pub last: u64,
}

impl Range {
    /// The last byte that a file can have.
    pub const END: u64 = i64::MAX.cast_unsigned();

    /// Returns the range of which a program has given start and length, from a place in the file on. A length of 0
    /// stands for all that follow. A negative one is that of what lies before the start.
    ///
    /// # Errors
    /// - `EINVAL`: the range begins before the file.
    /// - `EOVERFLOW`: it begins or ends behind the last byte that a file can have.
    pub fn new(base: u64, start: i64, length: i64) -> Result<Range, Errno> {
        let start = base.cast_signed().checked_add(start).ok_or(Errno::EOVERFLOW)?;
        if start < 0 || length < 0 && start + length < 0 {
            return Err(Errno::EINVAL);
        }
        let (first, last) = match length {
            0 => (start, i64::MAX),
            1.. => (start, start.checked_add(length - 1).ok_or(Errno::EOVERFLOW)?),
            _ => (start + length, start - 1),
        };
        Ok(Range { first: first.cast_unsigned(), last: last.cast_unsigned() })
    }

    /// Returns the length as programs see it: 0 if the range has all bytes that follow.
    pub const fn length(self) -> u64 {
        if self.last == Range::END { 0 } else { self.last - self.first + 1 }
    }

    /// Returns whether two ranges have a byte in common.
    pub const fn overlaps(self, other: Range) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns what lies before and behind another range.
    pub(crate) fn without(self, other: Range) -> impl Iterator<Item = Range> {
        let before = other.first.checked_sub(1).map(|last| Range { last: self.last.min(last), ..self });
        let behind = Range { first: self.first.max(other.last + 1), ..self };
        before.into_iter().chain([behind]).filter(|part| part.first <= part.last)
    }
}
