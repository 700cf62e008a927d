//! Random operations against a slow model of which page belongs to which region, and what is mapped there. Every step
//! compares the metadata, the model, and what the hardware would find; every call of the backend fails once.

mod machine;

use std::collections::BTreeMap;

use machine::{Machine, ROOT, Refused};
use proptest::prelude::*;
use tench_abi::fault::Access;
use tench_abi::memory::MapFlags;
use tench_paging::{Error, FrameCap, Kind, Paging, Request, Verdict};
use tench_random::Random;

const PAGE: u64 = 4096;
/// An address range around a boundary of tables of level 2 and 3.
const LOW: u64 = (0x1000_0000_0000 + (1 << 30)) - (8 << 20);
const HIGH: u64 = LOW + (24 << 20);
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);
const RX: MapFlags = MapFlags::READ.union(MapFlags::EXECUTE);

/// A page that belongs to a region.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Page {
    region: u32,
    kind: Kind,
    flags: MapFlags,
    fault_around: u8,
    mapped: Option<(u32, u64, MapFlags)>,
}

/// An encoded operation.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    position: u32,
    size: u32,
    extra: u32,
}

struct Bench {
    paging: Paging,
    machine: Machine,
    pages: BTreeMap<u64, Page>,
    regions: u32,
    frames: Vec<FrameCap>,
}

type Outcome = Result<(), Error<Refused>>;

impl Bench {
    fn new() -> Bench {
        let (mut paging, mut machine) = (Paging::new(), Machine::new());
        paging.initialise(ROOT, LOW, HIGH);
        let frames = [12, 13, 16, 21, 22].map(|bits| machine.frame(bits)).to_vec();
        Bench { paging, machine, pages: BTreeMap::new(), regions: 0, frames }
    }

    fn range(start: u64, size: u64) -> impl Iterator<Item = u64> {
        (start..start + size).step_by(PAGE as usize)
    }

    fn is_free(&self, start: u64, size: u64) -> bool {
        self.pages.range(start..start + size).next().is_none()
    }

    fn add(&mut self, start: u64, request: &Request) {
        let &Request { size, kind, flags, fault_around, guard, .. } = request;
        let parts =
            [(start - guard, guard, Kind::Guard, MapFlags::empty(), 0), (start, size, kind, flags, fault_around)];
        for (start, size, kind, flags, fault_around) in parts {
            self.regions += 1;
            for address in Self::range(start, size) {
                let page = Page { region: self.regions, kind, flags, fault_around, mapped: None };
                assert!(self.pages.insert(address, page).is_none(), "{address:#x} was free");
            }
        }
    }

    /// Divides a region: pages from `address` on no longer belong to the same region as those before.
    fn split(&mut self, address: u64) {
        let region = |page: Option<&Page>| page.map(|page| page.region);
        let before = region(self.pages.get(&(address - PAGE)));
        if before.is_some() && before == region(self.pages.get(&address)) {
            self.regions += 1;
            for (_, page) in self.pages.range_mut(address..).take_while(|(_, page)| Some(page.region) == before) {
                page.region = self.regions;
            }
        }
    }

    /// Returns whether a request can be granted at an arbitrary address.
    fn surely_fits(&self, request: &Request) -> bool {
        let alignment = request.alignment.max(PAGE);
        let need = request.guard.next_multiple_of(alignment) + request.size + alignment - PAGE;
        let mut free = LOW;
        for taken in self.pages.range(LOW..HIGH).map(|(address, _)| *address).chain([HIGH]) {
            if taken >= free + need {
                return true;
            }
            free = taken + PAGE;
        }
        false
    }

    fn request(step: Step) -> Request {
        let size = match step.extra >> 8 & 7 {
            0 => u64::from(step.size % 1500 + 1) * PAGE,
            _ => u64::from(step.size % 16 + 1) * PAGE,
        };
        let alignment = if step.extra >> 12 & 3 == 0 { PAGE << (step.extra >> 14 & 7) } else { 0 };
        let guard = if step.extra >> 17 & 3 == 0 { PAGE * u64::from(step.extra >> 19 & 3) } else { 0 };
        let flags = if step.extra >> 21 & 1 == 0 { RW } else { MapFlags::READ };
        let fault_around = if step.extra >> 22 & 1 == 0 { 12 + (step.extra >> 23 & 3) as u8 } else { 0 };
        Request { size, alignment, kind: Kind::Anonymous, flags, fault_around, guard }
    }

    /// Returns an address, mostly in or near reserved addresses.
    fn address(&self, step: Step) -> u64 {
        let all = LOW + u64::from(step.position) % ((HIGH - LOW) / PAGE) * PAGE;
        if step.extra & 1 == 0 {
            return all;
        }
        let near = self.pages.range(all..).next().map_or(all, |(address, _)| *address);
        (near - u64::from(step.extra >> 2 & 3) * PAGE).max(LOW)
    }

    fn size(&self, step: Step, address: u64) -> u64 {
        let pages = if step.extra >> 4 & 15 == 0 { step.size % 2000 } else { step.size % 24 };
        (u64::from(pages + 1) * PAGE).min(HIGH - address)
    }

    /// Performs one operation, and checks that the model agrees; the model changes only if the operation succeeded.
    fn step(&mut self, step: Step) -> Outcome {
        let address = self.address(step);
        let size = self.size(step, address);
        match step.what % 10 {
            0 => self.alloc(&Self::request(step)),
            1 => self.alloc_fixed(address, &Request { size, ..Self::request(step) }),
            2 => self.map(self.frames[step.size as usize % self.frames.len()], RW),
            3 | 4 => self.map_fixed(address, step),
            5 => self.unmap(address, size),
            6 => self.protect(address, size, [RW, MapFlags::READ, RX][step.size as usize % 3]),
            7 => self.populate_page(address),
            8 => self.go_through(address, step),
            _ => self.clear(address, size),
        }
    }

    fn alloc(&mut self, request: &Request) -> Outcome {
        match self.paging.alloc(&mut self.machine, request) {
            Ok(address) => {
                assert!(address % request.alignment.max(PAGE) == 0);
                assert!(address - request.guard >= LOW && address + request.size <= HIGH);
                self.add(address, request);
                Ok(())
            }
            Err(Error::NoAddresses) => {
                assert!(!self.surely_fits(request), "{request:x?} would fit");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn alloc_fixed(&mut self, address: u64, request: &Request) -> Outcome {
        let free = self.is_free(address - request.guard, request.size + request.guard);
        match self.paging.alloc_fixed(&mut self.machine, address, request) {
            Ok(()) => {
                assert!(free);
                self.add(address, request);
                Ok(())
            }
            Err(Error::Taken) => {
                assert!(!free);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn show(&mut self, start: u64, size: u64, frame: u32, offset: u64, flags: MapFlags) {
        for address in Self::range(start, size) {
            let page = self.pages.get_mut(&address).expect("what is mapped is reserved");
            assert_eq!(page.mapped.replace((frame, offset + address - start, flags)), None);
        }
    }

    fn map(&mut self, frame: FrameCap, flags: MapFlags) -> Outcome {
        let size = 1 << frame.bits;
        let alignment = if size < 2 << 20 { PAGE } else { size };
        let request = Request { flags, alignment, ..Request::reserved(size, Kind::Frame) };
        match self.paging.map(&mut self.machine, frame, flags) {
            Ok(address) => {
                assert_eq!(address % alignment, 0);
                self.add(address, &request);
                self.show(address, size, frame.cap.0, 0, flags);
                Ok(())
            }
            Err(Error::NoAddresses) => {
                assert!(!self.surely_fits(&request));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn map_fixed(&mut self, address: u64, step: Step) -> Outcome {
        let frame = self.frames[step.size as usize % self.frames.len()];
        // Sometimes aligned so that large pages fit.
        let address = if step.extra >> 26 & 3 == 0 { address & !((2 << 20) - 1) } else { address }.max(LOW);
        let offset = ((u64::from(step.extra) * PAGE) >> 8 & !0xfff) % (1 << frame.bits);
        let offset = if step.extra >> 28 & 1 == 0 { 0 } else { offset };
        let size = ((1 << frame.bits) - offset).min(HIGH - address);
        let flags = [RW, MapFlags::READ, RX][step.position as usize % 3];
        let pages: Vec<Option<Page>> = Self::range(address, size).map(|at| self.pages.get(&at).copied()).collect();
        let expected = match pages[0] {
            _ if pages.iter().all(Option::is_none) => Ok(()),
            None => Err(Error::NotAllocated),
            Some(page) if page.kind == Kind::Guard => Err(Error::NotAllocated),
            Some(page) if pages.iter().any(|other| other.is_none_or(|other| other.region != page.region)) => {
                Err(Error::SeveralRegions)
            }
            _ if pages.iter().flatten().any(|page| page.mapped.is_some()) => Err(Error::Mapped),
            _ => Ok(()),
        };
        let done = self.paging.map_fixed(&mut self.machine, address, frame, offset, size, flags);
        if let Err(Error::Backend(_) | Error::NoMetadata) = done {
            return done;
        }
        assert_eq!(done, expected);
        if done.is_ok() {
            if pages[0].is_none() {
                self.add(address, &Request { flags, ..Request::reserved(size, Kind::Frame) });
            }
            self.show(address, size, frame.cap.0, offset, flags);
        }
        Ok(())
    }

    fn unmap(&mut self, address: u64, size: u64) -> Outcome {
        self.paging.unmap(&mut self.machine, address, size)?;
        self.split(address);
        self.split(address + size);
        self.pages.retain(|at, _| !(address..address + size).contains(at));
        Ok(())
    }

    fn clear(&mut self, address: u64, size: u64) -> Outcome {
        self.paging.clear(&mut self.machine, address, size)?;
        self.pages.range_mut(address..address + size).for_each(|(_, page)| page.mapped = None);
        Ok(())
    }

    fn protect(&mut self, address: u64, size: u64, flags: MapFlags) -> Outcome {
        let all = Self::range(address, size).all(|at| self.pages.get(&at).is_some_and(|page| page.kind != Kind::Guard));
        match self.paging.protect(&mut self.machine, address, size, flags) {
            Ok(()) => {
                assert!(all);
                self.split(address);
                self.split(address + size);
                for (_, page) in self.pages.range_mut(address..address + size) {
                    page.flags = flags;
                    page.mapped = page.mapped.map(|(frame, offset, _)| (frame, offset, flags));
                }
                Ok(())
            }
            Err(Error::NotAllocated) => {
                assert!(!all);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn populate_page(&mut self, address: u64) -> Outcome {
        let page = self.pages.get(&address).copied();
        let frames = self.machine.frames.len();
        match self.paging.populate_page(&mut self.machine, address) {
            Ok(()) => {
                let page = page.expect("only regions are backed");
                assert!(page.fault_around > 0);
                if page.mapped.is_some() {
                    assert_eq!(self.machine.frames.len(), frames);
                    return Ok(());
                }
                // Whichever range was populated: its frame is new, and its pages are this region's and were empty.
                let (frame, offset, flags) = self.machine.resolve(address).expect("it is mapped now");
                assert_eq!((self.machine.frames.len(), flags), (frames + 1, page.flags));
                let bits = self.machine.frames[&frame].0;
                let start = address - offset;
                assert!(bits <= self.most(address, &page) && start.is_multiple_of(1 << bits));
                let region = |at| self.pages[&at].region;
                assert!(Self::range(start, 1 << bits).all(|at| region(at) == page.region));
                self.show(start, 1 << bits, frame, 0, page.flags);
                Ok(())
            }
            Err(Error::NotAllocated) => {
                assert!(page.is_none_or(|page| page.fault_around == 0));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns log2 of the bytes that may be populated at once with a page: the fault-around size, or twice the run
    /// next to it.
    fn most(&self, address: u64, page: &Page) -> u8 {
        let run = |next: u64, back: bool| {
            let Some(other) = self.pages.get(&next) else { return 0 };
            let Some((frame, mut offset, _)) = other.mapped else { return 0 };
            if other.region != page.region || !self.machine.frames[&frame].1 {
                return 0;
            }
            // Pages that map the same frame in the same order.
            let mut pages = 0;
            let mut at = next;
            while let Some((f, o, _)) = self.pages.get(&at).and_then(|page| page.mapped)
                && (f, o) == (frame, offset)
            {
                pages += 1;
                at = if back { at - PAGE } else { at + PAGE };
                offset = if back { offset.wrapping_sub(PAGE) } else { offset + PAGE };
            }
            pages
        };
        let pages: u64 = run(address - PAGE, true).max(run(address + PAGE, false));
        let bits = if pages == 0 { 12 } else { 12 + pages.ilog2() as u8 + 1 };
        bits.min(16).max(page.fault_around)
    }

    /// Touches successive pages, upwards or downwards.
    fn go_through(&mut self, address: u64, step: Step) -> Outcome {
        let count = u64::from(step.size % 48);
        for page in 0..count {
            let at = if step.extra >> 1 & 1 == 0 { address + page * PAGE } else { address.wrapping_sub(page * PAGE) };
            if (LOW..HIGH).contains(&at) {
                self.populate_page(at)?;
            }
        }
        Ok(())
    }

    /// Compares an address with the model.
    fn check(&self, address: u64) {
        let page = self.pages.get(&address);
        let mapped = page.and_then(|page| page.mapped);
        assert_eq!(self.machine.resolve(address), mapped, "the hardware at {address:#x}");
        let shown = self.paging.shown(address).map(|(_, frame, offset, flags)| (frame.0, offset, flags));
        assert_eq!(shown, mapped, "the shadow entry at {address:#x}");
        let region = self.paging.find(address).map(|region| (region.kind, region.flags, region.fault_around));
        assert_eq!(region, page.map(|page| (page.kind, page.flags, page.fault_around)), "the region at {address:#x}");
        let verdict = self.paging.classify(address, Access::Write);
        let fits = match (page, verdict) {
            (None, verdict) => verdict == Verdict::NotAllocated,
            (Some(page), Verdict::Guard(_)) => page.kind == Kind::Guard,
            (Some(page), Verdict::Mapped(..)) => page.mapped.is_some_and(|(_, _, flags)| flags.contains(RW)),
            (Some(page), Verdict::Rights(_)) => !page.mapped.map_or(page.flags, |(_, _, flags)| flags).contains(RW),
            (Some(page), Verdict::Lazy(_)) => page.mapped.is_none() && page.fault_around > 0 && page.flags == RW,
            (Some(page), Verdict::NotPopulated(_)) => page.mapped.is_none() && page.fault_around == 0,
            (Some(_), Verdict::Null | Verdict::NotAllocated) => false,
        };
        assert!(fits, "{page:?} and {verdict:?} at {address:#x}");
    }

    fn check_around(&self, step: Step) {
        let address = self.address(step);
        let around = Self::range(address.saturating_sub(4 * PAGE), 40 * PAGE);
        around.filter(|at| (LOW..HIGH).contains(at)).for_each(|at| self.check(at));
    }

    fn check_all(&self) {
        self.paging.check_invariants();
        Self::range(LOW, HIGH - LOW).for_each(|at| self.check(at));
        let (mappings, frames, slots) = self.machine.counts();
        let account = self.paging.account();
        assert_eq!((account.mappings, account.frames, account.tables), (mappings, frames, self.machine.tables()));
        assert_eq!(slots, mappings, "every slot taken is a mapping's");
    }

    /// Performs the step after letting one call of the backend in it fail, or all from that one on.
    fn step_with_failure(&mut self, step: Step, call: u64, for_ever: bool) {
        (self.machine.fails_at, self.machine.for_ever) = (Some(self.machine.calls + 1 + call), for_ever);
        let outcome = self.step(step);
        self.machine.fails_at = None;
        match outcome {
            Ok(()) => {}
            Err(_) if matches!(step.what % 10, 5 | 6 | 8 | 9) => {
                // The operation may be partly done. The metadata is consistent, and the rest can be done.
                self.paging.check_invariants();
                self.shadow_tables_equal_the_hardware();
                if for_ever {
                    self.accept_what_is_mapped();
                }
                assert_eq!(self.step(step), Ok(()));
            }
            Err(_) => {
                if for_ever {
                    self.accept_what_is_mapped();
                } else {
                    self.check_around(step);
                    assert_eq!(self.step(step), Ok(()));
                }
            }
        }
    }

    fn shadow_tables_equal_the_hardware(&self) {
        for address in Self::range(LOW, HIGH - LOW) {
            let shown = self.paging.shown(address).map(|(_, frame, offset, flags)| (frame.0, offset, flags));
            assert_eq!(shown, self.machine.resolve(address));
        }
    }

    /// Adapts the model after a failure whose undoing failed too: mappings may be lost, and regions may be left, but
    /// the metadata must still match the hardware.
    fn accept_what_is_mapped(&mut self) {
        self.paging.check_invariants();
        self.shadow_tables_equal_the_hardware();
        for address in Self::range(LOW, HIGH - LOW) {
            let mapped = self.machine.resolve(address);
            let region = self.paging.find(address);
            match (self.pages.get_mut(&address), region) {
                (Some(page), Some(_)) => page.mapped = mapped,
                (None, Some(region)) => {
                    self.pages.insert(
                        address,
                        Page {
                            region: u32::MAX - ((region.start - LOW) / PAGE) as u32,
                            kind: region.kind,
                            flags: region.flags,
                            fault_around: region.fault_around,
                            mapped,
                        },
                    );
                }
                (None, None) => assert_eq!(mapped, None),
                (Some(_), None) => panic!("a region is lost at {address:#x}"),
            }
        }
    }

    /// Unmaps everything, after which only tables are left.
    fn finish(mut self) {
        assert_eq!(self.unmap(LOW, HIGH - LOW), Ok(()));
        self.check_all();
        let account = self.paging.account();
        assert_eq!((account.regions, account.mappings, account.frames), (0, 0, 0));
    }
}

fn random_step(random: &mut Random) -> Step {
    let mut next = || (random.next() >> 32) as u32;
    Step { what: next() as u8, position: next(), size: next(), extra: next() }
}

/// Returns the number of operations of the long run; the full 10^6 take a minute and a half in an optimised build.
fn operations() -> u32 {
    std::env::var("PAGING_OPERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

#[test]
fn a_long_random_run_agrees_with_the_model() {
    let mut bench = Bench::new();
    let mut random = Random::new(42);
    let mut most = 0;
    for count in 0..operations() {
        let step = random_step(&mut random);
        assert_eq!(bench.step(step), Ok(()));
        bench.check_around(step);
        most = most.max(bench.paging.account().regions);
        if count % 256 == 0 {
            bench.paging.check_invariants();
        }
        if count % 8192 == 0 {
            bench.check_all();
        }
    }
    assert!(most > 100, "the run was not trivial: {most} regions");
    bench.check_all();
    bench.finish();
}

#[test]
fn every_call_may_fail_once() {
    let mut bench = Bench::new();
    let mut random = Random::new(7);
    for _ in 0..6000 {
        let step = random_step(&mut random);
        let call = random.below(12);
        bench.step_with_failure(step, call, false);
        bench.paging.check_invariants();
    }
    bench.check_all();
    bench.finish();
}

#[test]
fn after_a_failure_everything_may_fail() {
    let mut bench = Bench::new();
    let mut random = Random::new(99);
    for _ in 0..3000 {
        let step = random_step(&mut random);
        let call = random.below(12);
        bench.step_with_failure(step, call, true);
        bench.paging.check_invariants();
    }
    bench.shadow_tables_equal_the_hardware();
    assert_eq!(bench.paging.unmap(&mut bench.machine, LOW, HIGH - LOW), Ok(()));
    assert_eq!((bench.machine.counts().0, bench.machine.counts().1), (0, 0), "nothing is lost for ever");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_agrees_with_the_model(
        steps in prop::collection::vec((any::<u8>(), any::<u32>(), any::<u32>(), any::<u32>(), 0..40u64), 1..120),
    ) {
        let mut bench = Bench::new();
        for (what, position, size, extra, call) in steps {
            bench.step_with_failure(Step { what, position, size, extra }, call, false);
            bench.paging.check_invariants();
        }
        bench.check_all();
        bench.finish();
    }
}
