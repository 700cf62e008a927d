//! Regions from the client's side.
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

/// Why a region could not be had.
pub type Failure = tench_protocol::Failure<Error>;

/// Where regions lie: 1 GiB above everything that libraries use.
pub const BASE: u64 = 0x5400_0000_0000;
/// Bytes below the stack pointer that are there before a thread's faults go to the pager.
const STACK: usize = 16 * 1024;

/// The part of the address space in which a process has its regions. One for each process.
pub struct Regions {
    /// Shows 2 MiB an entry. Dropped before the table above it.
    level2: Made<PageTable>,
    _level1: Made<PageTable>,
}

impl Regions {
    /// Makes the tables above the regions'.
    ///
    /// # Errors
    /// No memory, or there are tables already.
    pub fn new() -> Result<Regions, memory::Error> {
        let (level1, level2) = (memory::make::<PageTable>(1)?, memory::make::<PageTable>(2)?);
        level2.cap().hang(level1.cap(), 0)?;
        level1.cap().hang(Cap::new(slot::VSPACE), BASE >> entry_bits(0))?;
        Ok(Regions { level2, _level1: level1 })
    }

    /// Makes region `index` (0 to 511), which the pager serves from now on.
    ///
    /// # Errors
    /// No memory, the index is taken, or the pager refused.
    pub fn attach(&self, pager: Cap<Endpoint>, index: u64) -> Result<Region, AttachError> {
        let table = memory::make::<PageTable>(3).map_err(AttachError::Memory)?;
        let hung = table.cap().hang(self.level2.cap(), index % TABLE_ENTRIES as u64);
        hung.map_err(|error| AttachError::Memory(error.into()))?;
        let address = BASE + index % TABLE_ENTRIES as u64 * REGION_SIZE;
        PagerClient::at(pager).attach(address, table.cap()).map_err(AttachError::Pager)?;
        Ok(Region { pager, address, _table: table })
    }
}

/// Why a region could not be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// No memory for its table, or the index is taken.
    Memory(memory::Error),
    /// The pager did not take it.
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

/// 2 MiB that a pager provides. Only a thread that runs in [`paged`] may touch pages that are not there yet. Dropping
/// it takes the table away; the pager keeps the pages until it is told ([`detach`](Self::detach)), or forgets the
/// client.
pub struct Region {
    pager: Cap<Endpoint>,
    address: u64,
    _table: Made<PageTable>,
}

impl Region {
    /// First address.
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Shows what another client's region of the same index shows now. Answers the number of pages.
    ///
    /// # Errors
    /// What the pager refused, or that it was not reached.
    pub fn fork_from(&self, client: u64) -> Result<u64, Failure> {
        PagerClient::at(self.pager).fork(self.address, client)
    }

    /// Gives the pages back. From then on nothing in the region can be touched.
    ///
    /// # Errors
    /// What the pager refused, or that it was not reached.
    pub fn detach(&self) -> Result<(), Failure> {
        PagerClient::at(self.pager).detach(self.address)
    }

    /// The place of a word, checked.
    fn place(&self, offset: u64) -> usize {
        assert!(offset <= REGION_SIZE - 8 && offset.is_multiple_of(8), "offset {offset:#x} is not in the region");
        (self.address + offset) as usize
    }

    /// Reads 64 bits at an offset in bytes.
    pub fn read64(&self, offset: u64) -> u64 {
        let place = core::ptr::with_exposed_provenance::<u64>(self.place(offset));
        // SAFETY: the place is aligned, and in a region that shows pages of the pager's or faults; any bits are a
        // number.
        unsafe { place.read_volatile() }
    }

    /// Writes 64 bits at an offset in bytes.
    pub fn write64(&self, offset: u64, value: u64) {
        let place = core::ptr::with_exposed_provenance_mut::<u64>(self.place(offset));
        // SAFETY: as in `read64`; nobody holds references into the region.
        unsafe { place.write_volatile(value) };
    }
}

/// Runs a function with the thread's page faults going to a pager. Afterwards they are the process's own to handle
/// again ([`upcall::stop_handling`]): its memory comes on demand, and a handler that the program has set for page
/// faults is forgotten. The function touches no memory that comes on demand otherwise: 16 KiB of stack are made to be
/// there before, but a heap that has to grow would ask the pager for its pages.
///
/// # Errors
/// The kernel did not direct the faults: then the function has not run.
pub fn paged<T>(pager: Cap<Endpoint>, function: impl FnOnce() -> T) -> Result<T, KernelError> {
    touch_stack();
    thread::current_thread().faults_to(Class::PageFault, Some(pager))?;
    let result = function();
    upcall::stop_handling(Class::PageFault)?;
    Ok(result)
}

/// Makes the pages below the stack pointer be there.
#[inline(never)]
fn touch_stack() {
    let block = [0u8; STACK];
    core::hint::black_box(&block);
}
