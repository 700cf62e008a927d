//! Conveniences on top of the requests.

use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_abi::power::Client;
use tench_protocol::Transport;
use tench_sys::{Cap, Untyped};

use crate::Failure;
use crate::protocol::{Error, Extent, Granted, MAX_EXTENTS, Mem, Within};

/// Memory that was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Capability to its memory.
    pub untyped: Cap<Untyped>,
    /// Number by which it is freed.
    pub number: u16,
    /// Log2 of its size in bytes.
    pub size_bits: u32,
}

impl Mem {
    /// The memory server, in the slot where every process finds it.
    pub const STANDARD: Mem = Mem::at(Cap::new(slot::MEM));
}

impl<Way: Transport> Mem<Way> {
    /// Allocates at least 2^`size_bits` bytes. The untyped capability goes to the empty slot `slot`.
    pub fn allocate(self, size_bits: u32, slot: CapAddress) -> Result<Block, Failure> {
        self.allocate_within(size_bits, Within::default(), slot)
    }

    /// Allocates memory within a range: a device may reach low addresses only, say.
    pub fn allocate_within(self, size_bits: u32, within: Within, slot: CapAddress) -> Result<Block, Failure> {
        self.give(size_bits, within, slot).map(block)
    }

    /// Allocates memory on another process's account. Needs authority.
    pub fn allocate_for(self, owner: Client, size_bits: u32, slot: CapAddress) -> Result<Block, Failure> {
        self.give_for(owner.process, owner.family, size_bits, slot).map(block)
    }

    /// Frees the block with this number, and deletes what was made of it. Returns the bytes.
    pub fn free(self, number: u16) -> Result<u64, Failure> {
        to_its_end(|| self.free_part(number))
    }

    /// Frees everything on an account. Needs authority.
    pub fn close_account(self, account: u64) -> Result<(), Failure> {
        to_its_end(|| self.close_account_part(account))
    }

    /// Frees a block of which other cores had a part. Returns the bytes. Needs the power `memory`.
    pub fn reclaim(self, number: u16) -> Result<u64, Failure> {
        to_its_end(|| self.reclaim_part(number))
    }

    /// Gets the first few extents from an address on, in order of addresses, and returns how many; none after the last.
    pub fn extents(self, from: u64, found: &mut [Extent; MAX_EXTENTS]) -> Result<usize, Failure> {
        let list = self.describe(from)?;
        found[..list.len()].copy_from_slice(&list);
        Ok(list.len())
    }
}

/// Requests one part after another, until nothing is left to do.
fn to_its_end<T>(part: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    loop {
        match part() {
            Err(Failure::Refused(Error::Unfinished)) => {}
            end => return end,
        }
    }
}

/// Returns a block with its capability.
const fn block((granted, untyped): (Granted, Cap<Untyped>)) -> Block {
    Block { untyped, number: granted.number, size_bits: granted.size_bits }
}
