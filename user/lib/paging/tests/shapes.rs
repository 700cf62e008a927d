//! Single cases: large pages, cuts through them, limits, and the cost of operations.

mod machine;

use machine::{Machine, ROOT, Refused};
use tench_abi::fault::Access;
use tench_abi::memory::{MapFlags, USER_END};
use tench_paging::{Account, Error, Kind, Paging, Request, Verdict};

const PAGE: u64 = 4096;
const LARGE: u64 = 2 << 20;
const HUGE: u64 = 1 << 30;
const LOW: u64 = 0x1000_0000_0000;
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

fn new() -> (Paging, Machine) {
    let (mut paging, machine) = (Paging::new(), Machine::new());
    paging.initialise(ROOT, LOW, 0x5000_0000_0000);
    (paging, machine)
}

#[test]
fn one_mapping_stands_for_large_pages() {
    let (mut paging, mut machine) = new();
    let frame = machine.frame(22);
    let address = paging.map(&mut machine, frame, RW).unwrap();
    assert_eq!((address % (4 << 20), machine.maps, machine.counts().0), (0, 1, 1));
    assert_eq!(paging.account().tables, 3, "root and two levels, no table of pages");
    let frame = machine.frame(32);
    let address = paging.map(&mut machine, frame, RW).unwrap();
    assert_eq!((address % HUGE, machine.maps, paging.account().tables), (0, 2, 3));
    assert_eq!(machine.resolve(address + 3 * HUGE + 5 * PAGE), Some((frame.cap.0, 3 * HUGE + 5 * PAGE, RW)));
    paging.check_invariants();
}

#[test]
fn sizes_are_mixed_where_alignment_asks_for_it() {
    let (mut paging, mut machine) = new();
    let frame = machine.frame(31);
    // Address and offset agree modulo 1 GiB: pages, large pages, a huge one, large pages, pages.
    let (offset, size) = (HUGE - LARGE - PAGE, HUGE + 2 * LARGE - 2 * PAGE - PAGE);
    let size = size.min((1 << 31) - offset);
    assert_eq!(paging.map_fixed(&mut machine, LOW + offset, frame, offset, size, RW), Ok(()));
    assert_eq!(machine.maps, 3, "one page, one large page, one huge page");
    for at in [0, PAGE, LARGE, LARGE + PAGE, size - PAGE] {
        assert_eq!(machine.resolve(LOW + offset + at), Some((frame.cap.0, offset + at, RW)));
    }
    // Misaligned by a page: small pages alone.
    let before = machine.maps;
    let frame = machine.frame(23);
    assert_eq!(paging.map_fixed(&mut machine, LOW + 8 * HUGE, frame, PAGE, 2 * LARGE, RW), Ok(()));
    assert_eq!(machine.maps - before, 2);
    paging.check_invariants();
}

#[test]
fn a_hole_can_be_cut_into_a_huge_page() {
    let (mut paging, mut machine) = new();
    let frame = machine.frame(30);
    assert_eq!(paging.map_fixed(&mut machine, LOW, frame, 0, HUGE, RW), Ok(()));
    let hole = LOW + 5 * LARGE + 7 * PAGE;
    assert_eq!(paging.unmap(&mut machine, hole, PAGE), Ok(()));
    paging.check_invariants();
    for at in [0, 5 * LARGE, hole - LOW - PAGE, hole - LOW + PAGE, 6 * LARGE, HUGE - PAGE] {
        assert_eq!(machine.resolve(LOW + at), Some((frame.cap.0, at, RW)));
    }
    assert_eq!(machine.resolve(hole), None);
    assert_eq!(paging.account().mappings, 4, "large pages and pages, before and behind");
    // After everything is unmapped, a huge page can be used again.
    assert_eq!(paging.unmap(&mut machine, LOW, HUGE), Ok(()));
    let before = machine.maps;
    assert_eq!(paging.map_fixed(&mut machine, LOW, frame, 0, HUGE, RW), Ok(()));
    assert_eq!((machine.maps - before, paging.account().tables, machine.tables()), (1, 2, 2));
}

#[test]
fn cutting_survives_each_single_failure() {
    for (from, size) in [(7 * PAGE, PAGE), (0, LARGE + PAGE), (LARGE - PAGE, HUGE - 2 * LARGE), (HUGE - PAGE, PAGE)] {
        for protects in [false, true] {
            let mut call = 0;
            loop {
                let (mut paging, mut machine) = new();
                let frame = machine.frame(30);
                assert_eq!(paging.map_fixed(&mut machine, LOW, frame, 0, HUGE, RW), Ok(()));
                call += 1;
                machine.fails_at = Some(machine.calls + call);
                let outcome = if protects {
                    paging.protect(&mut machine, LOW + from, size, MapFlags::READ)
                } else {
                    paging.unmap(&mut machine, LOW + from, size)
                };
                paging.check_invariants();
                if outcome.is_ok() {
                    assert!(call > 3, "there was something to fail");
                    break;
                }
                assert!(matches!(outcome, Err(Error::Backend(Refused::Injected) | Error::NoMetadata)));
                for at in [0, from, from + size - PAGE, HUGE - PAGE] {
                    assert_eq!(machine.resolve(LOW + at), Some((frame.cap.0, at, RW)), "call {call}");
                }
                assert_eq!(paging.account().mappings, 1, "the huge page is back");
            }
        }
    }
}

#[test]
fn rights_that_the_frame_does_not_have_change_nothing() {
    let (mut paging, mut machine) = new();
    let frame = machine.frame(16);
    machine.read_only.insert(frame.cap.0);
    assert_eq!(paging.map_fixed(&mut machine, LOW, frame, 0, 1 << 16, RW), Err(Error::Backend(Refused::Rights)));
    assert_eq!((paging.account().regions, paging.find(LOW)), (0, None));
    assert_eq!(paging.map_fixed(&mut machine, LOW, frame, 0, 1 << 16, MapFlags::READ), Ok(()));
    let refused = paging.protect(&mut machine, LOW + PAGE, PAGE, RW);
    assert_eq!(refused, Err(Error::Backend(Refused::Rights)));
    assert_eq!(machine.resolve(LOW + PAGE), Some((frame.cap.0, PAGE, MapFlags::READ)));
    let both = MapFlags::all() - MapFlags::DEVICE;
    assert_eq!(paging.protect(&mut machine, LOW, PAGE, both), Err(Error::BadRights));
    assert_eq!(paging.protect(&mut machine, LOW, PAGE, MapFlags::empty()), Err(Error::BadRights));
}

#[test]
fn rights_come_back_without_mapping_again() {
    let (mut paging, mut machine) = new();
    let frame = machine.frame(16);
    let address = paging.map(&mut machine, frame, RW | MapFlags::UNCACHED).unwrap();
    let maps = machine.maps;
    assert_eq!(paging.protect(&mut machine, address, 1 << 16, MapFlags::READ), Ok(()));
    assert_eq!(paging.classify(address, Access::Write), Verdict::Rights(paging.find(address).unwrap()));
    assert_eq!(paging.protect(&mut machine, address, 1 << 16, RW), Ok(()));
    assert_eq!((machine.maps, machine.resolve(address).unwrap().2), (maps, RW | MapFlags::UNCACHED));
}

#[test]
fn faults_map_the_right_pages() {
    let (mut paging, mut machine) = new();
    let request = Request { guard: PAGE, ..Request::lazy(4 * PAGE, Kind::Stack) };
    let address = paging.alloc(&mut machine, &request).unwrap();
    assert_eq!(paging.classify(0, Access::Read), Verdict::Null);
    assert_eq!(paging.classify(PAGE - 1, Access::Write), Verdict::Null);
    assert_eq!(paging.classify(PAGE, Access::Write), Verdict::NotAllocated);
    assert_eq!(paging.classify(USER_END + PAGE, Access::Read), Verdict::NotAllocated);
    assert!(matches!(paging.classify(address - 1, Access::Read), Verdict::Guard(region) if region.size == PAGE));
    assert!(matches!(paging.classify(address, Access::Read), Verdict::Lazy(region) if region.kind == Kind::Stack));
    assert!(matches!(paging.classify(address, Access::Execute), Verdict::Rights(_)));
    assert_eq!(paging.populate_page(&mut machine, address), Ok(()));
    assert!(matches!(paging.classify(address, Access::Write), Verdict::Mapped(..)));
    assert_eq!(paging.populate_page(&mut machine, address - 1), Err(Error::NotAllocated));
    let request = Request::reserved(PAGE, Kind::Anonymous);
    let address = paging.alloc(&mut machine, &request).unwrap();
    assert!(matches!(paging.classify(address, Access::Read), Verdict::NotPopulated(_)));
}

#[test]
fn ranges_that_make_no_sense_are_refused() {
    let (mut paging, mut machine) = new();
    let frame = machine.frame(13);
    let lazy = |size| Request::lazy(size, Kind::Anonymous);
    for size in [0, 1, PAGE + 1, u64::MAX, !0xfff] {
        assert_eq!(paging.alloc(&mut machine, &lazy(size)), Err(Error::BadRange));
        assert_eq!(paging.alloc_fixed(&mut machine, LOW, &lazy(size)), Err(Error::BadRange));
        assert_eq!(paging.unmap(&mut machine, LOW, size), Err(Error::BadRange));
        assert_eq!(paging.protect(&mut machine, LOW, size, RW), Err(Error::BadRange));
        assert_eq!(paging.map_fixed(&mut machine, LOW, frame, 0, size, RW), Err(Error::BadRange));
    }
    for address in [LOW + 1, USER_END, !0xfff] {
        assert_eq!(paging.alloc_fixed(&mut machine, address, &lazy(PAGE)), Err(Error::BadRange));
        assert_eq!(paging.unmap(&mut machine, address, PAGE), Err(Error::BadRange));
    }
    assert_eq!(paging.alloc_fixed(&mut machine, 0, &lazy(PAGE)), Err(Error::Taken), "the first page is nobody's");
    assert_eq!(paging.alloc_fixed(&mut machine, PAGE, &lazy(PAGE)), Ok(()), "the second is the program's");
    assert_eq!(paging.map_fixed(&mut machine, LOW, frame, PAGE, 2 * PAGE, RW), Err(Error::BadRange));
    assert_eq!(paging.map_fixed(&mut machine, LOW, frame, !0xfff, PAGE, RW), Err(Error::BadRange));
    let odd = Request { alignment: 3 * PAGE, ..lazy(PAGE) };
    assert_eq!(paging.alloc(&mut machine, &odd), Err(Error::BadRange));
    let all = Request { guard: !0xfff, ..lazy(PAGE) };
    assert_eq!(paging.alloc(&mut machine, &all), Err(Error::BadRange));
    let most = lazy(USER_END);
    assert_eq!(paging.alloc(&mut machine, &most), Err(Error::NoAddresses));
    paging.check_invariants();
}

#[test]
fn the_course_tests_shapes() {
    let (mut paging, mut machine) = new();
    // 5 MiB at a fixed address above 2^45, which is not a power of two of pages.
    let frame = machine.frame(23);
    let address = (1 << 45) + 3 * PAGE;
    assert_eq!(paging.map_fixed(&mut machine, address, frame, 0, 5 << 20, RW), Ok(()));
    // One frame mapped 17 times.
    let frame = machine.frame(12);
    let addresses: Vec<u64> = (0..17).map(|_| paging.map(&mut machine, frame, RW).unwrap()).collect();
    assert!(addresses.iter().all(|address| machine.resolve(*address) == Some((frame.cap.0, 0, RW))));
    // 256 MiB of which each eighth page is touched.
    let size = 256 << 20;
    let heap = paging.alloc(&mut machine, &Request::lazy(size, Kind::Heap)).unwrap();
    for page in (0..size).step_by(8 * PAGE as usize) {
        assert_eq!(paging.populate_page(&mut machine, heap + page), Ok(()));
    }
    assert_eq!(paging.account().frames, 8192);
    paging.check_invariants();
    assert_eq!(paging.unmap(&mut machine, heap, size), Ok(()));
    assert_eq!((paging.account().frames, machine.counts().1), (0, 0));
    assert!(machine.tables() < 16, "the tables of a large range go with it");
    paging.check_invariants();
}

#[test]
fn a_million_regions() {
    let (mut paging, mut machine) = new();
    let request = Request::reserved(PAGE, Kind::Anonymous);
    let first = paging.alloc(&mut machine, &request).unwrap();
    for count in 1..1_000_000 {
        assert_eq!(paging.alloc(&mut machine, &request), Ok(first + count * PAGE), "the lowest that is free");
    }
    assert_eq!(paging.unmap(&mut machine, first + 777_777 * PAGE, 2 * PAGE), Ok(()));
    assert_eq!(paging.alloc(&mut machine, &request), Ok(first + 777_777 * PAGE));
    paging.check_invariants();
    let account = Account { regions: 999_999, tables: 1, mappings: 0, frames: 0 };
    assert_eq!(paging.account(), account);
}
