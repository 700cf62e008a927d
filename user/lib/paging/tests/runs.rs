//! Runs of populated memory: their sizes, that they stay inside regions, and that parts of them can be removed.

mod machine;

use machine::{Machine, ROOT};
use tench_abi::fault::Access;
use tench_abi::memory::MapFlags;
use tench_paging::{Error, Kind, Paging, Request, Verdict};

const PAGE: u64 = 4096;
const LARGE: u64 = 2 << 20;
const LOW: u64 = 0x1000_0000_0000;
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// Returns an address space with a lazy region of some pages at `LOW`.
fn lazy(pages: u64) -> (Paging, Machine) {
    let (mut paging, mut machine) = (Paging::new(), Machine::new());
    paging.initialise(ROOT, LOW, 0x5000_0000_0000);
    let request = Request::lazy(pages * PAGE, Kind::Heap);
    assert_eq!(paging.alloc_fixed(&mut machine, LOW, &request), Ok(()));
    (paging, machine)
}

/// Writes to a page as a program does, and returns the number of pages populated.
fn touch(paging: &mut Paging, machine: &mut Machine, page: u64) -> u64 {
    let address = LOW + page * PAGE;
    if machine.resolve(address).is_some() {
        return 0;
    }
    assert_eq!(paging.fault(machine, address + 17, Access::Write), Ok(None));
    paging.check_invariants();
    let (frame, _, flags) = machine.resolve(address).expect("there is memory now");
    assert_eq!(flags, RW);
    1 << (machine.frames[&frame].0 - 12)
}

/// Touches pages in order, and returns the runs populated: page and length.
fn touch_all(paging: &mut Paging, machine: &mut Machine, pages: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    pages.map(|page| (page, touch(paging, machine, page))).filter(|(_, came)| *came > 0).collect()
}

#[test]
fn runs_double_to_sixteen_pages() {
    let (mut paging, mut machine) = lazy(600);
    let came = touch_all(&mut paging, &mut machine, 0..64);
    assert_eq!(came, [(0, 1), (1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 16), (48, 16)]);
    // Runs also continue from one table of level 3 to the next.
    let came = touch_all(&mut paging, &mut machine, 64..600);
    assert!(came[..32].iter().all(|(_, pages)| *pages == 16), "{came:?}");
    assert_eq!(came[28], (512, 16));
    assert_eq!(came.last(), Some(&(592, 8)), "the region ends at page 600");
    let account = paging.account();
    assert_eq!((account.mappings, account.frames), (came.len() + 8, came.len() + 8));
}

#[test]
fn downwards_too() {
    let (mut paging, mut machine) = lazy(64);
    let came = touch_all(&mut paging, &mut machine, (0..64).rev());
    assert_eq!(came, [(63, 1), (62, 1), (61, 2), (59, 4), (55, 8), (47, 16), (31, 16), (15, 16)]);
}

#[test]
fn here_and_there_nothing_else_comes() {
    let (mut paging, mut machine) = lazy(4096);
    let came = touch_all(&mut paging, &mut machine, (0..4096).step_by(2));
    assert_eq!((came.len(), paging.account().frames), (2048, 2048));
    assert!(came.iter().all(|(_, pages)| *pages == 1));
    // Where no two neighbours are empty, there is no room for a run.
    let came = touch_all(&mut paging, &mut machine, 0..4096);
    assert!(came.iter().all(|(_, pages)| *pages == 1));
}

#[test]
fn several_streams_are_told_apart() {
    let (mut paging, mut machine) = lazy(256);
    let in_turn = (0..64).flat_map(|page| [page, 128 + page]);
    let came = touch_all(&mut paging, &mut machine, in_turn);
    assert_eq!(came.len(), 16);
    assert_eq!(came[14..], [(48, 16), (176, 16)]);
}

#[test]
fn other_mappings_do_not_widen_a_fault() {
    let (mut paging, mut machine) = lazy(64);
    let frame = machine.frame(16);
    assert_eq!(paging.map_fixed(&mut machine, LOW, frame, 0, 16 * PAGE, RW), Ok(()));
    assert_eq!(touch(&mut paging, &mut machine, 16), 1, "somebody's frame");
    let huge = Request { fault_around: 21, ..Request::lazy(LARGE, Kind::Heap) };
    assert_eq!(paging.alloc_fixed(&mut machine, LOW + 2 * LARGE, &huge), Ok(()));
    assert_eq!(paging.alloc_fixed(&mut machine, LOW + 3 * LARGE, &Request::lazy(LARGE, Kind::Heap)), Ok(()));
    let at = LARGE / PAGE;
    assert_eq!(touch(&mut paging, &mut machine, 2 * at), at, "the fault-around size, as one large page");
    assert_eq!(touch(&mut paging, &mut machine, 3 * at), 1, "a large page");
    assert_eq!(touch(&mut paging, &mut machine, 3 * at + 1), 1, "no room for two");
    // Another region.
    assert_eq!(touch_all(&mut paging, &mut machine, 32..64).last(), Some(&(48, 16)));
    assert_eq!(paging.alloc_fixed(&mut machine, LOW + 64 * PAGE, &Request::lazy(64 * PAGE, Kind::Heap)), Ok(()));
    assert_eq!(touch(&mut paging, &mut machine, 64), 1, "another region's run");
    // Pages with other rights than the region has.
    assert_eq!(paging.protect(&mut machine, LOW + 3 * LARGE, 2 * PAGE, MapFlags::READ), Ok(()));
    assert_eq!(touch(&mut paging, &mut machine, 3 * at + 2), 1);
}

#[test]
fn a_run_does_not_shrink_a_regions_fault_around_size() {
    let (mut paging, mut machine) = lazy(1);
    let request = Request { fault_around: 18, ..Request::lazy(LARGE, Kind::Heap) };
    assert_eq!(paging.alloc_fixed(&mut machine, LOW + LARGE, &request), Ok(()));
    let at = LARGE / PAGE;
    assert_eq!(touch_all(&mut paging, &mut machine, at..at + 129), [(at, 64), (at + 64, 64), (at + 128, 64)]);
}

#[test]
fn without_memory_for_a_run_a_page_comes() {
    let (mut paging, mut machine) = lazy(64);
    assert_eq!(touch_all(&mut paging, &mut machine, 0..8).len(), 4);
    // The frame of eight pages, its slot, or the mapping is not available.
    for (call, page) in [(1, 8), (2, 16), (3, 24)] {
        assert_eq!(touch_all(&mut paging, &mut machine, page - 4..page).len(), usize::from(page > 8));
        let before = machine.counts();
        machine.fails_at = Some(machine.calls + call);
        assert_eq!(touch(&mut paging, &mut machine, page), 1, "call {call}");
        assert_eq!(machine.fails_at, Some(machine.calls - 3), "it was that call, and three for the page followed");
        let after = machine.counts();
        assert_eq!((after.0 - before.0, after.1 - before.1, after.2 - before.2), (1, 1, 1), "nothing is lost");
        machine.fails_at = None;
        touch_all(&mut paging, &mut machine, page..page + 4);
    }
    // No memory at all.
    (machine.fails_at, machine.for_ever) = (Some(machine.calls + 1), true);
    assert!(matches!(paging.fault(&mut machine, LOW + 40 * PAGE, Access::Write), Err(Error::Backend(_))));
    paging.check_invariants();
    assert_eq!(machine.resolve(LOW + 40 * PAGE), None);
}

#[test]
fn parts_of_a_run_go_and_change() {
    let (mut paging, mut machine) = lazy(64);
    touch_all(&mut paging, &mut machine, 0..32);
    let frame = machine.resolve(LOW + 16 * PAGE).unwrap().0;
    // Of the run of pages 16 to 31, some become read-only and some are removed.
    assert_eq!(paging.protect(&mut machine, LOW + 18 * PAGE, 2 * PAGE, MapFlags::READ), Ok(()));
    assert_eq!(paging.clear(&mut machine, LOW + 24 * PAGE, PAGE), Ok(()));
    paging.check_invariants();
    for page in 16..32 {
        let flags = if (18..20).contains(&page) { MapFlags::READ } else { RW };
        let expected = (page != 24).then_some((frame, (page - 16) * PAGE, flags));
        assert_eq!(machine.resolve(LOW + page * PAGE), expected, "page {page}");
    }
    assert!(matches!(paging.classify(LOW + 18 * PAGE, Access::Write), Verdict::Rights(_)));
    assert!(matches!(paging.fault(&mut machine, LOW + 19 * PAGE, Access::Write), Ok(Some(Verdict::Rights(_)))));
    // Removed pages are populated with new memory, as much as there is room for.
    assert_eq!(touch(&mut paging, &mut machine, 24), 1);
    let other = machine.resolve(LOW + 24 * PAGE).unwrap().0;
    assert_ne!(other, frame);
    // The frame is destroyed with its last page.
    assert_eq!(paging.unmap(&mut machine, LOW + 16 * PAGE, 15 * PAGE), Ok(()));
    assert!(machine.frames.contains_key(&frame) && !machine.frames.contains_key(&other));
    assert_eq!(paging.unmap(&mut machine, LOW + 31 * PAGE, PAGE), Ok(()));
    assert!(!machine.frames.contains_key(&frame));
    assert_eq!(paging.unmap(&mut machine, LOW, 64 * PAGE), Ok(()));
    assert_eq!(machine.counts(), (0, 0, 0));
    paging.check_invariants();
}

#[test]
fn the_metadata_does_not_remember_what_has_gone() {
    let (mut paging, mut machine) = lazy(2 * LARGE / PAGE);
    assert_eq!(touch(&mut paging, &mut machine, 3), 1);
    // Region and table of that fault are removed, and others are added, the region with the same index.
    assert_eq!(paging.unmap(&mut machine, LOW, 2 * LARGE), Ok(()));
    assert_eq!(paging.fault(&mut machine, LOW + 3 * PAGE, Access::Write), Ok(Some(Verdict::NotAllocated)));
    let request = Request { flags: MapFlags::READ, ..Request::lazy(PAGE, Kind::Heap) };
    assert_eq!(paging.alloc_fixed(&mut machine, LOW + 8 * LARGE, &request), Ok(()));
    assert_eq!(paging.fault(&mut machine, LOW + 3 * PAGE, Access::Read), Ok(Some(Verdict::NotAllocated)));
    assert_eq!(paging.fault(&mut machine, LOW + 8 * LARGE, Access::Read), Ok(None));
    assert_eq!(paging.fault(&mut machine, LOW + 8 * LARGE + PAGE, Access::Read), Ok(Some(Verdict::NotAllocated)));
    assert_eq!(paging.fault(&mut machine, 0, Access::Read), Ok(Some(Verdict::Null)));
    paging.check_invariants();
}
