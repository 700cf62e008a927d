//! A case with an external pager of this program that serves a good client beside hostile ones.

use tench::abi::fault::Report;
use tench::abi::memory::PAGE_SIZE;
use tench::memory::make;
use tench::sys::{Cap, Endpoint, Message};
use tench::thread;
use tench_pager::client::{Region, Regions, paged};
use tench_pager::protocol::PagerClient;
use tench_pager::server::{Policy, Server};
use tench_pager::{Error, Frames, Pager, REGION_SIZE};
use tench_protocol::label;
use tench_random::Random;

use super::work::Meter;
use super::{Scene, badged, play};
use crate::case::{Failure, Outcome};
use crate::child::Arguments;

/// Log2 of the number of pages that the pager has.
const POOL_BITS: u32 = 8;
/// Number of the good client. Hostile clients' numbers are their process numbers; they know none that is 1.
const GOOD: u64 = 1;
/// Pages that the good client touches.
const PAGES: u64 = 12;
/// Regions of a hostile client, which it attaches one after another and at the same time.
const REGIONS: u64 = 40;

/// A policy under which no client sees another's regions. A client that touches what it may not stays faulted.
struct Private;

impl Policy for Private {
    fn may_fork(&mut self, _: u64, _: u64) -> bool {
        false
    }

    fn refused(&mut self, _: u64, _: &Report, _: Error) {}
}

/// Runs the case.
pub fn serve_beside_enemies() -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let at = endpoint.cap();
    let frames = Frames::new(POOL_BITS)?;
    let pool = frames.pool();
    let pager = thread::spawn(move || Server::new(at, Pager::fair(frames, pool), Private).run().free());
    let good = badged(at, GOOD)?;
    let regions = Regions::new()?;
    let work = |number| work(&regions, good, number);
    let outcome = play(&Scene { server: "pager", work: &work, turns: 0, endpoint: Some(at) });
    let own = PagerClient::at(at);
    let free = own.statistics().map(|statistics| statistics.free);
    own.stop().map_err(|_| Failure::new("the pager does not stop"))?;
    let all = pager.join();
    good.delete()?;
    tench::memory::free_slot(good.address());
    outcome?;
    equal!((free.ok(), all), (Some(1 << POOL_BITS), 1 << POOL_BITS));
    Ok(())
}

/// Removes a hostile client that has ended.
pub fn forget(pager: Cap<Endpoint>, client: u64) -> Outcome {
    PagerClient::at(pager).forget(client).map_err(|_| Failure::new("the pager does not forget a client"))
}

/// Touches pages that must be zero, writes and reads them, and checks that they are zero again after they were given
/// back.
fn work(regions: &Regions, pager: Cap<Endpoint>, number: u64) -> Outcome<u64> {
    let mut meter = Meter(0);
    let refused = |_| Failure::new("the pager refused a region");
    let region = meter.of(|| regions.attach(pager, number)).map_err(refused)?;
    let word = |page: u64| page << 32 | number;
    let offset = |page: u64| page * PAGE_SIZE as u64 + page * 8;
    let pages = 0..PAGES;
    let right = meter.of(|| {
        paged(pager, || {
            let zero = pages.clone().all(|page| region.read64(offset(page)) == 0);
            pages.clone().for_each(|page| region.write64(offset(page), word(page)));
            zero && pages.clone().all(|page| region.read64(offset(page)) == word(page))
        })
    })?;
    check!(right);
    meter.of(|| region.detach()).map_err(|_| Failure::new("the pager keeps a region"))?;
    Ok(meter.0)
}

/// Returns a request that may be valid: for the client's own regions, with tables or not, or for others'.
pub fn request(random: &mut Random) -> Message {
    let method = 1 + random.below(6) as u16;
    let mut message = Message::new(label(PagerClient::<()>::INTERFACE, PagerClient::<()>::VERSION, method));
    message.push(tench_pager::client::BASE + random.below(4 * REGIONS) * REGION_SIZE);
    match method {
        1 => _ = message.copy_cap(tench::sys::CapAddress(random.object() as u32)),
        3 | 4 => _ = message.push(random.below(200)),
        _ => {}
    }
    message
}

/// Touches pages for ever: all that it can get, sometimes of a region that it has given back.
pub fn touch(pager: Cap<Endpoint>, seed: u64) -> Option<()> {
    let mut random = Random::new(seed);
    let regions = Regions::new().ok()?;
    let mut held: [Option<Region>; REGIONS as usize] = [const { None }; REGIONS as usize];
    for round in 0u64.. {
        let index = random.below(REGIONS);
        let entry = &mut held[index as usize];
        match entry {
            Some(region) if random.below(8) == 0 => {
                let _ = region.detach();
                // Rarely, because this ends the thread.
                if round < 1000 || random.below(200) > 0 {
                    *entry = None;
                }
            }
            Some(region) => {
                let first = random.below(500);
                let touched = || (first..first + 8).for_each(|page| region.write64(page * PAGE_SIZE as u64, page));
                paged(pager, touched).ok()?;
            }
            None => *entry = regions.attach(pager, index).ok(),
        }
    }
    None
}
