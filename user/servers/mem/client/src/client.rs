//! Typed requests to the memory server.

use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_protocol::{call, call_words};
use tench_sys::{Cap, Endpoint, Message, Untyped, offer_slots};

use crate::Failure;
use crate::protocol::{Label, MAX_EXTENTS, USED};

/// The memory server.
#[derive(Clone, Copy, Debug)]
pub struct Mem {
    pub(crate) endpoint: Cap<Endpoint>,
}

/// Memory that was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The untyped.
    pub untyped: Cap<Untyped>,
    /// Its physical address, by which it is freed.
    pub address: u64,
    /// Log2 of its size in bytes.
    pub size_bits: u32,
}

/// All memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes in all.
    pub total: u64,
    /// Free bytes.
    pub free: u64,
    /// Bytes of the largest free block.
    pub largest: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Accounts.
    pub accounts: u64,
}

/// What a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The process.
    pub process: u64,
    /// Bytes in use, without those of slabs.
    pub used: u64,
    /// Bytes that may be in use.
    pub quota: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Bytes of objects in slabs, for which the quota counts, too.
    pub objects: u64,
}

/// Memory in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

/// The server's books beside the kernel's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// What the books say.
    pub books: InUse,
    /// What the kernel says.
    pub kernel: InUse,
}

/// Where a block may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Log2 of the alignment; 0 stands for the block's size.
    pub align_bits: u32,
    /// Lowest physical address.
    pub base: u64,
    /// First physical address above; 0 stands for no limit.
    pub limit: u64,
}

/// Physical memory that belongs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Physical address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Who has it; nobody has what is free.
    pub account: Option<u64>,
}

impl Mem {
    /// The memory server as every process finds it.
    pub const STANDARD: Mem = Mem { endpoint: Cap::new(slot::MEM) };

    /// The memory server behind an endpoint.
    pub const fn at(endpoint: Cap<Endpoint>) -> Mem {
        Mem { endpoint }
    }

    /// Allocates at least 2^`size_bits` bytes. The untyped goes to the empty slot `slot`.
    pub fn allocate(self, size_bits: u32, slot: CapAddress) -> Result<Block, Failure> {
        self.allocate_within(size_bits, Within::default(), slot)
    }

    /// The same where it is wanted: a device may reach low addresses only, say.
    pub fn allocate_within(self, size_bits: u32, within: Within, slot: CapAddress) -> Result<Block, Failure> {
        let words = [u64::from(size_bits), u64::from(within.align_bits), within.base, within.limit];
        self.take(Message::with_words(Label::Allocate as u64, &words), slot)
    }

    /// The same on another process's account. Needs authority.
    pub fn allocate_for(self, account: u64, size_bits: u32, slot: CapAddress) -> Result<Block, Failure> {
        self.take(Message::with_words(Label::AllocateFor as u64, &[account, u64::from(size_bits)]), slot)
    }

    fn take(self, request: Message, slot: CapAddress) -> Result<Block, Failure> {
        offer_slots(&[slot]);
        let reply = call(self.endpoint, &request);
        // What is not offered cannot arrive by surprise.
        offer_slots(&[]);
        let reply = reply?;
        match *reply.caps() {
            [cap] => Ok(Block { untyped: Cap::new(cap), address: reply.word(0), size_bits: reply.word(1) as u32 }),
            _ => Err(Failure::Malformed),
        }
    }

    /// Frees the block at `address`; everything made from it is deleted. Answers the bytes that became free.
    pub fn free(self, address: u64) -> Result<u64, Failure> {
        Ok(call_words(self.endpoint, Label::Free as u64, [address, 0, 0, 0])?[0])
    }

    /// Divides the block at `address` into its halves, each a block of its own from now on. The untyped that was given
    /// for it must have been divided before. Answers log2 of the size of a half.
    pub fn divide(self, address: u64) -> Result<u32, Failure> {
        Ok(call_words(self.endpoint, Label::Divide as u64, [address, 0, 0, 0])?[0] as u32)
    }

    /// What lies from an address on, in order of addresses: the first few extents. None follows after the last.
    pub fn extents(self, from: u64, found: &mut [Extent; MAX_EXTENTS]) -> Result<usize, Failure> {
        let reply = call(self.endpoint, &Message::with_words(Label::Extents as u64, &[from]))?;
        let words = reply.words().chunks_exact(4);
        let count = words.len().min(found.len());
        for (extent, word) in found.iter_mut().zip(words) {
            let account = (word[2] == USED).then_some(word[3]);
            *extent = Extent { address: word[0], size: word[1], account };
        }
        Ok(count)
    }

    /// All memory.
    pub fn totals(self) -> Result<Totals, Failure> {
        let [total, free, largest, blocks, accounts, ..] = call_words(self.endpoint, Label::Totals as u64, [0; 4])?;
        Ok(Totals { total, free, largest, blocks, accounts })
    }

    /// The books beside the kernel's account of the same memory: they are equal, or something is wrong.
    pub fn audit(self) -> Result<Audit, Failure> {
        let [bytes, blocks, kernel_bytes, objects, ..] = call_words(self.endpoint, Label::Audit as u64, [0; 4])?;
        Ok(Audit { books: InUse { bytes, blocks }, kernel: InUse { bytes: kernel_bytes, blocks: objects } })
    }

    /// The account of the next process after `after`, or `NoSuchAccount`.
    pub fn next_account(self, after: u64) -> Result<Account, Failure> {
        let [process, used, quota, blocks, objects, ..] =
            call_words(self.endpoint, Label::NextAccount as u64, [after, 0, 0, 0])?;
        Ok(Account { process, used, quota, blocks, objects })
    }

    /// Sets how many bytes a process may use. Needs authority.
    pub fn set_quota(self, account: u64, bytes: u64) -> Result<(), Failure> {
        call_words(self.endpoint, Label::SetQuota as u64, [account, bytes, 0, 0]).map(drop)
    }

    /// Takes back everything that is on an account. Answers the bytes that became free. Needs authority.
    pub fn close_account(self, account: u64) -> Result<u64, Failure> {
        Ok(call_words(self.endpoint, Label::CloseAccount as u64, [account, 0, 0, 0])?[0])
    }
}
