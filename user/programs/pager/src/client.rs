//! The client: a process whose memory another process provides.

use alloc::vec;

use tench::abi::layout::slot;
use tench::abi::memory::PAGE_SIZE;
use tench::sys::{Cap, Endpoint};
use tench_pager::REGION_SIZE;
use tench_pager::client::{Region, Regions, paged};

use crate::Problem;

/// Number of pages that the client touches.
pub const PAGES: u64 = 64;
/// Number of bytes of memory on demand that the process touches when it handles its own faults again.
const OWN: usize = 1 << 20;
/// The pager, given by the process that started this one.
const PAGER: Cap<Endpoint> = Cap::new(slot::EXTRA);

/// Carries out a task, and checks the contents of the memory.
pub fn run(task: &str) -> Result<(), Problem> {
    let regions = Regions::new()?;
    let region = regions.attach(PAGER, 0)?;
    let right = match task {
        "work" => {
            let right = paged(PAGER, || work(&region))?;
            // The next pages are those that have just been given back.
            region.detach()?;
            let again = regions.attach(PAGER, 1)?;
            let zero = paged(PAGER, || (0..PAGES * PAGE_SIZE as u64).step_by(8).all(|at| again.read64(at) == 0));
            // The process handles its own faults again: its memory is populated on demand, without the pager.
            let own = vec![7u8; OWN];
            Ok(right && zero? && own.iter().step_by(PAGE_SIZE).all(|byte| *byte == 7))
        }
        "stray" => {
            let gone = regions.attach(PAGER, 1)?;
            gone.detach()?;
            paged(PAGER, || gone.read64(0) == 0)
        }
        _ => return Err("a client works or strays".into()),
    };
    if right? { Ok(()) } else { Err("the memory is not what it should be".into()) }
}

/// Reads and writes pages, the last ones first, so that no page comes in the order of addresses.
fn work(region: &Region) -> bool {
    let offset = |page: u64| page * PAGE_SIZE as u64 + page * 8;
    let zero = (0..PAGES).rev().step_by(2).all(|page| region.read64(offset(page)) == 0);
    (0..PAGES).for_each(|page| region.write64(offset(page), page * page + 1));
    (0..PAGE_SIZE as u64).step_by(8).for_each(|offset| region.write64(REGION_SIZE / 2 + offset, !0));
    let last = REGION_SIZE - 8;
    region.write64(last, 7);
    zero && (0..PAGES).all(|page| region.read64(offset(page)) == page * page + 1) && region.read64(last) == 7
}
