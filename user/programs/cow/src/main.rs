//! Two processes that share pages until one of them writes: `cow`.
//!
//! ```text
//!   cow               the pager of both            parent                         child
//!     cow parent                                   fills 64 pages       ──1──►
//!     cow child                                                                   forks them; writes 16
//!                                                  sees its own   ◄──2──
//!                                                  writes 32 (8 of the child's)
//!                                                  ends                           sees its own
//!                     forgets the parent    ───────────────────────────3──►       writes the rest
//! ```
//! Pages that only one of them wrote were copied once; pages that both wrote were copied for the first and kept by the
//! second; and pages that the parent left behind are the child's without a copy. The program prints how many of each.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::format;

use tench::abi::Rights;
use tench::abi::fault::Report;
use tench::abi::layout::slot;
use tench::abi::memory::PAGE_SIZE;
use tench::memory::{self, make};
use tench::procs::Procs;
use tench::sys::{Cap, CapAddress, Endpoint, Notification};
use tench::{println, thread};
use tench_pager::client::{Region, Regions, paged};
use tench_pager::protocol::{PagerClient, Statistics};
use tench_pager::server::{Policy, Server};
use tench_pager::{Error, Frames, Pager};

tench::entry!(main);

/// The error of an operation.
type Problem = Box<dyn core::error::Error>;

/// Log2 of the number of pages that the pager has.
const POOL_BITS: u32 = 7;
/// Number of pages that the parent fills.
const PAGES: u64 = 64;
/// Number of pages that the child writes: the first ones.
const CHILDS: u64 = 16;
/// Pages that the parent writes afterwards: half of the child's among them.
const PARENTS: core::ops::Range<u64> = 8..40;
/// Numbers of the clients.
const PARENT: u64 = 1;
const CHILD: u64 = 2;
/// Capabilities that a client is given: the pager, and three notifications.
const PAGER: Cap<Endpoint> = Cap::new(slot::EXTRA);
const FILLED: Cap<Notification> = given(1);
const WRITTEN: Cap<Notification> = given(2);
const FORGOTTEN: Cap<Notification> = given(3);

const fn given(index: u32) -> Cap<Notification> {
    Cap::new(CapAddress(slot::EXTRA.0 + index))
}

fn main() -> Result<(), Problem> {
    match tench::args().nth(1) {
        None => pager(),
        Some("parent") => parent(),
        Some("child") => child(),
        Some(_) if tench::process::help("usage: cow") => Ok(()),
        Some(_) => Err("usage: cow".into()),
    }
}

/// A policy that lets the child, and no other client, see the parent's pages.
struct Family;

impl Policy for Family {
    fn may_fork(&mut self, client: u64, from: u64) -> bool {
        (client, from) == (CHILD, PARENT)
    }

    fn refused(&mut self, client: u64, report: &Report, error: Error) {
        println!("cow: client {client} is refused {:#x}: {error}", report.address);
    }
}

/// Starts both clients, serves them, and prints statistics.
fn pager() -> Result<(), Problem> {
    let endpoint = make::<Endpoint>(0)?;
    let at = endpoint.cap();
    let signals = [make::<Notification>(0)?, make::<Notification>(0)?, make::<Notification>(0)?];
    let frames = Frames::new(POOL_BITS)?;
    let pool = frames.pool();
    let all = pool.size();
    let server = thread::spawn(move || Server::new(at, Pager::new(frames, pool), Family).run().free());
    let start = |client: u64, role: &str| -> Result<u64, Problem> {
        let badged = at.mint_to(memory::take_slot()?, Rights::WRITE | Rights::CALL | Rights::GRANT, client)?;
        let mut spawn = Procs::STANDARD.prepare("cow")?;
        spawn.give(badged)?;
        for signal in &signals {
            spawn.give(signal.cap())?;
        }
        spawn.argument(role)?;
        Ok(spawn.start()?)
    };
    let (parent, child) = (start(PARENT, "parent")?, start(CHILD, "child")?);
    let parent = Procs::STANDARD.wait(parent)?.exit_code();
    report(at, "when the parent has ended")?;
    PagerClient::at(at).forget(PARENT)?;
    signals[2].cap().signal()?;
    let child = Procs::STANDARD.wait(child)?.exit_code();
    report(at, "when the child has ended")?;
    PagerClient::at(at).forget(CHILD)?;
    PagerClient::at(at).stop()?;
    let free = server.join();
    println!("cow: {free} of {all} pages are free again");
    match (parent, child) {
        (Some(0), Some(0)) if free == all => Ok(()),
        _ => Err(format!("the parent ended with {parent:?}, the child with {child:?}").into()),
    }
}

/// Prints the pager's statistics.
fn report(pager: Cap<Endpoint>, when: &str) -> Result<(), Problem> {
    let Statistics { fresh, copied, kept, joined, refused, free } = PagerClient::at(pager).statistics()?;
    println!(
        "cow: {when}: {fresh} pages new, {joined} shared for reading, {copied} copied, {kept} kept, {refused} refused; \
         {free} free"
    );
    Ok(())
}

/// Returns the offsets of the words of some pages.
fn words(pages: core::ops::Range<u64>) -> impl Iterator<Item = u64> {
    (pages.start * PAGE_SIZE as u64..pages.end * PAGE_SIZE as u64).step_by(8)
}

/// Returns the word that a client writes at an offset.
fn pattern(client: u64, offset: u64) -> u64 {
    client << 32 | offset
}

fn write(region: &Region, client: u64, pages: core::ops::Range<u64>) {
    words(pages).for_each(|offset| region.write64(offset, pattern(client, offset)));
}

fn holds(region: &Region, client: u64, pages: core::ops::Range<u64>) -> bool {
    words(pages).all(|offset| region.read64(offset) == pattern(client, offset))
}

/// Fills the parent's pages, and writes more when the child has written some of its own.
fn parent() -> Result<(), Problem> {
    let regions = Regions::new()?;
    let region = regions.attach(PAGER, 0)?;
    paged(PAGER, || write(&region, PARENT, 0..PAGES))?;
    FILLED.signal()?;
    WRITTEN.wait()?;
    let right = paged(PAGER, || {
        let unchanged = holds(&region, PARENT, 0..PAGES);
        write(&region, PARENT + 2, PARENTS);
        unchanged && holds(&region, PARENT + 2, PARENTS) && holds(&region, PARENT, 0..PARENTS.start)
    })?;
    if right { Ok(()) } else { Err("the parent does not see what it wrote".into()) }
}

/// Forks the parent's pages, and writes some before and the others after the parent has ended.
fn child() -> Result<(), Problem> {
    let regions = Regions::new()?;
    let region = regions.attach(PAGER, 0)?;
    FILLED.wait()?;
    let forked = region.fork_from(PARENT)?;
    let first = paged(PAGER, || {
        let same = holds(&region, PARENT, 0..PAGES);
        write(&region, CHILD, 0..CHILDS);
        same && holds(&region, CHILD, 0..CHILDS) && holds(&region, PARENT, CHILDS..PAGES)
    })?;
    WRITTEN.signal()?;
    FORGOTTEN.wait()?;
    let second = paged(PAGER, || {
        let own = holds(&region, CHILD, 0..CHILDS) && holds(&region, PARENT, CHILDS..PAGES);
        write(&region, CHILD, CHILDS..PAGES);
        own && holds(&region, CHILD, 0..PAGES)
    })?;
    if forked == PAGES && first && second { Ok(()) } else { Err("the child does not see what it should".into()) }
}
