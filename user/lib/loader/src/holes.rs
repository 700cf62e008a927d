//! Unused parts of blocks of memory: powers of two, each aligned to its size.
//!
//! A part is taken from the smallest hole in which it fits, which is halved until it does. So nothing is lost to
//! alignment, in whatever order objects of different sizes are made. Nothing is ever given back, because a process's
//! memory is freed all at once.

use arrayvec::ArrayVec;

/// Maximum number of holes: for each block one of each size below its own, and a process has few blocks. Further holes
/// are forgotten, and with them memory that the process has and does not use.
const MAX_HOLES: usize = 64;

/// An unused part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole<B> {
    block: B,
    offset: u64,
    size_bits: u32,
}

/// The unused parts of some blocks, each identified by a `B`.
#[derive(Clone, Debug)]
pub struct Holes<B> {
    /// Holes by descending size, so that the smallest that fits is near the end.
    holes: ArrayVec<Hole<B>, MAX_HOLES>,
}

impl<B> Default for Holes<B> {
    fn default() -> Self {
        Holes { holes: ArrayVec::new() }
    }
}

impl<B: Copy> Holes<B> {
    /// Adds an unused block of 2^`size_bits` bytes.
    pub fn add(&mut self, block: B, size_bits: u32) {
        self.insert(Hole { block, offset: 0, size_bits });
    }

    /// Takes 2^`size_bits` bytes; returns their block and the offset in it, or `None` if no hole is large enough.
    pub fn take(&mut self, size_bits: u32) -> Option<(B, u64)> {
        let index = self.holes.iter().rposition(|hole| hole.size_bits >= size_bits)?;
        let Hole { block, offset, size_bits: mut rest } = self.holes.remove(index);
        while rest > size_bits {
            rest -= 1;
            // The upper half remains.
            self.insert(Hole { block, offset: offset + (1 << rest), size_bits: rest });
        }
        Some((block, offset))
    }

    fn insert(&mut self, hole: Hole<B>) {
        let index = self.holes.partition_point(|other| other.size_bits >= hole.size_bits);
        if self.holes.is_full() {
            // Dropping the smallest loses least.
            self.holes.pop();
        }
        let index = index.min(self.holes.len());
        self.holes.insert(index, hole);
    }

    /// Panics if an invariant does not hold: holes are aligned, do not overlap, and are in descending order of size.
    pub fn check_invariants(&self)
    where
        B: PartialEq,
    {
        assert!(self.holes.is_sorted_by(|one, other| one.size_bits >= other.size_bits));
        for (number, hole) in self.holes.iter().enumerate() {
            assert!(hole.offset.is_multiple_of(1 << hole.size_bits));
            let apart = |other: &Hole<B>| {
                other.block != hole.block
                    || other.offset + (1 << other.size_bits) <= hole.offset
                    || hole.offset + (1 << hole.size_bits) <= other.offset
            };
            assert!(self.holes[number + 1..].iter().all(apart));
        }
    }
}
