//! Costs of a page of memory on demand.
//!
//! ```text
//!   bench fault              the pager and parent of both
//!     bench fault-parent       touches new pages
//!     bench fault-child        forks them: reads, writes some, and the rest when the parent is gone
//! ```
//! | key | access |
//! |---|---|
//! | `lazy_upcall` | a store to a page of memory on demand: the process itself finds a page, has the kernel zero it, and maps it |
//! | `lazy_upcall_worst` | the most expensive of them: a block from the memory server and a page table, too |
//! | `lazy_run` | a fault that populates a run of 16 pages, as the pages before were populated |
//! | `lazy_in_order` | storing to each page of such memory in order: most are already populated |
//! | `lazy_external` | a store to a page of a region that an external pager provides: it zeroes and maps a new page |
//! | `cow_read` | a load from a page that another process maps too: mapped for reading |
//! | `cow_copy` | a store to one: copied, unmapped, and the copy mapped |
//! | `cow_last` | a store to one that no other process maps any more: made writable |
//!
//! Each is from before the instruction to after it, the kernel, the pager and both switches of address space included;
//! the mean over many pages, rounded down. The cost of two readings of the counter is subtracted.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::Rights;
use tench::abi::fault::Report;
use tench::abi::layout::slot;
use tench::abi::memory::PAGE_SIZE;
use tench::memory::{self, Anonymous, make};
use tench::procs::Procs;
use tench::sys::{Cap, CapAddress, Endpoint, Notification};
use tench::thread;
use tench::time::instructions;
use tench_pager::client::{Region, Regions, paged};
use tench_pager::protocol::PagerClient;
use tench_pager::server::{Policy, Server};
use tench_pager::{Error, Frames, Pager};

use crate::support::{decimal, figure, problem};

/// Log2 of the pager's pages.
const POOL_BITS: u32 = 9;
/// Pages that the parent touches.
const PAGES: u64 = 256;
/// Pages that the child writes while the parent maps them, too.
const COPIED: u64 = 128;
/// First accesses, which do not count: the libraries allocate what they keep.
const WARM_UP: u64 = 8;
/// Pages of the largest run.
const RUN: u64 = 16;
/// Numbers of the clients.
const PARENT: u64 = 1;
const CHILD: u64 = 2;
/// Slot of the pager that a client is given.
const PAGER: Cap<Endpoint> = Cap::new(slot::EXTRA);
const FILLED: Cap<Notification> = given(1);
const COPIES_MADE: Cap<Notification> = given(2);
const FORGOTTEN: Cap<Notification> = given(3);

const fn given(index: u32) -> Cap<Notification> {
    Cap::new(CapAddress(slot::EXTRA.0 + index))
}

/// A policy that lets the child see the parent's pages.
struct Family;

impl Policy for Family {
    fn may_fork(&mut self, client: u64, from: u64) -> bool {
        (client, from) == (CHILD, PARENT)
    }

    fn refused(&mut self, client: u64, report: &Report, error: Error) {
        tench::println!("note: client {client} is refused {:#x}: {error}", report.address);
    }
}

/// Starts a client.
fn start(pager: Cap<Endpoint>, client: u64, role: &str, signals: &[Cap<Notification>; 3]) -> Result<u64, String> {
    let slot = memory::take_slot().map_err(problem("a slot"))?;
    let rights = Rights::WRITE | Rights::CALL | Rights::GRANT;
    let badged = pager.mint_to(slot, rights, client).map_err(problem("a capability for the client"))?;
    let starting = || {
        let mut spawn = Procs::STANDARD.prepare("bench")?;
        spawn.give(badged)?;
        for signal in signals {
            spawn.give(*signal)?;
        }
        spawn.argument(role)?;
        spawn.start()
    };
    starting().map_err(problem(role))
}

/// Waits until a client has ended successfully.
fn wait(process: u64) -> Result<(), String> {
    let status = Procs::STANDARD.wait(process).map_err(problem("waiting for a client"))?;
    if status.exit_code() == Some(0) { Ok(()) } else { Err(format!("{} has not measured", status.name)) }
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    self_paging()?;
    let endpoint = make::<Endpoint>(0).map_err(problem("an endpoint"))?;
    let pager = endpoint.cap();
    let notification = || make::<Notification>(0).map_err(problem("a notification"));
    let made = [notification()?, notification()?, notification()?];
    let signals = [made[0].cap(), made[1].cap(), made[2].cap()];
    let frames = Frames::new(POOL_BITS).map_err(problem("pages"))?;
    let pool = frames.pool();
    let server = thread::spawn(move || Server::new(pager, Pager::new(frames, pool), Family).run().free());
    let own = PagerClient::at(pager);
    let parent = start(pager, PARENT, "fault-parent", &signals)?;
    let child = start(pager, CHILD, "fault-child", &signals)?;
    wait(parent)?;
    own.forget(PARENT).map_err(problem("forgetting"))?;
    signals[2].signal().map_err(problem("a signal"))?;
    wait(child)?;
    own.forget(CHILD).map_err(problem("forgetting"))?;
    own.stop().map_err(problem("stopping"))?;
    match server.join() {
        free if free == 1 << POOL_BITS => Ok(()),
        free => Err(format!("only {free} pages came back")),
    }
}

/// Stores to some pages of new memory, and returns the cost of each.
fn touches(pages: impl Iterator<Item = u64>, size: u64) -> Result<Vec<u64>, String> {
    let memory = Anonymous::new(size as usize * PAGE_SIZE).map_err(problem("addresses"))?;
    let pointer = core::ptr::with_exposed_provenance_mut::<u64>(memory.address());
    let mut costs = Vec::with_capacity(PAGES as usize);
    let before = instructions();
    let readings = instructions() - before;
    for page in pages {
        let before = instructions();
        // SAFETY: the address lies in memory that only this function uses.
        unsafe { pointer.wrapping_byte_add(page as usize * PAGE_SIZE).write_volatile(page) };
        costs.push(instructions() - before - readings);
    }
    Ok(costs)
}

/// Prints the mean of some costs.
fn mean(key: &str, costs: &[u64]) {
    figure(key, decimal(costs.iter().sum(), costs.len() as u64));
}

/// Measures this process's own handler: a page without neighbours, and runs of pages.
fn self_paging() -> Result<(), String> {
    let apart = touches((0..PAGES).map(|page| page * 2), PAGES * 2)?;
    mean("lazy_upcall", &apart[WARM_UP as usize..]);
    figure("lazy_upcall_worst", apart.iter().max().copied().unwrap_or(0));
    let in_order = touches(0..PAGES, PAGES)?;
    let in_order = &in_order[RUN as usize..];
    mean("lazy_in_order", in_order);
    let runs: Vec<u64> = in_order.iter().step_by(RUN as usize).copied().collect();
    mean("lazy_run", &runs);
    // Nothing else may fault, or runs are shorter than that.
    let rest = in_order.iter().sum::<u64>() - runs.iter().sum::<u64>();
    if rest < in_order.len() as u64 * 4 { Ok(()) } else { Err(format!("runs are not {RUN} pages")) }
}

/// Accesses pages, and prints the mean cost.
fn measure(key: &str, pages: core::ops::Range<u64>, touch: impl Fn(u64)) -> Result<(), String> {
    let before = instructions();
    let readings = instructions() - before;
    let counted = pages.end - pages.start - WARM_UP;
    let first = pages.start + WARM_UP;
    let sum = paged(PAGER, || {
        let mut sum = 0;
        for page in pages {
            let before = instructions();
            touch(page);
            let cost = instructions() - before - readings;
            sum += if page < first { 0 } else { cost };
        }
        sum
    });
    let sum = sum.map_err(problem(key))?;
    figure(key, sum / counted);
    Ok(())
}

/// Attaches a region to this process.
fn attach(regions: &Result<Regions, memory::Error>) -> Result<Region, String> {
    let regions = regions.as_ref().map_err(problem("tables"))?;
    regions.attach(PAGER, 0).map_err(problem("attaching a region"))
}

/// Runs the first client.
pub fn parent() -> Result<(), String> {
    let regions = Regions::new();
    let region = attach(&regions)?;
    measure("lazy_external", 0..PAGES, |page| region.write64(page * PAGE_SIZE as u64, page))?;
    FILLED.signal().and_then(|()| COPIES_MADE.wait()).map_err(problem("signals"))?;
    Ok(())
}

/// Runs the second client.
pub fn child() -> Result<(), String> {
    let regions = Regions::new();
    let region = attach(&regions)?;
    FILLED.wait().map_err(problem("signals"))?;
    region.fork_from(PARENT).map_err(problem("forking"))?;
    let read = |page: u64| assert_eq!(region.read64(page * PAGE_SIZE as u64), page);
    let write = |page: u64| region.write64(page * PAGE_SIZE as u64 + 8, page);
    measure("cow_read", 0..PAGES, read)?;
    measure("cow_copy", 0..COPIED, write)?;
    COPIES_MADE.signal().and_then(|()| FORGOTTEN.wait()).map_err(problem("signals"))?;
    measure("cow_last", COPIED..PAGES, write)
}
