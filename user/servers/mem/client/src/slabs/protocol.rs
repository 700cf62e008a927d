//! The interface of the memory server's slabs.

use tench_protocol::{Arrived, Bytes, Caller, List, Powers, Words, interface};
use tench_sys::{CapAddress, CapNode};

pub use tench_mem_client::protocol::Error;

/// Memory in the manner of seL4's untyped objects, given in bundles. What for: docs/manual/policies.md.
///
/// Somebody with the power `memory` sets slabs up; from then on every process can ask for bundles. The memory server
/// makes the objects, chooses the slab by its policy, and keeps the books, which can be compared with the kernel's.
#[interface(client = Slabs, version = 1)]
pub trait SlabsService {
    /// Sets slabs up, of these sizes (log2), for dynamic and for static objects. Answers their number.
    /// Errors: `OutOfMemory`, `BadSize`, `SlabsInUse` (there are some).
    #[method(1, power(MEMORY))]
    fn set_up(&mut self, dynamic: List<u8, MAX_SLABS>, statics: List<u8, MAX_SLABS>) -> Result<u64, Error>;

    /// Takes the slabs down: their memory is free again.
    /// Errors: `NoSlabs`, `SlabsInUse` (objects live in them).
    #[method(2, power(MEMORY))]
    fn take_down(&mut self) -> Result<(), Error>;

    /// Grants a bundle, whole or not at all: descriptors as words ([`Descriptor`](crate::slabs::Descriptor)), dynamic
    /// objects or static ones. The objects stay with the server. The sums in the answer are 0 for those without the
    /// power `memory`.
    /// Errors: `OutOfMemory`, `BadSize`, `NoSlabs`, `TooManyBlocks`, `QuotaExceeded`.
    #[method(3)]
    fn grant(
        &mut self,
        caller: Caller,
        powers: Powers,
        is_static: bool,
        descriptors: List<u64, MAX_DESCRIPTORS>,
    ) -> Result<Bundle, Error>;

    /// The same, and copies of the objects' capabilities go side by side to slots of a space, from this one on.
    /// Errors: as `grant`, and `NoSuchSlot`.
    #[method(4)]
    fn grant_to(
        &mut self,
        caller: Caller,
        powers: Powers,
        is_static: bool,
        first: CapAddress,
        descriptors: List<u64, MAX_DESCRIPTORS>,
        space: Arrived<'_, CapNode>,
    ) -> Result<Bundle, Error>;

    /// Frees a bundle: its objects are deleted. Answers as `grant` does.
    /// Errors: `NoSlabs`, `NoSuchBundle`.
    #[method(5)]
    fn free(&mut self, caller: Caller, powers: Powers, number: u64) -> Result<Figures, Error>;

    /// The server's books of a slab.
    /// Errors: `NoSlabs`, `NoSuchSlab`.
    #[method(6, power(MEMORY))]
    fn books(&mut self, number: u64) -> Result<Books, Error>;

    /// The kernel's account of a slab.
    /// Errors: `NoSlabs`, `NoSuchSlab`.
    #[method(7, power(MEMORY))]
    fn kernel(&mut self, number: u64) -> Result<KernelAccount, Error>;

    /// The policy's code, and whether the watermark rule is lifted.
    /// Errors: `NoSlabs`.
    #[method(8)]
    fn policy(&mut self) -> Result<(u64, bool), Error>;

    /// Changes the policy, and begins counting anew.
    /// Errors: `NoSlabs`, `NoSuchPolicy`, `SlabsInUse` (lifting the rule, or not, while objects live).
    #[method(9, power(MEMORY))]
    fn set_policy(&mut self, code: u64, lifted: bool) -> Result<(), Error>;

    /// Records requests as a trace from now on, beginning anew, or stops that. Answers the bytes recorded.
    /// Errors: `OutOfMemory`.
    #[method(10, power(MEMORY))]
    fn record(&mut self, on: bool) -> Result<u64, Error>;

    /// What was recorded, from an offset in bytes on.
    #[method(11, power(MEMORY))]
    fn read_part(&mut self, offset: u64) -> Result<Bytes<'_, TRACE_BYTES>, Error>;

    /// Sums over all slabs.
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

/// The server's books of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Books {
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
    /// How often it became empty.
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
    /// Its number, by which it is freed.
    pub number: u64,
    /// The slabs afterwards.
    pub figures: Figures,
}

/// Slabs of each lifetime at most.
pub const MAX_SLABS: usize = 31;
/// Descriptors in a bundle, which has at most 256 objects.
pub const MAX_DESCRIPTORS: usize = 32;
/// Bytes of a trace in one answer.
pub const TRACE_BYTES: usize = 63 * 8;
