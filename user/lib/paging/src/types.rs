//! Arguments and results of operations on an address space.

use tench_abi::CapAddress;
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE};

use crate::regions::{Kind, Region};

const PAGE: u64 = PAGE_SIZE as u64;

/// Reason why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The backend failed.
    Backend(E),
    /// No free range is large enough.
    NoAddresses,
    /// An address of the range is taken.
    Taken,
    /// An address of the range belongs to no region, or to one that is never mapped.
    NotAllocated,
    /// The range belongs to several regions.
    SeveralRegions,
    /// Something is mapped in the range.
    Mapped,
    /// The range does not consist of whole pages, is empty, or extends beyond the frame or the address space.
    BadRange,
    /// The rights are invalid: mapped memory can always be read, and never both written and executed.
    BadRights,
    /// There is no memory for the metadata.
    NoMetadata,
}

impl<E> From<E> for Error<E> {
    fn from(error: E) -> Error<E> {
        Error::Backend(error)
    }
}

/// Request for addresses.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Size in bytes, a multiple of the page size.
    pub size: u64,
    /// Alignment of the first address, a power of two; less than a page means a page.
    pub alignment: u64,
    /// Purpose of the region.
    pub kind: Kind,
    /// Rights and attributes of memory populated on access.
    pub flags: MapFlags,
    /// Log2 of the fault-around size, as in [`Region::fault_around`].
    pub fault_around: u8,
    /// Size in bytes of the guard right before the first address, which is never mapped; a multiple of the page size.
    pub guard: u64,
}

impl Request {
    /// Returns a request for readable and writable memory, of which a page is populated on the first access to it.
    pub const fn lazy(size: u64, kind: Kind) -> Request {
        let flags = MapFlags::READ.union(MapFlags::WRITE);
        Request { size, alignment: PAGE, kind, flags, fault_around: PAGE_BITS as u8, guard: 0 }
    }

    /// Returns a request for addresses at which nothing is mapped until the owner maps it.
    pub const fn reserved(size: u64, kind: Kind) -> Request {
        Request { fault_around: 0, ..Request::lazy(size, kind) }
    }
}

/// A given frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameCap {
    /// Capability to the frame.
    pub cap: CapAddress,
    /// Log2 of its size in bytes. Its physical address is a multiple of that size.
    pub bits: u8,
}

/// Meaning of a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An access to the first page.
    Null,
    /// An access to a region that is never mapped.
    Guard(Region),
    /// The address belongs to no region.
    NotAllocated,
    /// The address belongs to a region in which nothing is mapped there, or to memory mapped by other code.
    NotPopulated(Region),
    /// The region does not allow this access.
    Rights(Region),
    /// Memory has to be populated by [`Paging::populate_page`](crate::Paging::populate_page).
    Lazy(Region),
    /// This mapping covers the address and allows the access: another thread was faster, or the mapping was deleted.
    Mapped(Region, CapAddress),
}

/// Numbers of objects in the metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Number of regions.
    pub regions: usize,
    /// Number of page tables, the root included.
    pub tables: usize,
    /// Number of mappings.
    pub mappings: usize,
    /// Number of frames that were made for lazy regions.
    pub frames: usize,
}
