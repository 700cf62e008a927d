//! How long the areas of a process may be together.

#[expect(dead_code, reason = "the test against the model uses the rest")]
mod machine;

use machine::Machine;
use tench_linux_memory::{
    Access, Allowance, Backing, Denied, Errno, MapRequest, Memory, Move, PAGE_SIZE, Placement, Rights, Space,
};

const LIMITS: core::ops::Range<u64> = PAGE_SIZE..4096 * PAGE_SIZE;
const DATA: MapRequest = MapRequest {
    placement: Placement::Hint(0),
    length: 4 * PAGE_SIZE,
    rights: Rights::READ.union(Rights::WRITE),
    allowed: Rights::all(),
    shared: false,
    backing: Backing::Anonymous,
    grows: false,
};
const READ_ONLY: MapRequest = MapRequest { rights: Rights::READ, ..DATA };

fn space(all: u64, data: u64, stack: u64) -> (Memory<Machine>, Space<Machine>) {
    let mut memory = Machine::memory(64);
    let mut space = Space::new(&mut memory, LIMITS, LIMITS).unwrap();
    space.allowance = Allowance { all: all * PAGE_SIZE, data: data * PAGE_SIZE, stack: stack * PAGE_SIZE };
    (memory, space)
}

#[test]
fn areas_are_no_longer_together_than_allowed() {
    let (mut memory, mut space) = space(10, 100, 100);
    let first = space.map(&mut memory, &DATA).unwrap();
    let second = space.map(&mut memory, &READ_ONLY).unwrap();
    assert_eq!(space.map(&mut memory, &READ_ONLY), Err(Errno::ENOMEM));
    let in_place = MapRequest { placement: Placement::Fixed(first), ..READ_ONLY };
    assert_eq!(space.map(&mut memory, &in_place), Ok(first), "what is replaced does not count");
    let behind = MapRequest { placement: Placement::Fixed(second - 3 * PAGE_SIZE), ..READ_ONLY };
    assert_eq!(space.map(&mut memory, &behind), Err(Errno::ENOMEM), "three pages of it are new, two are left");
    assert_eq!(space.unmap(&mut memory, first, PAGE_SIZE), Ok(()));
    assert_eq!(space.map(&mut memory, &behind), Ok(second - 3 * PAGE_SIZE));
    assert_eq!(space.fork(&mut memory).unwrap().allowance, space.allowance);
}

#[test]
fn an_area_that_gets_longer_counts() {
    let (mut memory, mut space) = space(10, 100, 100);
    let place = space.map(&mut memory, &DATA).unwrap();
    let (length, longest) = (4 * PAGE_SIZE, 10 * PAGE_SIZE);
    let longer = space.remap(&mut memory, place, length, longest + 1, Move::IfNecessary);
    assert_eq!(longer, Err(Errno::ENOMEM));
    let moved = space.remap(&mut memory, place, length, longest, Move::IfNecessary).unwrap();
    assert_ne!(moved, place, "it had no room there, and does not count twice while it moves");
    assert_eq!(space.remap(&mut memory, moved, longest, length, Move::No), Ok(moved));
    assert_eq!(space.map(&mut memory, &READ_ONLY).map(drop), Ok(()));
}

#[test]
fn data_is_what_is_private_and_can_be_written() {
    let (mut memory, mut space) = space(100, 6, 100);
    space.map(&mut memory, &DATA).unwrap();
    assert_eq!(space.map(&mut memory, &DATA), Err(Errno::ENOMEM));
    for other in [READ_ONLY, MapRequest { grows: true, ..DATA }, MapRequest { shared: true, ..DATA }] {
        assert_eq!(space.map(&mut memory, &other).map(drop), Ok(()), "{other:?}");
    }
    let two_pages = MapRequest { length: 2 * PAGE_SIZE, ..DATA };
    assert_eq!(space.map(&mut memory, &two_pages).map(drop), Ok(()));
}

#[test]
fn a_stack_grows_as_far_as_it_may() {
    for (all, stack, reaches) in [(100, 6, 6), (7, 100, 7)] {
        let (mut memory, mut space) = space(all, 100, stack);
        let top = 2000 * PAGE_SIZE;
        let placement = Placement::Fixed(top - 4 * PAGE_SIZE);
        space.map(&mut memory, &MapRequest { placement, grows: true, ..DATA }).unwrap();
        let lowest = top - reaches * PAGE_SIZE;
        assert_eq!(space.fault(&mut memory, lowest - 1, Access::Write), Err(Denied::NoArea));
        assert_eq!(space.fault(&mut memory, lowest, Access::Write), Ok(()));
    }
}
