//! Regions, and what a fault in one does.
//!
//! What a page of a region is:
//!
//! ```text
//!            first touch                     share                     write, another shows the page
//!   empty ─────────────────► own, writable ─────────► shared, read-only ──────────────► own (a copy)
//!                                 ▲                      │  write, nobody else shows it
//!                                 └──────────────────────┘
//! ```
//! A page that is shared is mapped for reading in the region that had it, and not at all in the one that got it: there
//! the first touch maps it. Nothing needs to be done when the other region lets go; the count of the page says at the
//! next write that it has become one's own.
//!
//! Every function leaves the books as [`Pager::check_invariants`] wants them, also when it fails in the middle.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tench::abi::fault::{Access, Report};
use tench::abi::memory::{PAGE_BITS, TABLE_ENTRIES};
use tench_places::{Client, allows};

use crate::REGION_SIZE;
use crate::pool::{Page, Pool};
use crate::protocol::{Error, Statistics};

/// How pages are shown and filled: by the kernel, or in tests by a table.
pub trait Memory {
    /// A page table of a client.
    type Table;
    /// A page that is shown at one entry of a table.
    type Mapping;

    /// Shows a page at an entry of a table, where nothing is.
    ///
    /// # Errors
    /// `Refused` if it could not be shown: most likely the table is gone. Nothing has changed then.
    fn map(&mut self, table: &Self::Table, entry: usize, page: Page, writable: bool) -> Result<Self::Mapping, Error>;

    /// Shows the page for reading alone, or for writing too.
    ///
    /// # Errors
    /// `Refused` if the mapping is gone.
    fn allow(&mut self, mapping: &Self::Mapping, writable: bool) -> Result<(), Error>;

    /// Shows the page no more.
    fn unmap(&mut self, mapping: Self::Mapping);

    /// Fills a page with zeros.
    fn zero(&mut self, page: Page);

    /// Copies a page.
    fn copy(&mut self, from: Page, to: Page);
}

/// A page of a region.
struct Shown<M> {
    page: Page,
    /// Where it is mapped; `None` until the first touch.
    mapping: Option<M>,
    /// Whether the mapping allows writing: then the page is this region's alone.
    writable: bool,
}

/// 2 MiB of a client's addresses.
struct Region<M: Memory> {
    /// For whom it counts.
    family: u64,
    table: M::Table,
    pages: Vec<Option<Shown<M::Mapping>>>,
    /// How many pages there are.
    shown: usize,
}

/// Regions that a pager for clients who do not trust each other serves.
pub const MAX_REGIONS: usize = 256;

/// A pager's books. Clients are numbers: the processes of the badges of their capabilities, or whatever the pager's
/// owner has numbered.
pub struct Pager<M: Memory> {
    memory: M,
    pool: Pool,
    /// By client and first address.
    regions: BTreeMap<(u64, u64), Region<M>>,
    statistics: Statistics,
    is_fair: bool,
}

impl<M: Memory> Pager<M> {
    /// A pager with free pages and no clients. Whoever asks first may have them all.
    pub fn new(memory: M, pool: Pool) -> Pager<M> {
        Pager { memory, pool, regions: BTreeMap::new(), statistics: Statistics::default(), is_fair: false }
    }

    /// The same for clients that do not trust each other: one may have one more page as long as fewer are shown to its
    /// family than are free, and one more region as long as its family has fewer than are free of [`MAX_REGIONS`].
    pub fn fair(memory: M, pool: Pool) -> Pager<M> {
        Pager { is_fair: true, ..Pager::new(memory, pool) }
    }

    /// The regions of a client.
    fn regions_of(&self, client: u64) -> impl Iterator<Item = (u64, &Region<M>)> {
        self.regions.range((client, 0)..=(client, u64::MAX)).map(|((_, address), region)| (*address, region))
    }

    /// The regions of a family.
    fn regions_of_family(&self, family: u64) -> impl Iterator<Item = &Region<M>> {
        self.regions.values().filter(move |region| region.family == family)
    }

    /// Returns whether a family may have one more page.
    fn may_take_page(&self, family: u64) -> bool {
        let own = || self.regions_of_family(family).map(|region| region.shown).sum();
        !self.is_fair || allows(own(), self.pool.size() - self.pool.free(), self.pool.size())
    }

    /// Returns whether a family may have one more region.
    fn may_attach(&self, family: u64) -> bool {
        !self.is_fair || allows(self.regions_of_family(family).count(), self.regions.len(), MAX_REGIONS)
    }

    /// Serves a region from now on: the 2 MiB from `address` on, which `table` shows.
    ///
    /// # Errors
    /// `BadRegion` if the address is no multiple of 2 MiB, or the region is served already; `TooManyRegions`.
    pub fn attach(&mut self, client: Client, address: u64, table: M::Table) -> Result<(), (Error, M::Table)> {
        let Client { process: client, family } = client;
        if !address.is_multiple_of(REGION_SIZE) || self.regions.contains_key(&(client, address)) {
            return Err((Error::BadRegion, table));
        }
        let mut pages = Vec::new();
        if !self.may_attach(family) || pages.try_reserve_exact(TABLE_ENTRIES).is_err() {
            return Err((Error::TooManyRegions, table));
        }
        pages.resize_with(TABLE_ENTRIES, || None);
        self.regions.insert((client, address), Region { family, table, pages, shown: 0 });
        Ok(())
    }

    /// Serves a region no longer: unmaps its pages, and frees those that no other region shows. Answers the table.
    ///
    /// # Errors
    /// `NoSuchRegion`.
    pub fn detach(&mut self, client: u64, address: u64) -> Result<M::Table, Error> {
        let region = self.regions.remove(&(client, address)).ok_or(Error::NoSuchRegion)?;
        for shown in region.pages.into_iter().flatten() {
            if let Some(mapping) = shown.mapping {
                self.memory.unmap(mapping);
            }
            self.pool.release(shown.page);
        }
        Ok(region.table)
    }

    /// Detaches all regions of a client that has ended. Answers their tables.
    pub fn forget(&mut self, client: u64) -> Vec<M::Table> {
        let addresses: Vec<u64> = self.regions_of(client).map(|(address, _)| address).collect();
        addresses.into_iter().filter_map(|address| self.detach(client, address).ok()).collect()
    }

    /// Lets the region of one client show what that of another shows, as it is now: from then on each sees only what it
    /// writes itself. Both begin at the same address; the second must be empty. Answers the number of pages.
    ///
    /// # Errors
    /// `NoSuchRegion`; `NotEmpty`; `Refused` if a page of the first could not be made read-only: then no page is
    /// shared.
    pub fn share(&mut self, from: u64, to: u64, address: u64) -> Result<u64, Error> {
        let target = self.regions.get(&(to, address)).ok_or(Error::NoSuchRegion)?;
        if from == to || target.pages.iter().any(Option::is_some) {
            return Err(Error::NotEmpty);
        }
        let source = self.regions.get_mut(&(from, address)).ok_or(Error::NoSuchRegion)?;
        // Before anything is shared, so that nobody writes what another sees. A page that is read-only and not shared
        // costs its owner one fault, no more.
        for shown in source.pages.iter_mut().flatten().filter(|shown| shown.writable) {
            if let Some(mapping) = &shown.mapping {
                self.memory.allow(mapping, false)?;
            }
            shown.writable = false;
        }
        let pages: Vec<Option<Page>> =
            source.pages.iter().map(|shown| shown.as_ref().map(|shown| shown.page)).collect();
        let target = self.regions.get_mut(&(to, address)).ok_or(Error::NoSuchRegion)?;
        let mut count = 0;
        for (place, page) in target.pages.iter_mut().zip(pages) {
            let Some(page) = page else { continue };
            self.pool.share(page);
            *place = Some(Shown { page, mapping: None, writable: false });
            count += 1;
        }
        target.shown = count as usize;
        Ok(count)
    }

    /// Serves a page fault. Afterwards the access is tried again.
    ///
    /// # Errors
    /// Why it cannot succeed: `NotMine` (outside of the client's regions, or an instruction fetch), `OutOfPages`,
    /// `Refused` (the kernel refused the mapping).
    pub fn fault(&mut self, client: Client, report: &Report) -> Result<(), Error> {
        let result = self.serve(client, report);
        self.statistics.refused += u64::from(result.is_err());
        result
    }

    fn serve(&mut self, client: Client, report: &Report) -> Result<(), Error> {
        let base = report.address & !(REGION_SIZE - 1);
        let entry = ((report.address - base) >> PAGE_BITS) as usize;
        let family = self.regions.get(&(client.process, base)).ok_or(Error::NotMine)?.family;
        let may_take = self.may_take_page(family);
        let Pager { memory, pool, regions, statistics, .. } = self;
        let region = regions.get_mut(&(client.process, base)).ok_or(Error::NotMine)?;
        let place = region.pages.get_mut(entry).ok_or(Error::NotMine)?;
        let write = match report.access() {
            Access::Read => false,
            Access::Write => true,
            Access::Execute => return Err(Error::NotMine),
        };
        let Some(shown) = place else {
            let page = may_take.then(|| pool.take()).flatten().ok_or(Error::OutOfPages)?;
            memory.zero(page);
            // Who reads first mostly writes next, so a page of one's own is writable at once.
            match memory.map(&region.table, entry, page, true) {
                Ok(mapping) => {
                    *place = Some(Shown { page, mapping: Some(mapping), writable: true });
                    region.shown += 1;
                }
                Err(error) => {
                    pool.release(page);
                    return Err(error);
                }
            }
            statistics.fresh += 1;
            return Ok(());
        };
        if write && !shown.writable && !pool.is_sole(shown.page) {
            if !may_take {
                return Err(Error::OutOfPages);
            }
            let counted = copy(memory, pool, &region.table, entry, shown);
            statistics.copied += u64::from(counted.is_ok());
            return counted;
        }
        let sole = pool.is_sole(shown.page);
        match &shown.mapping {
            None => {
                shown.mapping = Some(memory.map(&region.table, entry, shown.page, sole)?);
                shown.writable = sole;
                *(if sole { &mut statistics.kept } else { &mut statistics.joined }) += 1;
            }
            Some(mapping) if write && !shown.writable => {
                memory.allow(mapping, true)?;
                shown.writable = true;
                statistics.kept += 1;
            }
            // Another thread of the client was faster.
            Some(_) => {}
        }
        Ok(())
    }

    /// What has been done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics { free: self.pool.free() as u64, ..self.statistics }
    }

    /// Pages that are free.
    pub fn free(&self) -> usize {
        self.pool.free()
    }

    /// How pages are shown and filled.
    pub fn memory(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Checks that counts are how often pages are shown, and that what can be written is one region's alone.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let shown = || self.regions.values().flat_map(|region| region.pages.iter().flatten());
        self.pool.check_invariants(shown().map(|shown| shown.page))?;
        if self.regions.values().any(|region| region.shown != region.pages.iter().flatten().count()) {
            return Err("a region has not the number of pages that it says");
        }
        for shown in shown() {
            if shown.writable && !self.pool.is_sole(shown.page) {
                return Err("a page that several regions show can be written");
            }
            if shown.writable && shown.mapping.is_none() {
                return Err("a page that is not mapped can be written");
            }
        }
        Ok(())
    }
}

/// Gives a region a copy of a page that others show too, to be written.
fn copy<M: Memory>(
    memory: &mut M,
    pool: &mut Pool,
    table: &M::Table,
    entry: usize,
    shown: &mut Shown<M::Mapping>,
) -> Result<(), Error> {
    let page = pool.take().ok_or(Error::OutOfPages)?;
    memory.copy(shown.page, page);
    if let Some(mapping) = shown.mapping.take() {
        memory.unmap(mapping);
    }
    match memory.map(table, entry, page, true) {
        Ok(mapping) => {
            pool.release(shown.page);
            *shown = Shown { page, mapping: Some(mapping), writable: true };
            Ok(())
        }
        Err(error) => {
            // The region shows the old page still; the next touch maps it.
            pool.release(page);
            Err(error)
        }
    }
}
