//! The ledger of memory: all memory, the free part of it, and the holders of the rest.
//!
//! ```text
//!   extents    every byte of every region: free, or part of a block      by address, and the free ones by size
//!   blocks     description of each block                                 by the slot of its capability
//!   accounts   use of each client, with a list of its blocks             by number
//! ```
//! A *region* is one untyped object from `init`: a power of two, aligned to its size. So is a *block*, because untyped
//! memory is. A block is taken from the smallest free extent in which it fits, and of equal ones from that with the
//! lowest address.
//!
//! Nothing in here allocates: the arrays behind the three parts grow between requests, when [`Ledger::need`] says so,
//! and never during one. Invariants, checked by [`Ledger::check_invariants`] after every step of the tests:
//! - those of the extents: free and used ones cover each region exactly, and no two free ones touch;
//! - each used extent is one block, under the slot that the extent names;
//! - an account's `used` and `blocks` are the sums over its list, and every block is in the list of its account;
//! - an account's `below` is the sum over the accounts that name it, with what is below them.
//!
//! Objects in slabs are counted per account; the slabs' own ledger reports them here ([`Ledger::charge`]).

use arrayvec::ArrayVec;
use tench_abi::CapAddress;
use tench_abi::object::UNTYPED_MAX_BITS;
use tench_abi::power::Client;
use tench_extents::{Manager, Node};
use tench_mem_interface::protocol::{ABROAD, Error, MIN_BLOCK_BITS};
use tench_procs_interface::pid;

use crate::accounts::{Account, Accounts, MAX_DEPTH};
use crate::blocks::{Block, Blocks, Entry};
use crate::families::Families;

/// Maximum number of regions: as many as fit into the node in which `init` passes them.
pub const MAX_REGIONS: usize = 256;

/// A range of memory that the server owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Physical address, a multiple of the size.
    pub address: u64,
    /// Log2 of the size in bytes.
    pub size_bits: u32,
    /// The slot of its capability.
    pub slot: CapAddress,
}

/// A request for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The process that may free the block.
    pub holder: u64,
    /// The account that is charged.
    pub account: u64,
    /// The family of the account's owner; 0 if it has none.
    pub family: u64,
    /// Log2 of the size in bytes; the minimum is a page.
    pub size_bits: u64,
    /// Log2 of the alignment, if that is more than the size.
    pub align_bits: u64,
    /// Lowest permitted address.
    pub base: u64,
    /// First address above the permitted range; 0 for no limit.
    pub limit: u64,
}

impl Request {
    /// Returns a request for a block at any address.
    pub const fn anywhere(holder: u64, account: u64, size_bits: u64) -> Request {
        Request { holder, account, family: 0, size_bits, align_bits: 0, base: 0, limit: 0 }
    }
}

/// The array that has to grow before the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The extents' array.
    Extents,
    /// The blocks' array.
    Blocks,
    /// The accounts' array.
    Accounts,
}

/// Sums over everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes in all regions.
    pub total: u64,
    /// Free bytes.
    pub free: u64,
    /// Bytes of the largest free extent.
    pub largest: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Number of accounts.
    pub accounts: u64,
}

/// Converts the extents' reason why there is none for a block.
const fn no_extent(error: tench_extents::Error) -> Error {
    match error {
        tench_extents::Error::OutOfMemory => Error::OutOfMemory,
        tench_extents::Error::NeedsNodes => Error::TooManyBlocks,
        // The size was checked before: the range ends before it begins.
        tench_extents::Error::BadSize => Error::BadRange,
        tench_extents::Error::Overlap | tench_extents::Error::NotGiven => Error::Internal,
    }
}

/// Accounts of no process that could end.
const NEVER_ENDS: [u64; 2] = [pid::MEM, ABROAD];

/// The ledger, over the storage of its three parts.
pub struct Ledger<E, B, A> {
    regions: ArrayVec<Region, MAX_REGIONS>,
    extents: Manager<E>,
    blocks: Blocks<B>,
    accounts: Accounts<A>,
    families: Families,
}

impl<E, B, A> Ledger<E, B, A>
where
    E: AsRef<[Node]> + AsMut<[Node]>,
    B: AsRef<[Entry]> + AsMut<[Entry]>,
    A: AsRef<[Account]> + AsMut<[Account]>,
{
    /// Returns a ledger without memory.
    pub fn new(extents: E, blocks: B, accounts: A) -> Ledger<E, B, A> {
        let (extents, blocks) = (Manager::new(extents), Blocks::new(blocks));
        Ledger {
            regions: ArrayVec::new(),
            extents,
            blocks,
            accounts: Accounts::new(accounts),
            families: Families::default(),
        }
    }

    /// Returns the array of the extents, to let it grow.
    pub fn extents_storage(&mut self) -> &mut E {
        self.extents.storage()
    }

    /// Returns the array of the blocks, to let it grow.
    pub fn blocks_storage(&mut self) -> &mut B {
        self.blocks.storage()
    }

    /// Returns the array of the accounts, to let it grow.
    pub fn accounts_storage(&mut self) -> &mut A {
        self.accounts.storage()
    }

    /// Returns the array that should grow before the next request. (The table of blocks grows when slots are added.)
    pub fn need(&self) -> Option<Need> {
        if self.extents.wants_refill() {
            return Some(Need::Extents);
        }
        // Room for the account of the next client, and the server's own.
        (self.accounts.free_entries() < 2).then_some(Need::Accounts)
    }

    /// Adds a region. Fails if it is smaller than a block, overlaps another one or is not aligned.
    pub fn add(&mut self, region: Region) -> Result<(), Error> {
        let aligned = region.size_bits <= UNTYPED_MAX_BITS && region.address.is_multiple_of(1 << region.size_bits);
        if region.size_bits < MIN_BLOCK_BITS || !aligned || self.regions.is_full() {
            return Err(Error::BadSize);
        }
        self.extents.add(region.address, 1 << region.size_bits).map_err(|_| Error::BadSize)?;
        let index = self.regions.partition_point(|other| other.address < region.address);
        self.regions.insert(index, region);
        Ok(())
    }

    /// Returns the regions, in order of their addresses.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Returns the region that contains an address.
    pub fn region_of(&self, address: u64) -> Option<Region> {
        let index = self.regions.partition_point(|region| region.address <= address).checked_sub(1)?;
        let region = *self.regions.get(index)?;
        (address - region.address < 1 << region.size_bits).then_some(region)
    }

    /// Allocates a block, and enters it under the slot where its capability is to be.
    pub fn allocate(&mut self, request: &Request, slot: CapAddress) -> Result<Block, Error> {
        let Request { holder, account: number, base, limit, .. } = *request;
        if request.size_bits > u64::from(UNTYPED_MAX_BITS) || request.align_bits > u64::from(UNTYPED_MAX_BITS) {
            return Err(Error::BadSize);
        }
        let size_bits = (request.size_bits as u32).max(MIN_BLOCK_BITS);
        let size = 1 << size_bits;
        if self.blocks.len() <= slot.0 as usize || self.blocks.get(slot).is_some() {
            return Err(Error::TooManyBlocks);
        }
        let account = self.accounts.open(number).ok_or(Error::TooManyBlocks)?;
        if account.has_ended {
            return Err(Error::Ended);
        }
        if account.left() < size || account.above.is_some() && !self.allows(number, size) {
            self.accounts.close(number);
            return Err(Error::QuotaExceeded);
        }
        let align = size.max(1 << request.align_bits);
        let limit = if limit == 0 { u64::MAX } else { limit };
        let tag = u64::from(slot.0);
        let address = match self.extents.alloc_from_range_aligned(base, limit, size, align, tag) {
            Ok(address) => address,
            Err(error) => {
                self.accounts.close(number);
                return Err(no_extent(error));
            }
        };
        let block = Block { address, size_bits, holder, account: number };
        if let Some(account) = self.accounts.get_mut(number) {
            account.used += size;
            self.families.join(account, request.family);
            account.blocks += 1;
            self.families.add(account, 1);
            self.blocks.insert(&mut account.head, slot, block);
            if account.above.is_some() {
                self.accounts.grown(number, size);
            }
        }
        Ok(block)
    }

    /// Returns the block with this number, and its slot, which has the same number. Fails if `holder` may not free it.
    pub fn block(&self, holder: u64, number: u16) -> Result<(CapAddress, Block), Error> {
        let slot = CapAddress(number.into());
        let block = self.blocks.get(slot).filter(|block| block.holder == holder);
        Ok((slot, block.ok_or(Error::NoSuchBlock)?))
    }

    /// Returns the number of the block at an address.
    pub fn number_at(&self, address: u64) -> Option<u16> {
        let number = self.extents.find(address)?.tag as u16;
        self.blocks.get(CapAddress(number.into())).filter(|block| block.address == address).map(|_| number)
    }

    /// Returns whether a block is entered under a slot.
    pub fn holds(&self, slot: CapAddress) -> bool {
        self.blocks.get(slot).is_some()
    }

    /// Frees the memory of the block in a slot.
    pub fn release(&mut self, slot: CapAddress) -> Result<Block, Error> {
        let block = self.blocks.get(slot).ok_or(Error::NoSuchBlock)?;
        self.extents.free(block.address, block.size()).map_err(|_| Error::Internal)?;
        if let Some(account) = self.accounts.get_mut(block.account) {
            self.blocks.remove(&mut account.head, slot);
            account.used -= block.size();
            account.blocks -= 1;
            self.families.remove(account, 1);
            if account.above.is_some() {
                self.accounts.shrunk(block.account, block.size());
            }
        }
        Ok(block)
    }

    /// Checks that the block in a slot could be divided, with the upper half in another slot.
    pub fn check_divide(&self, slot: CapAddress, upper: CapAddress) -> Result<(), Error> {
        let block = self.blocks.get(slot).ok_or(Error::NoSuchBlock)?;
        if block.size_bits <= MIN_BLOCK_BITS {
            return Err(Error::BadSize);
        }
        let has_entry = self.blocks.len() > upper.0 as usize && self.blocks.get(upper).is_none();
        if has_entry && self.extents.can_split() { Ok(()) } else { Err(Error::TooManyBlocks) }
    }

    /// Divides a block. Returns the lower half, which keeps the slot.
    pub fn divide(&mut self, slot: CapAddress, upper: CapAddress) -> Result<Block, Error> {
        self.check_divide(slot, upper)?;
        let lower = self.blocks.halve(slot).ok_or(Error::NoSuchBlock)?;
        let half = Block { address: lower.address + lower.size(), ..lower };
        self.extents.split(lower.address, lower.size(), u64::from(upper.0)).map_err(|_| Error::Internal)?;
        if let Some(account) = self.accounts.get_mut(lower.account) {
            account.blocks += 1;
            self.families.add(account, 1);
            self.blocks.insert(&mut account.head, upper, half);
        }
        Ok(lower)
    }

    /// Moves the block in a slot to another account, whose owner may free it from now on, whatever its quota. Fails
    /// with `TooManyBlocks`.
    pub fn pass(&mut self, slot: CapAddress, to: u64) -> Result<(), Error> {
        let block = self.blocks.get(slot).ok_or(Error::NoSuchBlock)?;
        self.accounts.open(to).ok_or(Error::TooManyBlocks)?;
        if let Some(account) = self.accounts.get_mut(block.account) {
            self.blocks.remove(&mut account.head, slot);
            account.used -= block.size();
            account.blocks -= 1;
            self.families.remove(account, 1);
        }
        self.accounts.shrunk(block.account, block.size());
        self.accounts.grown(to, block.size());
        if let Some(account) = self.accounts.get_mut(to) {
            account.used += block.size();
            account.blocks += 1;
            self.families.add(account, 1);
            self.blocks.insert(&mut account.head, slot, Block { holder: to, account: to, ..block });
        }
        Ok(())
    }

    /// Returns how many slots count for a client that requests one more: those of its whole family, as far as known.
    pub fn share(&self, account: u64, family: u64) -> u64 {
        self.families.share(self.accounts.get(account), family)
    }

    /// Returns the account's block with the lowest number above `after`, and its slot.
    pub fn next_of(&self, account: u64, after: u16) -> Option<(CapAddress, Block)> {
        let blocks = self.blocks.list(self.accounts.get(account)?.head);
        blocks.filter(|(slot, _)| slot.0 > after.into()).min_by_key(|(slot, _)| slot.0)
    }

    /// Returns one of an account's blocks, and its slot.
    pub fn first_of(&self, account: u64) -> Option<(CapAddress, Block)> {
        let slot = self.accounts.get(account)?.head.first()?;
        Some((slot, self.blocks.get(slot)?))
    }

    /// Charges objects in slabs, and their bytes, to a client's account and family. Fails with `QuotaExceeded` or
    /// `TooManyBlocks`.
    pub fn charge(
        &mut self,
        Client { process: number, family }: Client,
        bytes: u64,
        objects: u16,
    ) -> Result<(), Error> {
        let account = self.accounts.open(number).ok_or(Error::TooManyBlocks)?;
        if account.has_ended {
            return Err(Error::Ended);
        }
        if account.left() < bytes || account.above.is_some() && !self.allows(number, bytes) {
            self.accounts.close(number);
            return Err(Error::QuotaExceeded);
        }
        if let Some(account) = self.accounts.get_mut(number) {
            account.objects += bytes;
            self.families.join(account, family);
            account.object_slots += objects;
            self.families.add(account, objects.into());
        }
        self.accounts.grown(number, bytes);
        Ok(())
    }

    /// Reverses a [charge](Self::charge).
    pub fn credit(&mut self, number: u64, bytes: u64, objects: u16) {
        if let Some(account) = self.accounts.get_mut(number) {
            let bytes = bytes.min(account.objects);
            account.objects -= bytes;
            let objects = objects.min(account.object_slots);
            account.object_slots -= objects;
            self.families.remove(account, objects.into());
            self.accounts.shrunk(number, bytes);
        }
        self.accounts.close(number);
    }

    /// Notes that the process of an account has ended: nothing more is charged to it, and its blocks are about to be
    /// freed.
    pub fn mark_ended(&mut self, number: u64) {
        if let Some(account) = self.accounts.get_mut(number).filter(|account| !NEVER_ENDS.contains(&account.number)) {
            account.has_ended = true;
        }
    }

    /// Returns whether a client may request memory: its process has not ended. Every running process that the process
    /// server has started has an account, to which its own objects are charged. The processes of the system's start may
    /// have none, and the unbadged capability belongs to no process.
    pub fn is_served(&self, number: u64) -> bool {
        pid::split_pid(number).1 <= pid::PROCS || self.accounts.get(number).is_some_and(|account| !account.has_ended)
    }

    /// Returns whether an account may have `bytes` more, as far as it and those above it have limits.
    fn allows(&self, number: u64, bytes: u64) -> bool {
        self.accounts.get(number).is_some_and(|account| self.accounts.left(account) >= bytes)
    }

    /// Returns how many bytes an account may have in all, if no other account below the same limits takes more.
    pub fn limit(&self, account: &Account) -> u64 {
        self.accounts.left(account).saturating_add(account.own())
    }

    /// Opens the account of a process below that of another, with a limit. Fails with `TooManyBlocks` or `TooDeep`.
    pub fn open_below(&mut self, account: u64, parent: u64, quota: u64) -> Result<(), Error> {
        self.accounts.open_below(account, parent, quota)
    }

    /// Closes the account of an ended process, which must be empty, as soon as no other account names it.
    pub fn close(&mut self, account: u64) {
        if self.accounts.get(account).is_some_and(Account::is_empty) {
            self.accounts.remove(account);
        }
    }

    /// Closes an account that is empty and has no quota.
    pub fn close_unused(&mut self, account: u64) {
        self.accounts.close(account);
    }

    /// Begins to let the extents' array grow, if that is due and not under way; until [`end_refill`](Self::end_refill),
    /// allocations come out of the reserve. Returns whether it began.
    #[must_use]
    pub fn begin_refill(&mut self) -> bool {
        self.extents.begin_refill()
    }

    /// Ends what [`begin_refill`](Self::begin_refill) began.
    pub const fn end_refill(&mut self) {
        self.extents.end_refill();
    }

    /// Sets how many bytes an account may use, together with those that are opened below it from now on. Blocks in use
    /// beyond the quota stay.
    pub fn set_quota(&mut self, account: u64, quota: u64) -> Result<(), Error> {
        self.accounts.open(account).ok_or(Error::TooManyBlocks)?.quota = quota;
        Ok(())
    }

    /// Returns an open account.
    pub fn account(&self, number: u64) -> Option<&Account> {
        self.accounts.get(number)
    }

    /// Returns the account with the lowest number above `after`.
    pub fn next_account(&self, after: u64) -> Option<&Account> {
        self.accounts.next(after)
    }

    /// Returns the extents that end above an address, in order of addresses: address, bytes, and the account of a used
    /// one.
    pub fn extents(&self, from: u64) -> impl Iterator<Item = (u64, u64, Option<u64>)> {
        let account = |tag: u64| self.blocks.get(CapAddress(tag as u32)).map_or(0, |block| block.account);
        self.extents.extents(from).map(move |extent| (extent.base, extent.size, extent.tag.map(account)))
    }

    /// Returns the sums over everything.
    pub fn totals(&self) -> Totals {
        let totals = self.extents.totals();
        Totals {
            total: totals.free + totals.used,
            free: totals.free,
            largest: totals.largest,
            blocks: totals.blocks as u64,
            accounts: self.accounts.len() as u64,
        }
    }

    /// Panics if an account's sums over those below it are wrong.
    fn check_limits(&self) {
        for account in self.accounts.all() {
            let named = |other: &&Account| other.above == Some(account.number);
            let members = self.accounts.all().iter().filter(named);
            let (count, below) =
                members.fold((0, 0), |(count, bytes), other| (count + 1, bytes + other.own() + other.below));
            assert_eq!((account.members, account.below), (count, below), "what is below an account");
            let is_left = count > 0 || !account.is_empty();
            assert!(!account.has_ended || is_left, "of who has ended, the limit stays, and what is not freed yet");
            let above = account.above.and_then(|above| self.accounts.get(above));
            assert_eq!(above.map_or(0, |above| above.depth + 1), account.depth, "limits above");
            assert!(account.above.is_none() == above.is_none() && account.depth <= MAX_DEPTH);
        }
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.extents.check_invariants();
        let mut used = 0;
        for (slot, block) in self.blocks.all() {
            let extent = self.extents.find(block.address);
            let extent = extent.map(|extent| (extent.base, extent.size, extent.tag));
            assert_eq!(extent, Some((block.address, block.size(), u64::from(slot.0))), "a block is a used extent");
            assert!(self.accounts.get(block.account).is_some(), "a block is on an account");
            used += 1;
        }
        assert_eq!(used, self.totals().blocks, "every used extent is a block");
        let mut listed = 0;
        for account in self.accounts.all() {
            let (mut bytes, mut blocks) = (0, 0);
            for (_, block) in self.blocks.list(account.head) {
                assert_eq!(block.account, account.number, "a list holds blocks of its account");
                bytes += block.size();
                blocks += 1;
            }
            assert_eq!((account.used, account.blocks), (bytes, blocks), "an account is the sum of its list");
            listed += blocks;
        }
        assert_eq!(listed, used, "every block is in a list");
        self.families.check_invariants(self.accounts.all().iter());
        self.check_limits();
    }
}
