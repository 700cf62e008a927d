//! The interface of the memory server's slabs.

use tench_protocol::{Arrived, Bytes, Caller, List, Powers, Words, interface};
use tench_sys::{CapAddress, CapNode};

pub use tench_mem_interface::protocol::Error;

/// Memory in the manner of seL4's untyped objects, given in bundles. Purpose: docs/manual/policies.md.
///
/// A process with the power `memory` sets slabs up; from then on every process can request bundles. The memory server
/// makes the objects, chooses the slab by its policy, and keeps a ledger that can be compared with the kernel's
/// account.
#[interface(client = Slabs, version = 1)]
pub trait SlabsService {
    /// Sets slabs up, of these sizes (log2), for dynamic and for static objects. Returns their number.
    /// Errors: `OutOfMemory`, `BadSize`, `SlabsInUse` (there are some).
    #[method(1, power(MEMORY))]
    fn set_up(&mut self, dynamic: List<u8, MAX_SLABS>, statics: List<u8, MAX_SLABS>) -> Result<u64, Error>;

    /// Frees the memory of the slabs.
    /// Errors: `NoSlabs`, `SlabsInUse` (objects exist in them).
    #[method(2, power(MEMORY))]
    fn take_down(&mut self) -> Result<(), Error>;

    /// Grants a bundle, whole or not at all: descriptors as words ([`Descriptor`](crate::slabs::Descriptor)), dynamic
    /// objects or static ones. The objects stay with the server. The sums in the reply are 0 without the power
    /// `memory`.
    /// Errors: `OutOfMemory`, `BadSize`, `NoSlabs`, `TooManyBlocks`, `QuotaExceeded`.
    #[method(3)]
    fn grant(
        &mut self,
        caller: Caller,
        powers: Powers,
        is_static: bool,
        descriptors: List<u64, MAX_DESCRIPTORS>,
    ) -> Result<Bundle, Error>;

    /// Grants a bundle as `grant` does, and copies the objects' capabilities to adjacent slots of a CSpace, from this
    /// one on.
    /// Errors: as `grant`, and `NoSuchSlot`.
    #[method(4)]
    fn grant_to(
        &mut self,
        caller: Caller,
        powers: Powers,
        is_static: bool,
        first: CapAddress,
        descriptors: List<u64, MAX_DESCRIPTORS>,
        cspace: Arrived<'_, CapNode>,
    ) -> Result<Bundle, Error>;

    /// Frees a bundle: its objects are deleted. Returns the same as `grant`.
    /// Errors: `NoSlabs`, `NoSuchBundle`.
    #[method(5)]
    fn free(&mut self, caller: Caller, powers: Powers, number: u64) -> Result<Figures, Error>;

    /// Returns the server's ledger entry of a slab.
    /// Errors: `NoSlabs`, `NoSuchSlab`.
    #[method(6, power(MEMORY))]
    fn ledger(&mut self, number: u64) -> Result<LedgerEntry, Error>;

    /// Returns the kernel's account of a slab.
    /// Errors: `NoSlabs`, `NoSuchSlab`.
    #[method(7, power(MEMORY))]
    fn kernel(&mut self, number: u64) -> Result<KernelAccount, Error>;

    /// Returns the policy's code, and whether the watermark rule is lifted.
    /// Errors: `NoSlabs`.
    #[method(8)]
    fn policy(&mut self) -> Result<(u64, bool), Error>;

    /// Changes the policy, and resets the counters.
    /// Errors: `NoSlabs`, `NoSuchPolicy`, `SlabsInUse` (lifting the rule, or not, while objects exist).
    #[method(9, power(MEMORY))]
    fn set_policy(&mut self, code: u64, lifted: bool) -> Result<(), Error>;

    /// Starts a new recording of requests as a trace, or stops it. Returns the number of bytes recorded.
    /// Errors: `OutOfMemory`.
    #[method(10, power(MEMORY))]
    fn record(&mut self, on: bool) -> Result<u64, Error>;

    /// Returns a part of the recording, from an offset in bytes on.
    #[method(11, power(MEMORY))]
    fn read_part(&mut self, offset: u64) -> Result<Bytes<'_, TRACE_BYTES>, Error>;

    /// Returns sums over all slabs.
    /// Errors: `NoSlabs`.
    #[method(12, power(MEMORY))]
    fn figures(&mut self) -> Result<Figures, Error>;
}

/// Sums over all slabs, after a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Figures {
    /// Bytes in live objects.
    pub live: u64,
    /// Live objects.
    pub objects: u64,
    /// Bytes lost to the watermark rule.
    pub watermark_loss: u64,
    /// Bytes lost to alignment.
    pub align_loss: u64,
    /// Slab resets since the policy was set.
    pub resets: u64,
    /// Retypes that failed since then.
    pub failed_retypes: u64,
    /// Bundles that found no room since then.
    pub out_of_memory: u64,
    /// Bytes of the bundles that were granted since then.
    pub requested: u64,
    /// Free bytes below the highest object of each slab.
    pub gaps: u64,
}

/// The server's ledger entry of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct LedgerEntry {
    /// Physical address.
    pub address: u64,
    /// Log2 of its size in bytes.
    pub size_bits: u32,
    /// Bytes below the watermark.
    pub watermark: u64,
    /// Live objects.
    pub objects: u64,
    /// Bytes in them.
    pub live: u64,
    /// Bytes lost to alignment.
    pub align_loss: u64,
    /// Bytes lost to the watermark rule.
    pub watermark_loss: u64,
    /// Number of times that it became empty.
    pub resets: u64,
}

/// The kernel's account of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct KernelAccount {
    /// Bytes below the watermark.
    pub watermark: u64,
    /// Live objects.
    pub objects: u64,
    /// Bytes in them.
    pub live: u64,
}

/// A bundle that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Bundle {
    /// Number of the bundle, by which it is freed.
    pub number: u64,
    /// Sums over the slabs afterwards.
    pub figures: Figures,
}

/// Maximum number of slabs of each lifetime.
pub const MAX_SLABS: usize = 31;
/// Maximum number of descriptors in a bundle, which has at most 256 objects.
pub const MAX_DESCRIPTORS: usize = 32;
/// Bytes of a trace in one reply.
pub const TRACE_BYTES: usize = 63 * 8;
