//! Retype: the contents of the memory, and events at its preemption points.

use tench_abi::layout::{WATERMARK, slot};
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::{ARCHIVE, RAM, RAM_MEDIUM, at};

use crate::common::{capabilities, check, interrupt_at, let_work, take_over, watermark, worker};

/// Returns the physical address of a capability's memory.
fn physical_address(machine: &mut Machine, address: u64) -> u64 {
    machine.physical(address)
}

/// Returns true if a range of physical memory holds nothing but this word.
fn all(machine: &mut Machine, start: u64, length: u64, word: u64) -> bool {
    (start..start + length).step_by(8).all(|at| machine.host().memory.read(at) == word)
}

#[test]
fn many_blocks_of_untyped_memory_are_made_in_steps() {
    // The first is made last. The number of the others decides whether they lie below it in the tree.
    for (count, before) in (1..40).flat_map(|count| (0..3).map(move |before| (count, before))) {
        let mut machine = Machine::new();
        let first = machine.free;
        machine.free += count + before;
        for block in first..first + before {
            machine.retype(RAM, Kind::Untyped, 12, 1, block).ok();
        }
        machine.retype(RAM, Kind::Untyped, 12, count, first + before).ok();
        check(&mut machine);
    }
}

#[test]
fn memory_is_zero_in_new_objects() {
    let mut machine = Machine::new();
    let start = physical_address(&mut machine, RAM);
    let node = machine.take_free();
    machine.retype(RAM_MEDIUM, Kind::CapNode, 8, 1, node).ok();
    machine.call(Operation::NodeInstall, &[0, 5, node]).ok();
    for (kind, size, count, bytes) in [
        (Kind::Frame, 12, 1, 4096),
        (Kind::Frame, 14, 1, 16384),
        (Kind::Frame, 12, 7, 7 * 4096),
        (Kind::CapNode, 8, 3, 3 * 16384),
        (Kind::Endpoint, 0, 200, 200 * 32),
        (Kind::Reply, 0, 1, 32),
    ] {
        for at in (start..start + bytes + 64).step_by(8) {
            machine.host().memory.write(at, !0);
        }
        machine.retype(RAM, kind, size, count, 5 * 256).ok();
        assert!(all(&mut machine, start, bytes, 0), "{kind:?}");
        assert!(all(&mut machine, start + bytes, 64, !0), "{kind:?}: beyond the end");
        check(&mut machine);
        assert_eq!(machine.call(Operation::Revoke, &[0, RAM]).ok()[1], count);
        check(&mut machine);
    }
}

#[test]
fn untyped_memory_is_left_as_it_is() {
    let mut machine = Machine::new();
    let start = physical_address(&mut machine, RAM);
    machine.host().memory.write(start + 8, 7);
    let address = machine.make(Kind::Untyped, 16);
    assert_eq!(machine.host().memory.read(start + 8), 7);
    let frame = machine.take_free();
    machine.retype(address, Kind::Frame, 12, 1, frame).ok();
    assert_eq!(machine.host().memory.read(start + 8), 0);
}

#[test]
fn the_archive_keeps_its_contents() {
    let mut machine = Machine::new();
    let start = physical_address(&mut machine, ARCHIVE);
    let before: Vec<u64> = (0..8192).map(|i| machine.host().memory.read(start + i * 8)).collect();
    let first = machine.take_free();
    machine.retype(ARCHIVE, Kind::Frame, 12, 16, first).ok();
    let after: Vec<u64> = (0..8192).map(|i| machine.host().memory.read(start + i * 8)).collect();
    assert!(before == after && before.iter().any(|word| *word != 0));
    assert_eq!(machine.retype(ARCHIVE, Kind::Endpoint, 0, 1, 200).err(), Error::DeviceMemory);
    check(&mut machine);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn reservations_cannot_be_used() {
    // A thread that is deleted while it zeroes memory leaves a zombie that only Delete touches.
    let mut machine = Machine::new();
    let worker = machine.make_thread(50);
    let killer = machine.first;
    let address = machine.take_free();
    interrupt_at(&mut machine, killer, 3);
    machine.run(worker);
    machine.retype(RAM, Kind::Frame, 16, 4, address);
    assert!(machine.current() == killer);
    assert_eq!(machine.call(Operation::UntypedQuery, &[address]).err(), Error::InvalidCapability);
    assert_eq!(machine.call(Operation::Copy, &[0, address, 0, address + 1]).err(), Error::InvalidCapability);
    assert_eq!(machine.call(Operation::Move, &[0, address, 0, address + 1]).err(), Error::InvalidCapability);
    assert_eq!(machine.call(Operation::Revoke, &[0, address]).err(), Error::InvalidCapability);
    assert_eq!(machine.retype(RAM, Kind::Frame, 12, 1, address).err(), Error::SlotOccupied);
    let before = watermark(&mut machine, RAM);
    let free = machine.call(Operation::UntypedRetype, &[RAM, Kind::Frame as u64, 12, 1, before - 4096, 0, address + 1]);
    assert_eq!(free.err(), Error::Overlap);
    check(&mut machine);
    assert_eq!(machine.call(Operation::Delete, &[0, address]).ok()[1..4], [1, 0, 0]);
    check(&mut machine);
    // The worker runs again; its reservation is gone.
    machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
    assert!(machine.current() == worker);
    assert_eq!(machine.results(worker).error(), Some(Error::Aborted));
    check(&mut machine);
}

/// Lets a worker begin to make 40 frames at `first`; the first thread runs at the `n`th preemption point. Returns the
/// worker.
fn interrupted(
    machine: &mut Machine,
    first: u64,
    n: usize,
) -> (u64, tench_kernel::object::Ref<tench_kernel::thread::Thread>) {
    let other = machine.first;
    let worker = worker(machine);
    let_work(machine, worker.1);
    interrupt_at(machine, other, n);
    machine.retype(RAM, Kind::Frame, 12, 40, first);
    worker
}

/// First slot of the worker's frames.
const FRAMES: u64 = 160;

#[test]
fn a_thread_deleted_while_it_retypes_leaves_a_consistent_state() {
    for n in 1..60 {
        let mut machine = Machine::new();
        let before = capabilities(&mut machine);
        let worker = interrupted(&mut machine, FRAMES, n);
        take_over(&mut machine);
        check(&mut machine);
        assert_eq!(machine.call(Operation::Delete, &[0, worker.0]).ok()[1], 1);
        for address in FRAMES..FRAMES + 40 {
            machine.call(Operation::Delete, &[0, address]);
            check(&mut machine);
        }
        assert_eq!(watermark(&mut machine, RAM), 0, "preemption point {n}");
        // The worker's scheduling context is left.
        assert_eq!(capabilities(&mut machine), before + 1);
    }
}

#[test]
fn a_slot_that_is_taken_meanwhile_stops_the_run() {
    for n in 1..60 {
        let mut machine = Machine::new();
        let worker = interrupted(&mut machine, FRAMES, n);
        if machine.current() == worker.1 {
            break;
        }
        let taken = machine.call(Operation::Copy, &[0, at(slot::VSPACE), 0, FRAMES + 1]);
        check(&mut machine);
        machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
        assert!(machine.current() == worker.1);
        check(&mut machine);
        match taken.error() {
            None => {
                assert_eq!(machine.results(worker.1).error(), Some(Error::SlotOccupied));
                // The objects that were made stay, the rest is free.
                assert_eq!(machine.call(Operation::Identify, &[0, FRAMES]).ok()[1], 0);
                assert_eq!(machine.call(Operation::Identify, &[0, FRAMES + 39]).ok()[1], Kind::Frame as u64);
                let again = [RAM, Kind::Frame as u64, 12, 1, 0, 0, FRAMES];
                machine.call(Operation::UntypedRetype, &again).ok();
            }
            Some(error) => assert_eq!(error, Error::SlotOccupied),
        }
        check(&mut machine);
    }
}

#[test]
fn memory_that_is_revoked_meanwhile_stops_the_run() {
    for n in 1..60 {
        let mut machine = Machine::new();
        let worker = interrupted(&mut machine, FRAMES, n);
        if machine.current() == worker.1 {
            break;
        }
        machine.call(Operation::Revoke, &[0, RAM]).ok();
        assert_eq!(watermark(&mut machine, RAM), 0);
        // Another thread makes equal frames, in the same slots.
        if n % 2 == 0 {
            machine.retype(RAM, Kind::Frame, 12, 2, FRAMES).ok();
        }
        check(&mut machine);
        let_work(&mut machine, worker.1);
        assert_eq!(machine.results(worker.1).error(), Some(Error::Aborted));
        check(&mut machine);
    }
}

#[test]
fn a_node_that_is_taken_out_meanwhile_stops_the_run() {
    for n in 1..60 {
        let mut machine = Machine::new();
        let node = machine.make(Kind::CapNode, 8);
        machine.call(Operation::NodeInstall, &[0, 5, node]).ok();
        let worker = interrupted(&mut machine, 5 * 256 + 100, n);
        if machine.current() == worker.1 {
            break;
        }
        machine.call(Operation::NodeRemove, &[0, 5, node]).ok();
        check(&mut machine);
        let_work(&mut machine, worker.1);
        assert_eq!(machine.results(worker.1).error(), Some(Error::Aborted));
        take_over(&mut machine);
        check(&mut machine);
        assert_eq!(machine.call(Operation::Delete, &[0, node]).ok()[1], 1);
        assert_eq!(watermark(&mut machine, RAM), 0);
        check(&mut machine);
    }
}

#[test]
fn two_retypes_of_one_untyped_do_not_meet() {
    for n in 1..60 {
        let mut machine = Machine::new();
        let worker = interrupted(&mut machine, FRAMES, n);
        if machine.current() == worker.1 {
            break;
        }
        // 40 pages are reserved from offset 0 on, whether or not frames have been made of them yet.
        let at_offset = |offset: u64| [RAM, Kind::Frame as u64, 12, 1, offset, 0, FRAMES + 41];
        for offset in [0, 4096, 39 * 4096] {
            assert_eq!(machine.call(Operation::UntypedRetype, &at_offset(offset)).err(), Error::Overlap);
        }
        machine.call(Operation::UntypedRetype, &at_offset(40 * 4096)).ok();
        let result =
            machine.call(Operation::UntypedRetype, &[RAM, Kind::Frame as u64, 12, 1, WATERMARK, 0, FRAMES + 42]);
        assert_eq!(result.err(), Error::Overlap);
        check(&mut machine);
        let_work(&mut machine, worker.1);
        assert_eq!(machine.results(worker.1).ok()[1], 0);
        check(&mut machine);
    }
}
