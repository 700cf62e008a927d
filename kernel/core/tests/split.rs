//! Splitting untyped memory that is in use, and counting its children. The model of `capabilities.rs` covers both where
//! no preemption point is passed; these are the cases with one, and the cases with many children.

use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::{RAM, RAM_MEDIUM};
use tench_kernel::object::Ref;
use tench_kernel::thread::Thread;

use crate::common::{capabilities, check, interrupt_at, let_work, take_over, watermark, worker};

/// Half the size of `RAM`.
const HALF: u64 = 8 << 20;
/// Slot for the upper half.
const UPPER: u64 = 250;
/// First slot of the nodes that are filled with children.
const CHILDREN: u64 = 5 * 256;

fn split(machine: &mut Machine, untyped: u64, to: u64) -> Result<(), Error> {
    match machine.call(Operation::UntypedSplit, &[untyped, 0, to]).error() {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// Returns the number of objects made of an untyped, and their size in bytes.
fn children(machine: &mut Machine, untyped: u64) -> (u64, u64) {
    let result = machine.call(Operation::UntypedChildren, &[untyped]).ok();
    (result[1], result[2])
}

fn retype_at(machine: &mut Machine, kind: Kind, size: u64, offset: u64, slot: u64) {
    machine.call(Operation::UntypedRetype, &[RAM, kind as u64, size, 1, offset, 0, slot]).ok();
}

/// Fills `nodes` nodes with endpoints made of `RAM`.
fn many(machine: &mut Machine, nodes: u64) {
    for i in 0..nodes {
        let node = machine.take_free();
        machine.retype(RAM_MEDIUM, Kind::CapNode, 8, 1, node).ok();
        machine.call(Operation::NodeInstall, &[0, 5 + i, node]).ok();
        machine.retype(RAM, Kind::Endpoint, 0, 256, CHILDREN + i * 256).ok();
    }
}

#[test]
fn marks_are_divided_as_the_children_lie() {
    // Offsets of pages placed by offset, number of pages placed at the watermark before them, and the watermarks of
    // both halves.
    let page = 4096;
    for (offsets, below, expected) in [
        (vec![], 0, [0, 0]),
        (vec![HALF], 0, [0, 0]),
        (vec![0], 0, [0, 0]),
        (vec![], 3, [3 * page, 0]),
        (vec![HALF + 64 * page], 3, [3 * page, 0]),
        (vec![HALF - page, HALF], 1, [page, 0]),
    ] {
        let mut machine = Machine::new();
        let first = machine.free;
        machine.free += 20;
        if below > 0 {
            machine.retype(RAM, Kind::Frame, 12, below, first).ok();
        }
        for (i, offset) in offsets.iter().enumerate() {
            retype_at(&mut machine, Kind::Frame, 12, *offset, first + 10 + i as u64);
        }
        split(&mut machine, RAM, UPPER).expect("nothing lies across the middle");
        check(&mut machine);
        assert_eq!([watermark(&mut machine, RAM), watermark(&mut machine, UPPER)], expected, "{offsets:?}");
        let upper = offsets.iter().filter(|offset| **offset >= HALF).count() as u64;
        let lower = below + offsets.len() as u64 - upper;
        assert_eq!(children(&mut machine, RAM), (lower, lower * page));
        assert_eq!(children(&mut machine, UPPER), (upper, upper * page));
    }
}

#[test]
fn a_watermark_in_the_upper_half_is_divided() {
    let mut machine = Machine::new();
    let slots = machine.free;
    machine.retype(RAM, Kind::Frame, 22, 1, slots).ok();
    machine.retype(RAM, Kind::Frame, 23, 1, slots + 1).ok();
    assert_eq!(watermark(&mut machine, RAM), 2 * HALF);
    split(&mut machine, RAM, UPPER).expect("the large frame is the upper half");
    check(&mut machine);
    assert_eq!([watermark(&mut machine, RAM), watermark(&mut machine, UPPER)], [HALF, HALF]);
    // Each half's watermark goes back by itself.
    assert_eq!(machine.call(Operation::Delete, &[0, slots + 1]).ok()[1], 1);
    assert_eq!([watermark(&mut machine, RAM), watermark(&mut machine, UPPER)], [HALF, 0]);
    assert_eq!(machine.call(Operation::Delete, &[0, slots]).ok()[1], 1);
    assert_eq!([watermark(&mut machine, RAM), watermark(&mut machine, UPPER)], [0, 0]);
    check(&mut machine);
    // Each half is complete.
    machine.retype(UPPER, Kind::Frame, 23, 1, slots).ok();
    assert_eq!(machine.call(Operation::Revoke, &[0, RAM]).ok()[1], 0);
    assert_eq!(machine.call(Operation::Revoke, &[0, UPPER]).ok()[1], 1);
    check(&mut machine);
}

#[test]
fn part_of_a_block_goes_back_while_the_rest_is_in_use() {
    // The memory manager's case: it lent an untyped to a client, which has split its own, and takes the lower half
    // back.
    let mut machine = Machine::new();
    let (lent, frame, theirs) = (machine.take_free(), machine.take_free(), machine.take_free());
    machine.retype(RAM, Kind::Untyped, 20, 1, lent).ok();
    machine.call(Operation::UntypedRetype, &[lent, Kind::Frame as u64, 12, 1, 1 << 19, 0, frame]).ok();
    split(&mut machine, lent, theirs).expect("divided");
    check(&mut machine);
    assert_eq!(children(&mut machine, RAM), (2, 1 << 20));
    assert_eq!(machine.call(Operation::Delete, &[0, lent]).ok()[1], 1);
    check(&mut machine);
    assert_eq!(children(&mut machine, RAM), (1, 1 << 19));
    retype_at(&mut machine, Kind::Untyped, 19, 0, lent);
    assert_eq!(children(&mut machine, theirs), (1, 4096));
    check(&mut machine);
}

#[test]
fn an_untyped_is_split_down_to_the_smallest_size() {
    let mut machine = Machine::new();
    let before = capabilities(&mut machine);
    let mut parts = vec![machine.make(Kind::Untyped, 10)];
    while parts.len() < 64 {
        for part in parts.clone() {
            let upper = machine.take_free();
            split(&mut machine, part, upper).expect("large enough");
            parts.push(upper);
            check(&mut machine);
        }
        assert_eq!(children(&mut machine, RAM), (parts.len() as u64, 1024));
    }
    for part in &parts {
        assert_eq!(machine.call(Operation::Identify, &[0, *part]).ok()[3], 4);
        assert_eq!(split(&mut machine, *part, UPPER), Err(Error::InvalidArgument));
    }
    assert_eq!(machine.call(Operation::Revoke, &[0, RAM]).ok()[1], 64);
    assert_eq!(capabilities(&mut machine), before);
}

/// Lets a worker begin to make 40 frames at offset `offset` of `RAM`; the first thread runs at the `n`th preemption
/// point.
fn interrupted(machine: &mut Machine, offset: u64, n: usize) -> (u64, Ref<Thread>) {
    let other = machine.first;
    let worker = worker(machine);
    let_work(machine, worker.1);
    interrupt_at(machine, other, n);
    machine.call(Operation::UntypedRetype, &[RAM, Kind::Frame as u64, 12, 40, offset, 0, 160]);
    worker
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn memory_that_a_retype_prepares_is_not_split() {
    let mut seen = 0;
    for n in 1..60 {
        let mut machine = Machine::new();
        // Makes an object so that the reservation is not the first child.
        retype_at(&mut machine, Kind::Frame, 12, 0, 150);
        let worker = interrupted(&mut machine, HALF - 4096, n);
        if machine.current() == worker.1 {
            break;
        }
        seen += 1;
        // The last objects are made first, eight between two preemption points, so that the reservation crosses the
        // middle at each.
        assert_eq!(split(&mut machine, RAM, UPPER), Err(Error::Overlap), "preemption point {n}");
        // The reservation counts as one object, besides those that are made.
        let made = (161..200).filter(|slot| machine.call(Operation::Identify, &[0, *slot]).ok()[1] != 0).count();
        assert_eq!(children(&mut machine, RAM), (made as u64 + 2, 41 * 4096), "preemption point {n}");
        check(&mut machine);
        let_work(&mut machine, worker.1);
        assert_eq!(machine.results(worker.1).error(), None, "preemption point {n}");
        take_over(&mut machine);
        assert_eq!(children(&mut machine, RAM), (41, 41 * 4096));
        check(&mut machine);
        split(&mut machine, RAM, UPPER).expect("nothing is reserved any more");
        assert_eq!(children(&mut machine, RAM), (2, 2 * 4096));
        assert_eq!(children(&mut machine, UPPER), (39, 39 * 4096));
        check(&mut machine);
    }
    assert!(seen > 10);
}

#[test]
fn a_retype_goes_on_in_either_half() {
    for (offset, halves) in [(HALF - 40 * 4096, [40, 0]), (HALF, [0, 40])] {
        for n in 1..60 {
            let mut machine = Machine::new();
            let worker = interrupted(&mut machine, offset, n);
            if machine.current() == worker.1 {
                break;
            }
            split(&mut machine, RAM, UPPER).expect("the middle is free");
            check(&mut machine);
            let_work(&mut machine, worker.1);
            assert_eq!(machine.results(worker.1).ok()[1], offset);
            take_over(&mut machine);
            check(&mut machine);
            assert_eq!(
                [children(&mut machine, RAM).0, children(&mut machine, UPPER).0],
                halves,
                "preemption point {n}"
            );
        }
    }
}

/// Checks that the rest of a reservation fits into the lower half, where the whole reservation would not have.
#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_half_with_what_is_left_of_a_reservation_comes_before_it() {
    let mut divided = 0;
    for n in 1..20 {
        let mut machine = Machine::new();
        let (pool, upper) = (machine.make(Kind::Untyped, 9), machine.take_free());
        let (other, worker) = (machine.first, worker(&mut machine));
        let_work(&mut machine, worker.1);
        interrupt_at(&mut machine, other, n);
        machine.call(Operation::UntypedRetype, &[pool, Kind::Endpoint as u64, 0, 16, 0, 0, 160]);
        if machine.current() == worker.1 {
            break;
        }
        divided += usize::from(split(&mut machine, pool, upper).is_ok());
        check(&mut machine);
        let_work(&mut machine, worker.1);
        machine.results(worker.1).ok();
        take_over(&mut machine);
        check(&mut machine);
    }
    assert!(divided > 0);
}

#[test]
fn counting_passes_preemption_points() {
    let mut machine = Machine::new();
    many(&mut machine, 8);
    let points = |machine: &mut Machine| machine.kernel().state().statistics.preemption_points;
    let before = points(&mut machine);
    assert_eq!(children(&mut machine, RAM), (2048, 2048 * 32));
    let passed = points(&mut machine) - before;
    assert!(passed >= 2048 / 64, "{passed} preemption points for 2048 children");
    let slot = machine.take_free();
    machine.retype(RAM, Kind::Untyped, 20, 1, slot).ok();
    assert_eq!(children(&mut machine, RAM), (2049, 2048 * 32 + (1 << 20)));
    // With the nodes all endpoints are deleted.
    machine.call(Operation::Revoke, &[0, RAM_MEDIUM]).ok();
    assert_eq!(children(&mut machine, RAM), (1, 1 << 20));
    check(&mut machine);
}

#[test]
fn nested_objects_and_copies_are_stepped_over() {
    let mut machine = Machine::new();
    let inner = machine.make(Kind::Untyped, 16);
    let endpoint = machine.make(Kind::Endpoint, 0);
    let node = machine.take_free();
    machine.retype(RAM_MEDIUM, Kind::CapNode, 8, 2, node).ok();
    machine.free += 1;
    machine.call(Operation::NodeInstall, &[0, 5, node]).ok();
    machine.call(Operation::NodeInstall, &[0, 6, node + 1]).ok();
    machine.retype(inner, Kind::Endpoint, 0, 256, CHILDREN).ok();
    for i in 0..256 {
        let badge = i % 3;
        machine.call(Operation::Mint, &[0, endpoint, 0, CHILDREN + 256 + i, 15, badge]).ok();
    }
    check(&mut machine);
    let before = machine.kernel().state().statistics.preemption_points;
    assert_eq!(children(&mut machine, RAM), (2, (1 << 16) + 32));
    let passed = machine.kernel().state().statistics.preemption_points - before;
    assert!(passed <= 2, "{passed} preemption points for two children");
    assert_eq!(children(&mut machine, inner), (256, 256 * 32));
}

/// Lets a worker count the children of `RAM`, 1,024; the first thread runs at the `n`th preemption point. Returns the
/// worker, and whether that point was reached.
fn counting(machine: &mut Machine, n: usize) -> (Ref<Thread>, bool) {
    many(machine, 4);
    let other = machine.first;
    let worker = worker(machine).1;
    let_work(machine, worker);
    interrupt_at(machine, other, n);
    machine.call(Operation::UntypedChildren, &[RAM]);
    let interrupted = machine.current() == other;
    (worker, interrupted)
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_count_whose_untyped_changes_ends() {
    type Change = (&'static str, fn(&mut Machine), Option<(u64, u64)>);
    let changes: [Change; 6] = [
        ("nothing", |_| {}, Some((1024, 32768))),
        ("split", |m| split(m, RAM, UPPER).expect("divided"), None),
        ("moved", |m| assert_eq!(m.call(Operation::Move, &[0, RAM, 0, UPPER]).error(), None), None),
        ("deleted", |m| assert_eq!(m.call(Operation::Delete, &[0, RAM]).ok()[1], 0), None),
        ("one more", |m| retype_at(m, Kind::Frame, 12, HALF, UPPER), Some((1025, 32768 + 4096))),
        // Objects that have been counted stay counted if they are deleted.
        (
            "the first deleted",
            |m| assert_eq!(m.call(Operation::Delete, &[0, CHILDREN]).ok()[1], 1),
            Some((1024, 32768)),
        ),
    ];
    for (what, change, expected) in changes {
        for n in [1, 2, 7, 15] {
            let mut machine = Machine::new();
            let (worker, interrupted) = counting(&mut machine, n);
            assert!(interrupted, "preemption point {n}");
            change(&mut machine);
            check(&mut machine);
            let_work(&mut machine, worker);
            let result = machine.results(worker);
            match expected {
                Some((objects, bytes)) => {
                    assert_eq!(result.ok()[1..3], [objects, bytes], "{what}, preemption point {n}")
                }
                None => assert_eq!(result.err(), Error::Aborted, "{what}, preemption point {n}"),
            }
            check(&mut machine);
        }
    }
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_count_ends_with_what_it_counts() {
    // All children are deleted while they are counted, and the counting thread, too.
    let mut machine = Machine::new();
    let (worker, _) = counting(&mut machine, 3);
    machine.call(Operation::Revoke, &[0, RAM]).ok();
    let_work(&mut machine, worker);
    let counted = machine.results(worker).ok()[1];
    assert!(counted > 0 && counted < 1024, "{counted}");
    check(&mut machine);
    let mut machine = Machine::new();
    counting(&mut machine, 3);
    machine.call(Operation::Revoke, &[0, RAM_MEDIUM]).ok();
    check(&mut machine);
    assert_eq!(watermark(&mut machine, RAM_MEDIUM), 0);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_revocation_ends_where_its_untyped_is_divided() {
    let mut machine = Machine::new();
    many(&mut machine, 4);
    let other = machine.first;
    let worker = worker(&mut machine).1;
    let_work(&mut machine, worker);
    interrupt_at(&mut machine, other, 3);
    machine.call(Operation::Revoke, &[0, RAM]);
    assert!(machine.current() == other);
    split(&mut machine, RAM, UPPER).expect("divided");
    check(&mut machine);
    let_work(&mut machine, worker);
    let removed = machine.results(worker).ok()[1];
    take_over(&mut machine);
    assert!(removed > 0 && removed < 1024);
    assert_eq!(children(&mut machine, RAM).0, 1024 - removed);
    check(&mut machine);
    assert_eq!(machine.call(Operation::Revoke, &[0, RAM]).ok()[1], 1024 - removed);
    assert_eq!(watermark(&mut machine, RAM), 0);
}
