//! Arithmetic of pages: dividing a range into frames, and frames into runs of page-table entries.

use tench_abi::memory::{PAGE_BITS, PAGE_SIZE, TABLE_ENTRIES, entry_bits};
use tench_abi::object::FRAME_MAX_BITS;

/// A frame that holds part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset in the range in bytes.
    pub offset: u64,
    /// Log2 of its size in bytes.
    pub size_bits: u32,
}

impl Chunk {
    /// Returns its size in bytes.
    pub const fn size(&self) -> u64 {
        1 << self.size_bits
    }
}

/// Divides `bytes` (a multiple of the page size) into frames, the largest first, so that no memory is left over and
/// none is lost to alignment when they are made in this order.
pub fn chunks(bytes: u64) -> impl Iterator<Item = Chunk> {
    let mut offset = 0;
    core::iter::from_fn(move || {
        let left = (bytes - offset) >> PAGE_BITS;
        if left == 0 {
            return None;
        }
        let size_bits = (left.ilog2() + PAGE_BITS).min(FRAME_MAX_BITS);
        let chunk = Chunk { offset, size_bits };
        offset += chunk.size();
        Some(chunk)
    })
}

/// Neighbouring entries of one table of level 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first virtual address.
    pub address: u64,
    /// Index of the first entry.
    pub first: u64,
    /// Number of entries.
    pub count: u64,
    /// Offset of the first page in the frame, in bytes.
    pub offset: u64,
}

/// Divides the mapping of `bytes` of a frame at `address` (both multiples of the page size) by tables of level 3.
pub fn runs(address: u64, bytes: u64) -> impl Iterator<Item = Run> {
    let mut offset = 0;
    core::iter::from_fn(move || {
        let left = (bytes - offset) >> PAGE_BITS;
        if left == 0 {
            return None;
        }
        let start = address + offset;
        let first = entry(start, 3);
        let count = left.min(TABLE_ENTRIES as u64 - first);
        let run = Run { address: start, first, count, offset };
        offset += count * PAGE_SIZE as u64;
        Some(run)
    })
}

/// Returns the index of the entry of the table of `level` that maps `address`.
pub const fn entry(address: u64, level: u32) -> u64 {
    address >> entry_bits(level) & (TABLE_ENTRIES as u64 - 1)
}

/// Returns the first address that the table of `level` (1 to 3) that maps `address` can map.
pub const fn table_start(address: u64, level: u32) -> u64 {
    address & !((1 << entry_bits(level - 1)) - 1)
}
