//! What travels between the memory server and its clients.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise an
//! [`Error`]; its words are the results. A client is known by the badge of its capability, which is also the number of
//! its account. The capability without a badge is the authority over all accounts; `init` and the process server hold
//! it.

tench_protocol::codes! {
    /// What can be asked.
    pub enum Label {
        /// **Allocate** a block. Words: log2 of its size in bytes; then, if it matters where it lies, log2 of its
        /// alignment (0: its size), the lowest address and the first address above (0: no limit).
        /// Answers the physical address, which names the block from now on, and log2 of the size that was granted; one
        /// capability, to an untyped. Errors: `BadSize`, `OutOfMemory`, `QuotaExceeded`, `TooManyBlocks`.
        Allocate = 1;
        /// **Free** a block: everything made from it is deleted. Words: its physical address.
        /// Answers the bytes that became free. Errors: `NoSuchBlock` (also for a block that somebody else allocated).
        Free = 2;
        /// **Totals**. Answers bytes in all, free bytes, bytes of the largest free block, blocks in use, accounts.
        Totals = 3;
        /// **Next account**. Words: a number. Answers the account with the next higher number: number, bytes in
        /// blocks, quota in bytes, blocks, bytes of objects in slabs; the quota is for both together.
        /// Errors: `NoSuchAccount` when there is none.
        NextAccount = 4;
        /// **Allocate for** another account. Words: account, log2 of size. Answers and errors as `Allocate`.
        /// Needs authority.
        AllocateFor = 5;
        /// **Set the quota** of an account, which is opened if need be. Words: account, bytes. Needs authority.
        SetQuota = 6;
        /// **Close** an account: every block of it is freed. Words: account. Answers the bytes that became free. An
        /// account that does not exist is no error. Needs authority.
        CloseAccount = 7;
        /// **Describe** what lies from an address on. Words: address. Answers up to [`MAX_EXTENTS`] times four words, in
        /// order of addresses: physical address, bytes, [`USED`] or [`FREE`], and the account of what is used. None
        /// follows after the last.
        Extents = 8;
        /// **Divide** a block into its halves, each a block of its own from now on, so that part of it can be freed
        /// while the rest stays in use. Words: its physical address. Its owner divides the untyped with `UntypedSplit`
        /// before. Answers log2 of the size of a half. Errors: `NoSuchBlock`, `NotDivided`, `BadSize` (a half would be
        /// too small for a block), `TooManyBlocks`.
        Divide = 9;
        /// **Audit**: what the server's books say of all blocks in use, and what the kernel says was made of the same
        /// memory. Answers bytes and blocks by the books, then bytes and objects by the kernel. They are equal.
        Audit = 10;
    }
}

/// Log2 of the smallest block. Smaller requests are rounded up.
pub const MIN_BLOCK_BITS: u32 = 12;
/// Extents that one answer describes at most.
pub const MAX_EXTENTS: usize = 16;
/// State of an extent that nobody has.
pub const FREE: u64 = 0;
/// State of an extent that is on an account.
pub const USED: u64 = 1;
/// Quota of an account for which none was set.
pub const NO_QUOTA: u64 = u64::MAX;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The label or the number of words is wrong.
        BadRequest = 1, "the memory server does not know this request; see its protocol";
        /// No block can have this size.
        BadSize = 2, "no memory block can have this size; ask for 2^12 to 2^47 bytes";
        /// No free block is large enough.
        OutOfMemory = 3, "no free block is large enough; free memory or ask for smaller blocks";
        /// The account's quota does not allow it.
        QuotaExceeded = 4, "the quota does not allow it; free memory or ask for a higher quota";
        /// The server's table of blocks is full.
        TooManyBlocks = 5, "the memory server's table is full; ask for fewer and larger blocks";
        /// There is no such block, or it is not yours.
        NoSuchBlock = 6, "no such block, or another process allocated it; name the address that was answered";
        /// There is no such account.
        NoSuchAccount = 7, "no account with this number or a higher one";
        /// The request needs the capability without a badge.
        NotAllowed = 8, "only the process server may do this";
        /// The kernel refused an operation that the server's books say is possible.
        Internal = 9, "the kernel contradicts the memory server's books; this is a defect";
        /// A block is to be divided, and something in it lies across its middle.
        NotDivided = 10, "something lies across the block's middle; divide the untyped that you were given first";
        /// There are no slabs.
        NoSlabs = 11, "no slabs are set up; memctl slabs sets some up";
        /// There is no slab with this number.
        NoSuchSlab = 12, "no slab with this number; memctl status lists them";
        /// There are slabs already, or objects live in them.
        SlabsInUse = 13, "the slabs are in use; end the programs that have objects in them, or take the slabs down first";
        /// There is no such bundle, or it is not yours.
        NoSuchBundle = 14, "no such bundle, or another process asked for it";
        /// The objects' capabilities could not be put where the client wants them.
        NoSuchSlot = 15, "the slots for the bundle's objects are not empty slots of one node of that space";
    }
}
