//! What is asked of an address space, and what it answers.

use tench_abi::CapAddress;
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE};

use crate::regions::{Kind, Region};

const PAGE: u64 = PAGE_SIZE as u64;

/// Why an operation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The backend could not do it.
    Backend(E),
    /// No free range is large enough.
    NoAddresses,
    /// Some address of the range is taken.
    Taken,
    /// Some address of the range belongs to no region, or to one that is never mapped.
    NotAllocated,
    /// The range belongs to several regions.
    SeveralRegions,
    /// Something is mapped in the range.
    Mapped,
    /// Not whole pages, none at all, beyond the frame, or beyond the address space.
    BadRange,
    /// What is mapped can always be read, and never both written and executed.
    BadRights,
    /// There is no memory for the books.
    NoBooks,
}

impl<E> From<E> for Error<E> {
    fn from(error: E) -> Error<E> {
        Error::Backend(error)
    }
}

/// Addresses that are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Bytes, whole pages.
    pub size: u64,
    /// A power of two that the first address is a multiple of; less than a page means a page.
    pub alignment: u64,
    /// What for.
    pub kind: Kind,
    /// Rights and attributes of memory that is found on access.
    pub flags: MapFlags,
    /// As in [`Region::granule`].
    pub granule: u8,
    /// Bytes right before the first address that are never mapped, whole pages.
    pub guard: u64,
}

impl Request {
    /// Addresses for readable and writable memory, a page of which is found on the first access to it.
    pub const fn lazy(size: u64, kind: Kind) -> Request {
        let flags = MapFlags::READ.union(MapFlags::WRITE);
        Request { size, alignment: PAGE, kind, flags, granule: PAGE_BITS as u8, guard: 0 }
    }

    /// Addresses where nothing is until something is mapped.
    pub const fn reserved(size: u64, kind: Kind) -> Request {
        Request { granule: 0, ..Request::lazy(size, kind) }
    }
}

/// A frame that somebody gave.
#[derive(Clone, Copy, Debug)]
pub struct FrameCap {
    /// Its capability.
    pub cap: CapAddress,
    /// Log2 of its size. Its physical address is a multiple of that.
    pub bits: u8,
}

/// What a page fault means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An access to the first page.
    Null,
    /// An access to a region that is never mapped.
    Guard(Region),
    /// The address belongs to no region.
    NotAllocated,
    /// The address belongs to a region in which nothing is mapped there, or to what somebody else mapped.
    NotBacked(Region),
    /// The region does not allow such an access.
    Rights(Region),
    /// Memory is to be found: [`Paging::back`].
    Lazy(Region),
    /// This mapping covers the address and allows the access: somebody was faster, or the mapping is gone.
    Mapped(Region, CapAddress),
}

/// What the books hold, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Regions.
    pub regions: usize,
    /// Page tables, the root included.
    pub tables: usize,
    /// Mappings.
    pub mappings: usize,
    /// Frames that were made for lazily backed regions.
    pub frames: usize,
}
