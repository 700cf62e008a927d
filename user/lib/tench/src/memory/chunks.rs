//! Free chunks of the process's untyped memory: a buddy allocator over the blocks that the memory server gave.
//!
//! A block is one untyped capability; a chunk is an aligned power of two of bytes in it.
//!
//! ```text
//! by size:  12 ─▶ chunk ⇄ chunk        16 ─▶ chunk        what is taken, the smallest that is large enough
//!                   │       │                  │
//! by position:   bucket  bucket             bucket         whether the other half is free, too
//! ```
//! Both lists are used without a search, however many chunks there are. Each free chunk has a node. There are always as
//! many unused nodes as chunks in use, so that each of those can be freed: otherwise [`take`](FreeChunks::take) fails,
//! so no chunk is ever lost. Nodes come from the metadata ([`array`](FreeChunks::array)) before a chunk is taken.
//!
//! A chunk with an object that other cores still have, and that this process has released, waits in a queue until they
//! no longer have it.

use tench_abi::CapAddress;
use tench_paging::pool::{Array, Node, Pool};

/// One more than the largest log2 of a chunk's size.
const SIZES: usize = 48;
/// Number of lists of chunks by position.
const BUCKETS: usize = 128;
/// Maximum number of parts in which a chunk can be freed.
const PARTS: usize = 8;
/// Maximum number of nodes that taking a chunk needs: for the buddies of the chunks that are split, and for its parts.
const SPLITS: usize = SIZES + PARTS;

/// A chunk of untyped memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The block.
    pub untyped: CapAddress,
    /// Offset in the block in bytes.
    pub offset: u64,
    /// Log2 of its size in bytes.
    pub bits: u8,
    /// Log2 of the block's size in bytes.
    pub block_bits: u8,
    /// The memory server's number of the block; 0 if it comes from elsewhere.
    pub number: u16,
}

impl Chunk {
    /// Returns the chunk that is a whole block.
    pub const fn block(untyped: CapAddress, number: u16, bits: u8) -> Chunk {
        Chunk { untyped, offset: 0, bits, block_bits: bits, number }
    }

    /// Returns the chunk's buddy, with which it would form a larger one, unless the chunk is a whole block.
    #[inline]
    const fn buddy(&self) -> Option<Chunk> {
        if self.bits < self.block_bits {
            Some(Chunk { untyped: self.untyped, offset: self.offset ^ 1 << self.bits, ..*self })
        } else {
            None
        }
    }

    /// Returns the chunk as two words, for storing.
    pub const fn to_words(self) -> [u64; 2] {
        let [bits, block_bits, number] = [self.bits as u64, self.block_bits as u64, self.number as u64];
        [self.untyped.0 as u64 | bits << 32 | block_bits << 40 | number << 48, self.offset]
    }

    /// Returns the chunk from two words that `to_words` made.
    pub const fn from_words([word, offset]: [u64; 2]) -> Chunk {
        let (bits, block_bits, number) = ((word >> 32) as u8, (word >> 40) as u8, (word >> 48) as u16);
        Chunk { untyped: CapAddress(word as u32), offset, bits, block_bits, number }
    }

    /// Returns whether the chunk is a whole block.
    pub const fn is_block(&self) -> bool {
        self.bits == self.block_bits
    }

    /// Returns the bucket to which the chunk belongs. Neighbours of one size belong to different buckets.
    #[inline]
    const fn bucket(&self) -> usize {
        let number = (self.offset >> self.bits) + self.untyped.0 as u64 * 31 + self.bits as u64 * 7;
        (number ^ number >> 7) as usize % BUCKETS
    }
}

/// A node of a free chunk. Links are one more than the index of a node, 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Free {
    chunk: Chunk,
    /// The next and the previous node of the same size.
    next: u32,
    previous: u32,
    /// The next node of the same bucket; in an unused node, the next unused one. In the queue, the slot of the object
    /// that is still there.
    chain: u32,
}

impl Free {
    const NONE: Free = Free { chunk: Chunk::block(CapAddress::NULL, 0, 0), next: 0, previous: 0, chain: 0 };
}

impl Node for Free {
    fn link(&mut self) -> &mut u32 {
        &mut self.chain
    }
}

/// The free chunks, `N` of which need no further memory.
pub struct FreeChunks<const N: usize> {
    nodes: Pool<Free, N>,
    sizes: [u32; SIZES],
    buckets: [u32; BUCKETS],
    /// A bit for each size of which there are chunks.
    present: u64,
    /// Number of free chunks that are whole blocks.
    blocks: usize,
    /// Number of chunks in use that may be freed.
    owed: usize,
    /// The queue of chunks that cannot be reused yet: length, first and last node.
    kept: (usize, u32, u32),
}

impl<const N: usize> FreeChunks<N> {
    /// Returns an empty set.
    pub const fn new() -> Self {
        FreeChunks {
            nodes: Pool::new([Free::NONE; N]),
            sizes: [0; SIZES],
            buckets: [0; BUCKETS],
            present: 0,
            blocks: 0,
            owed: 0,
            kept: (0, 0, 0),
        }
    }

    /// Returns whether nodes should be added before a further chunk is taken: there is room for one chunk, and for the
    /// one from which the nodes are made.
    #[inline]
    pub const fn is_short(&self) -> bool {
        self.nodes.left() < self.owed + 2 * (1 + SPLITS)
    }

    /// Returns whether a chunk can be taken, or a block be added, such that all chunks in use can be freed.
    #[inline]
    pub const fn has_capacity(&self) -> bool {
        self.nodes.left() > self.owed + SPLITS
    }

    /// Returns the nodes, for growing.
    pub const fn array(&mut self) -> &mut Array<Free, N> {
        self.nodes.array()
    }

    /// Takes a chunk of `1 << bits` bytes out of the smallest that is large enough. Returns `None` if there is no such
    /// chunk, or no room.
    pub fn take(&mut self, bits: u8) -> Option<Chunk> {
        let chunk = self.take_for_ever(bits)?;
        self.owed += 1;
        Some(chunk)
    }

    /// Takes a chunk that will not be freed, except perhaps at once through [`put_back`](Self::put_back).
    pub fn take_for_ever(&mut self, bits: u8) -> Option<Chunk> {
        if usize::from(bits) >= SIZES || !self.has_capacity() {
            return None;
        }
        let larger = self.present >> bits;
        if larger == 0 {
            return None;
        }
        let size = usize::from(bits) + larger.trailing_zeros() as usize;
        let mut chunk = self.remove(self.sizes[size] as usize - 1);
        while chunk.bits > bits {
            chunk.bits -= 1;
            self.insert(Chunk { offset: chunk.offset + (1 << chunk.bits), ..chunk });
        }
        Some(chunk)
    }

    /// Notes that the chunk taken last will be freed in this number of parts, at most 8.
    pub const fn divide(&mut self, parts: usize) {
        self.owed += parts - 1;
    }

    /// Frees a chunk. If its whole block is free now, removes the block and returns it.
    pub fn free(&mut self, chunk: Chunk) -> Option<Chunk> {
        self.owed = self.owed.saturating_sub(1);
        self.put_back(chunk)
    }

    /// Frees a chunk that was just taken for ever.
    pub fn put_back(&mut self, mut chunk: Chunk) -> Option<Chunk> {
        while let Some(buddy) = chunk.buddy() {
            let Some(index) = self.find(&buddy) else {
                self.insert(chunk);
                return None;
            };
            self.remove(index);
            chunk = Chunk { offset: chunk.offset & !(1 << chunk.bits), bits: chunk.bits + 1, ..chunk };
        }
        Some(chunk)
    }

    /// Queues a chunk in use whose object, in `slot`, cannot be deleted yet.
    pub fn keep(&mut self, slot: CapAddress, chunk: Chunk) {
        self.owed = self.owed.saturating_sub(1);
        let link = self.nodes.take(Free { chunk, chain: slot.0, ..Free::NONE }) as u32 + 1;
        let (count, first, last) = self.kept;
        if let Some(last) = last.checked_sub(1) {
            self.nodes.get_mut(last as usize).next = link;
        }
        self.kept = (count + 1, if count == 0 { link } else { first }, link);
    }

    /// Takes the oldest chunk out of the queue, with its slot. It counts as in use.
    pub fn take_kept(&mut self) -> Option<(CapAddress, Chunk)> {
        let (count, first, last) = self.kept;
        let index = first.checked_sub(1)? as usize;
        let Free { chunk, next, chain, .. } = *self.nodes.get(index);
        self.nodes.give(index);
        self.owed += 1;
        self.kept = (count - 1, next, if next == 0 { 0 } else { last });
        Some((CapAddress(chain), chunk))
    }

    /// Returns the length of the queue.
    pub const fn kept(&self) -> usize {
        self.kept.0
    }

    /// Adds a block. There must be room for it, or it must have been returned by [`free`](Self::free).
    pub fn push(&mut self, block: Chunk) {
        self.insert(block);
    }

    /// Returns whether a whole block is free.
    pub const fn has_block(&self) -> bool {
        self.blocks > 0
    }

    /// Returns the node of a chunk, if it is free.
    #[inline]
    fn find(&self, chunk: &Chunk) -> Option<usize> {
        let mut next = self.buckets[chunk.bucket()];
        while next != 0 {
            let node = self.nodes.get(next as usize - 1);
            if node.chunk == *chunk {
                return Some(next as usize - 1);
            }
            next = node.chain;
        }
        None
    }

    /// Inserts a free chunk. A node is available, because as many are unused as chunks are in use, which taking
    /// ensures.
    fn insert(&mut self, chunk: Chunk) {
        let (size, bucket) = (usize::from(chunk.bits), chunk.bucket());
        let next = self.sizes[size];
        let node = Free { chunk, next, previous: 0, chain: self.buckets[bucket] };
        let link = self.nodes.take(node) as u32 + 1;
        if next != 0 {
            self.nodes.get_mut(next as usize - 1).previous = link;
        }
        (self.sizes[size], self.buckets[bucket]) = (link, link);
        self.present |= 1 << size;
        self.blocks += usize::from(chunk.is_block());
    }

    /// Removes the chunk of a node.
    fn remove(&mut self, index: usize) -> Chunk {
        let Free { chunk, next, previous, chain } = *self.nodes.get(index);
        let size = usize::from(chunk.bits);
        if next != 0 {
            self.nodes.get_mut(next as usize - 1).previous = previous;
        }
        match previous {
            0 => {
                self.sizes[size] = next;
                if next == 0 {
                    self.present &= !(1 << size);
                }
            }
            _ => self.nodes.get_mut(previous as usize - 1).next = next,
        }
        self.unchain(chunk.bucket(), index as u32 + 1, chain);
        self.nodes.give(index);
        self.blocks -= usize::from(chunk.is_block());
        chunk
    }

    /// Removes a node from its bucket.
    fn unchain(&mut self, bucket: usize, link: u32, next: u32) {
        if self.buckets[bucket] == link {
            self.buckets[bucket] = next;
            return;
        }
        let mut at = self.buckets[bucket] as usize - 1;
        while self.nodes.get(at).chain != link {
            at = self.nodes.get(at).chain as usize - 1;
        }
        self.nodes.get_mut(at).chain = next;
    }

    /// Panics unless each free chunk is in both of its lists and is no half of a larger free chunk.
    #[cfg(test)]
    fn check_invariants(&self) {
        extern crate std;
        use std::vec::Vec;

        self.nodes.check_invariants();
        let mut count = 0;
        let mut blocks = 0;
        for (size, first) in self.sizes.iter().enumerate() {
            assert_eq!(*first != 0, self.present >> size & 1 == 1, "a size with chunks has its bit");
            let (mut next, mut previous) = (*first, 0);
            while next != 0 {
                let node = self.nodes.get(next as usize - 1);
                assert_eq!((usize::from(node.chunk.bits), node.previous), (size, previous), "a list has one size");
                assert_eq!(self.find(&node.chunk), Some(next as usize - 1), "a chunk is found by its position");
                assert!(node.chunk.buddy().is_none_or(|buddy| self.find(&buddy).is_none()), "halves have joined");
                count += 1;
                blocks += usize::from(node.chunk.is_block());
                (previous, next) = (next, node.next);
            }
        }
        let mut kept = Vec::new();
        let mut next = self.kept.1;
        while next != 0 {
            kept.push(next);
            next = self.nodes.get(next as usize - 1).next;
        }
        assert_eq!((kept.len(), kept.last().copied().unwrap_or(0)), (self.kept.0, self.kept.2), "the queue is whole");
        count += kept.len();
        assert_eq!(
            (count, blocks),
            (self.nodes.used(), self.blocks),
            "each node is of a free chunk, or of one that is kept"
        );
        assert!(self.nodes.left() >= self.owed, "what was given out can come back");
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::collections::BTreeMap;
    use std::vec;
    use std::vec::Vec;
    use tench_random::Random;

    const BLOCK: Chunk = Chunk::block(CapAddress(100), 7, 16);

    /// Returns whether two chunks share a byte.
    fn overlap(a: &Chunk, b: &Chunk) -> bool {
        a.untyped == b.untyped && a.offset < b.offset + (1 << b.bits) && b.offset < a.offset + (1 << a.bits)
    }

    /// Adds nodes until no more are needed.
    fn grow<const N: usize>(chunks: &mut FreeChunks<N>) {
        let count = chunks.array().next_chunk().unwrap();
        chunks.array().add(vec![Free::default(); count].leak());
    }

    #[test]
    fn a_block_is_split_and_joined_again() {
        let mut chunks = FreeChunks::<128>::new();
        assert_eq!(chunks.take(5), None);
        chunks.push(BLOCK);
        let taken: Vec<Chunk> = [5, 12, 13, 5, 7, 15].iter().map(|bits| chunks.take(*bits).unwrap()).collect();
        chunks.check_invariants();
        for (index, a) in taken.iter().enumerate() {
            assert_eq!(a.offset % (1 << a.bits), 0);
            assert!(taken[..index].iter().all(|b| !overlap(a, b)));
        }
        assert_eq!(chunks.take(15), None);
        assert!(!chunks.has_block());
        let back: Vec<Option<Chunk>> = taken.iter().map(|chunk| chunks.free(*chunk)).collect();
        assert_eq!(back, [None, None, None, None, None, Some(BLOCK)]);
        chunks.check_invariants();
        assert_eq!((chunks.nodes.used(), chunks.owed), (0, 0));
    }

    #[test]
    fn a_chunk_is_two_words() {
        let chunk = Chunk { untyped: CapAddress(u32::MAX), offset: 7 << 40, bits: 21, block_bits: 47, number: 0xfedc };
        assert_eq!(Chunk::from_words(chunk.to_words()), chunk);
    }

    #[test]
    fn blocks_do_not_join_each_other() {
        let mut chunks = FreeChunks::<128>::new();
        chunks.push(BLOCK);
        chunks.push(Chunk::block(CapAddress(101), 8, 16));
        let (a, b) = (chunks.take(16).unwrap(), chunks.take(16).unwrap());
        assert_eq!(chunks.free(a), Some(a));
        chunks.push(a);
        assert!(chunks.has_block());
        assert_eq!(chunks.free(b), Some(b));
        chunks.check_invariants();
    }

    #[test]
    fn no_memory_is_taken_that_could_not_be_returned() {
        let mut chunks = FreeChunks::<128>::new();
        chunks.push(Chunk::block(CapAddress(1), 9, 20));
        let mut taken = Vec::new();
        while let Some(chunk) = chunks.take(12) {
            taken.push(chunk);
            chunks.check_invariants();
        }
        assert!(taken.len() < 128 && chunks.is_short() && !chunks.has_capacity(), "there was more, but no room");
        grow(&mut chunks);
        grow(&mut chunks);
        assert!(chunks.has_capacity() && !chunks.is_short());
        while let Some(chunk) = chunks.take(12) {
            taken.push(chunk);
        }
        chunks.check_invariants();
        assert_eq!(taken.len(), 256);
        // Every second chunk is freed first: none of them joins another, and each needs a node.
        let (even, odd): (Vec<_>, Vec<_>) = taken.into_iter().partition(|chunk| chunk.offset >> 12 & 1 == 0);
        assert!(even.iter().all(|chunk| chunks.free(*chunk).is_none()));
        chunks.check_invariants();
        assert_eq!(chunks.nodes.used(), 128);
        let blocks: Vec<Chunk> = odd.iter().filter_map(|chunk| chunks.free(*chunk)).collect();
        assert_eq!(blocks, [Chunk::block(CapAddress(1), 9, 20)]);
        chunks.check_invariants();
    }

    #[test]
    fn a_chunk_can_be_freed_in_parts() {
        let mut chunks = FreeChunks::<128>::new();
        chunks.push(BLOCK);
        let memory = chunks.take(15).unwrap();
        chunks.divide(8);
        chunks.check_invariants();
        let part = |number: u64| Chunk { offset: memory.offset + (number << 12), bits: 12, ..memory };
        assert!([6, 1, 4, 3, 0, 7, 2].iter().all(|number| chunks.free(part(*number)).is_none()));
        chunks.check_invariants();
        assert_eq!((chunks.free(part(5)), chunks.owed), (Some(BLOCK), 0));
    }

    #[test]
    fn memory_that_cannot_be_used_yet_waits() {
        let mut chunks = FreeChunks::<128>::new();
        chunks.push(BLOCK);
        let taken: Vec<Chunk> = (0..16).map(|_| chunks.take(12).unwrap()).collect();
        assert_eq!(chunks.take_kept(), None);
        for (slot, chunk) in (1..).zip(&taken) {
            chunks.keep(CapAddress(slot), *chunk);
            chunks.check_invariants();
        }
        assert_eq!((chunks.kept(), chunks.owed, chunks.take(12)), (16, 0, None), "none of them is free");
        // The first goes to the end, the second is freed, and so on.
        for slot in 1..=8 {
            let (first, chunk) = chunks.take_kept().unwrap();
            assert_eq!((first, chunk), (CapAddress(2 * slot - 1), taken[2 * slot as usize - 2]));
            chunks.keep(first, chunk);
            let (second, chunk) = chunks.take_kept().unwrap();
            assert_eq!(second, CapAddress(2 * slot));
            assert_eq!(chunks.free(chunk), None);
            chunks.check_invariants();
        }
        let rest: Vec<u32> = core::iter::from_fn(|| {
            let (slot, chunk) = chunks.take_kept()?;
            assert_eq!(chunks.free(chunk), (slot.0 == 15).then_some(BLOCK));
            chunks.check_invariants();
            Some(slot.0)
        })
        .collect();
        assert_eq!((rest, chunks.kept(), chunks.nodes.used()), (vec![1, 3, 5, 7, 9, 11, 13, 15], 0, 0));
    }

    #[test]
    fn permanent_allocations_need_no_table_entry() {
        let mut chunks = FreeChunks::<64>::new();
        for block in 0..100 {
            chunks.push(Chunk::block(CapAddress(1 + block), 1 + block as u16, 16));
            for _ in 0..16 {
                let chunk = chunks.take_for_ever(12).unwrap();
                // The chunk may turn out not to be needed.
                if let Some(block) = chunks.put_back(chunk) {
                    chunks.push(block);
                }
                assert_eq!(chunks.take_for_ever(12), Some(chunk));
                chunks.check_invariants();
            }
        }
        assert_eq!((chunks.take_for_ever(12), chunks.nodes.used()), (None, 0));
    }

    #[test]
    fn random_chunks_never_overlap_and_all_can_be_freed() {
        let mut chunks = FreeChunks::<128>::new();
        let mut taken: Vec<Chunk> = Vec::new();
        let mut bytes = BTreeMap::new();
        let mut random = Random::new(7);
        let mut most = 0;
        for step in 0..40_000_u64 {
            // Many chunks are in use for a while, then few.
            let takes = random.below(16) < if step / 4000 % 2 == 0 { 11 } else { 5 };
            if takes {
                let bits = [5, 6, 9, 12, 12, 12, 13, 16][random.index(8)];
                while chunks.is_short() {
                    grow(&mut chunks);
                }
                let chunk = chunks.take(bits).unwrap_or_else(|| {
                    chunks.push(Chunk::block(CapAddress(1 + step as u32), 1 + step as u16, 18));
                    chunks.take(bits).unwrap()
                });
                assert_eq!(chunk.bits, bits);
                let key = (chunk.untyped.0, chunk.offset);
                let before =
                    bytes.range(..key).next_back().map(|((block, offset), bits)| (*block, offset + (1_u64 << bits)));
                let behind = bytes.range(key..).next().map(|((block, offset), _)| (*block, *offset));
                assert!(before.is_none_or(|(block, end)| block != key.0 || end <= key.1));
                assert!(behind.is_none_or(|(block, start)| block != key.0 || start >= key.1 + (1 << bits)));
                bytes.insert(key, bits);
                taken.push(chunk);
            } else if !taken.is_empty() {
                let chunk = taken.swap_remove(random.index(taken.len()));
                bytes.remove(&(chunk.untyped.0, chunk.offset));
                if let Some(block) = chunks.free(chunk) {
                    assert!(block.is_block() && taken.iter().all(|other| other.untyped != block.untyped));
                }
            }
            most = most.max(taken.len());
            if step % 16 == 0 {
                chunks.check_invariants();
            }
        }
        assert!(most > 1000, "the run was not trivial");
        while let Some(chunk) = taken.pop() {
            chunks.free(chunk);
        }
        chunks.check_invariants();
        assert_eq!((chunks.nodes.used(), chunks.owed), (0, 0), "all blocks have gone back");
    }
}
