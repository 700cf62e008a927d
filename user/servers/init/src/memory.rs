//! Division of untyped memory that is left once `init` has taken what it needs.

use tench_abi::memory::PAGE_BITS;

/// Part of an untyped object that can become one of its own: a power of two, aligned to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset in the object, in bytes.
    pub offset: u64,
    /// Log2 of the size in bytes.
    pub size_bits: u32,
}

/// Divides the memory above `watermark` in an object of 2^`size_bits` bytes into the fewest such parts of at least a
/// page. Only what the alignment of the watermark to a page costs is in none.
pub fn above(watermark: u64, size_bits: u32) -> impl Iterator<Item = Part> {
    let end = 1u64 << size_bits;
    let mut offset = watermark.next_multiple_of(1 << PAGE_BITS);
    core::iter::from_fn(move || {
        if offset >= end {
            return None;
        }
        // The largest size that both the alignment of the beginning and the room to the end permit.
        let part = Part { offset, size_bits: offset.trailing_zeros().min((end - offset).ilog2()) };
        offset += 1 << part.size_bits;
        Some(part)
    })
}
