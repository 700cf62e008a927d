//! A buddy system over the regions that the server owns, with an account per client.
//!
//! A *region* is one untyped of `init`'s: a power of two, aligned to its size. A region is divided into *blocks*, again
//! powers of two, aligned to their sizes; a block's *buddy* is the other half of the block that both were cut from. Free
//! buddies are joined at once, so each region's free blocks are as large as they can be. Of several free blocks the
//! smallest that fits is taken, and of equal ones the one with the lowest address.
//!
//! Invariants, checked by [`Books::check_invariants`] after every step of the tests:
//! - the blocks, free and used, cover each region exactly, without overlap;
//! - no two free blocks are buddies within a region;
//! - an account's `used` and `blocks` are the sums over the blocks that are on it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use tench_abi::object::UNTYPED_MAX_BITS;
use tench_mem_client::protocol::{Error, MIN_BLOCK_BITS, NO_QUOTA};

/// A run of memory that the server owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Physical address, a multiple of the size.
    pub address: u64,
    /// Log2 of the size in bytes.
    pub size_bits: u32,
}

impl Region {
    const fn contains(&self, address: u64) -> bool {
        address >= self.address && address - self.address < 1 << self.size_bits
    }
}

/// A block that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Physical address, which is its name too.
    pub address: u64,
    /// Log2 of the size in bytes.
    pub size_bits: u32,
    /// The account on which it is.
    pub account: u64,
    /// Who asked for it and may free it: the account's owner, or the process server on its behalf.
    pub holder: u64,
    /// What the server keeps with it (the slot of its capability).
    pub slot: u32,
}

impl Block {
    /// Its size in bytes.
    pub const fn size(&self) -> u64 {
        1 << self.size_bits
    }
}

/// What a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Bytes in use.
    pub used: u64,
    /// Bytes that may be in use.
    pub quota: u64,
    /// Blocks in use.
    pub blocks: u64,
}

/// Sums over everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes in all regions.
    pub total: u64,
    /// Bytes in free blocks.
    pub free: u64,
    /// Bytes of the largest free block.
    pub largest: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Accounts.
    pub accounts: u64,
}

/// The books.
pub struct Books {
    regions: Vec<Region>,
    /// Addresses of free blocks, by log2 of their sizes.
    free: [BTreeSet<u64>; UNTYPED_MAX_BITS as usize + 1],
    used: BTreeMap<u64, Block>,
    accounts: BTreeMap<u64, Account>,
    max_blocks: usize,
}

impl Books {
    /// Books without memory, for at most `max_blocks` blocks in use.
    pub fn new(max_blocks: usize) -> Books {
        Books {
            regions: Vec::new(),
            free: [const { BTreeSet::new() }; UNTYPED_MAX_BITS as usize + 1],
            used: BTreeMap::new(),
            accounts: BTreeMap::new(),
            max_blocks,
        }
    }

    /// Takes a region into the books, and answers its number. Regions smaller than a block are of no use and refused,
    /// as are regions that overlap another one or are not aligned.
    pub fn add(&mut self, region: Region) -> Result<usize, Error> {
        let aligned = region.size_bits <= UNTYPED_MAX_BITS && region.address.is_multiple_of(1 << region.size_bits);
        if region.size_bits < MIN_BLOCK_BITS || !aligned {
            return Err(Error::BadSize);
        }
        // Aligned powers of two overlap only if one contains the other's beginning.
        if self.regions.iter().any(|other| other.contains(region.address) || region.contains(other.address)) {
            return Err(Error::BadSize);
        }
        self.regions.push(region);
        self.free[region.size_bits as usize].insert(region.address);
        Ok(self.regions.len() - 1)
    }

    /// The region that a block lies in, and its number.
    pub fn region_of(&self, address: u64) -> Option<(usize, Region)> {
        self.regions.iter().copied().enumerate().find(|(_, region)| region.contains(address))
    }

    /// Takes a block of at least 2^`size_bits` bytes from the free ones and puts it on `account`.
    pub fn allocate(&mut self, holder: u64, account: u64, size_bits: u64, slot: u32) -> Result<Block, Error> {
        if size_bits > u64::from(UNTYPED_MAX_BITS) {
            return Err(Error::BadSize);
        }
        let size_bits = (size_bits as u32).max(MIN_BLOCK_BITS);
        if self.used.len() >= self.max_blocks {
            return Err(Error::TooManyBlocks);
        }
        let entry = self.account(account);
        if entry.used.checked_add(1 << size_bits).is_none_or(|used| used > entry.quota) {
            return Err(Error::QuotaExceeded);
        }
        let address = self.take(size_bits).ok_or(Error::OutOfMemory)?;
        let block = Block { address, size_bits, account, holder, slot };
        self.used.insert(address, block);
        let entry = self.accounts.entry(account).or_insert(entry);
        entry.used += block.size();
        entry.blocks += 1;
        Ok(block)
    }

    /// Removes a free block of this size from the free ones, cutting a larger one if need be.
    fn take(&mut self, size_bits: u32) -> Option<u64> {
        let mut found = (size_bits..=UNTYPED_MAX_BITS).find(|&bits| !self.free[bits as usize].is_empty())?;
        let address = self.free[found as usize].pop_first()?;
        while found > size_bits {
            found -= 1;
            self.free[found as usize].insert(address + (1 << found));
        }
        Some(address)
    }

    /// The block at `address`, if `holder` may free it.
    pub fn block(&self, holder: u64, address: u64) -> Result<Block, Error> {
        self.used.get(&address).filter(|block| block.holder == holder).copied().ok_or(Error::NoSuchBlock)
    }

    /// The blocks of an account.
    pub fn blocks_of(&self, account: u64) -> Vec<Block> {
        self.used.values().filter(|block| block.account == account).copied().collect()
    }

    /// Returns a used block to the free ones.
    pub fn release(&mut self, address: u64) -> Result<Block, Error> {
        let (_, region) = self.region_of(address).ok_or(Error::NoSuchBlock)?;
        let block = self.used.remove(&address).ok_or(Error::NoSuchBlock)?;
        if let Some(account) = self.accounts.get_mut(&block.account) {
            account.used -= block.size();
            account.blocks -= 1;
        }
        let (mut address, mut size_bits) = (address, block.size_bits);
        while size_bits < region.size_bits && self.free[size_bits as usize].remove(&(address ^ 1 << size_bits)) {
            address &= !(1 << size_bits);
            size_bits += 1;
        }
        self.free[size_bits as usize].insert(address);
        Ok(block)
    }

    /// Forgets an account, which must have no blocks any more.
    pub fn close(&mut self, account: u64) {
        if self.accounts.get(&account).is_some_and(|entry| entry.blocks == 0) {
            self.accounts.remove(&account);
        }
    }

    /// Sets how many bytes an account may use. Blocks in use beyond it stay.
    pub fn set_quota(&mut self, account: u64, quota: u64) {
        let entry = self.account(account);
        self.accounts.insert(account, Account { quota, ..entry });
    }

    /// What an account has; an empty one if it does not exist.
    fn account(&self, account: u64) -> Account {
        self.accounts.get(&account).copied().unwrap_or(Account { used: 0, quota: NO_QUOTA, blocks: 0 })
    }

    /// The account with the lowest number above `after`.
    pub fn next_account(&self, after: u64) -> Option<(u64, Account)> {
        let first = after.checked_add(1)?;
        self.accounts.range(first..).next().map(|(&number, &account)| (number, account))
    }

    /// Sums over everything.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { blocks: self.used.len() as u64, ..Totals::default() };
        totals.accounts = self.accounts.len() as u64;
        totals.total = self.regions.iter().map(|region| 1 << region.size_bits).sum();
        for (bits, addresses) in self.free.iter().enumerate().filter(|(_, addresses)| !addresses.is_empty()) {
            totals.free += (addresses.len() as u64) << bits;
            totals.largest = 1 << bits;
        }
        totals
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let free = self.free.iter().enumerate();
        let free =
            free.flat_map(|(bits, addresses)| addresses.iter().map(move |&address| (address, bits as u32, true)));
        let used = self.used.values().map(|block| (block.address, block.size_bits, false));
        let mut blocks: Vec<_> = free.chain(used).collect();
        blocks.sort_unstable();
        let mut regions = self.regions.clone();
        regions.sort_unstable_by_key(|region| region.address);
        let mut blocks = blocks.into_iter().peekable();
        for region in regions {
            let mut end = region.address;
            let mut previous = None;
            while let Some(block) = blocks.next_if(|&(address, ..)| region.contains(address)) {
                let (address, bits, is_free) = block;
                assert!(address == end && address.is_multiple_of(1 << bits), "blocks cover a region without overlap");
                let buddy = previous == Some((address ^ 1 << bits, bits, true));
                assert!(!(is_free && buddy), "free buddies are joined");
                end += 1 << bits;
                previous = Some(block);
            }
            assert_eq!(end, region.address + (1 << region.size_bits), "blocks cover a region to its end");
        }
        assert!(blocks.next().is_none(), "every block lies in a region");
        for (number, account) in &self.accounts {
            let blocks: Vec<_> = self.used.values().filter(|block| block.account == *number).collect();
            assert_eq!(account.blocks, blocks.len() as u64);
            assert_eq!(account.used, blocks.iter().map(|block| block.size()).sum::<u64>());
        }
        assert!(self.used.values().all(|block| self.accounts.contains_key(&block.account)));
    }
}
