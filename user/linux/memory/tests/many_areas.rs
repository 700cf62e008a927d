//! How many areas a process may have, and that a place for each is found at once.

#[expect(dead_code, reason = "the test against the model uses the rest")]
mod machine;

use machine::Machine;
use tench_linux_memory::{Backing, Errno, MAX_AREAS, MapRequest, Memory, PAGE_SIZE, Placement, Rights, Space};

const FIRST: u64 = 1 << 20;
const LAST: u64 = FIRST + (1 << 20);

fn request(memory: &mut Memory<Machine>, placement: Placement) -> MapRequest {
    // Areas of one page of an object each: no two are one.
    let object = memory.objects.make(PAGE_SIZE, &[]);
    MapRequest {
        placement,
        length: PAGE_SIZE,
        rights: Rights::READ,
        allowed: Rights::all(),
        shared: true,
        backing: Backing::Object(object, 0),
        grows: false,
    }
}

fn filled() -> (Memory<Machine>, Space<Machine>, MapRequest) {
    let mut memory = Machine::memory(4096);
    let limits = FIRST * PAGE_SIZE..LAST * PAGE_SIZE;
    let mut space = Space::new(&mut memory, limits.clone(), limits).unwrap();
    let request = request(&mut memory, Placement::Hint(0));
    for number in 1..=MAX_AREAS as u64 + 1 {
        assert_eq!(space.map(&mut memory, &request), Ok((LAST - number) * PAGE_SIZE));
    }
    (memory, space, request)
}

#[test]
fn a_process_has_no_more_areas_than_linux_allows() {
    let (mut memory, mut space, request) = filled();
    assert_eq!(space.map(&mut memory, &request), Err(Errno::ENOMEM));
    let fixed = MapRequest { placement: Placement::Fixed((LAST - 1) * PAGE_SIZE), ..request };
    assert_eq!(space.map(&mut memory, &fixed), Err(Errno::ENOMEM), "and what is there stays");
    assert!(space.areas().cover((LAST - 2) * PAGE_SIZE..LAST * PAGE_SIZE));
    let last = (LAST - 1) * PAGE_SIZE;
    assert_eq!(space.protect(&mut memory, last, PAGE_SIZE, Rights::empty()), Err(Errno::ENOMEM));
    assert_eq!(space.unmap(&mut memory, last, PAGE_SIZE), Ok(()));
    assert_eq!(space.map(&mut memory, &request), Ok(last), "what is free above others is found");
}

#[test]
fn an_area_is_not_divided_into_more_than_there_may_be() {
    let (mut memory, mut space, request) = filled();
    let highest = (LAST - 3) * PAGE_SIZE;
    assert_eq!(space.unmap(&mut memory, highest, 3 * PAGE_SIZE), Ok(()));
    let long = MapRequest { length: 3 * PAGE_SIZE, ..request };
    assert_eq!(space.map(&mut memory, &long), Ok(highest));
    assert_eq!(space.map(&mut memory, &request), Ok((LAST - MAX_AREAS as u64 - 2) * PAGE_SIZE));
    assert_eq!(space.areas().count(), MAX_AREAS);
    assert_eq!(space.unmap(&mut memory, highest + PAGE_SIZE, PAGE_SIZE), Err(Errno::ENOMEM));
    assert_eq!(space.unmap(&mut memory, highest, PAGE_SIZE), Ok(()), "that divides nothing");
}
