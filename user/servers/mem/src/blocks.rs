//! The table of blocks, indexed by the slot that holds the block's capability.
//!
//! The entries of one account form a list, so that closing an account costs what is on it, however much other accounts
//! have. A slot's number is its entry's index; the table grows together with the CSpace.

use tench_abi::CapAddress;

/// A block that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Physical address.
    pub address: u64,
    /// Log2 of the size in bytes.
    pub size_bits: u32,
    /// The process that requested the block and may free it: the account's owner, or the process server on its behalf.
    pub holder: u64,
    /// The account that is charged.
    pub account: u64,
}

impl Block {
    /// Returns the size in bytes.
    pub const fn size(&self) -> u64 {
        1 << self.size_bits
    }
}

/// No slot: address 0 is never a capability.
const NONE: u32 = CapAddress::NULL.0;

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    block: Option<Block>,
    previous: u32,
    next: u32,
}

impl Entry {
    /// An entry without a block.
    pub const EMPTY: Entry = Entry { block: None, previous: NONE, next: NONE };
}

/// Head of a list of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(u32);

impl Head {
    /// An empty list.
    pub const EMPTY: Head = Head(NONE);

    /// Returns the slot of the first block.
    pub fn first(self) -> Option<CapAddress> {
        (self.0 != NONE).then_some(CapAddress(self.0))
    }
}

/// The table, over storage that has an entry for every slot that may hold a block.
pub struct Blocks<S>(S);

impl<S: AsRef<[Entry]> + AsMut<[Entry]>> Blocks<S> {
    /// Returns a table without blocks.
    pub const fn new(storage: S) -> Blocks<S> {
        Blocks(storage)
    }

    /// Returns the storage, to let it grow.
    pub const fn storage(&mut self) -> &mut S {
        &mut self.0
    }

    /// Returns the number of slots that can hold blocks: the lowest-numbered.
    pub fn len(&self) -> usize {
        self.0.as_ref().len()
    }

    /// Returns whether no slot can hold a block.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the block in a slot.
    pub fn get(&self, slot: CapAddress) -> Option<Block> {
        self.0.as_ref().get(slot.0 as usize)?.block
    }

    /// Adds a block, at the head of a list. Returns whether the table has a free entry for the slot.
    pub fn insert(&mut self, head: &mut Head, slot: CapAddress, block: Block) -> bool {
        let entries = self.0.as_mut();
        match entries.get_mut(slot.0 as usize) {
            Some(entry) if entry.block.is_none() => {
                *entry = Entry { block: Some(block), previous: NONE, next: head.0 };
            }
            _ => return false,
        }
        if let Some(next) = entries.get_mut(head.0 as usize).filter(|_| head.0 != NONE) {
            next.previous = slot.0;
        }
        *head = Head(slot.0);
        true
    }

    /// Removes a block from its list.
    pub fn remove(&mut self, head: &mut Head, slot: CapAddress) -> Option<Block> {
        let entries = self.0.as_mut();
        let entry = core::mem::replace(entries.get_mut(slot.0 as usize)?, Entry::EMPTY);
        if entry.block.is_some() {
            if entry.previous == NONE {
                *head = Head(entry.next);
            } else if let Some(previous) = entries.get_mut(entry.previous as usize) {
                previous.next = entry.next;
            }
            if let Some(next) = entries.get_mut(entry.next as usize).filter(|_| entry.next != NONE) {
                next.previous = entry.previous;
            }
        }
        entry.block
    }

    /// Halves the recorded size of a block, which is then the lower half.
    pub fn halve(&mut self, slot: CapAddress) -> Option<Block> {
        let entry = self.0.as_mut().get_mut(slot.0 as usize)?;
        let block = entry.block.as_mut()?;
        block.size_bits -= 1;
        Some(*block)
    }

    /// Returns the blocks of a list, with their slots.
    pub fn list(&self, head: Head) -> impl Iterator<Item = (CapAddress, Block)> {
        let mut slot = head.0;
        core::iter::from_fn(move || {
            let entry = self.0.as_ref().get(slot as usize).filter(|_| slot != NONE)?;
            let found = (CapAddress(slot), entry.block?);
            slot = entry.next;
            Some(found)
        })
    }

    /// Returns all blocks, with their slots.
    pub fn all(&self) -> impl Iterator<Item = (CapAddress, Block)> {
        let entries = self.0.as_ref().iter().enumerate();
        entries.filter_map(|(slot, entry)| Some((CapAddress(slot as u32), entry.block?)))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn block(address: u64) -> Block {
        Block { address, size_bits: 13, holder: 1, account: 0 }
    }

    #[test]
    fn blocks_leave_a_list_from_everywhere() {
        for gone in 1..=3 {
            let mut blocks = Blocks::new(std::vec![Entry::EMPTY; 8]);
            let mut head = Head::EMPTY;
            for slot in 1..=3 {
                assert!(blocks.insert(&mut head, CapAddress(slot), block(u64::from(slot) << 13)));
            }
            assert_eq!(blocks.remove(&mut head, CapAddress(gone)), Some(block(u64::from(gone) << 13)));
            assert_eq!(blocks.remove(&mut head, CapAddress(gone)), None);
            let left: Vec<u32> = blocks.list(head).map(|(slot, _)| slot.0).collect();
            let expected: Vec<u32> = (1..=3).rev().filter(|slot| *slot != gone).collect();
            assert_eq!(left, expected);
            assert_eq!(blocks.all().count(), 2);
        }
    }

    #[test]
    fn a_slot_holds_one_block_and_must_exist() {
        let mut blocks = Blocks::new([Entry::EMPTY; 2]);
        let mut head = Head::EMPTY;
        assert!(blocks.insert(&mut head, CapAddress(1), block(0)));
        assert!(!blocks.insert(&mut head, CapAddress(1), block(1 << 13)));
        assert!(!blocks.insert(&mut head, CapAddress(2), block(1 << 13)));
        assert_eq!(blocks.list(head).count(), 1);
        assert_eq!(blocks.halve(CapAddress(1)).map(|half| half.size()), Some(4096));
        assert_eq!(blocks.get(CapAddress(1)).map(|half| half.size_bits), Some(12));
    }
}
