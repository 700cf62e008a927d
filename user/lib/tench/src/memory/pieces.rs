//! Free chunks of the process's untyped memory: a buddy allocator over the blocks that the memory server gave.
//!
//! A block is one untyped capability; a chunk is an aligned power of two of bytes in it.
//!
//! ```text
//! by size:  12 ─▶ piece ⇄ piece        16 ─▶ piece        what is taken, the smallest that is large enough
//!                   │       │                  │
//! by place:      bucket  bucket             bucket         whether the other half is free, too
//! ```
//! Both lists are used without a search, however many chunks there are. Each free chunk has a node. There are always as
//! many unused nodes as chunks in use, so that each of those can be freed: otherwise [`take`](Pieces::take) fails, so
//! no chunk is ever lost. Nodes come from the metadata ([`array`](Pieces::array)) before a chunk is taken.
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
pub struct Piece {
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

impl Piece {
    /// Returns the chunk that is a whole block.
    pub const fn block(untyped: CapAddress, number: u16, bits: u8) -> Piece {
        Piece { untyped, offset: 0, bits, block_bits: bits, number }
    }

    /// Returns the chunk's buddy, with which it would form a larger one, unless the chunk is a whole block.
    #[inline]
    const fn buddy(&self) -> Option<Piece> {
        if self.bits < self.block_bits {
            Some(Piece { untyped: self.untyped, offset: self.offset ^ 1 << self.bits, ..*self })
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
    pub const fn from_words([word, offset]: [u64; 2]) -> Piece {
        let (bits, block_bits, number) = ((word >> 32) as u8, (word >> 40) as u8, (word >> 48) as u16);
        Piece { untyped: CapAddress(word as u32), offset, bits, block_bits, number }
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
    piece: Piece,
    /// The next and the previous node of the same size.
    next: u32,
    previous: u32,
    /// The next node of the same bucket; in an unused node, the next unused one. In the queue, the slot of the object
    /// that is still there.
    chain: u32,
}

impl Free {
    const NONE: Free = Free { piece: Piece::block(CapAddress::NULL, 0, 0), next: 0, previous: 0, chain: 0 };
}

impl Node for Free {
    fn link(&mut self) -> &mut u32 {
        &mut self.chain
    }
}

/// The free chunks, `N` of which need no further memory.
pub struct Pieces<const N: usize> {
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

impl<const N: usize> Pieces<N> {
    /// Returns an empty set.
    pub const fn new() -> Self {
        Pieces {
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
    pub const fn has_room(&self) -> bool {
        self.nodes.left() > self.owed + SPLITS
    }

    /// Returns the nodes, for growing.
    pub const fn array(&mut self) -> &mut Array<Free, N> {
        self.nodes.array()
    }

    /// Takes a chunk of `1 << bits` bytes out of the smallest that is large enough. Returns `None` if there is no such
    /// chunk, or no room.
    pub fn take(&mut self, bits: u8) -> Option<Piece> {
        let piece = self.take_for_ever(bits)?;
        self.owed += 1;
        Some(piece)
    }

    /// Takes a chunk that will not be freed, except perhaps at once through [`put_back`](Self::put_back).
    pub fn take_for_ever(&mut self, bits: u8) -> Option<Piece> {
        if usize::from(bits) >= SIZES || !self.has_room() {
            return None;
        }
        let larger = self.present >> bits;
        if larger == 0 {
            return None;
        }
        let size = usize::from(bits) + larger.trailing_zeros() as usize;
        let mut piece = self.remove(self.sizes[size] as usize - 1);
        while piece.bits > bits {
            piece.bits -= 1;
            self.insert(Piece { offset: piece.offset + (1 << piece.bits), ..piece });
        }
        Some(piece)
    }

    /// Notes that the chunk taken last will be freed in this number of parts, at most 8.
    pub const fn divide(&mut self, parts: usize) {
        self.owed += parts - 1;
    }

    /// Frees a chunk. If its whole block is free now, removes the block and returns it.
    pub fn free(&mut self, piece: Piece) -> Option<Piece> {
        self.owed = self.owed.saturating_sub(1);
        self.put_back(piece)
    }

    /// Frees a chunk that was just taken for ever.
    pub fn put_back(&mut self, mut piece: Piece) -> Option<Piece> {
        while let Some(buddy) = piece.buddy() {
            let Some(place) = self.find(&buddy) else {
                self.insert(piece);
                return None;
            };
            self.remove(place);
            piece = Piece { offset: piece.offset & !(1 << piece.bits), bits: piece.bits + 1, ..piece };
        }
        Some(piece)
    }

    /// Queues a chunk in use whose object, in `slot`, cannot be deleted yet.
    pub fn keep(&mut self, slot: CapAddress, piece: Piece) {
        self.owed = self.owed.saturating_sub(1);
        let link = self.nodes.take(Free { piece, chain: slot.0, ..Free::NONE }) as u32 + 1;
        let (count, first, last) = self.kept;
        if let Some(last) = last.checked_sub(1) {
            self.nodes.get_mut(last as usize).next = link;
        }
        self.kept = (count + 1, if count == 0 { link } else { first }, link);
    }

    /// Takes the oldest chunk out of the queue, with its slot. It counts as in use.
    pub fn take_kept(&mut self) -> Option<(CapAddress, Piece)> {
        let (count, first, last) = self.kept;
        let place = first.checked_sub(1)? as usize;
        let Free { piece, next, chain, .. } = *self.nodes.get(place);
        self.nodes.give(place);
        self.owed += 1;
        self.kept = (count - 1, next, if next == 0 { 0 } else { last });
        Some((CapAddress(chain), piece))
    }

    /// Returns the length of the queue.
    pub const fn kept(&self) -> usize {
        self.kept.0
    }

    /// Adds a block. There must be room for it, or it must have been returned by [`free`](Self::free).
    pub fn push(&mut self, block: Piece) {
        self.insert(block);
    }

    /// Returns whether a whole block is free.
    pub const fn has_block(&self) -> bool {
        self.blocks > 0
    }

    /// Returns the node of a chunk, if it is free.
    #[inline]
    fn find(&self, piece: &Piece) -> Option<usize> {
        let mut next = self.buckets[piece.bucket()];
        while next != 0 {
            let node = self.nodes.get(next as usize - 1);
            if node.piece == *piece {
                return Some(next as usize - 1);
            }
            next = node.chain;
        }
        None
    }

    /// Inserts a free chunk. A node is available, because as many are unused as chunks are in use, which taking
    /// ensures.
    fn insert(&mut self, piece: Piece) {
        let (size, bucket) = (usize::from(piece.bits), piece.bucket());
        let next = self.sizes[size];
        let node = Free { piece, next, previous: 0, chain: self.buckets[bucket] };
        let link = self.nodes.take(node) as u32 + 1;
        if next != 0 {
            self.nodes.get_mut(next as usize - 1).previous = link;
        }
        (self.sizes[size], self.buckets[bucket]) = (link, link);
        self.present |= 1 << size;
        self.blocks += usize::from(piece.is_block());
    }

    /// Removes the chunk of a node.
    fn remove(&mut self, place: usize) -> Piece {
        let Free { piece, next, previous, chain } = *self.nodes.get(place);
        let size = usize::from(piece.bits);
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
        self.unchain(piece.bucket(), place as u32 + 1, chain);
        self.nodes.give(place);
        self.blocks -= usize::from(piece.is_block());
        piece
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
            assert_eq!(*first != 0, self.present >> size & 1 == 1, "a size with pieces has its bit");
            let (mut next, mut previous) = (*first, 0);
            while next != 0 {
                let node = self.nodes.get(next as usize - 1);
                assert_eq!((usize::from(node.piece.bits), node.previous), (size, previous), "a list has one size");
                assert_eq!(self.find(&node.piece), Some(next as usize - 1), "a piece is found by its place");
                assert!(node.piece.buddy().is_none_or(|buddy| self.find(&buddy).is_none()), "halves have joined");
                count += 1;
                blocks += usize::from(node.piece.is_block());
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
            "each node is of a free piece, or of one that is kept"
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

    const BLOCK: Piece = Piece::block(CapAddress(100), 7, 16);

    /// Returns whether two chunks share a byte.
    fn overlap(a: &Piece, b: &Piece) -> bool {
        a.untyped == b.untyped && a.offset < b.offset + (1 << b.bits) && b.offset < a.offset + (1 << a.bits)
    }

    /// Adds nodes until no more are needed.
    fn grow<const N: usize>(pieces: &mut Pieces<N>) {
        let count = pieces.array().next_chunk().unwrap();
        pieces.array().add(vec![Free::default(); count].leak());
    }

    #[test]
    fn a_block_is_split_and_joined_again() {
        let mut pieces = Pieces::<128>::new();
        assert_eq!(pieces.take(5), None);
        pieces.push(BLOCK);
        let taken: Vec<Piece> = [5, 12, 13, 5, 7, 15].iter().map(|bits| pieces.take(*bits).unwrap()).collect();
        pieces.check_invariants();
        for (index, a) in taken.iter().enumerate() {
            assert_eq!(a.offset % (1 << a.bits), 0);
            assert!(taken[..index].iter().all(|b| !overlap(a, b)));
        }
        assert_eq!(pieces.take(15), None);
        assert!(!pieces.has_block());
        let back: Vec<Option<Piece>> = taken.iter().map(|piece| pieces.free(*piece)).collect();
        assert_eq!(back, [None, None, None, None, None, Some(BLOCK)]);
        pieces.check_invariants();
        assert_eq!((pieces.nodes.used(), pieces.owed), (0, 0));
    }

    #[test]
    fn a_piece_is_two_words() {
        let piece = Piece { untyped: CapAddress(u32::MAX), offset: 7 << 40, bits: 21, block_bits: 47, number: 0xfedc };
        assert_eq!(Piece::from_words(piece.to_words()), piece);
    }

    #[test]
    fn blocks_do_not_join_each_other() {
        let mut pieces = Pieces::<128>::new();
        pieces.push(BLOCK);
        pieces.push(Piece::block(CapAddress(101), 8, 16));
        let (a, b) = (pieces.take(16).unwrap(), pieces.take(16).unwrap());
        assert_eq!(pieces.free(a), Some(a));
        pieces.push(a);
        assert!(pieces.has_block());
        assert_eq!(pieces.free(b), Some(b));
        pieces.check_invariants();
    }

    #[test]
    fn nothing_is_taken_that_could_not_come_back() {
        let mut pieces = Pieces::<128>::new();
        pieces.push(Piece::block(CapAddress(1), 9, 20));
        let mut taken = Vec::new();
        while let Some(piece) = pieces.take(12) {
            taken.push(piece);
            pieces.check_invariants();
        }
        assert!(taken.len() < 128 && pieces.is_short() && !pieces.has_room(), "there was more, but no room");
        grow(&mut pieces);
        grow(&mut pieces);
        assert!(pieces.has_room() && !pieces.is_short());
        while let Some(piece) = pieces.take(12) {
            taken.push(piece);
        }
        pieces.check_invariants();
        assert_eq!(taken.len(), 256);
        // Every second chunk is freed first: none of them joins another, and each needs a node.
        let (even, odd): (Vec<_>, Vec<_>) = taken.into_iter().partition(|piece| piece.offset >> 12 & 1 == 0);
        assert!(even.iter().all(|piece| pieces.free(*piece).is_none()));
        pieces.check_invariants();
        assert_eq!(pieces.nodes.used(), 128);
        let blocks: Vec<Piece> = odd.iter().filter_map(|piece| pieces.free(*piece)).collect();
        assert_eq!(blocks, [Piece::block(CapAddress(1), 9, 20)]);
        pieces.check_invariants();
    }

    #[test]
    fn a_piece_can_come_back_in_parts() {
        let mut pieces = Pieces::<128>::new();
        pieces.push(BLOCK);
        let memory = pieces.take(15).unwrap();
        pieces.divide(8);
        pieces.check_invariants();
        let part = |number: u64| Piece { offset: memory.offset + (number << 12), bits: 12, ..memory };
        assert!([6, 1, 4, 3, 0, 7, 2].iter().all(|number| pieces.free(part(*number)).is_none()));
        pieces.check_invariants();
        assert_eq!((pieces.free(part(5)), pieces.owed), (Some(BLOCK), 0));
    }

    #[test]
    fn what_cannot_be_used_yet_waits_its_turn() {
        let mut pieces = Pieces::<128>::new();
        pieces.push(BLOCK);
        let taken: Vec<Piece> = (0..16).map(|_| pieces.take(12).unwrap()).collect();
        assert_eq!(pieces.take_kept(), None);
        for (slot, piece) in (1..).zip(&taken) {
            pieces.keep(CapAddress(slot), *piece);
            pieces.check_invariants();
        }
        assert_eq!((pieces.kept(), pieces.owed, pieces.take(12)), (16, 0, None), "none of them is free");
        // The first goes to the end, the second is freed, and so on.
        for slot in 1..=8 {
            let (first, piece) = pieces.take_kept().unwrap();
            assert_eq!((first, piece), (CapAddress(2 * slot - 1), taken[2 * slot as usize - 2]));
            pieces.keep(first, piece);
            let (second, piece) = pieces.take_kept().unwrap();
            assert_eq!(second, CapAddress(2 * slot));
            assert_eq!(pieces.free(piece), None);
            pieces.check_invariants();
        }
        let rest: Vec<u32> = core::iter::from_fn(|| {
            let (slot, piece) = pieces.take_kept()?;
            assert_eq!(pieces.free(piece), (slot.0 == 15).then_some(BLOCK));
            pieces.check_invariants();
            Some(slot.0)
        })
        .collect();
        assert_eq!((rest, pieces.kept(), pieces.nodes.used()), (vec![1, 3, 5, 7, 9, 11, 13, 15], 0, 0));
    }

    #[test]
    fn what_is_taken_for_ever_needs_no_room() {
        let mut pieces = Pieces::<64>::new();
        for block in 0..100 {
            pieces.push(Piece::block(CapAddress(1 + block), 1 + block as u16, 16));
            for _ in 0..16 {
                let piece = pieces.take_for_ever(12).unwrap();
                // The chunk may turn out not to be needed.
                if let Some(block) = pieces.put_back(piece) {
                    pieces.push(block);
                }
                assert_eq!(pieces.take_for_ever(12), Some(piece));
                pieces.check_invariants();
            }
        }
        assert_eq!((pieces.take_for_ever(12), pieces.nodes.used()), (None, 0));
    }

    #[test]
    fn random_pieces_never_overlap_and_all_come_back() {
        let mut pieces = Pieces::<128>::new();
        let mut taken: Vec<Piece> = Vec::new();
        let mut bytes = BTreeMap::new();
        let mut seed = 7_u64;
        let mut most = 0;
        for step in 0..40_000_u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = seed >> 33;
            // Many chunks are in use for a while, then few.
            let takes = number % 16 < if step / 4000 % 2 == 0 { 11 } else { 5 };
            if takes {
                let bits = [5, 6, 9, 12, 12, 12, 13, 16][(number >> 8) as usize % 8];
                while pieces.is_short() {
                    grow(&mut pieces);
                }
                let piece = pieces.take(bits).unwrap_or_else(|| {
                    pieces.push(Piece::block(CapAddress(1 + step as u32), 1 + step as u16, 18));
                    pieces.take(bits).unwrap()
                });
                assert_eq!(piece.bits, bits);
                let key = (piece.untyped.0, piece.offset);
                let before =
                    bytes.range(..key).next_back().map(|((block, offset), bits)| (*block, offset + (1_u64 << bits)));
                let behind = bytes.range(key..).next().map(|((block, offset), _)| (*block, *offset));
                assert!(before.is_none_or(|(block, end)| block != key.0 || end <= key.1));
                assert!(behind.is_none_or(|(block, start)| block != key.0 || start >= key.1 + (1 << bits)));
                bytes.insert(key, bits);
                taken.push(piece);
            } else if !taken.is_empty() {
                let piece = taken.swap_remove((number >> 8) as usize % taken.len());
                bytes.remove(&(piece.untyped.0, piece.offset));
                if let Some(block) = pieces.free(piece) {
                    assert!(block.is_block() && taken.iter().all(|other| other.untyped != block.untyped));
                }
            }
            most = most.max(taken.len());
            if step % 16 == 0 {
                pieces.check_invariants();
            }
        }
        assert!(most > 1000, "the run was not trivial");
        while let Some(piece) = taken.pop() {
            pieces.free(piece);
        }
        pieces.check_invariants();
        assert_eq!((pieces.nodes.used(), pieces.owed), (0, 0), "all blocks have gone back");
    }
}
