//! The client's side of regions.
//!
//! ```no_run
//! # use tench::sys::{Cap, Endpoint};
//! use tench_pager::client::{Regions, paged};
//!
//! # fn example(pager: Cap<Endpoint>) -> Result<(), Box<dyn std::error::Error>> {
//! let regions = Regions::new()?;
//! let region = regions.attach(pager, 0)?;
//! let sum = paged(pager, || (0..64).map(|i| region.read64(i * 4096)).sum::<u64>())?;
//! assert_eq!(sum, 0);
//! # Ok(())
//! # }
//! ```

use tench::abi::fault::Class;
use tench::abi::layout::slot;
use tench::abi::memory::{TABLE_ENTRIES, entry_bits};
use tench::memory::{self, Made};
use tench::sys::{Cap, Endpoint, Error as KernelError, PageTable};
use tench::{thread, upcall};

use crate::REGION_SIZE;
use crate::protocol::{Error, PagerClient};

/// Reason why a region could not be attached or used.
pub type Failure = tench_protocol::Failure<Error>;

/// First address of regions: 1 GiB above everything that libraries use.
pub const BASE: u64 = 0x5400_0000_0000;
/// Number of bytes below the stack pointer that are populated before a thread's faults go to the pager.
const STACK: usize = 16 * 1024;

/// The part of the address space in which a process has its regions. One for each process.
pub struct Regions {
    /// Table whose entries each map 2 MiB. Dropped before the table above it.
    level2: Made<PageTable>,
    _level1: Made<PageTable>,
}

impl Regions {
    /// Makes the tables above the regions'.
    ///
    /// # Errors
    /// Fails if there is no memory, or if there are tables already.
    pub fn new() -> Result<Regions, memory::Error> {
        let (level1, level2) = (memory::make::<PageTable>(1)?, memory::make::<PageTable>(2)?);
        level2.cap().install(level1.cap(), 0)?;
        level1.cap().install(Cap::new(slot::VSPACE), BASE >> entry_bits(0))?;
        Ok(Regions { level2, _level1: level1 })
    }

    /// Makes region `index` (0 to 511), which the pager serves from now on.
    ///
    /// # Errors
    /// Fails if there is no memory, if the index is in use, or if the pager refuses.
    pub fn attach(&self, pager: Cap<Endpoint>, index: u64) -> Result<Region, AttachError> {
        let table = memory::make::<PageTable>(3).map_err(AttachError::Memory)?;
        let installed = table.cap().install(self.level2.cap(), index % TABLE_ENTRIES as u64);
        installed.map_err(|error| AttachError::Memory(error.into()))?;
        let address = BASE + index % TABLE_ENTRIES as u64 * REGION_SIZE;
        PagerClient::at(pager).attach(address, table.cap()).map_err(AttachError::Pager)?;
        Ok(Region { pager, address, _table: table })
    }
}

/// Reason why a region could not be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// There is no memory for its table, or the index is in use.
    Memory(memory::Error),
    /// The pager refused it.
    Pager(Failure),
}

impl core::fmt::Display for AttachError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AttachError::Memory(error) => error.fmt(f),
            AttachError::Pager(failure) => failure.fmt(f),
        }
    }
}

impl core::error::Error for AttachError {}

/// 2 MiB of memory that a pager provides. Only a thread that runs in [`paged`] may touch pages that are not mapped yet.
/// Dropping the region removes its table; the pager keeps the pages until [`detach`](Self::detach), or until it forgets
/// the client.
pub struct Region {
    pager: Cap<Endpoint>,
    address: u64,
    _table: Made<PageTable>,
}

impl Region {
    /// Returns the first address.
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Maps in this region the pages that another client's region of the same index has now. Returns the number of
    /// pages.
    ///
    /// # Errors
    /// Fails if the pager refuses or cannot be reached.
    pub fn fork_from(&self, client: u64) -> Result<u64, Failure> {
        PagerClient::at(self.pager).fork(self.address, client)
    }

    /// Returns the pages to the pager. From then on nothing in the region can be touched.
    ///
    /// # Errors
    /// Fails if the pager refuses or cannot be reached.
    pub fn detach(&self) -> Result<(), Failure> {
        PagerClient::at(self.pager).detach(self.address)
    }

    /// Returns the checked address of a word.
    fn address_of(&self, offset: u64) -> usize {
        assert!(offset <= REGION_SIZE - 8 && offset.is_multiple_of(8), "offset {offset:#x} is not in the region");
        (self.address + offset) as usize
    }

    /// Reads 64 bits at an offset in bytes.
    pub fn read64(&self, offset: u64) -> u64 {
        let pointer = core::ptr::with_exposed_provenance::<u64>(self.address_of(offset));
        // SAFETY: the address is aligned, and in a region that maps pages of the pager or faults; any bits are a
        // number.
        unsafe { pointer.read_volatile() }
    }

    /// Writes 64 bits at an offset in bytes.
    pub fn write64(&self, offset: u64, value: u64) {
        let pointer = core::ptr::with_exposed_provenance_mut::<u64>(self.address_of(offset));
        // SAFETY: as in `read64`; nobody holds references into the region.
        unsafe { pointer.write_volatile(value) };
    }
}

/// Runs a function while the thread's page faults go to a pager. Afterwards the process handles them itself again
/// ([`upcall::stop_handling`]): its memory comes on demand, and the program's own handler for page faults is removed.
/// The function must not touch other memory that comes on demand: 16 KiB of stack are populated before, but a heap that
/// has to grow would ask the pager for its pages.
///
/// # Errors
/// Fails if the kernel does not direct the faults to the pager: then the function has not run.
pub fn paged<T>(pager: Cap<Endpoint>, function: impl FnOnce() -> T) -> Result<T, KernelError> {
    touch_stack();
    thread::current_thread().faults_to(Class::PageFault, Some(pager))?;
    let result = function();
    upcall::stop_handling(Class::PageFault)?;
    Ok(result)
}

/// Populates the pages below the stack pointer.
#[inline(never)]
fn touch_stack() {
    let block = [0u8; STACK];
    core::hint::black_box(&block);
}
