//! Frame cache: frames of one page that were made before they were needed.
//!
//! Making eight frames in one call costs less than three times as much as making one. So for a process that keeps
//! needing single pages, frames are made eight at a time, side by side in memory and in slots. They are handed out and
//! later freed one by one; the unused ones can be destroyed at any time.

use tench_abi::CapAddress;
use tench_abi::memory::PAGE_BITS;

use super::pieces::Piece;

/// Log2 of the number of frames made at once.
pub const AHEAD_BITS: u8 = 3;
/// Number of frames made at once.
pub const AHEAD: u32 = 1 << AHEAD_BITS;
/// Log2 of the size of their memory in bytes.
pub const MEMORY_BITS: u8 = PAGE_BITS as u8 + AHEAD_BITS;
/// Number of single frames made one by one first: a process that stops soon needs no others.
const FEW: u32 = 8;

/// The unused frames of the last batch.
pub struct Ahead {
    /// The memory of the whole batch.
    memory: Piece,
    /// Slot of the batch's first frame.
    slot: CapAddress,
    /// Number of unused frames, the last ones of the batch.
    left: u32,
    /// Number of frames of one page needed so far, up to [`FEW`].
    needed: u32,
}

impl Ahead {
    /// Returns an empty cache.
    pub const fn new() -> Ahead {
        Ahead { memory: Piece::block(CapAddress::NULL, 0, 0), slot: CapAddress::NULL, left: 0, needed: 0 }
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
    pub const fn add(&mut self, memory: Piece, slot: CapAddress) {
        (self.memory, self.slot, self.left) = (memory, slot, AHEAD);
    }

    /// Takes a frame from the cache: its capability and memory.
    #[inline]
    pub fn take(&mut self) -> Option<(CapAddress, Piece)> {
        if self.left == 0 {
            return None;
        }
        let number = AHEAD - self.left;
        self.left -= 1;
        let offset = self.memory.offset + (u64::from(number) << PAGE_BITS);
        Some((CapAddress(self.slot.0 + number), Piece { offset, bits: PAGE_BITS as u8, ..self.memory }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_made_ahead_for_who_needs_many_and_given_out_once() {
        let mut ahead = Ahead::new();
        assert_eq!(ahead.take(), None);
        assert!((0..FEW).all(|_| !ahead.need()));
        assert!(ahead.need());
        let memory =
            Piece { untyped: CapAddress(9), offset: 3 << MEMORY_BITS, bits: MEMORY_BITS, block_bits: 18, number: 5 };
        ahead.add(memory, CapAddress(100));
        for number in 0..AHEAD {
            assert!(!ahead.need(), "there are some");
            let offset = memory.offset + (u64::from(number) << 12);
            assert_eq!(ahead.take(), Some((CapAddress(100 + number), Piece { offset, bits: 12, ..memory })));
        }
        assert_eq!(ahead.take(), None);
        assert!(ahead.need());
    }
}
