//! Regions, and the handling of faults in them.
//!
//! The state of a page of a region:
//!
//! ```text
//!            first touch                     share                     write, another shows the page
//!   empty ─────────────────► own, writable ─────────► shared, read-only ──────────────► own (a copy)
//!                                 ▲                      │  write, nobody else shows it
//!                                 └──────────────────────┘
//! ```
//! A shared page is mapped for reading in the region that had it, and not mapped in the one that received it: there the
//! first touch maps it. When the other region releases the page, nothing needs to be done: at the next write, the
//! page's count says that it has only one region.
//!
//! Every function keeps the invariants of [`Pager::check_invariants`], also when it fails midway.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tench::abi::fault::{Access, Report};
use tench::abi::memory::{PAGE_BITS, TABLE_ENTRIES};
use tench_quota::{Client, allows};

use crate::REGION_SIZE;
use crate::pool::{Page, Pool};
use crate::protocol::{Error, Statistics};

/// Operations on pages: by the kernel, or in tests by a table.
pub trait Memory {
    /// Type of a client's page table.
    type Table;
    /// Type of a mapping of a page at one entry of a table.
    type Mapping;

    /// Maps a page at an empty entry of a table.
    ///
    /// # Errors
    /// Fails with `Refused` if the page could not be mapped, most likely because the table is gone. Then nothing has
    /// changed.
    fn map(&mut self, table: &Self::Table, entry: usize, page: Page, writable: bool) -> Result<Self::Mapping, Error>;

    /// Changes a mapping to reading only, or to reading and writing.
    ///
    /// # Errors
    /// Fails with `Refused` if the mapping is gone.
    fn allow(&mut self, mapping: &Self::Mapping, writable: bool) -> Result<(), Error>;

    /// Unmaps a page.
    fn unmap(&mut self, mapping: Self::Mapping);

    /// Fills a page with zeros.
    fn zero(&mut self, page: Page);

    /// Copies a page.
    fn copy(&mut self, from: Page, to: Page);
}

/// A page of a region.
struct Shown<M> {
    page: Page,
    /// Mapping of the page; `None` until the first touch.
    mapping: Option<M>,
    /// Set if the mapping allows writing: then only this region has the page.
    writable: bool,
}

/// 2 MiB of a client's addresses.
struct Region<M: Memory> {
    /// The family for which it counts.
    family: u64,
    table: M::Table,
    pages: Vec<Option<Shown<M::Mapping>>>,
    /// Number of its pages.
    shown: usize,
}

/// Maximum number of regions of a pager for clients that do not trust each other.
pub const MAX_REGIONS: usize = 256;

/// The state of a pager. Clients are numbers: the processes in the badges of their capabilities, or numbers assigned by
/// the pager's owner.
pub struct Pager<M: Memory> {
    memory: M,
    pool: Pool,
    /// Regions by client and first address.
    regions: BTreeMap<(u64, u64), Region<M>>,
    statistics: Statistics,
    is_fair: bool,
}

impl<M: Memory> Pager<M> {
    /// Returns a pager with free pages and no clients. The first client may take all pages.
    pub fn new(memory: M, pool: Pool) -> Pager<M> {
        Pager { memory, pool, regions: BTreeMap::new(), statistics: Statistics::default(), is_fair: false }
    }

    /// As [`new`](Self::new), for clients that do not trust each other: a client may get one more page while its family
    /// has fewer than are free, and one more region while its family has fewer than are free of [`MAX_REGIONS`].
    pub fn fair(memory: M, pool: Pool) -> Pager<M> {
        Pager { is_fair: true, ..Pager::new(memory, pool) }
    }

    /// Returns the regions of a client.
    fn regions_of(&self, client: u64) -> impl Iterator<Item = (u64, &Region<M>)> {
        self.regions.range((client, 0)..=(client, u64::MAX)).map(|((_, address), region)| (*address, region))
    }

    /// Returns the regions of a family.
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

    /// Attaches a region: the 2 MiB from `address` on, which `table` maps.
    ///
    /// # Errors
    /// Fails with `BadRegion` if the address is no multiple of 2 MiB, or if the region is attached already, and with
    /// `TooManyRegions`.
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

    /// Detaches a region: unmaps its pages, and frees those that no other region has. Returns the table.
    ///
    /// # Errors
    /// Fails with `NoSuchRegion`.
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

    /// Detaches all regions of a client that has ended. Returns their tables.
    pub fn forget(&mut self, client: u64) -> Vec<M::Table> {
        let addresses: Vec<u64> = self.regions_of(client).map(|(address, _)| address).collect();
        addresses.into_iter().filter_map(|address| self.detach(client, address).ok()).collect()
    }

    /// Gives the region of one client the pages that another client's region has now: from then on each sees only its
    /// own writes. Both begin at the same address; the receiving one must be empty. Returns the number of pages.
    ///
    /// # Errors
    /// Fails with `NoSuchRegion`, with `NotEmpty`, and with `Refused` if a page of the first could not be made
    /// read-only: then no page is shared.
    pub fn share(&mut self, from: u64, to: u64, address: u64) -> Result<u64, Error> {
        let target = self.regions.get(&(to, address)).ok_or(Error::NoSuchRegion)?;
        if from == to || target.pages.iter().any(Option::is_some) {
            return Err(Error::NotEmpty);
        }
        let source = self.regions.get_mut(&(from, address)).ok_or(Error::NoSuchRegion)?;
        // This comes before anything is shared, so that no write is seen by the other. A page that is read-only and not
        // shared costs its owner only one fault.
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

    /// Handles a page fault. Afterwards the access is tried again.
    ///
    /// # Errors
    /// Fails if the access cannot succeed, with `NotMine` (outside of the client's regions, or an instruction fetch),
    /// `OutOfPages`, or `Refused` (the kernel refused the mapping).
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
            // A client that reads first mostly writes next, so an unshared page is writable at once.
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

    /// Returns the statistics so far.
    pub fn statistics(&self) -> Statistics {
        Statistics { free: self.pool.free() as u64, ..self.statistics }
    }

    /// Returns the number of free pages.
    pub fn free(&self) -> usize {
        self.pool.free()
    }

    /// Returns the page operations.
    pub fn memory(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Checks that each page's count is the number of its regions, and that only unshared pages are writable.
    ///
    /// # Errors
    /// Fails with the violated invariant.
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

/// Gives a region its own writable copy of a page that others have, too.
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
            // The region still has the old page; the next touch maps it.
            pool.release(page);
            Err(error)
        }
    }
}
