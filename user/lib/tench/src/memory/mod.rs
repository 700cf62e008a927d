//! Slots, kernel objects and addresses of this process.
//!
//! ```text
//!            make::<T>(size)      Pages::new(bytes)      Window::new(frame)         heap
//!                 │                      │                      │                     │
//!                 └──────────────────────┴── manager ───────────┴─────────────────────┘
//!                        slots: free slots of the capability space
//!                        pieces: free untyped memory, in blocks from the memory server
//!                        ranges: free addresses        tables: page tables made so far
//! ```
//! The four structures below are plain data and tested on the host; `manager` is what carries out their decisions.

mod manager;
mod pieces;
mod ranges;
mod slots;
mod tables;
mod window;

use tench_abi::{CapAddress, Error as KernelError};
use tench_mem_client::Failure;
use tench_sys::cap::Object;
use tench_sys::{Cap, Frame, MapFlags, Untyped};

pub(crate) use manager::HEAP;
use manager::{MAX_REGION_BITS, Manager, Mapped};
use pieces::Piece;
pub use window::Window;

use crate::process;
use crate::sync::{Mutex, MutexGuard};

/// Why memory, a slot or an address could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The memory server gave none.
    Memory(Failure),
    /// The kernel refused.
    Kernel(KernelError),
    /// No free slots, and no room for another node of them.
    NoSlots,
    /// No free range of addresses is large enough.
    NoAddresses,
    /// The process has too many page tables.
    TooManyTables,
    /// Nothing can have this size.
    BadSize,
}

impl From<KernelError> for Error {
    fn from(error: KernelError) -> Error {
        Error::Kernel(error)
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Memory(failure) => failure.fmt(f),
            Error::Kernel(error) => error.fmt(f),
            Error::NoSlots => f.write_str("the capability space is full; delete capabilities, or use a larger root"),
            Error::NoAddresses => f.write_str("no free range of addresses is large enough; unmap something"),
            Error::TooManyTables => f.write_str("too many page tables; map fewer and larger regions"),
            Error::BadSize => f.write_str("nothing can have this size; a region has 4 KiB to 1 GiB"),
        }
    }
}

impl core::error::Error for Error {}

static MANAGER: Mutex<Manager> = Mutex::new(Manager::new());

fn manager() -> MutexGuard<'static, Manager> {
    let mut manager = MANAGER.lock();
    manager.initialise(process::is_first());
    manager
}

/// Takes an empty slot of the own capability space.
pub fn take_slot() -> Result<CapAddress, Error> {
    manager().slot()
}

/// Takes `count` (at most 256) empty slots side by side, and answers the first.
pub fn take_slots(count: usize) -> Result<CapAddress, Error> {
    manager().slot_run(count)
}

/// Gives a slot back, which must be empty.
pub fn free_slot(slot: CapAddress) {
    manager().free_slot(slot);
}

/// Gives untyped memory of `1 << bits` bytes to this process's own books. For the first processes, which have no
/// memory server to ask.
pub fn donate(untyped: Cap<Untyped>, bits: u8) {
    manager().donate(untyped, bits);
}

/// A kernel object that this process made. Dropping it deletes it and every copy of the capability; its memory and slot
/// are free again then.
#[derive(Debug)]
pub struct Made<T> {
    cap: Cap<T>,
    piece: Piece,
}

impl<T> Made<T> {
    /// The capability to it.
    pub const fn cap(&self) -> Cap<T> {
        self.cap
    }

    /// Lets it live as long as the process.
    pub const fn leak(self) -> Cap<T> {
        let cap = self.cap;
        core::mem::forget(self);
        cap
    }
}

impl<T> Drop for Made<T> {
    fn drop(&mut self) {
        // What the kernel does not let go stays; there is nobody to tell.
        let _ = manager().destroy(self.cap.address(), self.piece);
    }
}

/// Makes a kernel object. `size` is log2 of bytes for untyped memory and frames, log2 of slots for capability nodes, the
/// level for page tables, and ignored for others.
pub fn make<T: Object>(size: u64) -> Result<Made<T>, Error> {
    let (place, piece) = manager().make(T::KIND, size)?;
    Ok(Made { cap: Cap::new(place), piece })
}

/// A frame of memory that is mapped at a free place. Dropping it unmaps and frees it.
#[derive(Debug)]
pub struct Pages {
    mapped: Mapped,
    frame: Made<Frame>,
}

impl Pages {
    /// Readable and writable zeroed memory of at least `bytes` bytes: a power of two, 4 KiB to 1 GiB.
    pub fn new(bytes: usize) -> Result<Pages, Error> {
        Self::allocate(bytes, false)
    }

    /// The same, with at least as much before it that is never mapped: an access below the memory is a fault.
    pub fn with_guard(bytes: usize) -> Result<Pages, Error> {
        Self::allocate(bytes, true)
    }

    fn allocate(bytes: usize, guarded: bool) -> Result<Pages, Error> {
        let bits = region_bits(bytes)?;
        let frame = make::<Frame>(u64::from(bits))?;
        let mapped = manager().map(frame.cap(), bits, MapFlags::READ | MapFlags::WRITE, guarded)?;
        Ok(Pages { mapped, frame })
    }

    /// First address.
    pub const fn address(&self) -> usize {
        self.mapped.address as usize
    }

    /// Bytes.
    pub const fn size(&self) -> usize {
        1 << self.mapped.bits
    }

    /// One past the last address.
    pub const fn end(&self) -> usize {
        self.address() + self.size()
    }

    /// The frame.
    pub const fn frame(&self) -> Cap<Frame> {
        self.frame.cap()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // What cannot be unmapped stays; there is nobody to tell.
        let _ = manager().unmap(&self.mapped);
    }
}

/// Log2 of the region that holds `bytes` bytes.
fn region_bits(bytes: usize) -> Result<u8, Error> {
    let bits = bytes.max(1).checked_next_power_of_two().ok_or(Error::BadSize)?.ilog2().max(12) as u8;
    if bits > MAX_REGION_BITS { Err(Error::BadSize) } else { Ok(bits) }
}

/// Adds memory to the heap: maps `1 << bits` bytes at `address`, a multiple of that inside [`HEAP`].
pub(crate) fn extend_heap(address: u64, bits: u8) -> Result<(), Error> {
    let mut manager = manager();
    let (place, piece) = manager.make(tench_abi::Kind::Frame, u64::from(bits))?;
    if let Err(error) = manager.map_at(Cap::new(place), bits, address, MapFlags::READ | MapFlags::WRITE) {
        manager.destroy(place, piece)?;
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_powers_of_two_of_pages() {
        assert_eq!(region_bits(0), Ok(12));
        assert_eq!(region_bits(4096), Ok(12));
        assert_eq!(region_bits(4097), Ok(13));
        assert_eq!(region_bits(1 << 30), Ok(30));
        assert_eq!(region_bits((1 << 30) + 1), Err(Error::BadSize));
        assert_eq!(region_bits(usize::MAX), Err(Error::BadSize));
    }

    #[test]
    fn without_a_kernel_nothing_is_made_and_nothing_is_lost() {
        let before = take_slot().unwrap();
        free_slot(before);
        for _ in 0..1000 {
            assert!(make::<tench_sys::Endpoint>(0).is_err());
            assert!(Pages::new(4096).is_err());
        }
        assert_eq!(take_slot(), Ok(before));
        free_slot(before);
    }
}
