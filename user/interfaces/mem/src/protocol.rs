//! The memory server's interfaces.
//!
//! A client is identified by the badge of its capability, whose process is also the number of its account. The unbadged
//! capability is the authority over all accounts; `init` and the process server hold it. Physical addresses, the
//! figures of other accounts, and the choice of addresses are reserved for processes with the power `memory`.

use tench_protocol::{Arrived, Caller, Given, List, Powers, Sent, Words, interface};
use tench_sys::Untyped;

/// Blocks of physical memory.
#[interface(client = Mem, version = 3)]
pub trait MemService {
    /// Allocates a block of at least `1 << size_bits` bytes. Its number names it from now on. (Only the process server
    /// can allocate on another account.) A range of addresses, or an alignment to more than its size, needs the power
    /// `memory`.
    /// Errors: `BadSize`, `BadRange`, `OutOfMemory`, `QuotaExceeded`, `TooManyBlocks`, `NotAllowed`, `Ended`.
    #[method(1)]
    fn give(
        &mut self,
        caller: Caller,
        powers: Powers,
        size_bits: u32,
        within: Within,
    ) -> Result<(Granted, Sent<Untyped, Given>), Error>;

    /// Allocates a block on another account, whose owner is of this family.
    #[method(2, authority)]
    fn give_for(
        &mut self,
        caller: Caller,
        account: u64,
        family: u64,
        size_bits: u32,
    ) -> Result<(Granted, Sent<Untyped, Given>), Error>;

    /// Frees the block with this number: everything made from it is deleted. Returns the number of bytes freed. The
    /// server does only a part at a time, so that it can serve others; the client's `free` repeats the request until it
    /// is done.
    /// Errors: `NoSuchBlock` (also for a block that another process allocated), `Abroad` (all that was made from it on
    /// this core is deleted, and the block stays), `Unfinished`.
    #[method(3)]
    fn free_part(&mut self, caller: Caller, number: u16) -> Result<u64, Error>;

    /// Divides a block into its halves, each a block of its own from now on, so that part of it can be freed while the
    /// rest stays in use. Its owner must divide the untyped with `UntypedSplit` before. The lower half keeps the
    /// number; returns the number of the upper half, and log2 of the size of each.
    /// Errors: `NoSuchBlock`, `NotDivided`, `BadSize` (a half would be too small for a block), `TooManyBlocks`.
    #[method(4)]
    fn divide(&mut self, caller: Caller, number: u16) -> Result<Granted, Error>;

    /// Returns sums over all memory. Every caller gets the total and the free memory; the rest is 0 without the power
    /// `memory`.
    #[method(5)]
    fn totals(&mut self, powers: Powers) -> Result<Totals, Error>;

    /// Returns the account with the next higher number, of those that the caller may see: its own, or with the power
    /// `memory` all.
    /// Errors: `NoSuchAccount` when there is none.
    #[method(6)]
    fn next_account(&mut self, caller: Caller, powers: Powers, after: u64) -> Result<Account, Error>;

    /// Sets how many bytes a process may use, together with the accounts that are opened below its own from now on; its
    /// account is opened if need be.
    /// Errors: `OutOfMemory`, `TooManyBlocks`.
    #[method(7, authority)]
    fn set_quota(&mut self, account: u64, bytes: u64) -> Result<(), Error>;

    /// Frees everything on an account, or a part of it. A missing account is no error. Blocks of which other cores have
    /// a part move to the account `ABROAD`, until `reclaim` frees them.
    /// Errors: `Unfinished`.
    #[method(8, authority)]
    fn close_account_part(&mut self, account: u64) -> Result<(), Error>;

    /// Returns the extents from an address on, in order of addresses; none after the last.
    #[method(9, power(MEMORY))]
    fn describe(&mut self, from: u64) -> Result<List<Extent, MAX_EXTENTS>, Error>;

    /// Returns the sums over all blocks in use, by the server's ledger and by the kernel. They are equal.
    #[method(10, power(MEMORY))]
    fn audit(&mut self) -> Result<Audit, Error>;

    /// Returns the block with the next higher number that has no owner on this core, but of which other cores had a
    /// part.
    /// Errors: `NoSuchBlock` when there is none.
    #[method(11, power(MEMORY))]
    fn abroad(&mut self, after: u16) -> Result<Granted, Error>;

    /// Frees such a block, when no other core has a part of it any more, or does a part of that. Returns the bytes.
    /// Errors: `NoSuchBlock`, `Abroad`, `Unfinished`.
    #[method(12, power(MEMORY))]
    fn reclaim_part(&mut self, number: u16) -> Result<u64, Error>;

    /// Opens the account of a process below that of another one, its parent: from now on its use counts for every limit
    /// above it, and this limit applies to it and all that are opened below it. A limit that is no lower than the next
    /// above is none of its own (`NO_QUOTA`). Accounts below the parent stay below its limit when the parent has ended.
    /// Errors: `OutOfMemory`, `TooManyBlocks`, `TooDeep`.
    #[method(14, authority)]
    fn open_account(&mut self, account: u64, parent: u64, bytes: u64) -> Result<(), Error>;

    /// Returns the number of the caller's block at a physical address.
    /// Errors: `NoSuchBlock`.
    #[method(15, power(MEMORY))]
    fn number(&mut self, caller: Caller, address: u64) -> Result<u16, Error>;

    /// Returns the address and size of a process's block.
    /// Errors: `NoSuchBlock`.
    #[method(16, power(MEMORY))]
    fn find(&mut self, holder: u64, number: u16) -> Result<Extent, Error>;

    /// Adds unused memory that another core has given. It is the server's from now on.
    /// Errors: `BadSize` (too small, or the table of regions is full), `TooManyBlocks`, `Internal`.
    #[method(13, authority)]
    fn add(&mut self, memory: Arrived<'_, Untyped, Given>) -> Result<(), Error>;
}

/// A block that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Granted {
    /// Number of the block, by which it is freed.
    pub number: u16,
    /// Log2 of its size in bytes.
    pub size_bits: u32,
}

/// Sums over all memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Totals {
    /// Bytes in all.
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

/// A process's use of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Account {
    /// The process.
    pub process: u64,
    /// Bytes in use, without those of slabs.
    pub used: u64,
    /// Bytes that may be in use, considering what the limits above this account leave now.
    pub quota: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Bytes of objects in slabs, which count to the quota, too.
    pub objects: u64,
}

/// Memory in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct InUse {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

/// The server's ledger beside the kernel's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Audit {
    /// Sums of the ledger.
    pub ledger: InUse,
    /// Sums of the kernel.
    pub kernel: InUse,
}

/// Addresses permitted for a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Within {
    /// Log2 of the alignment; 0 stands for the block's size.
    pub align_bits: u32,
    /// Lowest physical address.
    pub base: u64,
    /// First physical address above; 0 stands for no limit.
    pub limit: u64,
}

/// A contiguous extent of physical memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Extent {
    /// Physical address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The account that uses it; `None` if it is free.
    pub account: Option<u64>,
}

/// Log2 of the smallest block. Smaller requests are rounded up.
pub const MIN_BLOCK_BITS: u32 = 12;
/// Maximum number of extents in one reply.
pub const MAX_EXTENTS: usize = 15;
/// The account of blocks whose owners have ended, and of which other cores have a part.
pub const ABROAD: u64 = u64::MAX - 1;
/// Quota of an account for which none was set.
pub const NO_QUOTA: u64 = u64::MAX;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// No policy has this code.
        NoSuchPolicy = 1, "no policy has this code; memctl policies lists them";
        /// No block can have this size.
        BadSize = 2, "no memory block can have this size; ask for 2^12 to 2^47 bytes";
        /// No free block is large enough.
        OutOfMemory = 3, "no free block is large enough; free memory or ask for smaller blocks";
        /// The account's quota does not allow it.
        QuotaExceeded = 4, "the quota does not allow it; free memory or ask for a higher quota";
        /// The server's table of blocks is full.
        TooManyBlocks = 5, "the memory server's table is full; ask for fewer and larger blocks";
        /// There is no such block, or it is not yours.
        NoSuchBlock = 6, "no such block, or another process allocated it; name the address that was returned";
        /// There is no such account.
        NoSuchAccount = 7, "no account with this number or a higher one";
        /// The range ends before it begins.
        BadRange = 8, "the range ends before it begins; name the lowest address and the first address above";
        /// The kernel refused an operation that the server's ledger permits.
        Internal = 9, "the kernel contradicts the memory server's ledger; this is a defect";
        /// A block is to be divided, and an object in it lies across its middle.
        NotDivided = 10, "something lies across the block's middle; divide the untyped that you were given first";
        /// There are no slabs.
        NoSlabs = 11, "no slabs are set up; memctl slabs sets some up";
        /// There is no slab with this number.
        NoSuchSlab = 12, "no slab with this number; memctl status lists them";
        /// There are slabs already, or objects exist in them.
        SlabsInUse = 13, "the slabs are in use; end the programs that have objects in them, or take the slabs down first";
        /// There is no such bundle, or it is not yours.
        NoSuchBundle = 14, "no such bundle, or another process asked for it";
        /// The objects' capabilities could not be put where the client wants them.
        NoSuchSlot = 15, "the slots for the bundle's objects are not empty slots of one node of that CSpace";
        /// Other cores have something that was made of the block.
        Abroad = 16, "other cores have something of this memory; take it back first";
        /// Choosing addresses needs the power `memory`.
        NotAllowed = 17, "only those with the power memory choose addresses; ask for memory anywhere, or to be given the power";
        /// There would be more limits above the account than the server follows.
        TooDeep = 18, "too many limits lie within each other; start the program with the limit that its parent has";
        /// A part is done, and there is more to do.
        Unfinished = 19, "a part of it is done; ask again to go on";
        /// The process that the capability was given to has ended.
        Ended = 20, "the process that this capability was made for has ended; use your own";
    }
}
