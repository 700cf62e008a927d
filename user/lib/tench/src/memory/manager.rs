//! The manager behind the functions of [`memory`](super): the address space of this process and its resources.
//!
//! It lies in zeroed static memory and uses no heap, because the heap grows with its help. Code that runs under its
//! lock touches no memory that comes on demand, because the manager itself provides that memory.

use tench_abi::fault::{Access, Report};
use tench_abi::layout::{address, slot};
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE};
use tench_abi::process::INFO_PAGES;
use tench_paging::{FrameCap, Kind, Paging, Region, Request, Verdict};
use tench_sys::{Cap, Frame, OWN_CSPACE};

use super::Error;
use super::resources::Resources;
use crate::process;

/// Log2 of the largest frame that is mapped as a whole, in bytes.
pub const MAX_REGION_BITS: u8 = 30;
/// Log2 of the fault-around size of a stack in bytes, because a stack is used without gaps. The same number of bytes at
/// its top are populated from the start: a thread that calls the memory manager soon has them below it (`STACK_NEED`).
const STACK_BITS: u8 = 14;
const FIRST_STACK: u64 = 1 << STACK_BITS;
/// Minimum size of a region of memory that comes on demand; a smaller region is one frame from the start.
pub const LAZY_SIZE: u64 = 128 * 1024;

const PAGE: u64 = PAGE_SIZE as u64;
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// The manager's state.
pub struct Manager {
    /// Slots and untyped memory.
    pub resources: Resources,
    /// The address space.
    pub paging: Paging,
    /// Set if memory comes on demand, that is, if the process handles its page faults.
    lazy: bool,
    ready: bool,
}

/// A mapped range of addresses.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Size in bytes of the guard before it, which is never mapped.
    pub guard: u64,
}

/// Result of handling a page fault.
pub enum Outcome {
    /// The memory is mapped now.
    Populated,
    /// The access is not allowed.
    Refused(Verdict),
    /// There is no memory for the region.
    NoMemory(Region),
}

impl Manager {
    /// Returns the initial value, which is the same as zeroed memory.
    pub const fn new() -> Manager {
        Manager { resources: Resources::new(), paging: Paging::new(), lazy: false, ready: false }
    }

    /// Enters the free resources, once.
    #[inline]
    pub fn initialise(&mut self) {
        if !self.ready {
            self.fill_in();
        }
    }

    #[cold]
    fn fill_in(&mut self) {
        self.ready = true;
        self.resources.initialise(process::is_first());
        self.paging.initialise(slot::VSPACE, process::dynamic(), address::DYNAMIC_END);
        self.reserve_foreign(process::metadata(), address::METADATA_SIZE, RW);
        let Some(info) = process::info() else { return };
        for segment in process::segments() {
            self.reserve_foreign(segment.address, segment.size, MapFlags::from_bits_truncate(segment.flags));
        }
        self.reserve_foreign(process::information_address(), INFO_PAGES as u64 * PAGE, MapFlags::READ);
        self.reserve_foreign(info.ipc_buffer, PAGE, RW);
        let size = info.stack_top - info.stack_bottom;
        let stack = Request { flags: RW, guard: PAGE, ..Request::reserved(size, Kind::Foreign) };
        // The metadata has room for these without growing.
        let _ = self.paging.alloc_fixed(&mut self.resources, info.stack_bottom, &stack);
    }

    /// Enters a range that the loader mapped.
    fn reserve_foreign(&mut self, start: u64, size: u64, flags: MapFlags) {
        let request = Request { flags, ..Request::reserved(size, Kind::Foreign) };
        // The metadata has room for these without growing.
        let _ = self.paging.alloc_fixed(&mut self.resources, start, &request);
    }

    /// Sets whether memory comes on demand.
    pub const fn set_lazy(&mut self, lazy: bool) {
        self.lazy = lazy;
    }

    /// Returns whether page faults are handled.
    pub const fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// Maps a whole frame of `1 << bits` bytes at a free address, after an unmapped range of the same size if
    /// `guarded`.
    pub fn map(
        &mut self,
        frame: Cap<Frame>,
        bits: u8,
        flags: MapFlags,
        kind: Kind,
        guarded: bool,
    ) -> Result<Mapped, Error> {
        if !(PAGE_BITS as u8..=MAX_REGION_BITS).contains(&bits) {
            return Err(Error::BadSize);
        }
        let size = 1 << bits;
        let guard = if guarded { size } else { 0 };
        let request = Request { alignment: size, flags, guard, ..Request::reserved(size, kind) };
        let address = self.paging.alloc(&mut self.resources, &request)?;
        let mapped = Mapped { address, size, guard };
        let frame = FrameCap { cap: frame.address(), bits };
        if let Err(error) = self.paging.map_fixed(&mut self.resources, address, frame, 0, size, flags) {
            let _ = self.unmap(&mapped);
            return Err(error.into());
        }
        Ok(mapped)
    }

    /// Reserves at least `size` bytes of readable and writable memory, whose pages are populated when they are first
    /// touched. Without self-paging, and for a small range, all of it is populated now.
    pub fn anonymous(&mut self, size: u64, kind: Kind, guard: u64) -> Result<Mapped, Error> {
        let size = size.max(1).checked_next_multiple_of(PAGE).ok_or(Error::BadSize)?;
        let is_stack = kind == Kind::Stack;
        let lazy = self.lazy && (size >= LAZY_SIZE || is_stack && size > FIRST_STACK);
        if lazy {
            // Aligned so that the fault-around ranges of its first and last pages lie inside it.
            let fault_around = if is_stack { STACK_BITS } else { PAGE_BITS as u8 };
            let request =
                Request { alignment: tench_paging::RUN_SIZE, fault_around, guard, ..Request::lazy(size, kind) };
            let address = self.paging.alloc(&mut self.resources, &request)?;
            let mapped = Mapped { address, size, guard };
            if is_stack {
                self.back_now(&mapped, address + size - FIRST_STACK, FIRST_STACK)?;
            }
            return Ok(mapped);
        }
        // A single frame, if there is one so large.
        let size = size.checked_next_power_of_two().ok_or(Error::BadSize)?;
        if size > 1 << MAX_REGION_BITS {
            return Err(Error::BadSize);
        }
        let fault_around = size.ilog2() as u8;
        let request = Request { alignment: size, fault_around, guard, ..Request::lazy(size, kind) };
        let address = self.paging.alloc(&mut self.resources, &request)?;
        let mapped = Mapped { address, size, guard };
        self.back_now(&mapped, address, size)?;
        Ok(mapped)
    }

    /// Populates a part of a new range, or frees the range on failure.
    fn back_now(&mut self, mapped: &Mapped, start: u64, size: u64) -> Result<(), Error> {
        if let Err(error) = self.paging.populate(&mut self.resources, start, size) {
            let _ = self.unmap(mapped);
            return Err(error.into());
        }
        Ok(())
    }

    /// Unmaps a range, and frees the memory that was allocated for it.
    pub fn unmap(&mut self, mapped: &Mapped) -> Result<(), Error> {
        let (start, size) = (mapped.address - mapped.guard, mapped.size + mapped.guard);
        self.paging.unmap(&mut self.resources, start, size)?;
        // The block of the cached frames should be returned with the others.
        if size >= LAZY_SIZE {
            self.resources.drain_frame_cache();
        }
        Ok(())
    }

    /// Handles a page fault.
    pub fn fault(&mut self, report: &Report) -> Outcome {
        // Translation, access flag and permission faults; others, such as misalignment, do not depend on the mapping.
        if !(1..=3).contains(&(report.syndrome >> 2 & 0xf)) {
            return Outcome::Refused(Verdict::NotAllocated);
        }
        match self.paging.fault(&mut self.resources, report.address, report.access()) {
            Ok(None) => Outcome::Populated,
            // Another thread was faster; but a mapping that is gone would fault for ever.
            Ok(Some(Verdict::Mapped(region, mapping))) => match OWN_CSPACE.identify_at(mapping) {
                Ok(found) if found.kind == tench_abi::Kind::Mapping => Outcome::Populated,
                _ => Outcome::Refused(Verdict::NotPopulated(region)),
            },
            Ok(Some(refused)) => Outcome::Refused(refused),
            Err(_) => match self.paging.find(report.address) {
                Some(region) => Outcome::NoMemory(region),
                None => Outcome::Refused(Verdict::NotAllocated),
            },
        }
    }

    /// Populates a range so that it can be accessed without a fault.
    pub fn make_present(&mut self, start: u64, size: u64) -> Result<(), Error> {
        let Some(last) = size.checked_sub(1).and_then(|size| start.checked_add(size)) else { return Ok(()) };
        for page in (start & !(PAGE - 1)..=last).step_by(PAGE_SIZE) {
            if let Verdict::Lazy(_) = self.paging.classify(page, Access::Read) {
                self.paging.populate_page(&mut self.resources, page)?;
            }
        }
        Ok(())
    }
}
