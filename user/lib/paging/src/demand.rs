//! Demand paging: classification of page faults, and populating memory.
//!
//! A fault populates a page, or more if its neighbours were populated before: if the next page belongs to a run of `n`
//! pages that came on demand, the fault populates a run of `2n`, up to 16 pages. A run is one frame and one mapping; it
//! is aligned to its size, so that it never reaches beyond what the run before it suggests.
//!
//! ```text
//! touched in order:   page 0 │ 1 │ 2 3 │ 4 5 6 7 │ 8 … 15 │ 16 … 31 │ 32 … 47 │ …     each │ is a fault
//! every second one:   page 0 │ 2 │ 4 │ 6 │ …                                        nothing else comes
//! ```
//! So a program that goes through memory faults once in 16 pages, downwards as well as upwards, and in several places
//! at once; and a program that touches single pages gets no more than those. If there is not enough memory for a run,
//! one page is populated.

use tench_abi::CapAddress;
use tench_abi::fault::Access;
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE, entry_bits};

use crate::backend::{Backend, Object};
use crate::mapping::{Frame, FrameRange, Mapping};
use crate::paging::{Need, Paging, is_range};
use crate::regions::{Kind, Region};
use crate::shadow::{Entry, Tables};
use crate::types::{Error, Verdict};

const PAGE: u64 = PAGE_SIZE as u64;
/// Log2 of a page's size in bytes.
const ONE: u8 = PAGE_BITS as u8;
/// Log2 of the size in bytes of the largest run that is populated because of its neighbours.
const RUN_BITS: u8 = ONE + 4;
/// Size in bytes of the largest run that is populated because of its neighbours. Runs are aligned to their size.
pub const RUN_SIZE: u64 = 1 << RUN_BITS;

impl Paging {
    /// Populates the page at an address of a lazy region, and as many unpopulated neighbours as the region's
    /// fault-around size or the run next to it suggests. Does nothing if the page is mapped.
    pub fn populate_page<B: Backend>(&mut self, backend: &mut B, address: u64) -> Result<(), Error<B::Error>> {
        let region = self.regions.find(address).filter(Region::is_lazy).ok_or(Error::NotAllocated)?;
        let table = self.tables.page_table(address);
        if let Entry::Mapping(_) = self.shown_in(table, address) {
            return Ok(());
        }
        self.populate_empty(backend, &region, table, address)
    }

    /// Handles a page fault: populates memory and returns `None` where memory comes on demand, otherwise returns the
    /// fault's verdict. Combines [`classify`](Self::classify) and [`populate_page`](Self::populate_page).
    pub fn fault<B: Backend>(
        &mut self,
        backend: &mut B,
        address: u64,
        access: Access,
    ) -> Result<Option<Verdict>, Error<B::Error>> {
        if let Some(region) = self.regions.find_again(address)
            && region.is_lazy()
            && region.flags.contains(right(access))
        {
            let table = self.tables.page_table(address);
            if !matches!(self.shown_in(table, address), Entry::Mapping(_)) {
                return self.populate_empty(backend, &region, table, address).map(|()| None);
            }
        }
        Ok(Some(self.classify(address, access)))
    }

    /// Returns the entry for an address, with its table of level 3 if there is one.
    #[inline]
    fn shown_in(&self, table: Option<usize>, address: u64) -> Entry {
        match table {
            Some(table) => self.tables.entry(table, Tables::index(address, 3)),
            None => self.tables.walk(address).1,
        }
    }

    /// Populates memory where nothing is mapped; `table` is the table of level 3 there, if it exists.
    fn populate_empty<B: Backend>(
        &mut self,
        backend: &mut B,
        region: &Region,
        table: Option<usize>,
        address: u64,
    ) -> Result<(), Error<B::Error>> {
        let bits = self.fault_around_bits(region, table, address);
        let (start, bits) = self.fault_around_range(region, table, address, bits);
        let range = FrameRange {
            frame: CapAddress::NULL,
            owner: 0,
            offset: 0,
            address: start,
            size: 1 << bits,
            flags: region.flags,
        };
        match self.populate_range(backend, table, range, bits) {
            Err(Error::Backend(_)) if bits > ONE => {
                let page = FrameRange { address: address & !(PAGE - 1), size: PAGE, ..range };
                let table = self.tables.page_table(address);
                self.populate_range(backend, table, page, ONE)
            }
            done => done,
        }
    }

    /// Makes a frame of `1 << bits` bytes, the size of the range, and maps it.
    fn populate_range<B: Backend>(
        &mut self,
        backend: &mut B,
        table: Option<usize>,
        range: FrameRange,
        bits: u8,
    ) -> Result<(), Error<B::Error>> {
        // A whole table is replaced by a large page.
        let table = table.filter(|_| u32::from(bits) < entry_bits(2));
        match table {
            Some(_) => self.ensure(backend, Need { mappings: 1, frames: 1, ..Need::default() })?,
            None => {
                self.prepare(backend, &range)?;
                self.ensure(backend, Need { frames: 1, ..Need::default() })?;
            }
        }
        let object = backend.make_frame(bits)?;
        let frame = self.frames.take(Frame::new(object));
        let range = FrameRange { frame: object.cap, owner: frame as u32 + 1, ..range };
        let mapped = match table {
            Some(table) => self.map_pages(backend, table, &range),
            None => self.map_range(backend, &range, None),
        };
        if mapped.is_err() {
            self.forget_unshown(backend, frame, object);
        }
        mapped
    }

    /// Destroys a frame that could not be mapped, unless a part of it could not be unmapped again.
    #[cold]
    fn forget_unshown<B: Backend>(&mut self, backend: &mut B, frame: usize, object: Object) {
        if self.frames.get(frame).mappings == 0 {
            self.frames.give(frame);
            backend.destroy(object);
        }
    }

    /// Returns log2 of the bytes that a fault at an address should populate: the region's fault-around size, or twice
    /// the run next to it.
    #[inline]
    fn fault_around_bits(&self, region: &Region, table: Option<usize>, address: u64) -> u8 {
        let page = address & !(PAGE - 1);
        let mut pages = 0;
        for next in [page.wrapping_sub(PAGE), page + PAGE] {
            // A table has few edges, so the neighbour nearly always lies in the same one.
            let same = table.filter(|_| (next ^ page) >> entry_bits(2) == 0);
            // Memory next to the region has another purpose.
            if next.wrapping_sub(region.start) < region.size
                && let Entry::Mapping(index) = self.shown_in(same, next)
            {
                pages = pages.max(self.run_of(self.mappings.get(index), region));
            }
        }
        let run = if pages == 0 { ONE } else { (ONE + pages.ilog2() as u8 + 1).min(RUN_BITS) };
        run.max(region.fault_around)
    }

    /// Returns the number of pages of a mapping that came on demand in a region like this one; otherwise 0.
    #[inline]
    fn run_of(&self, mapping: &Mapping, region: &Region) -> u16 {
        let like = mapping.owner != 0 && mapping.flags() == region.flags;
        if like && self.tables.level(mapping.table as usize) == 3 { mapping.count } else { 0 }
    }

    /// Returns the range to populate together with an unmapped address of a lazy region: first address, and log2 of its
    /// size, at most `bits`.
    fn fault_around_range(&self, region: &Region, table: Option<usize>, address: u64, bits: u8) -> (u64, u8) {
        let mut bits = bits.max(ONE);
        loop {
            let (start, size) = (address & !((1 << bits) - 1), 1 << bits);
            let inside = start >= region.start && start + size <= region.end();
            if bits == ONE || inside && self.is_unmapped(table, start, size) {
                return (start, bits);
            }
            bits -= 1;
        }
    }

    /// Returns whether nothing is mapped in a range that is aligned to its size, a power of two.
    fn is_unmapped(&self, table: Option<usize>, start: u64, size: u64) -> bool {
        match table {
            Some(table) if size < 1 << entry_bits(2) => {
                self.tables.is_empty(table, Tables::index(start, 3), (size >> PAGE_BITS) as u16)
            }
            _ => self.tables.first_mapping(start, start + size).is_none(),
        }
    }

    /// Populates every page of a range, which must lie in lazy regions.
    pub fn populate<B: Backend>(&mut self, backend: &mut B, start: u64, size: u64) -> Result<(), Error<B::Error>> {
        if !is_range(start, size) {
            return Err(Error::BadRange);
        }
        for page in (start..start + size).step_by(PAGE_SIZE) {
            self.populate_page(backend, page)?;
        }
        Ok(())
    }

    /// Returns the verdict on a page fault.
    pub fn classify(&self, address: u64, access: Access) -> Verdict {
        if address < PAGE {
            return Verdict::Null;
        }
        let Some(region) = self.regions.find(address) else { return Verdict::NotAllocated };
        if region.kind == Kind::Guard {
            return Verdict::Guard(region);
        }
        let right = right(access);
        match self.tables.walk(address).1 {
            Entry::Mapping(mapping) if self.mappings.get(mapping).flags().contains(right) => {
                Verdict::Mapped(region, self.mappings.get(mapping).slot)
            }
            Entry::Mapping(_) => Verdict::Rights(region),
            _ if !region.flags.contains(right) => Verdict::Rights(region),
            _ if region.is_lazy() => Verdict::Lazy(region),
            _ => Verdict::NotPopulated(region),
        }
    }
}

/// Returns the right that an access needs.
const fn right(access: Access) -> MapFlags {
    match access {
        Access::Read => MapFlags::READ,
        Access::Write => MapFlags::WRITE,
        Access::Execute => MapFlags::EXECUTE,
    }
}
