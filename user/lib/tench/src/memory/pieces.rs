//! Free pieces of the process's untyped memory: a buddy system over the blocks that the memory server gave.
//!
//! A block is one untyped capability; a piece is an aligned power of two of bytes in it. The pieces lie in a fixed
//! array, because the heap itself is made of them. A piece that is given back when the array is full and that joins no
//! other is forgotten until the process ends; a piece that could be split only so far as there is room is given whole.

use tench_abi::CapAddress;

/// Free pieces that are remembered.
const MAX_PIECES: usize = 256;

/// A piece of untyped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The block.
    pub untyped: CapAddress,
    /// Where in the block, in bytes.
    pub offset: u64,
    /// Log2 of its size.
    pub bits: u8,
    /// Log2 of the block's size.
    pub block_bits: u8,
}

impl Piece {
    /// All of a block.
    pub const fn block(untyped: CapAddress, bits: u8) -> Piece {
        Piece { untyped, offset: 0, bits, block_bits: bits }
    }

    /// The piece that it would form a larger one with, if it is not a whole block.
    const fn buddy(&self) -> Option<Piece> {
        if self.bits < self.block_bits {
            Some(Piece { untyped: self.untyped, offset: self.offset ^ 1 << self.bits, ..*self })
        } else {
            None
        }
    }

    /// As two words, for whoever keeps it.
    pub const fn to_words(self) -> [u64; 2] {
        [self.untyped.0 as u64 | (self.bits as u64) << 32 | (self.block_bits as u64) << 40, self.offset]
    }

    /// Of two words that `to_words` made.
    pub const fn from_words([word, offset]: [u64; 2]) -> Piece {
        Piece { untyped: CapAddress(word as u32), offset, bits: (word >> 32) as u8, block_bits: (word >> 40) as u8 }
    }

    /// Whether it is a whole block.
    pub const fn is_block(&self) -> bool {
        self.bits == self.block_bits
    }
}

/// The free pieces.
pub struct Pieces {
    pieces: [Piece; MAX_PIECES],
    count: usize,
}

impl Pieces {
    /// None.
    pub const fn new() -> Pieces {
        Pieces { pieces: [Piece::block(CapAddress::NULL, 0); MAX_PIECES], count: 0 }
    }

    /// Takes a piece of at least `1 << bits` bytes: out of the smallest that is large enough.
    pub fn take(&mut self, bits: u8) -> Option<Piece> {
        let fits = |(_, piece): &(usize, &Piece)| piece.bits >= bits;
        let (index, _) = self.pieces[..self.count].iter().enumerate().filter(fits).min_by_key(|(_, p)| p.bits)?;
        let mut piece = self.pieces[index];
        self.count -= 1;
        self.pieces[index] = self.pieces[self.count];
        while piece.bits > bits && self.count < MAX_PIECES {
            piece.bits -= 1;
            self.push(Piece { offset: piece.offset + (1 << piece.bits), ..piece });
        }
        Some(piece)
    }

    /// Gives a piece back. If its whole block is free now, the block is answered, and no longer known here.
    pub fn free(&mut self, mut piece: Piece) -> Option<Piece> {
        while let Some(buddy) = piece.buddy() {
            let Some(index) = self.pieces[..self.count].iter().position(|other| *other == buddy) else {
                self.push(piece);
                return None;
            };
            self.count -= 1;
            self.pieces[index] = self.pieces[self.count];
            piece = Piece { offset: piece.offset & !(1 << piece.bits), bits: piece.bits + 1, ..piece };
        }
        Some(piece)
    }

    /// Adds a free piece, a block that just came for instance.
    pub fn push(&mut self, piece: Piece) {
        if self.count < MAX_PIECES {
            self.pieces[self.count] = piece;
            self.count += 1;
        }
    }

    /// Whether a whole block is free.
    pub fn has_block(&self) -> bool {
        self.pieces[..self.count].iter().any(Piece::is_block)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    const BLOCK: Piece = Piece::block(CapAddress(100), 16);

    /// Whether two pieces share a byte.
    fn overlap(a: &Piece, b: &Piece) -> bool {
        a.untyped == b.untyped && a.offset < b.offset + (1 << b.bits) && b.offset < a.offset + (1 << a.bits)
    }

    #[test]
    fn a_block_is_split_and_joined_again() {
        let mut pieces = Pieces::new();
        assert_eq!(pieces.take(5), None);
        pieces.push(BLOCK);
        let taken: Vec<Piece> = [5, 12, 13, 5, 7, 15].iter().map(|bits| pieces.take(*bits).unwrap()).collect();
        for (index, a) in taken.iter().enumerate() {
            assert_eq!(a.offset % (1 << a.bits), 0);
            assert!(taken[..index].iter().all(|b| !overlap(a, b)));
        }
        assert_eq!(pieces.take(15), None);
        assert!(!pieces.has_block());
        let back: Vec<Option<Piece>> = taken.iter().map(|piece| pieces.free(*piece)).collect();
        assert_eq!(back, [None, None, None, None, None, Some(BLOCK)]);
        assert_eq!(pieces.count, 0);
    }

    #[test]
    fn a_piece_is_two_words() {
        let piece = Piece { untyped: CapAddress(u32::MAX), offset: 7 << 40, bits: 21, block_bits: 47 };
        assert_eq!(Piece::from_words(piece.to_words()), piece);
    }

    #[test]
    fn blocks_do_not_join_each_other() {
        let mut pieces = Pieces::new();
        pieces.push(BLOCK);
        pieces.push(Piece::block(CapAddress(101), 16));
        let (a, b) = (pieces.take(16).unwrap(), pieces.take(16).unwrap());
        assert_eq!(pieces.free(a), Some(a));
        pieces.push(a);
        assert!(pieces.has_block());
        assert_eq!(pieces.free(b), Some(b));
    }

    #[test]
    fn without_room_to_split_more_is_given() {
        let mut pieces = Pieces::new();
        for slot in 0..MAX_PIECES as u32 {
            pieces.push(Piece::block(CapAddress(slot + 1), 20));
        }
        // Taking one frees one place, so one split is remembered.
        let piece = pieces.take(5).unwrap();
        assert_eq!(piece.bits, 19);
        assert_eq!(pieces.count, MAX_PIECES);
        assert_eq!(pieces.free(piece), Some(Piece { bits: 20, ..piece }));
    }
}
