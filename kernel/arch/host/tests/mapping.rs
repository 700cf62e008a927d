//! Page tables and mappings: success, each error, preemption points, and what deletion leaves behind.

use tench_abi::layout::{UNBIND, slot};
use tench_abi::memory::{MapFlags, entry_bits};
use tench_abi::object::Rights;
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::host::disturb;
use tench_arch_host::machine::{ARCHIVE, DEVICE, LARGE_DEVICE, RAM_MEDIUM, at};
use tench_kernel::page_table;

const READ: u64 = MapFlags::READ.bits();
const WRITE: u64 = READ | MapFlags::WRITE.bits();
const EXECUTE: u64 = READ | MapFlags::EXECUTE.bits();
/// The address at which [`World`] installs its tables: entry 3 of the root, 5 below, 7 below that.
const BASE: u64 = 3 << 39 | 5 << 30 | 7 << 21;
const ROOT: u64 = at(slot::VSPACE);

/// A machine with tables of level 1, 2, 3 in the first thread's address space.
struct World {
    m: Machine,
    tables: [u64; 3],
}

fn world() -> World {
    let mut m = Machine::new();
    let tables = [1, 2, 3].map(|level| m.make(Kind::PageTable, level));
    m.call(Operation::PageTableMap, &[tables[0], ROOT, 3]).ok();
    m.call(Operation::PageTableMap, &[tables[1], tables[0], 5]).ok();
    m.call(Operation::PageTableMap, &[tables[2], tables[1], 7]).ok();
    m.check();
    World { m, tables }
}

impl World {
    /// Maps a frame. Returns the mapping's address.
    #[track_caller]
    fn map(&mut self, frame: u64, table: u64, first: u64, count: u64, offset: u64, flags: u64) -> u64 {
        let mapping = self.m.take_free();
        self.m.call(Operation::FrameMap, &[frame, table, first, count, offset, flags, mapping]).ok();
        self.m.check();
        mapping
    }

    /// Tries to map a frame. Returns the error.
    #[track_caller]
    fn refused(&mut self, frame: u64, table: u64, first: u64, count: u64, offset: u64, flags: u64) -> Error {
        let mapping = self.m.free;
        let error = self.m.call(Operation::FrameMap, &[frame, table, first, count, offset, flags, mapping]).err();
        self.m.check();
        error
    }

    /// Returns the physical address to which an address translates, through the translation cache.
    fn physical(&mut self, address: u64) -> Option<u64> {
        let page = self.m.host().access(address)?;
        Some(page.physical + (address - page.address))
    }

    /// Returns the physical address of a frame.
    fn frame(&mut self, frame: u64) -> u64 {
        self.m.physical(frame)
    }

    #[track_caller]
    fn delete(&mut self, address: u64) {
        self.m.call(Operation::Delete, &[0, address]).ok();
        self.m.check();
    }
}

#[test]
fn pages_of_each_size_are_seen_where_they_are_mapped() {
    let mut w = world();
    let page = w.m.make(Kind::Frame, 12);
    let [one, two, three] = w.tables;
    w.map(page, three, 9, 1, 0, WRITE);
    let physical = w.frame(page);
    assert_eq!(w.physical(BASE + (9 << 12) + 5), Some(physical + 5));
    assert_eq!(w.physical(BASE + (10 << 12)), None);
    let block = w.m.take_free();
    w.m.retype(RAM_MEDIUM, Kind::Frame, 21, 1, block).ok();
    w.map(block, two, 8, 1, 0, READ);
    let physical = w.frame(block);
    assert_eq!(w.physical(BASE + (1 << 21) + 0x1_2345), Some(physical + 0x1_2345));
    let huge = w.m.take_free();
    w.m.retype(LARGE_DEVICE, Kind::Frame, 30, 1, huge).ok();
    w.map(huge, one, 6, 1, 0, READ);
    assert_eq!(w.physical((3 << 39 | 6 << 30) + 0x1234_5678), Some(0x8000_0000 + 0x1234_5678));
}

#[test]
fn a_part_of_a_frame_is_mapped_from_its_offset() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    w.map(frame, w.tables[2], 100, 400, 0x5000, WRITE);
    let physical = w.frame(frame);
    assert_eq!(w.physical(BASE + (100 << 12)), Some(physical + 0x5000));
    assert_eq!(w.physical(BASE + (499 << 12)), Some(physical + 0x5000 + (399 << 12)));
    assert_eq!(w.physical(BASE + (500 << 12)), None);
    assert_eq!(w.physical(BASE + (99 << 12)), None);
}

#[test]
fn mapping_says_what_is_wrong() {
    let mut w = world();
    let page = w.m.make(Kind::Frame, 12);
    let large = w.m.make(Kind::Frame, 16);
    let [_, two, three] = w.tables;
    let readable = w.m.take_free();
    w.m.call(Operation::Mint, &[0, page, 0, readable, Rights::READ.bits().into(), 0]).ok();
    let nothing = w.m.take_free();
    w.m.call(Operation::Mint, &[0, page, 0, nothing, 0, 0]).ok();
    let weak = w.m.take_free();
    w.m.call(Operation::Mint, &[0, three, 0, weak, Rights::READ.bits().into(), 0]).ok();
    assert_eq!(w.refused(three, three, 0, 1, 0, READ), Error::WrongType);
    assert_eq!(w.refused(9999, three, 0, 1, 0, READ), Error::InvalidCapability);
    assert_eq!(w.refused(page, page, 0, 1, 0, READ), Error::WrongType);
    assert_eq!(w.refused(page, weak, 0, 1, 0, READ), Error::MissingRights);
    assert_eq!(w.refused(nothing, three, 0, 1, 0, READ), Error::MissingRights);
    assert_eq!(w.refused(readable, three, 0, 1, 0, WRITE), Error::MissingRights);
    assert_eq!(w.refused(readable, three, 0, 1, 0, EXECUTE), Error::MissingRights);
    assert_eq!(w.refused(page, three, 0, 1, 0, WRITE | EXECUTE), Error::InvalidArgument);
    assert_eq!(w.refused(page, three, 0, 1, 0, 0), Error::InvalidArgument);
    assert_eq!(w.refused(page, three, 0, 1, 0, READ | 1 << 40), Error::InvalidArgument);
    assert_eq!(w.refused(page, three, 512, 1, 0, READ), Error::InvalidArgument);
    assert_eq!(w.refused(page, three, 0, 0, 0, READ), Error::InvalidArgument);
    assert_eq!(w.refused(page, three, 0, 2, 0, READ), Error::InvalidArgument);
    assert_eq!(w.refused(page, three, u64::MAX, 2, 0, READ), Error::InvalidArgument);
    assert_eq!(w.refused(page, three, 0, u64::MAX, 0, READ), Error::InvalidArgument);
    assert_eq!(w.refused(large, three, 0, 1, 0x1_0000, READ), Error::InvalidArgument);
    assert_eq!(w.refused(large, three, 0, 1, !0xfff, READ), Error::InvalidArgument);
    assert_eq!(w.refused(large, three, 0, 1, 0x800, READ), Error::Misaligned);
    assert_eq!(w.refused(large, two, 0, 1, 0x1000, READ), Error::Misaligned);
    assert_eq!(w.refused(page, ROOT, 0, 1, 0, READ), Error::InvalidArgument);
    w.map(page, three, 4, 1, 0, READ);
    assert_eq!(w.refused(page, three, 4, 1, 0, READ), Error::AlreadyMapped);
    assert_eq!(w.refused(large, three, 2, 4, 0, READ), Error::AlreadyMapped);
    let free = std::mem::replace(&mut w.m.free, page);
    assert_eq!(w.refused(page, three, 0, 1, 0, READ), Error::SlotOccupied);
    w.m.free = 0;
    assert_eq!(w.refused(page, three, 0, 1, 0, READ), Error::NoSuchSlot);
    w.m.free = free;
    w.map(page, three, 0, 1, 0, READ);
}

#[test]
fn device_memory_is_mapped_as_device_memory() {
    let mut w = world();
    let frame = w.m.take_free();
    w.m.retype(DEVICE, Kind::Frame, 12, 1, frame).ok();
    w.map(frame, w.tables[2], 0, 1, 0, WRITE);
    let page = w.m.host().access(BASE).expect("mapped");
    assert_eq!(page.physical, 0x0900_0000);
    assert!(page.flags.contains(MapFlags::DEVICE));
}

#[test]
fn the_archive_is_mapped_with_its_contents() {
    let mut w = world();
    let frame = w.m.take_free();
    w.m.retype(ARCHIVE, Kind::Frame, 12, 1, frame).ok();
    w.map(frame, w.tables[2], 0, 1, 0, READ);
    let physical = w.physical(BASE).expect("mapped");
    assert_eq!(w.m.host().memory.read(physical + 8), !8);
}

#[test]
fn deleting_a_mapping_unmaps_it_everywhere() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    let mapping = w.map(frame, w.tables[2], 0, 512, 0, WRITE);
    for i in 0..512 {
        assert!(w.physical(BASE + (i << 12)).is_some());
    }
    w.delete(mapping);
    assert_eq!(w.physical(BASE + (77 << 12)), None);
    w.map(frame, w.tables[2], 0, 512, 0, WRITE);
}

#[test]
fn the_last_capability_of_a_frame_takes_its_mappings_along() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 12);
    let copy = w.m.take_free();
    w.m.call(Operation::Copy, &[0, frame, 0, copy]).ok();
    let mapping = w.map(frame, w.tables[2], 0, 1, 0, READ);
    assert!(w.physical(BASE).is_some());
    w.delete(copy);
    assert!(w.physical(BASE).is_some());
    w.delete(frame);
    assert_eq!(w.physical(BASE), None);
    assert_eq!(w.m.call(Operation::Identify, &[0, mapping]).ok()[1], Kind::Null as u64);
}

#[test]
fn revoking_a_frame_unmaps_it() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 12);
    w.map(frame, w.tables[2], 0, 1, 0, READ);
    w.map(frame, w.tables[2], 1, 1, 0, WRITE);
    assert!(w.physical(BASE).is_some() && w.physical(BASE + 4096).is_some());
    w.m.call(Operation::Revoke, &[0, frame]).ok();
    w.m.check();
    assert_eq!(w.physical(BASE).or(w.physical(BASE + 4096)), None);
}

#[test]
fn mappings_follow_their_page_table_wherever_it_is_installed() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 12);
    let [_, two, three] = w.tables;
    let mapping = w.map(frame, three, 1, 1, 0, READ);
    let physical = w.frame(frame);
    assert_eq!(w.m.call(Operation::MappingQuery, &[mapping]).ok()[1..5], [1, 1, READ, BASE + 4096]);
    assert_eq!(w.m.physical(mapping), physical);
    assert!(w.physical(BASE + 4096).is_some());
    w.m.call(Operation::PageTableUnmap, &[three]).ok();
    w.m.check();
    assert_eq!(w.physical(BASE + 4096), None);
    assert_eq!(w.m.call(Operation::MappingQuery, &[mapping]).ok()[4], u64::MAX);
    w.m.call(Operation::PageTableMap, &[three, two, 8]).ok();
    w.m.check();
    assert_eq!(w.physical(BASE + (1 << 21) + 4096), Some(physical));
}

#[test]
fn deleting_a_table_removes_its_mappings_and_drops_its_children() {
    let mut w = world();
    let [_, two, three] = w.tables;
    let pages: Vec<u64> = (0..20).map(|_| w.m.make(Kind::Frame, 12)).collect();
    let large = w.m.make(Kind::Frame, 21);
    let mut mappings = Vec::new();
    for (i, page) in pages.iter().enumerate() {
        mappings.push(w.map(*page, three, i as u64 * 3, 1, 0, READ));
    }
    mappings.push(w.map(large, three, 100, 300, 0, WRITE));
    let moved = w.m.take_free();
    let last = mappings.pop().expect("made");
    w.m.call(Operation::Move, &[0, last, 0, moved]).ok();
    w.m.check();
    mappings.push(moved);
    for i in 0..512 {
        w.physical(BASE + (i << 12));
    }
    w.delete(three);
    for mapping in mappings {
        assert_eq!(w.m.call(Operation::Identify, &[0, mapping]).ok()[1], Kind::Null as u64);
    }
    assert_eq!(w.physical(BASE), None);
    let child = w.m.make(Kind::PageTable, 3);
    w.m.call(Operation::PageTableMap, &[child, two, 0]).ok();
    w.delete(two);
    assert_eq!(w.m.call(Operation::PageTableUnmap, &[child]).err(), Error::NotMapped);
}

#[test]
fn page_tables_are_installed_only_where_they_belong() {
    let mut w = world();
    let [one, two, three] = w.tables;
    let other = w.m.make(Kind::PageTable, 1);
    let root = w.m.make(Kind::PageTable, 0);
    let map = |w: &mut World, table, parent, entry| {
        let error = w.m.call(Operation::PageTableMap, &[table, parent, entry]).err();
        w.m.check();
        error
    };
    assert_eq!(map(&mut w, root, one, 0), Error::InvalidArgument);
    assert_eq!(map(&mut w, other, one, 0), Error::InvalidArgument);
    assert_eq!(map(&mut w, other, ROOT, 256), Error::InvalidArgument);
    assert_eq!(map(&mut w, other, ROOT, u64::MAX), Error::InvalidArgument);
    assert_eq!(map(&mut w, other, ROOT, 3), Error::AlreadyMapped);
    assert_eq!(map(&mut w, one, root, 3), Error::AlreadyMapped);
    assert_eq!(map(&mut w, two, ROOT, 1), Error::InvalidArgument);
    assert_eq!(map(&mut w, three, one, 1), Error::InvalidArgument);
    assert_eq!(w.m.call(Operation::PageTableUnmap, &[other]).err(), Error::NotMapped);
    assert_eq!(w.m.call(Operation::PageTableUnmap, &[root]).err(), Error::NotMapped);
    w.m.call(Operation::PageTableMap, &[other, ROOT, 254]).ok();
    w.m.check();
}

#[test]
fn protection_changes_within_the_rights_of_the_frame() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    let mapping = w.map(frame, w.tables[2], 0, 200, 0, WRITE);
    let flags = |w: &mut World, i: u64| w.m.host().access(BASE + (i << 12)).expect("mapped").flags.bits();
    assert_eq!(flags(&mut w, 199), WRITE);
    w.m.call(Operation::MappingProtect, &[mapping, EXECUTE]).ok();
    w.m.check();
    assert_eq!((flags(&mut w, 0), flags(&mut w, 199)), (EXECUTE, EXECUTE));
    w.m.call(Operation::MappingProtect, &[mapping, READ]).ok();
    w.m.check();
    assert_eq!((flags(&mut w, 64), flags(&mut w, 199)), (READ, READ));
    assert_eq!(w.m.call(Operation::MappingProtect, &[mapping, WRITE | EXECUTE]).err(), Error::InvalidArgument);
    assert_eq!(w.m.call(Operation::MappingProtect, &[frame, READ]).err(), Error::WrongType);
    let readable = w.m.take_free();
    w.m.call(Operation::Mint, &[0, frame, 0, readable, Rights::READ.bits().into(), 0]).ok();
    let weak = w.map(readable, w.tables[2], 300, 1, 0, READ);
    assert_eq!(w.m.call(Operation::MappingProtect, &[weak, WRITE]).err(), Error::MissingRights);
}

#[test]
fn a_root_that_goes_leaves_no_translation_and_gives_its_identifier_back() {
    let mut w = world();
    let roots: Vec<u64> = (0..70).map(|_| w.m.make(Kind::PageTable, 0)).collect();
    w.m.check();
    for root in &roots {
        w.delete(*root);
    }
    let again = w.m.make(Kind::PageTable, 0);
    let root = w.m.cap(again).named().expect("a table");
    let register = page_table::space_register(w.m.kernel(), root);
    assert_eq!(register >> 48, 3, "the lowest free identifier is taken");
}

#[test]
fn a_thread_loses_its_address_space_with_the_root() {
    let mut w = world();
    let root = w.m.make(Kind::PageTable, 0);
    let other = w.m.make_thread(255);
    let thread = w.m.free - 4;
    w.m.call(Operation::ThreadSuspend, &[thread]).ok();
    w.m.call(Operation::ThreadConfigure, &[thread, at(slot::CSPACE), root, 0, 0]).ok();
    w.m.check();
    w.m.call(Operation::Revoke, &[0, root]).ok();
    w.delete(root);
    assert_eq!(w.m.thread(other).space_register, 0);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn mapping_stops_if_its_mapping_is_deleted_at_a_preemption_point() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    let mapping = w.m.free;
    let slot = tench_kernel::cspace::destination(w.m.kernel(), 0, mapping).expect("empty");
    let mut points = 0;
    w.m.host().hook = Some(Box::new(move |k| {
        points += 1;
        if points == 3 {
            while !tench_kernel::mapping::finalise(k, slot) {}
            tench_kernel::derivation::remove(k, slot);
            disturb(k);
        }
    }));
    assert_eq!(w.refused(frame, w.tables[2], 0, 512, 0, READ), Error::InvalidCapability);
    w.map(frame, w.tables[2], 0, 512, 0, READ);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn mapping_stops_where_another_thread_maps_at_a_preemption_point() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    let page = w.m.make(Kind::Frame, 12);
    let notification = w.m.make(Kind::Notification, 0);
    let line = w.m.take_free();
    w.m.call(Operation::InterruptGet, &[at(slot::INTERRUPT_CONTROL), 40, 0, line]).ok();
    w.m.call(Operation::InterruptBind, &[line, notification]).ok();
    let other = w.m.make_thread(255);
    w.m.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 100, 255, 0]).ok();
    w.m.call(Operation::Yield, &[]);
    assert!(w.m.current() == other);
    w.m.call(Operation::Receive, &[notification, 0]);
    let (mapping, between) = (w.m.take_free(), w.m.take_free());
    w.m.host().pending.insert(40);
    let first = w.m.current();
    w.m.call(Operation::FrameMap, &[frame, w.tables[2], 0, 512, 0, READ, mapping]);
    // The first preemption point let the interrupt in, which woke the other thread.
    assert!(w.m.current() == other);
    w.m.check();
    w.m.call(Operation::FrameMap, &[page, w.tables[2], 300, 1, 0, READ, between]).ok();
    w.m.check();
    w.m.call(Operation::Receive, &[notification, 0]);
    assert!(w.m.current() == first);
    assert_eq!(w.m.results(first).err(), Error::AlreadyMapped);
    w.m.check();
    assert_eq!(w.m.call(Operation::MappingQuery, &[mapping]).ok()[2], 64);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_thread_that_is_deleted_while_it_maps_leaves_what_is_mapped() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    let notification = w.m.make(Kind::Notification, 0);
    let line = w.m.take_free();
    w.m.call(Operation::InterruptGet, &[at(slot::INTERRUPT_CONTROL), 40, 0, line]).ok();
    w.m.call(Operation::InterruptBind, &[line, notification]).ok();
    let other = w.m.make_thread(50);
    let thread = w.m.free - 4;
    let first = w.m.current();
    w.m.call(Operation::Receive, &[notification, 0]);
    assert!(w.m.current() == other);
    let mapping = w.m.take_free();
    // At the first preemption point nothing is mapped yet. The interrupt that arrives there is taken at the second.
    w.m.host().hook = Some(Box::new(|k| {
        k.arch().pending.insert(40);
        k.arch().hook = Some(Box::new(|_| ()));
    }));
    w.m.call(Operation::FrameMap, &[frame, w.tables[2], 0, 512, 0, READ, mapping]);
    assert!(w.m.current() == first);
    w.m.host().hook = None;
    w.delete(thread);
    assert_eq!(w.m.call(Operation::MappingQuery, &[mapping]).ok()[2], 64);
    w.delete(mapping);
}

#[test]
fn executable_and_uncached_memory_is_prepared_between_preemption_points() {
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    let before = w.m.kernel().state().statistics.preemption_points;
    w.map(frame, w.tables[2], 0, 512, 0, EXECUTE);
    w.map(frame, w.tables[1], 9, 1, 0, READ | MapFlags::UNCACHED.bits());
    let points = w.m.kernel().state().statistics.preemption_points - before;
    assert!(points >= 2 * (1 << entry_bits(2)) / (16 << 10) - 2, "{points} preemption points");
}

#[test]
fn memory_said_to_be_coherent_is_mapped_without_maintenance() {
    const COHERENT: u64 = EXECUTE | MapFlags::COHERENT.bits();
    let mut w = world();
    let frame = w.m.make(Kind::Frame, 21);
    let three = w.tables[2];
    w.m.host().maintained = 0;
    let mapping = w.map(frame, three, 0, 100, 0, COHERENT);
    assert_eq!(w.m.host().maintained, 0);
    let page = w.m.host().access(BASE).expect("mapped").flags;
    assert_eq!(page.bits(), EXECUTE);
    w.m.call(Operation::MappingProtect, &[mapping, READ]).ok();
    w.m.call(Operation::MappingProtect, &[mapping, COHERENT]).ok();
    assert_eq!(w.m.host().maintained, 0);
    w.m.call(Operation::MappingProtect, &[mapping, READ]).ok();
    w.m.call(Operation::MappingProtect, &[mapping, EXECUTE]).ok();
    assert_eq!(w.m.host().maintained, 100 << 12);
    w.m.check();
    for flags in [READ, WRITE, EXECUTE | MapFlags::UNCACHED.bits(), EXECUTE | MapFlags::DEVICE.bits()] {
        let flags = flags | MapFlags::COHERENT.bits();
        assert_eq!(w.refused(frame, three, 200, 1, 0, flags), Error::InvalidArgument);
    }
}

#[test]
fn unbinding_is_not_an_address() {
    let mut w = world();
    assert_eq!(w.m.call(Operation::FrameMap, &[UNBIND, UNBIND, 0, 1, 0, 1, UNBIND]).err(), Error::InvalidCapability);
}
