//! Slots, kernel objects and addresses of this process.
//!
//! ```text
//!            make::<T>(size)      Pages::new(bytes)      Window::new(frame)         heap
//!                 │                      │                      │                     │
//!                 └──────────────────────┴── manager ───────────┴─────────────────────┘
//!        resources: slots, chunks of untyped memory        paging (tench-paging): regions,
//!        in blocks from the memory server, objects         page tables, mappings
//!                                                          metadata: memory for the nodes
//! ```
//! A process that handles its page faults (every process that the process server starts) gets memory *on demand*: large
//! heap regions, stacks and [`Anonymous`] memory are only addresses at first, and a page of zeroed memory, or a run of
//! pages, is mapped when it is first touched. The handler needs the manager, so code that runs under the manager's lock
//! must never fault: the metadata and the manager are always mapped, and the stack that will be needed is populated
//! before the lock is taken.

mod chunks;
mod commitment;
mod frame_cache;
mod manager;
mod metadata;
mod resources;
mod window;

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use tench_abi::fault::Report;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::{CapAddress, Error as KernelError};
use tench_mem_interface::Failure;
use tench_paging::{Kind, Paging};
use tench_sys::cap::Object;
use tench_sys::{Cap, Frame, MapFlags, ThreadBlock, Untyped};

use chunks::Chunk;
pub(crate) use manager::Outcome;
use manager::{MAX_REGION_BITS, Manager, Mapped};
pub use window::Window;

use crate::sync::{Mutex, MutexGuard};

/// Reason why memory, a slot or an address was not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The memory server had none.
    Memory(Failure),
    /// The kernel refused.
    Kernel(KernelError),
    /// There are no free slots, and there is no room for another node.
    NoSlots,
    /// No free range of addresses is large enough.
    NoAddresses,
    /// There is no memory for more metadata.
    NoMetadata,
    /// The range is in use already.
    Taken,
    /// Nothing was reserved at this address.
    NotAllocated,
    /// The size, the address or the rights are invalid.
    BadSize,
    /// The heap could not grow.
    NoHeap,
}

impl From<tench_paging::Error<Error>> for Error {
    fn from(error: tench_paging::Error<Error>) -> Error {
        use tench_paging::Error as PagingError;
        match error {
            PagingError::Backend(error) => error,
            PagingError::NoAddresses => Error::NoAddresses,
            PagingError::NoMetadata => Error::NoMetadata,
            PagingError::Taken | PagingError::Mapped => Error::Taken,
            PagingError::NotAllocated | PagingError::SeveralRegions => Error::NotAllocated,
            PagingError::BadRange | PagingError::BadRights => Error::BadSize,
        }
    }
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
            Error::NoSlots => f.write_str("the CSpace is full; delete capabilities, or use a larger root"),
            Error::NoAddresses => f.write_str("no free range of addresses is large enough; unmap something"),
            Error::NoMetadata => f.write_str("there is no memory for metadata; free something"),
            Error::Taken => f.write_str("something is there already; unmap it, or take another address"),
            Error::NotAllocated => f.write_str("nothing was reserved there; reserve it first"),
            Error::NoHeap => f.write_str("the heap could not grow; free memory"),
            Error::BadSize => f.write_str("nothing can have this size, address or rights; use whole pages"),
        }
    }
}

impl core::error::Error for Error {}

static MANAGER: Mutex<Manager> = Mutex::new(Manager::new());

/// The block of the thread that holds the manager; null if none does, or the thread has no block.
static HOLDER: AtomicPtr<ThreadBlock> = AtomicPtr::new(core::ptr::null_mut());

/// Size in bytes of the stack that the manager may use while it is locked.
const STACK_NEED: usize = if cfg!(unoptimised) { 6 } else { 2 } * PAGE_SIZE;

/// The locked manager.
pub(crate) struct Locked(MutexGuard<'static, Manager>);

impl Deref for Locked {
    type Target = Manager;

    fn deref(&self) -> &Manager {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Manager {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // This comes before the lock is released.
        HOLDER.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}

/// Returns the running thread's block.
fn own_block() -> *mut ThreadBlock {
    ThreadBlock::current().map_or(core::ptr::null_mut(), |block| core::ptr::from_ref(block).cast_mut())
}

/// Locks the manager.
fn manager() -> Locked {
    touch_stack();
    lock(own_block())
}

/// Locks the manager for the thread with this block, on a stack that is populated.
#[inline]
fn lock(block: *mut ThreadBlock) -> Locked {
    link_start_on_demand();
    let mut manager = MANAGER.lock();
    HOLDER.store(block, Ordering::Relaxed);
    manager.initialise();
    Locked(manager)
}

/// Links the start of programs whose stack comes on demand: a relocation that changes nothing refers to it. Every use
/// of the manager comes past here. See [`runtime`](crate::runtime).
#[inline(always)]
fn link_start_on_demand() {
    #[cfg(target_os = "none")]
    // SAFETY: this emits no instruction.
    unsafe {
        core::arch::asm!(".reloc ., R_AARCH64_NONE, tench_on_demand", options(nomem, nostack, preserves_flags));
    }
}

/// Populates the stack below the current frame, as far as the stack extends.
fn touch_stack() {
    let Some(block) = ThreadBlock::current() else { return };
    let marker = 0u8;
    let here = core::ptr::from_ref(&marker).addr();
    let (bottom, top) = (block.stack_bottom.get(), block.stack_top.get());
    if !(bottom..top).contains(&here) {
        // A handler's stack is populated from the start.
        return;
    }
    for below in (PAGE_SIZE..=STACK_NEED).step_by(PAGE_SIZE) {
        if here - bottom >= below {
            let pointer = core::ptr::with_exposed_provenance::<u8>(here - below);
            // SAFETY: the address lies in the running thread's stack, below everything in use, and is only read.
            unsafe { pointer.read_volatile() };
        }
    }
}

/// Handles a page fault of the running thread; returns `None` if it happened in the manager itself.
pub(crate) fn handle_fault(report: &Report) -> Option<Outcome> {
    let block = own_block();
    if !block.is_null() && HOLDER.load(Ordering::Relaxed) == block {
        return None;
    }
    Some(lock(block).fault(report))
}

/// Enables page-fault handling and memory on demand from now on.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
pub(crate) fn enable_demand() {
    manager().set_lazy(true);
}

/// Returns whether the process handles its page faults.
pub fn comes_on_demand() -> bool {
    manager().is_lazy()
}

/// Populates memory from `address` on so that it can be accessed without a fault, for code that must not fault, such as
/// handlers of upcalls.
pub fn make_present(address: usize, size: usize) -> Result<(), Error> {
    manager().make_present(address as u64, size as u64)
}

/// Prepares a server, which must not run out of memory. From now on the heap's memory is populated when it is committed
/// instead of on demand; the running thread's stack is populated; and `heap` bytes of heap are reserved.
pub fn serve_without_faults(heap: usize) -> Result<(), Error> {
    manager().set_lazy(false);
    if let Some(block) = ThreadBlock::current() {
        let (bottom, top) = (block.stack_bottom.get(), block.stack_top.get());
        make_present(bottom, top - bottom)?;
    }
    reserve_heap(heap)
}

/// Reserves heap memory so that `bytes` bytes can be allocated in small parts, whatever happens meanwhile to the
/// system's memory. A server calls it before a request that may need that much, so that it does not run out in the
/// middle. The reserve stays until a larger one is requested; allocations use it.
pub fn reserve_heap(bytes: usize) -> Result<(), Error> {
    if crate::heap::reserve(bytes) { Ok(()) } else { Err(Error::NoHeap) }
}

/// Returns how often this process has asked the memory server for a block.
pub fn requests() -> u64 {
    manager().resources.requests()
}

/// Runs a function on the metadata of the own address space, and on the executor of its decisions. The manager is
/// locked meanwhile: the function must not allocate on the heap or touch memory that comes on demand.
pub fn with_paging<T>(function: impl FnOnce(&mut Paging, &mut Carrier) -> T) -> T {
    let mut manager = manager();
    let manager = &mut *manager;
    function(&mut manager.paging, &mut manager.resources)
}

/// The executor of decisions on address spaces: slots and memory of this process, and the kernel.
pub use resources::Resources as Carrier;

/// Takes an empty slot of the own CSpace.
pub fn take_slot() -> Result<CapAddress, Error> {
    manager().resources.slot()
}

/// Takes `count` (at most 256) adjacent empty slots, and returns the first.
pub fn take_slots(count: usize) -> Result<CapAddress, Error> {
    manager().resources.slot_run(count)
}

/// Frees a slot, which must be empty.
pub fn free_slot(slot: CapAddress) {
    manager().resources.free_slot(slot);
}

/// Gives untyped memory of `1 << bits` bytes to this process's allocator. For the first processes, which have no memory
/// server to ask.
pub fn donate(untyped: Cap<Untyped>, bits: u8) -> Result<(), Error> {
    manager().resources.donate(untyped, bits)
}

/// A kernel object that this process made. Dropping it deletes the object and every copy of its capability; its memory
/// and slot are freed then, or, if it was exported, as soon as no other core has a copy any more.
#[derive(Debug)]
pub struct Made<T> {
    cap: Cap<T>,
    chunk: Chunk,
}

impl<T> Made<T> {
    /// Returns the capability to the object.
    pub const fn cap(&self) -> Cap<T> {
        self.cap
    }

    /// Frees the slot and the memory of an object whose capabilities somebody else has all deleted.
    pub fn deleted(self) {
        manager().resources.was_destroyed(self.cap.address(), self.chunk);
        core::mem::forget(self);
    }

    /// Keeps the object for the lifetime of the process.
    pub const fn leak(self) -> Cap<T> {
        let cap = self.cap;
        core::mem::forget(self);
        cap
    }
}

impl<T> Drop for Made<T> {
    fn drop(&mut self) {
        // A capability that the kernel cannot delete stays; there is nobody to tell.
        let _ = manager().resources.destroy(self.cap.address(), self.chunk);
    }
}

/// Makes a kernel object. `size` is log2 of bytes for untyped memory and frames, log2 of slots for capability nodes,
/// the level for page tables, and ignored for others.
pub fn make<T: Object>(size: u64) -> Result<Made<T>, Error> {
    let (slot, chunk) = manager().resources.make(T::KIND, size)?;
    Ok(Made { cap: Cap::new(slot), chunk })
}

/// A frame of memory that is mapped at a free address. Dropping it unmaps and frees it.
#[derive(Debug)]
pub struct Pages {
    mapped: Mapped,
    frame: Made<Frame>,
}

impl Pages {
    /// Returns readable and writable zeroed memory of at least `bytes` bytes: a power of two, 4 KiB to 1 GiB.
    pub fn new(bytes: usize) -> Result<Pages, Error> {
        Self::allocate(bytes, false)
    }

    /// As [`new`](Self::new), after an unmapped range of at least the same size: an access below the memory is a fault.
    pub fn with_guard(bytes: usize) -> Result<Pages, Error> {
        Self::allocate(bytes, true)
    }

    fn allocate(bytes: usize, guarded: bool) -> Result<Pages, Error> {
        let bits = region_bits(bytes)?;
        let frame = make::<Frame>(u64::from(bits))?;
        let mapped = manager().map(frame.cap(), bits, MapFlags::READ | MapFlags::WRITE, Kind::Anonymous, guarded)?;
        Ok(Pages { mapped, frame })
    }

    /// Returns the first address.
    pub const fn address(&self) -> usize {
        self.mapped.address as usize
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> usize {
        self.mapped.size as usize
    }

    /// Returns one past the last address.
    pub const fn end(&self) -> usize {
        self.address() + self.size()
    }

    /// Returns the frame.
    pub const fn frame(&self) -> Cap<Frame> {
        self.frame.cap()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // Memory that cannot be unmapped stays; there is nobody to tell.
        let _ = manager().unmap(&self.mapped);
    }
}

/// Returns log2 of the size of the region that holds `bytes` bytes.
fn region_bits(bytes: usize) -> Result<u8, Error> {
    let bits = bytes.max(1).checked_next_power_of_two().ok_or(Error::BadSize)?.ilog2().max(12) as u8;
    if bits > MAX_REGION_BITS { Err(Error::BadSize) } else { Ok(bits) }
}

/// Zeroed memory that comes on demand, a page or a run of pages at a time, where it is touched. Dropping it frees it.
#[derive(Debug)]
pub struct Anonymous {
    mapped: Mapped,
}

impl Anonymous {
    /// Returns readable and writable memory of at least `bytes` bytes.
    pub fn new(bytes: usize) -> Result<Anonymous, Error> {
        Self::allocate(bytes, Kind::Anonymous, 0)
    }

    /// Returns a stack, with an unmapped page before it; a part at the top is populated from the start.
    pub(crate) fn stack(bytes: usize) -> Result<Anonymous, Error> {
        Self::allocate(bytes, Kind::Stack, PAGE_SIZE as u64)
    }

    fn allocate(bytes: usize, kind: Kind, guard: u64) -> Result<Anonymous, Error> {
        Ok(Anonymous { mapped: manager().anonymous(bytes as u64, kind, guard)? })
    }

    /// Returns the first address.
    pub const fn address(&self) -> usize {
        self.mapped.address as usize
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> usize {
        self.mapped.size as usize
    }

    /// Returns one past the last address.
    pub const fn end(&self) -> usize {
        self.address() + self.size()
    }
}

impl Drop for Anonymous {
    fn drop(&mut self) {
        // Memory that cannot be unmapped stays; there is nobody to tell.
        let _ = manager().unmap(&self.mapped);
    }
}

/// Number of regions for which the heap has asked.
static HEAP_REQUESTS: AtomicU64 = AtomicU64::new(0);
/// Size of the heap's regions in bytes.
static HEAP_SIZE: AtomicU64 = AtomicU64::new(0);

/// Returns how often the heap of this process has asked for addresses.
pub fn heap_requests() -> u64 {
    HEAP_REQUESTS.load(Ordering::Relaxed)
}

/// Returns the size in bytes of the heap's addresses.
pub fn heap_size() -> u64 {
    HEAP_SIZE.load(Ordering::Relaxed)
}

/// Takes memory for the heap, besides its `regions` (first address and size of each); returns first address and size in
/// bytes.
pub(crate) fn take_heap(
    bytes: usize,
    regions: impl Iterator<Item = (usize, usize)> + Clone,
) -> Result<(usize, usize), Error> {
    if !commitment::is_possible(bytes as u64, regions) {
        return Err(Error::Memory(Failure::Refused(tench_mem_interface::protocol::Error::OutOfMemory)));
    }
    HEAP_REQUESTS.fetch_add(1, Ordering::Relaxed);
    let mapped = manager().anonymous(bytes as u64, Kind::Heap, 0)?;
    HEAP_SIZE.fetch_add(mapped.size, Ordering::Relaxed);
    Ok((mapped.address as usize, mapped.size as usize))
}

/// Frees memory of the heap.
pub(crate) fn give_heap(address: usize, size: usize) {
    let mapped = Mapped { address: address as u64, size: size as u64, guard: 0 };
    HEAP_SIZE.fetch_sub(mapped.size, Ordering::Relaxed);
    // Memory that cannot be unmapped stays; there is nobody to tell.
    let _ = manager().unmap(&mapped);
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
