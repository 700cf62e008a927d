//! Frame cache: frames of one page that were made before they were needed.
//!
//! Making eight frames in one call costs less than three times as much as making one. So for a process that keeps
//! needing single pages, frames are made eight at a time, side by side in memory and in slots. They are handed out and
//! later freed one by one; the unused ones can be destroyed at any time.

use tench_abi::CapAddress;
use tench_abi::memory::PAGE_BITS;

use super::chunks::Chunk;

/// Log2 of the number of frames made at once.
pub const BATCH_BITS: u8 = 3;
/// Number of frames made at once.
pub const BATCH: u32 = 1 << BATCH_BITS;
/// Log2 of the size of their memory in bytes.
pub const MEMORY_BITS: u8 = PAGE_BITS as u8 + BATCH_BITS;
/// Number of single frames made one by one first: a process that stops soon needs no others.
const FEW: u32 = 8;

/// The unused frames of the last batch.
pub struct FrameCache {
    /// The memory of the whole batch.
    memory: Chunk,
    /// Slot of the batch's first frame.
    slot: CapAddress,
    /// Number of unused frames, the last ones of the batch.
    left: u32,
    /// Number of frames of one page needed so far, up to [`FEW`].
    needed: u32,
}

impl FrameCache {
    /// Returns an empty cache.
    pub const fn new() -> FrameCache {
        FrameCache { memory: Chunk::block(CapAddress::NULL, 0, 0), slot: CapAddress::NULL, left: 0, needed: 0 }
    }

    /// Notes that a frame is needed. Returns whether a batch should be made first.
    #[inline]
    pub const fn need(&mut self) -> bool {
        if self.needed < FEW {
            self.needed += 1;
            return false;
        }
        self.left == 0
    }

    /// Fills the cache with frames made from `memory`, the first of them in `slot`. The cache must be empty.
    pub const fn add(&mut self, memory: Chunk, slot: CapAddress) {
        (self.memory, self.slot, self.left) = (memory, slot, BATCH);
    }

    /// Takes a frame from the cache: its capability and memory.
    #[inline]
    pub fn take(&mut self) -> Option<(CapAddress, Chunk)> {
        if self.left == 0 {
            return None;
        }
        let number = BATCH - self.left;
        self.left -= 1;
        let offset = self.memory.offset + (u64::from(number) << PAGE_BITS);
        Some((CapAddress(self.slot.0 + number), Chunk { offset, bits: PAGE_BITS as u8, ..self.memory }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cached_for_a_process_that_needs_many_and_each_is_taken_once() {
        let mut cache = FrameCache::new();
        assert_eq!(cache.take(), None);
        assert!((0..FEW).all(|_| !cache.need()));
        assert!(cache.need());
        let memory =
            Chunk { untyped: CapAddress(9), offset: 3 << MEMORY_BITS, bits: MEMORY_BITS, block_bits: 18, number: 5 };
        cache.add(memory, CapAddress(100));
        for number in 0..BATCH {
            assert!(!cache.need(), "there are some");
            let offset = memory.offset + (u64::from(number) << 12);
            assert_eq!(cache.take(), Some((CapAddress(100 + number), Chunk { offset, bits: 12, ..memory })));
        }
        assert_eq!(cache.take(), None);
        assert!(cache.need());
    }
}
