//! Contents of a file: blocks of memory, or a part of the boot archive.
//!
//! Blocks that were never written do not exist and read as zeros; so do bytes behind the last that was written.
//! Invariants: no block is behind the file's end, and in the last block the bytes behind the end are zeros.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;

use tench_quota::Client;
use tench_quota::lasting::{Lasting, Owner};
use tench_stream::protocol::Error;

/// Size of a block in bytes.
pub const BLOCK: usize = 4096;
/// Size of the largest file in bytes.
pub const MAX_SIZE: u64 = 1 << 31;

/// The number of blocks, and its maximum. A block counts to the quota of the family that caused its allocation, which
/// need not be that of the file's maker: otherwise a process could use up another's quota by writing to its files.
#[derive(Debug)]
pub struct Space {
    quota: Lasting,
}

impl Space {
    /// Returns an account for `most` blocks.
    pub const fn new(most: usize) -> Space {
        Space { quota: Lasting::new(most) }
    }

    /// Returns the number of blocks in use.
    pub const fn used(&self) -> usize {
        self.quota.taken()
    }

    /// Returns the maximum number of blocks.
    pub const fn most(&self) -> usize {
        self.quota.limit()
    }

    /// Returns the number of blocks that count to a family.
    pub fn held(&self, family: u64) -> usize {
        self.quota.held(family)
    }

    /// Notes that the last process of a family has ended: its blocks stay, and belong to nobody.
    pub fn family_ended(&mut self, family: u64) {
        self.quota.family_ended(family);
    }

    /// Panics unless these are the owners of all blocks.
    pub fn check_invariants(&self, owners: &[Owner]) {
        self.quota.check_invariants(owners);
    }
}

/// Contents of a file.
#[derive(Debug)]
pub enum Contents {
    /// A file of the boot archive.
    Archive(&'static [u8]),
    /// A writable file.
    Memory(Blocks),
}

/// A block, and its owner.
#[derive(Debug)]
struct Block {
    bytes: Box<[u8]>,
    owner: Owner,
}

/// Blocks by number, and the file's size in bytes.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: BTreeMap<u32, Block>,
    size: u64,
}

impl Contents {
    /// Returns the file's size in bytes.
    pub const fn size(&self) -> u64 {
        match self {
            Contents::Archive(bytes) => bytes.len() as u64,
            Contents::Memory(blocks) => blocks.size,
        }
    }

    /// Reads from a position, as much as `into` has room for. Returns the number of bytes.
    pub fn read(&self, position: u64, into: &mut [u8]) -> usize {
        let left = usize::try_from(self.size().saturating_sub(position)).unwrap_or(usize::MAX);
        let count = into.len().min(left);
        let into = &mut into[..count];
        match self {
            Contents::Archive(bytes) => {
                let from = bytes.get(position as usize..).and_then(|bytes| bytes.get(..count));
                // The slice has that length, because the bytes are before the end.
                from.into_iter().for_each(|from| into.copy_from_slice(from));
            }
            Contents::Memory(blocks) => blocks.read(position, into),
        }
        count
    }
}

/// Splits `length` bytes from a position on into parts that are in one block each: the block's number, the offset in
/// it, and the range of the bytes.
fn parts(position: u64, length: usize) -> impl Iterator<Item = (u32, usize, core::ops::Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let at = position + done as u64;
        let offset = (at % BLOCK as u64) as usize;
        let count = (BLOCK - offset).min(length - done);
        let part = ((at / BLOCK as u64) as u32, offset, done..done + count);
        done += count;
        (count > 0).then_some(part)
    })
}

impl Blocks {
    fn read(&self, position: u64, into: &mut [u8]) {
        for (number, offset, range) in parts(position, into.len()) {
            let into = &mut into[range];
            match self.blocks.get(&number) {
                Some(block) => into.copy_from_slice(&block.bytes[offset..offset + into.len()]),
                None => into.fill(0),
            }
        }
    }

    /// Writes bytes at a position: all of them, or none. New blocks count to `client`'s family.
    pub fn write(&mut self, position: u64, bytes: &[u8], client: Client, space: &mut Space) -> Result<(), Error> {
        let end = position.checked_add(bytes.len() as u64).filter(|end| *end <= MAX_SIZE).ok_or(Error::TooLarge)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let missing = parts(position, bytes.len()).filter(|(number, ..)| !self.blocks.contains_key(number)).count();
        if !space.quota.may_take_all(client, missing) {
            return Err(Error::NoSpace);
        }
        for (number, offset, range) in parts(position, bytes.len()) {
            let bytes = &bytes[range];
            let block = self
                .blocks
                .entry(number)
                .or_insert_with(|| Block { bytes: vec![0; BLOCK].into_boxed_slice(), owner: space.quota.take(client) });
            block.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        self.size = self.size.max(end);
        Ok(())
    }

    /// Sets the size.
    pub fn truncate(&mut self, size: u64, space: &mut Space) -> Result<(), Error> {
        if size > MAX_SIZE {
            return Err(Error::TooLarge);
        }
        if size < self.size {
            let kept = size.div_ceil(BLOCK as u64) as u32;
            while let Some(last) = self.blocks.last_entry().filter(|last| *last.key() >= kept) {
                space.quota.give_back(last.remove().owner);
            }
            let rest = (size % BLOCK as u64) as usize;
            if rest > 0
                && let Some(block) = self.blocks.get_mut(&(kept - 1))
            {
                block.bytes[rest..].fill(0);
            }
        }
        self.size = size;
        Ok(())
    }

    /// Frees all blocks.
    pub fn free(self, space: &mut Space) {
        // Adjacent blocks of one owner are freed together: they are many.
        let mut blocks = self.blocks.into_values().map(|block| block.owner).peekable();
        while let Some(owner) = blocks.next() {
            let mut count = 1;
            while blocks.next_if_eq(&owner).is_some() {
                count += 1;
            }
            space.quota.give_back_all(owner, count);
        }
    }

    /// Returns the owners of all blocks; panics if an invariant does not hold.
    pub fn check_invariants(&self) -> impl Iterator<Item = Owner> {
        assert!(self.size <= MAX_SIZE);
        if let Some((number, block)) = self.blocks.last_key_value() {
            let start = u64::from(*number) * BLOCK as u64;
            assert!(start < self.size, "a block lies behind the end");
            let inside = usize::try_from(self.size - start).unwrap_or(BLOCK).min(BLOCK);
            assert!(block.bytes[inside..].iter().all(|byte| *byte == 0), "something lies behind the end");
        }
        self.blocks.values().map(|block| block.owner)
    }
}
