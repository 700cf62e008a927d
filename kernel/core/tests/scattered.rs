//! Scattereds: success, each error, preemption points, and what deletion leaves behind.

use tench_abi::layout::slot;
use tench_abi::memory::{MAX_SCATTERED, MAX_SET, MapFlags};
use tench_abi::object::Rights;
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::host::disturb;
use tench_arch_host::machine::at;
use tench_kernel::derivation;
use tench_kernel::mapping::scattered;

const READ: u64 = MapFlags::READ.bits();
const WRITE: u64 = READ | MapFlags::WRITE.bits();
const EXECUTE: u64 = READ | MapFlags::EXECUTE.bits();
const ALL: u64 = WRITE | EXECUTE;
/// The address of the first page of the first table.
const BASE: u64 = 3 << 39 | 5 << 30 | 7 << 21;
/// The address of the first page of the second table.
const OTHER: u64 = BASE + (1 << 21);
const ROOT: u64 = at(slot::VSPACE);

/// A machine with a frame of 2 MiB and a scattered mapping of it in each of two tables in the first thread's address
/// space.
struct World {
    m: Machine,
    frame: u64,
    tables: [u64; 2],
    mappings: [u64; 2],
}

fn world() -> World {
    let mut m = Machine::new();
    m.fast = true;
    let [one, two, three, other] = [1, 2, 3, 3].map(|level| m.make(Kind::PageTable, level));
    for (table, parent, index) in [(one, ROOT, 3), (two, one, 5), (three, two, 7), (other, two, 8)] {
        m.call(Operation::PageTableMap, &[table, parent, index]).ok();
    }
    let (frame, tables) = (m.make(Kind::Frame, 21), [three, other]);
    let mappings = tables.map(|table| {
        let mapping = m.take_free();
        m.call(Operation::FrameScatter, &[frame, table, mapping]).ok();
        mapping
    });
    m.check();
    World { m, frame, tables, mappings }
}

impl World {
    /// Sets entries of the first scattered mapping.
    #[track_caller]
    fn set(&mut self, first: u64, count: u64, offset: u64, flags: u64) {
        self.m.call(Operation::MappingSet, &[self.mappings[0], first, count, offset, flags]).ok();
        self.m.check();
    }

    #[track_caller]
    fn refused(&mut self, operation: Operation, arguments: &[u64]) -> Error {
        let error = self.m.call(operation, arguments).err();
        self.m.check();
        error
    }

    /// Clones all entries of the first scattered mapping into the second. Returns their number.
    #[track_caller]
    fn clone(&mut self, mask: u64, restrict: u64) -> u64 {
        let [from, to] = self.mappings;
        let copied = self.m.call(Operation::MappingClone, &[from, to, 0, 512, mask, restrict]).ok()[1];
        self.m.check();
        copied
    }

    /// Returns the offset in the frame and the flags that an address shows, through the translation cache.
    fn shown(&mut self, address: u64) -> Option<(u64, u64)> {
        let frame = self.m.physical(self.frame);
        let page = self.m.host().access(address)?;
        Some((page.physical - frame, page.flags.bits()))
    }

    #[track_caller]
    fn delete(&mut self, address: u64) {
        self.m.call(Operation::Delete, &[0, address]).ok();
        self.m.check();
    }

    /// Returns the number of entries that a scattered mapping has in use.
    fn count(&mut self, mapping: u64) -> u64 {
        self.m.call(Operation::MappingQuery, &[mapping]).ok()[2]
    }
}

#[test]
fn a_scattered_mapping_shows_each_page_anywhere() {
    let mut w = world();
    w.set(9, 1, 0x5000, WRITE);
    w.set(3, 2, 0x1f_e000, READ);
    assert_eq!(w.shown(BASE + (9 << 12)), Some((0x5000, WRITE)));
    assert_eq!(w.shown(BASE + (3 << 12)), Some((0x1f_e000, READ)));
    assert_eq!(w.shown(BASE + (4 << 12)), Some((0x1f_f000, READ)));
    assert_eq!(w.shown(BASE + (5 << 12)), None);
    assert_eq!(w.m.call(Operation::MappingQuery, &[w.mappings[0]]).ok()[1..5], [0, 3, ALL, BASE]);
    // Another page, other flags, and none, where the entry was cached.
    w.set(9, 1, 0x7000, READ);
    assert_eq!(w.shown(BASE + (9 << 12)), Some((0x7000, READ)));
    w.set(8, 2, 0, 0);
    assert_eq!(w.shown(BASE + (9 << 12)), None);
    assert_eq!(w.count(w.mappings[0]), 2);
}

#[test]
fn each_scattered_mapping_has_entries_of_its_own() {
    let mut w = world();
    let (frame, table) = (w.m.make(Kind::Frame, 12), w.tables[0]);
    let (second, ordinary) = (w.m.take_free(), w.m.take_free());
    w.m.call(Operation::FrameScatter, &[frame, table, second]).ok();
    w.m.call(Operation::FrameMap, &[frame, table, 30, 1, 0, READ, ordinary]).ok();
    w.m.call(Operation::MappingSet, &[second, 20, 1, 0, READ]).ok();
    for taken in [20, 30] {
        let arguments = [w.mappings[0], taken - 1, 2, 0, READ];
        assert_eq!(w.refused(Operation::MappingSet, &arguments), Error::AlreadyMapped);
        assert_eq!(w.shown(BASE + ((taken - 1) << 12)), None);
        assert_eq!(w.refused(Operation::MappingSet, &[w.mappings[0], taken, 1, 0, 0]), Error::AlreadyMapped);
    }
    let again = w.m.take_free();
    assert_eq!(w.refused(Operation::FrameMap, &[frame, table, 20, 1, 0, READ, again]), Error::AlreadyMapped);
    w.set(5, 4, 0, READ);
    w.delete(second);
    assert_eq!(w.count(w.mappings[0]), 4);
    // Its number is free, and so is the entry.
    w.m.call(Operation::FrameScatter, &[frame, table, second]).ok();
    w.set(20, 1, 0, READ);
}

#[test]
fn scattered_mappings_say_what_is_wrong() {
    let mut w = world();
    let [mapping, target] = w.mappings;
    let (frame, page, table) = (w.frame, w.m.make(Kind::Frame, 12), w.tables[0]);
    let [free, readable, weak, ordinary] = [(); 4].map(|()| w.m.take_free());
    w.m.call(Operation::Mint, &[0, frame, 0, readable, Rights::READ.bits().into(), 0]).ok();
    w.m.call(Operation::FrameMap, &[page, table, 100, 1, 0, READ, ordinary]).ok();
    let upper = w.m.make(Kind::PageTable, 2);
    let make = |w: &mut World, frame, table, slot| w.refused(Operation::FrameScatter, &[frame, table, slot]);
    assert_eq!(make(&mut w, table, table, free), Error::WrongType);
    assert_eq!(make(&mut w, frame, frame, free), Error::WrongType);
    assert_eq!(make(&mut w, frame, ROOT, free), Error::InvalidArgument);
    assert_eq!(make(&mut w, page, upper, free), Error::InvalidArgument);
    assert_eq!(make(&mut w, frame, table, mapping), Error::SlotOccupied);
    let nothing = w.m.take_free();
    w.m.call(Operation::Mint, &[0, frame, 0, nothing, Rights::WRITE.bits().into(), 0]).ok();
    assert_eq!(make(&mut w, nothing, table, free), Error::MissingRights);
    w.m.call(Operation::FrameScatter, &[readable, w.tables[1], weak]).ok();
    let set = |w: &mut World, mapping, first, count, offset, flags| {
        w.refused(Operation::MappingSet, &[mapping, first, count, offset, flags])
    };
    assert_eq!(set(&mut w, ordinary, 0, 1, 0, READ), Error::WrongType);
    assert_eq!(set(&mut w, frame, 0, 1, 0, READ), Error::WrongType);
    assert_eq!(set(&mut w, free, 0, 1, 0, READ), Error::InvalidCapability);
    assert_eq!(set(&mut w, mapping, 512, 1, 0, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 511, 2, 0, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, u64::MAX, 2, 0, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 0, MAX_SET + 1, 0, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 0, 0, 0, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 0, 1, 0x800, READ), Error::Misaligned);
    assert_eq!(set(&mut w, mapping, 0, 1, 1 << 21, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 0, 2, (1 << 21) - 0x1000, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 0, 1, !0xfff, READ), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 0, 1, 0, ALL), Error::InvalidArgument);
    assert_eq!(set(&mut w, mapping, 0, 1, 0, 1 << 40), Error::InvalidArgument);
    assert_eq!(set(&mut w, weak, 0, 1, 0, WRITE), Error::MissingRights);
    assert_eq!(set(&mut w, weak, 0, 1, 0, EXECUTE), Error::MissingRights);
    assert_eq!(w.refused(Operation::MappingProtect, &[mapping, READ]), Error::WrongType);
    let clone = |w: &mut World, from, to, mask, restrict| {
        w.refused(Operation::MappingClone, &[from, to, 0, 512, mask, restrict])
    };
    assert_eq!(clone(&mut w, ordinary, target, READ, 0), Error::WrongType);
    assert_eq!(clone(&mut w, mapping, ordinary, READ, 0), Error::WrongType);
    assert_eq!(clone(&mut w, mapping, free, READ, 0), Error::InvalidCapability);
    assert_eq!(clone(&mut w, mapping, target, 0, 0), Error::InvalidArgument);
    assert_eq!(clone(&mut w, mapping, target, MapFlags::WRITE.bits(), 0), Error::InvalidArgument);
    assert_eq!(clone(&mut w, mapping, target, READ | MapFlags::DEVICE.bits(), 0), Error::InvalidArgument);
    assert_eq!(clone(&mut w, mapping, target, READ, 2), Error::InvalidArgument);
    assert_eq!(clone(&mut w, mapping, weak, WRITE, 0), Error::MissingRights);
    assert_eq!(clone(&mut w, mapping, weak, EXECUTE, 0), Error::MissingRights);
    let (small, high) = (w.m.take_free(), w.m.take_free());
    w.m.call(Operation::FrameScatter, &[page, w.tables[1], small]).ok();
    w.m.call(Operation::FrameScatter, &[frame, upper, high]).ok();
    assert_eq!(clone(&mut w, mapping, small, READ, 0), Error::InvalidArgument);
    assert_eq!(clone(&mut w, mapping, high, READ, 0), Error::InvalidArgument);
}

#[test]
fn a_table_has_so_many_scattered_mappings() {
    let mut w = world();
    let made: Vec<u64> = (1..MAX_SCATTERED).map(|_| w.m.take_free()).collect();
    for slot in &made {
        w.m.call(Operation::FrameScatter, &[w.frame, w.tables[0], *slot]).ok();
    }
    let free = w.m.take_free();
    assert_eq!(w.refused(Operation::FrameScatter, &[w.frame, w.tables[0], free]), Error::Busy);
    w.delete(made[3]);
    w.m.call(Operation::FrameScatter, &[w.frame, w.tables[0], free]).ok();
    w.m.check();
}

#[test]
fn clones_show_the_same_with_fewer_flags() {
    let mut w = world();
    w.set(0, 3, 0x3000, WRITE);
    w.set(200, 1, 0, EXECUTE);
    w.set(511, 1, 0x9000, READ);
    // Something else is in the way of the second.
    w.m.call(Operation::MappingSet, &[w.mappings[1], 1, 1, 0x1_0000, WRITE]).ok();
    let cached = [0, 1, 2, 200, 511].map(|index| w.shown(BASE + (index << 12)));
    assert_eq!(w.clone(READ | MapFlags::EXECUTE.bits(), 0), 4);
    let clones = [0, 1, 2, 200, 511].map(|index| w.shown(OTHER + (index << 12)));
    let expected = [(0x3000, READ), (0x1_0000, WRITE), (0x5000, READ), (0, EXECUTE), (0x9000, READ)];
    assert_eq!(clones, expected.map(Some));
    assert_eq!([0, 1, 2, 200, 511].map(|index| w.shown(BASE + (index << 12))), cached);
    assert_eq!((w.count(w.mappings[0]), w.count(w.mappings[1])), (5, 5));
    // Once more, with nothing in the way; now the first loses the flags as well.
    w.delete(w.mappings[1]);
    w.m.call(Operation::FrameScatter, &[w.frame, w.tables[1], w.mappings[1]]).ok();
    assert_eq!(w.clone(READ, 1), 5);
    for index in [0, 1, 2, 200, 511] {
        let (before, after) = (w.shown(BASE + (index << 12)), w.shown(OTHER + (index << 12)));
        assert!(before == after && after.is_some_and(|(_, flags)| flags == READ), "{index}: {before:?} {after:?}");
    }
}

#[test]
fn what_is_deleted_takes_its_scattered_mappings_along() {
    for what in 0..4 {
        let mut w = world();
        for first in (0..512).step_by(16) {
            w.set(first, 3, first << 12, WRITE);
            assert!(w.shown(BASE + (first << 12)).is_some());
        }
        assert_eq!(w.clone(WRITE, 0), 96);
        let moved = w.m.take_free();
        w.m.call(Operation::Move, &[0, w.mappings[0], 0, moved]).ok();
        w.m.check();
        match what {
            0 => w.delete(moved),
            1 => w.delete(w.tables[0]),
            2 => _ = w.m.call(Operation::Revoke, &[0, w.frame]).ok(),
            _ => w.delete(w.frame),
        }
        w.m.check();
        assert_eq!(w.shown(BASE), None);
        assert_eq!(w.shown(OTHER).is_some(), what < 2);
        assert_eq!(w.m.call(Operation::MappingQuery, &[moved]).err(), Error::InvalidCapability);
    }
}

#[test]
fn a_scattered_mapping_that_is_being_deleted_takes_nothing_in() {
    let mut w = world();
    w.set(0, 4, 0, WRITE);
    let slot = tench_kernel::cspace::lookup(w.m.kernel(), w.mappings[0]).expect("there");
    // As the end of its frame or of its table leaves it at a preemption point.
    assert!(!scattered::finalise(w.m.kernel(), slot));
    w.m.check();
    let [mapping, target] = w.mappings;
    assert_eq!(w.refused(Operation::MappingSet, &[mapping, 500, 1, 0, READ]), Error::Aborted);
    assert_eq!(w.refused(Operation::MappingClone, &[mapping, target, 0, 512, READ, 0]), Error::Aborted);
    assert_eq!(w.refused(Operation::MappingClone, &[target, mapping, 0, 512, READ, 0]), Error::Aborted);
    assert_eq!(w.count(mapping), 4);
    w.delete(mapping);
    assert_eq!(w.shown(BASE), None);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn cloning_stops_if_a_scattered_mapping_goes_at_a_preemption_point() {
    for (victim, expected) in [(0, Error::InvalidCapability), (1, Error::InvalidCapability)] {
        let mut w = world();
        for first in (0..512).step_by(32) {
            w.set(first, 32, first << 12, WRITE);
        }
        let slot = tench_kernel::cspace::lookup(w.m.kernel(), w.mappings[victim]).expect("there");
        let mut points = 0;
        w.m.host().hook = Some(Box::new(move |k| {
            points += 1;
            if points == 3 {
                while !scattered::finalise(k, slot) {}
                derivation::remove(k, slot);
                disturb(k);
            }
        }));
        let [from, to] = w.mappings;
        assert_eq!(w.refused(Operation::MappingClone, &[from, to, 0, 512, READ, 1]), expected);
        w.m.host().hook = None;
        if victim == 0 {
            assert_eq!(w.count(to), 3 * 96);
        } else {
            assert_eq!(w.count(from), 512);
        }
    }
}

#[test]
fn executable_memory_is_prepared_before_it_is_shown() {
    let mut w = world();
    w.m.host().maintained = 0;
    w.set(0, 2, 0x4000, EXECUTE);
    assert_eq!(w.m.host().maintained, 2 << 12);
    w.set(2, 2, 0x4000, EXECUTE | MapFlags::COHERENT.bits());
    assert_eq!(w.m.host().maintained, 2 << 12);
    w.set(4, 1, 0, READ | MapFlags::UNCACHED.bits());
    assert_eq!(w.m.host().maintained, 3 << 12);
    assert_eq!(w.shown(BASE + (2 << 12)), Some((0x4000, EXECUTE)));
}
