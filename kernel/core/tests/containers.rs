//! Deletion of nodes and threads in every shape: nested, in cycles, in threads, preempted at each preemption point.

use proptest::prelude::*;
use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::{RAM, RAM_MEDIUM, at};
use tench_kernel::slot::flag;

use crate::common::{capabilities, check, interrupt_at, let_work, take_over, watermark, worker};

/// Entries of the first thread's root CNode in which the tests install nodes.
const INDEX: u64 = 1;

/// Moves the capability at `inner` into this slot of the node at `address`, and the node's capability to `inner`.
fn wrap(machine: &mut Machine, address: u64, inner: u64, slot: u64) {
    machine.call(Operation::NodeInstall, &[0, INDEX, address]).ok();
    machine.call(Operation::Move, &[0, inner, 0, INDEX * 256 + slot]).ok();
    machine.call(Operation::NodeRemove, &[0, INDEX, inner]).ok();
}

#[test]
fn a_thousand_nested_nodes_go_with_the_outermost() {
    let mut machine = Machine::new();
    let before = capabilities(&mut machine);
    let (inner, outer) = (machine.take_free(), machine.take_free());
    machine.retype(RAM, Kind::CapNode, 8, 1, inner).ok();
    let object = machine.cap(inner).object;
    for level in 0..1000 {
        machine.retype(RAM, Kind::CapNode, 8, 1, outer).ok();
        wrap(&mut machine, outer, inner, [0, 5, 255][level % 3]);
    }
    check(&mut machine);
    let (start, last) = (machine.cap(RAM).object, machine.cap(inner).object);
    assert!(object != last);
    let points = machine.kernel().state().statistics.preemption_points;
    let result = machine.call(Operation::Delete, &[0, inner, at(slot::KERNEL)]).ok();
    let physical = (last - start) as u64 + machine.physical(RAM);
    assert_eq!(result[1..4], [1, physical, 14]);
    assert_eq!(watermark(&mut machine, RAM), 0);
    assert_eq!(capabilities(&mut machine), before);
    let passed = machine.kernel().state().statistics.preemption_points - points;
    assert!(passed > 1000, "{passed} preemption points for 256,000 slots");
    check(&mut machine);
}

#[test]
fn a_mapping_in_the_first_slot_of_a_nested_node_is_known_wherever_it_is_moved() {
    let mut machine = Machine::new();
    let (table, frame) = (machine.make(Kind::PageTable, 3), machine.make(Kind::Frame, 12));
    let (at, [inner, outer]) = (machine.take_free(), [0; 2].map(|_| machine.make(Kind::CapNode, 8)));
    machine.call(Operation::FrameMap, &[frame, table, 7, 1, 0, MapFlags::READ.bits(), at]).ok();
    wrap(&mut machine, inner, at, 0);
    wrap(&mut machine, outer, at, 5);
    check(&mut machine);
    machine.host().hook = Some(Box::new(|k| {
        if let Err(wrong) = tench_arch_host::check::check(k) {
            panic!("{wrong}");
        }
    }));
    machine.call(Operation::Delete, &[0, at]).ok();
    machine.host().hook = None;
    check(&mut machine);
    assert_eq!(machine.call(Operation::Delete, &[0, frame]).ok()[1], 1, "its mapping is gone");
}

#[test]
fn a_node_in_itself_goes_when_its_memory_is_revoked() {
    for position in [0, 1, 200, 255] {
        let mut machine = Machine::new();
        let before = capabilities(&mut machine);
        let node = machine.make(Kind::CapNode, 8);
        let copy = machine.take_free();
        machine.call(Operation::Copy, &[0, node, 0, copy]).ok();
        wrap(&mut machine, node, copy, position);
        // Two capabilities: one outside, one inside.
        assert_eq!(machine.call(Operation::Delete, &[0, copy]).ok()[1], 0);
        check(&mut machine);
        assert_eq!(machine.call(Operation::Revoke, &[0, RAM]).ok()[1], 1);
        assert_eq!(capabilities(&mut machine), before);
        assert_eq!(watermark(&mut machine, RAM), 0);
        check(&mut machine);
    }
}

#[test]
fn a_root_installed_in_itself_can_be_deleted() {
    let mut machine = Machine::new();
    let before = capabilities(&mut machine);
    let root = machine.make(Kind::CapNode, 8);
    let copy = machine.take_free();
    machine.call(Operation::Copy, &[0, root, 0, copy]).ok();
    machine.call(Operation::NodeInstall, &[root, 3, copy]).ok();
    let endpoint = machine.make(Kind::Endpoint, 0);
    // The root's entries can now be named as slots 3 × 256 on; entry 3 is slot 3.
    machine.call(Operation::Move, &[0, endpoint, root, 3 * 256 + 77]).ok();
    assert_eq!(machine.call(Operation::Identify, &[root, 3 * 256 + 3]).ok()[1], Kind::CapNode as u64);
    check(&mut machine);
    assert_eq!(machine.call(Operation::Revoke, &[0, root]).ok()[1], 1);
    assert_eq!(machine.call(Operation::Delete, &[0, root]).ok()[1], 1);
    assert_eq!(capabilities(&mut machine), before);
    check(&mut machine);
}

#[test]
fn a_thread_takes_its_cspace_along_and_so_on() {
    let mut machine = Machine::new();
    let before = capabilities(&mut machine);
    let mut inner = machine.make(Kind::Endpoint, 0);
    for _ in 0..20 {
        // A node holds the object; a thread's binding is the node's last capability.
        let node = machine.make(Kind::CapNode, 8);
        wrap(&mut machine, node, inner, 9);
        let thread = machine.make(Kind::Thread, 0);
        let arguments = [thread, inner, at(slot::VSPACE), 0, 0];
        machine.call(Operation::ThreadConfigure, &arguments).ok();
        assert_eq!(machine.call(Operation::Delete, &[0, inner]).ok()[1], 0);
        inner = thread;
    }
    check(&mut machine);
    assert_eq!(machine.call(Operation::Delete, &[0, inner]).ok()[1], 1);
    assert_eq!(capabilities(&mut machine), before);
    assert_eq!(watermark(&mut machine, RAM), 0);
    check(&mut machine);
}

#[test]
fn a_running_thread_deletes_itself() {
    let mut machine = Machine::new();
    let first = machine.first;
    let before = capabilities(&mut machine);
    let thread = machine.make_thread(200);
    machine.run(thread);
    // The thread revokes its own memory, and everything else that was made of it.
    machine.call(Operation::Revoke, &[0, RAM]);
    assert!(machine.current() == first);
    assert!(capabilities(&mut machine) <= before + 8);
    check(&mut machine);
    machine.call(Operation::Revoke, &[0, RAM]).ok();
    assert_eq!(capabilities(&mut machine), before);
    check(&mut machine);
}

/// A capability that the shape test places: to object `of`, in container `into`.
#[derive(Clone, Debug)]
struct Edge {
    of: usize,
    into: usize,
    slot: u64,
    moved: bool,
}

/// Containers and the capabilities in them.
#[derive(Clone, Debug)]
struct Shape {
    containers: usize,
    edges: Vec<Edge>,
}

fn shape() -> impl Strategy<Value = Shape> {
    (2..7usize).prop_flat_map(|containers| {
        let slot = prop_oneof![3 => 0..4u64, 1 => 0..256u64];
        let edge = (0..containers + 2, 0..containers, slot, any::<bool>()).prop_map(|(of, into, slot, moved)| Edge {
            of,
            into,
            slot,
            moved,
        });
        prop::collection::vec(edge, 0..24).prop_map(move |edges| Shape { containers, edges })
    })
}

/// Makes the objects and places their capabilities. Containers stay installed in the root's entries from 8 on, so every
/// capability elsewhere can be theirs. Returns the addresses of an endpoint and a frame that are in there too.
fn build(machine: &mut Machine, shape: &Shape) {
    let first = machine.free;
    for _ in 0..shape.containers {
        machine.make(Kind::CapNode, 8);
    }
    machine.make(Kind::Endpoint, 0);
    machine.make(Kind::Frame, 12);
    let spare = machine.take_free();
    for container in 0..shape.containers as u64 {
        machine.call(Operation::Copy, &[0, first + container, 0, spare]).ok();
        machine.call(Operation::NodeInstall, &[0, 8 + container, spare]).ok();
    }
    for edge in &shape.edges {
        let (source, destination) = (first + edge.of as u64, (8 + edge.into as u64) * 256 + edge.slot);
        let operation = if edge.moved { Operation::Move } else { Operation::Copy };
        machine.call(operation, &[0, source, 0, destination]);
    }
}

/// Removes the installed capabilities, so that the remaining ones keep each other alive.
fn release(machine: &mut Machine, shape: &Shape) {
    let spare = machine.take_free();
    for container in 0..shape.containers as u64 {
        machine.call(Operation::NodeRemove, &[0, 8 + container, spare]).ok();
        machine.call(Operation::Delete, &[0, spare]).ok();
    }
}

/// Returns the number of zombies.
fn zombies(machine: &mut Machine) -> usize {
    let k = machine.kernel();
    let mut count = 0;
    let mut at = tench_kernel::tree::first(k);
    while let Some(slot) = at {
        count += usize::from(k.slot(slot).cap.flags & flag::ZOMBIE != 0);
        at = tench_kernel::tree::next(k, slot);
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_shape_goes_when_its_memory_is_revoked(shape in shape()) {
        let mut machine = Machine::new();
        let before = capabilities(&mut machine);
        build(&mut machine, &shape);
        release(&mut machine, &shape);
        check(&mut machine);
        let all = capabilities(&mut machine);
        let result = machine.call(Operation::Revoke, &[0, RAM]).ok();
        prop_assert_eq!(capabilities(&mut machine), before);
        prop_assert_eq!(result[1], (all - before) as u64);
        prop_assert_eq!(watermark(&mut machine, RAM), 0);
        check(&mut machine);
    }

    #[test]
    fn any_shape_goes_one_by_one(shape in shape()) {
        let mut machine = Machine::new();
        let first = machine.free;
        build(&mut machine, &shape);
        release(&mut machine, &shape);
        for address in first..first + shape.containers as u64 + 2 {
            let result = machine.call(Operation::Delete, &[0, address]);
            prop_assert!(matches!(result.error(), None | Some(Error::InvalidCapability)));
            prop_assert_eq!(zombies(&mut machine), 0);
            check(&mut machine);
        }
    }

    #[test]
    fn a_revoker_deleted_at_any_preemption_point_leaves_a_state_to_continue_from(shape in shape(), point in 1..30usize) {
        let mut machine = Machine::new();
        let before = capabilities(&mut machine);
        let killer = machine.first;
        // The worker is made of other memory than the memory that it revokes.
        let worker = worker(&mut machine);
        let with_worker = capabilities(&mut machine);
        build(&mut machine, &shape);
        release(&mut machine, &shape);
        let_work(&mut machine, worker.1);
        interrupt_at(&mut machine, killer, point);
        machine.call(Operation::Revoke, &[0, RAM]);
        take_over(&mut machine);
        check(&mut machine);
        prop_assert_eq!(machine.call(Operation::Delete, &[0, worker.0]).ok()[1], 1);
        check(&mut machine);
        machine.call(Operation::Revoke, &[0, RAM]).ok();
        prop_assert_eq!(zombies(&mut machine), 0);
        prop_assert_eq!(watermark(&mut machine, RAM), 0);
        machine.call(Operation::Revoke, &[0, RAM_MEDIUM]).ok();
        prop_assert!(with_worker > before);
        prop_assert_eq!(capabilities(&mut machine), before);
        check(&mut machine);
    }

    #[test]
    fn a_deletion_that_was_interrupted_for_good_is_finished_by_the_next(shape in shape(), point in 1..12usize) {
        let mut machine = Machine::new();
        let killer = machine.first;
        let worker = worker(&mut machine);
        let first = machine.free;
        build(&mut machine, &shape);
        release(&mut machine, &shape);
        let_work(&mut machine, worker.1);
        interrupt_at(&mut machine, killer, point);
        let addresses = first..first + shape.containers as u64 + 2;
        for address in addresses.clone() {
            if machine.current() == worker.1 {
                machine.call(Operation::Delete, &[0, address]);
                check(&mut machine);
            }
        }
        take_over(&mut machine);
        prop_assert_eq!(machine.call(Operation::Delete, &[0, worker.0]).ok()[1], 1);
        for address in addresses {
            machine.call(Operation::Delete, &[0, address]);
            check(&mut machine);
        }
        prop_assert_eq!(zombies(&mut machine), 0);
    }

    #[test]
    fn deletions_interleave(
        shape in shape(),
        turns in prop::collection::vec((1..6usize, 0..10u64, 0..8u64, any::<bool>()), 1..8),
    ) {
        let mut machine = Machine::new();
        let before = capabilities(&mut machine);
        let other = machine.first;
        let worker = worker(&mut machine);
        let first = machine.free;
        build(&mut machine, &shape);
        release(&mut machine, &shape);
        for (point, mine, theirs, revoke) in turns {
            machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
            prop_assert!(machine.current() == worker.1);
            interrupt_at(&mut machine, other, point);
            if mine == 9 {
                machine.call(Operation::Revoke, &[0, RAM]);
            } else {
                machine.call(Operation::Delete, &[0, first + mine]);
            }
            take_over(&mut machine);
            check(&mut machine);
            if revoke && theirs == 0 {
                machine.call(Operation::Revoke, &[0, RAM]);
            } else {
                machine.call(Operation::Delete, &[0, first + theirs]);
                machine.retype(RAM, Kind::CapNode, 8, 1, first + theirs);
            }
            check(&mut machine);
        }
        let_work(&mut machine, worker.1);
        machine.call(Operation::Revoke, &[0, RAM]).ok();
        check(&mut machine);
        take_over(&mut machine);
        machine.call(Operation::Revoke, &[0, RAM_MEDIUM]).ok();
        prop_assert_eq!(zombies(&mut machine), 0);
        prop_assert_eq!(capabilities(&mut machine), before);
    }
}
