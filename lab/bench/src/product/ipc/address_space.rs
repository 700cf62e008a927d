//! The other address space, and where actors run.
//!
//! ```text
//! this process                         other address space
//!   the programs, where they are         BASE + 0x0000   a copy of the programs
//!   control pages, anywhere              BASE + n·4 KiB  control pages, device registers
//!   device registers, anywhere           FAULT           nothing, or a page for as long as a test needs
//! ```
//! Both use the same CSpace, which no path looks up more than once. The other address space has tables of its own and
//! shares no mapping.

use core::cell::Cell;

use tench::abi::layout::slot;
use tench::abi::memory::{PAGE_SIZE, TABLE_ENTRIES, entry_bits};
use tench::abi::{CapAddress, Error as KernelError};
use tench::memory::{Error, Made, Pages, free_slot, make, take_slot};
use tench::sys::{Cap, CapNode, Frame, MapFlags, Mapping, PageTable};

use super::programs::{Program, bytes};

/// Start of the other address space's mappings: 2 MiB, one table of level 3.
const BASE: u64 = 0x4000_0000;
/// Entry that is not mapped, unless a test maps it.
const FAULT_ENTRY: u64 = TABLE_ENTRIES as u64 - 1;

/// Readable and writable.
pub const WRITABLE: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// One of the two address spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This process's address space.
    Here,
    /// The other address space.
    There,
}

/// The other address space: its tables and unused entries.
pub struct Other {
    root: Made<PageTable>,
    _tables: [Made<PageTable>; 2],
    table: Made<PageTable>,
    /// A table next to it without mappings.
    empty: Made<PageTable>,
    _programs: Pages,
    _copy: Shown,
    /// First entry that was never used.
    next: Cell<u64>,
}

/// A frame's page mapped in the other address space. Dropping it unmaps it.
pub struct Shown {
    mapping: Cap<Mapping>,
    entry: u64,
}

impl Shown {
    /// Maps the first page of a frame at an entry.
    fn at(table: Cap<PageTable>, entry: u64, frame: Cap<Frame>, flags: MapFlags) -> Result<Shown, Error> {
        let slot = take_slot()?;
        match frame.map(table, entry, 1, 0, flags, slot) {
            Ok(mapping) => Ok(Shown { mapping, entry }),
            Err(error) => {
                free_slot(slot);
                Err(error.into())
            }
        }
    }

    /// Returns the address of the page.
    pub const fn address(&self) -> u64 {
        BASE + self.entry * PAGE_SIZE as u64
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // If the frame was deleted first, the slot is empty already.
        let _ = self.mapping.delete();
        free_slot(self.mapping.address());
    }
}

impl Other {
    /// Makes the address space.
    pub fn new() -> Result<Other, Error> {
        let root = make::<PageTable>(0)?;
        let first = make::<PageTable>(1)?;
        let second = make::<PageTable>(2)?;
        let table = make::<PageTable>(3)?;
        let empty = make::<PageTable>(3)?;
        let entry = |level| BASE >> entry_bits(level) & (TABLE_ENTRIES as u64 - 1);
        first.cap().install(root.cap(), entry(0))?;
        second.cap().install(first.cap(), entry(1))?;
        table.cap().install(second.cap(), entry(2))?;
        empty.cap().install(second.cap(), entry(2) + 1)?;

        let programs = Pages::new(bytes().len())?;
        copy(bytes(), programs.address());
        let copy = Shown::at(table.cap(), 0, programs.frame(), MapFlags::READ | MapFlags::EXECUTE)?;
        Ok(Other { root, _tables: [first, second], table, empty, _programs: programs, _copy: copy, next: Cell::new(1) })
    }

    /// Maps the first page of a frame at an unused entry.
    pub fn show(&self, frame: Cap<Frame>, flags: MapFlags) -> Result<Shown, Error> {
        let entry = self.next.get();
        if entry >= FAULT_ENTRY {
            return Err(Error::NoAddresses);
        }
        self.next.set(entry + 1);
        Shown::at(self.table.cap(), entry, frame, flags)
    }

    /// Returns the table of level 3 in use.
    pub const fn table(&self) -> Cap<PageTable> {
        self.table.cap()
    }

    /// Returns a table of level 3 without mappings.
    pub const fn empty_table(&self) -> Cap<PageTable> {
        self.empty.cap()
    }

    /// Returns an unmapped entry of [`table`](Self::table), and its address.
    pub const fn fault_entry(&self) -> (u64, u64) {
        (FAULT_ENTRY, BASE + FAULT_ENTRY * PAGE_SIZE as u64)
    }

    /// Returns the level-0 table of a side.
    pub const fn root(&self, side: Side) -> Cap<PageTable> {
        match side {
            Side::Here => Cap::new(slot::VSPACE),
            Side::There => self.root.cap(),
        }
    }

    /// Returns the address at which a program begins on a side.
    pub fn program(&self, program: Program, side: Side) -> u64 {
        match side {
            Side::Here => program.address() as u64,
            Side::There => BASE + program.offset() as u64,
        }
    }
}

/// Copies the programs to fresh memory of this process, which is at least as large.
fn copy(programs: &[u8], to: usize) {
    let to = core::ptr::with_exposed_provenance_mut::<u8>(to);
    // SAFETY: the pages were made for this, are large enough, and there are no references to them.
    unsafe { core::ptr::copy_nonoverlapping(programs.as_ptr(), to, programs.len()) };
}

/// CSpace of all actors.
pub const SPACE: Cap<CapNode> = Cap::new(slot::CSPACE);

/// A slot, empty at first. Dropping it deletes its content.
pub struct Slot(CapAddress);

impl Slot {
    /// Takes an empty slot.
    pub fn take() -> Result<Slot, Error> {
        Ok(Slot(take_slot()?))
    }

    /// Returns its address as system calls take it.
    pub const fn raw(&self) -> u64 {
        self.0.0 as u64
    }

    /// Returns its address.
    pub const fn address(&self) -> CapAddress {
        self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        match Cap::<CapNode>::new(self.0).delete() {
            Ok(_) | Err(KernelError::InvalidCapability) => free_slot(self.0),
            // A capability that cannot be deleted keeps its slot.
            Err(_) => {}
        }
    }
}
