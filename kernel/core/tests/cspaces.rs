//! CSpaces: which slots can be named, through which capability, and which errors the operations return.

use tench_abi::layout::slot;
use tench_abi::{Error, Kind, Operation, Rights};
use tench_arch_host::Machine;
use tench_arch_host::machine::{RAM, at};

use crate::common::{capabilities, check};

/// Makes a root CNode of four entries with a node of 256 slots in entry 2. Returns the root's address.
fn other_cspace(machine: &mut Machine) -> u64 {
    let (root, node) = (machine.make(Kind::CapNode, 2), machine.make(Kind::CapNode, 8));
    machine.call(Operation::NodeInstall, &[root, 2, node]).ok();
    root
}

/// Makes a copy of the capability at `address` with these rights only. Returns its address.
fn with_rights(machine: &mut Machine, address: u64, rights: Rights) -> u64 {
    let new = machine.take_free();
    machine.call(Operation::Mint, &[0, address, 0, new, rights.bits().into(), 0]).ok();
    new
}

fn kind_at(machine: &mut Machine, cspace: u64, address: u64) -> u64 {
    machine.call(Operation::Identify, &[cspace, address]).ok()[1]
}

#[test]
fn addresses_outside_the_cspace_do_not_resolve() {
    let mut machine = Machine::new();
    let endpoint = machine.make(Kind::Endpoint, 0);
    for address in [0, 256, 65_536, 1 << 16, 1 << 31, 1 << 32, (1 << 32) + endpoint, u64::MAX, u64::MAX - 255] {
        assert_eq!(
            machine.call(Operation::Copy, &[0, address, 0, 200]).err(),
            Error::InvalidCapability,
            "{address:#x}"
        );
        assert_eq!(machine.call(Operation::Copy, &[0, endpoint, 0, address]).err(), Error::NoSuchSlot, "{address:#x}");
        assert_eq!(machine.retype(RAM, Kind::Endpoint, 0, 1, address).err(), Error::NoSuchSlot, "{address:#x}");
        assert_eq!(machine.call(Operation::Identify, &[0, address]).err(), Error::InvalidCapability, "{address:#x}");
        assert_eq!(machine.call(Operation::Delete, &[0, address]).err(), Error::InvalidCapability, "{address:#x}");
        assert_eq!(machine.retype(RAM, Kind::Reply, 0, 2, address).err(), Error::NoSuchSlot, "{address:#x}");
    }
    check(&mut machine);
}

#[test]
fn another_cspace_is_reached_through_its_root() {
    let mut machine = Machine::new();
    let root = other_cspace(&mut machine);
    let endpoint = machine.make(Kind::Endpoint, 0);
    machine.call(Operation::Copy, &[0, endpoint, root, 2 * 256 + 9]).ok();
    assert_eq!(kind_at(&mut machine, root, 2 * 256 + 9), Kind::Endpoint as u64);
    machine.call(Operation::Copy, &[root, 2 * 256 + 9, root, 2 * 256]).ok();
    for address in [9, 256 + 9, 3 * 256, 4 * 256 + 9, 1 << 40] {
        assert_eq!(machine.call(Operation::Copy, &[0, endpoint, root, address]).err(), Error::NoSuchSlot);
        assert_eq!(machine.call(Operation::Copy, &[root, address, 0, 200]).err(), Error::InvalidCapability);
    }
    let back = machine.take_free();
    machine.call(Operation::Move, &[root, 2 * 256 + 9, 0, back]).ok();
    assert_eq!(kind_at(&mut machine, root, 2 * 256 + 9), 0);
    assert_eq!(machine.call(Operation::Delete, &[root, 2 * 256]).ok()[1], 0);
    check(&mut machine);
}

#[test]
fn a_root_has_up_to_65_536_entries() {
    let mut machine = Machine::new();
    let before = capabilities(&mut machine);
    let (root, node, last) = (machine.take_free(), machine.take_free(), 65_535);
    let too_large = machine.retype(RAM, Kind::CapNode, 17, 1, root);
    assert_eq!(too_large.err(), Error::InvalidArgument);
    machine.retype(RAM, Kind::CapNode, 16, 1, root).ok();
    let endpoint = machine.make(Kind::Endpoint, 0);
    machine.retype(RAM, Kind::CapNode, 8, 1, node).ok();
    let beyond = machine.call(Operation::NodeInstall, &[root, last + 1, node]);
    assert_eq!(beyond.err(), Error::InvalidArgument);
    machine.call(Operation::NodeInstall, &[root, last, node]).ok();
    for slot in [0, 255] {
        machine.call(Operation::Copy, &[0, endpoint, root, last * 256 + slot]).ok();
        assert_eq!(kind_at(&mut machine, root, last * 256 + slot), Kind::Endpoint as u64);
    }
    for address in [(last - 1) * 256, (last + 1) * 256, (1 << 32) + last * 256] {
        assert_eq!(machine.call(Operation::Copy, &[0, endpoint, root, address]).err(), Error::NoSuchSlot);
    }
    check(&mut machine);
    // It can be a thread's.
    let thread = machine.make(Kind::Thread, 0);
    machine.call(Operation::ThreadConfigure, &[thread, root, at(slot::VSPACE), 0, 0]).ok();
    let bound = machine.thread_at(thread);
    assert_eq!(machine.thread(bound).cspace_slots, 65_536);
    for capability in [thread, root, endpoint] {
        machine.call(Operation::Delete, &[0, capability]).ok();
    }
    assert_eq!(capabilities(&mut machine), before);
    check(&mut machine);
}

#[test]
fn a_root_needs_rights() {
    let mut machine = Machine::new();
    let root = other_cspace(&mut machine);
    let endpoint = machine.make(Kind::Endpoint, 0);
    let inside = 2 * 256 + 1;
    machine.call(Operation::Copy, &[0, endpoint, root, inside]).ok();
    let (reads, writes) = (Rights::READ, Rights::WRITE);
    let (read, write) = (with_rights(&mut machine, root, reads), with_rights(&mut machine, root, writes));
    let refused = |machine: &mut Machine, operation: Operation, arguments: &[u64]| {
        assert_eq!(machine.call(operation, arguments).err(), Error::MissingRights, "{operation:?}");
    };
    refused(&mut machine, Operation::Copy, &[0, endpoint, read, inside + 1]);
    refused(&mut machine, Operation::Move, &[read, inside, 0, 200]);
    refused(&mut machine, Operation::Delete, &[read, inside]);
    refused(&mut machine, Operation::Revoke, &[read, inside]);
    refused(&mut machine, Operation::NodeRemove, &[read, 2, 200]);
    refused(&mut machine, Operation::NodeInstall, &[read, 1, root]);
    refused(&mut machine, Operation::Copy, &[write, inside, 0, 200]);
    refused(&mut machine, Operation::Mint, &[write, inside, 0, 200, 0, 0]);
    refused(&mut machine, Operation::Identify, &[write, inside]);
    machine.call(Operation::Copy, &[read, inside, 0, 200]).ok();
    machine.call(Operation::Copy, &[0, endpoint, write, inside + 1]).ok();
    machine.call(Operation::Revoke, &[write, inside]).ok();
    machine.call(Operation::Delete, &[write, inside]).ok();
    for other in [endpoint, RAM, at(slot::VSPACE)] {
        assert_eq!(machine.call(Operation::Copy, &[0, endpoint, other, inside]).err(), Error::WrongType);
        assert_eq!(machine.call(Operation::Identify, &[other, inside]).err(), Error::WrongType);
    }
    check(&mut machine);
}

#[test]
fn nodes_are_installed_and_taken_out() {
    let mut machine = Machine::new();
    let root = machine.make(Kind::CapNode, 2);
    let (node, small, other) =
        (machine.make(Kind::CapNode, 8), machine.make(Kind::CapNode, 7), machine.make(Kind::CapNode, 8));
    let endpoint = machine.make(Kind::Endpoint, 0);
    let call = |machine: &mut Machine, operation, arguments: &[u64]| machine.call(operation, arguments).error();
    let install = Operation::NodeInstall;
    assert_eq!(call(&mut machine, install, &[root, 4, node]), Some(Error::InvalidArgument));
    assert_eq!(call(&mut machine, install, &[root, u64::MAX, node]), Some(Error::InvalidArgument));
    assert_eq!(call(&mut machine, install, &[root, 1, small]), Some(Error::WrongType));
    assert_eq!(call(&mut machine, install, &[root, 1, endpoint]), Some(Error::WrongType));
    assert_eq!(call(&mut machine, install, &[root, 1, 250]), Some(Error::InvalidCapability));
    assert_eq!(call(&mut machine, install, &[endpoint, 1, node]), Some(Error::WrongType));
    let weak = with_rights(&mut machine, other, Rights::READ);
    assert_eq!(call(&mut machine, install, &[root, 1, weak]), Some(Error::MissingRights));
    assert_eq!(call(&mut machine, install, &[root, 1, node]), None);
    assert_eq!(kind_at(&mut machine, 0, node), 0);
    assert_eq!(call(&mut machine, install, &[root, 1, other]), Some(Error::SlotOccupied));
    check(&mut machine);
    let remove = Operation::NodeRemove;
    assert_eq!(call(&mut machine, remove, &[root, 4, node]), Some(Error::InvalidArgument));
    assert_eq!(call(&mut machine, remove, &[root, 0, node]), Some(Error::NoSuchSlot));
    assert_eq!(call(&mut machine, remove, &[root, 1, endpoint]), Some(Error::SlotOccupied));
    assert_eq!(call(&mut machine, remove, &[root, 1, 1 << 20]), Some(Error::NoSuchSlot));
    assert_eq!(call(&mut machine, remove, &[root, 1, node]), None);
    assert_eq!(call(&mut machine, remove, &[root, 1, 250]), Some(Error::NoSuchSlot));
    assert_eq!(kind_at(&mut machine, 0, node), Kind::CapNode as u64);
    check(&mut machine);
}

#[test]
fn rights_and_badges_are_minted_downwards_only() {
    let mut machine = Machine::new();
    let endpoint = machine.make(Kind::Endpoint, 0);
    let read = with_rights(&mut machine, endpoint, Rights::READ);
    let again = machine.take_free();
    machine.call(Operation::Mint, &[0, read, 0, again, u64::MAX, 0]).ok();
    assert_eq!(machine.call(Operation::Identify, &[0, again]).ok()[2], u64::from(Rights::READ.bits()));
    let badged = machine.take_free();
    machine.call(Operation::Mint, &[0, endpoint, 0, badged, u64::MAX, 77]).ok();
    assert_eq!(machine.call(Operation::Identify, &[0, badged]).ok()[4], 77);
    let next = machine.take_free();
    for badge in [1, 77, u64::MAX] {
        let result = machine.call(Operation::Mint, &[0, badged, 0, next, u64::MAX, badge]);
        assert_eq!(result.err(), Error::InvalidArgument);
    }
    machine.call(Operation::Mint, &[0, badged, 0, next, 2, 0]).ok();
    let [_, kind, rights, _, badge, ..] = machine.call(Operation::Identify, &[0, next]).ok();
    assert_eq!((kind, rights, badge), (Kind::Endpoint as u64, 2, 77));
    let reply = machine.make(Kind::Reply, 0);
    let result = machine.call(Operation::Mint, &[0, reply, 0, 200, u64::MAX, 1]);
    assert_eq!(result.err(), Error::InvalidArgument);
    check(&mut machine);
}

#[test]
fn revoking_reaches_what_was_derived_and_nothing_else() {
    let mut machine = Machine::new();
    let endpoint = machine.make(Kind::Endpoint, 0);
    let first = machine.free;
    // Two capabilities of each badge, the second a copy of the first; and two plain copies.
    for badge in [5, 6] {
        let (origin, copy) = (machine.take_free(), machine.take_free());
        machine.call(Operation::Mint, &[0, endpoint, 0, origin, u64::MAX, badge]).ok();
        machine.call(Operation::Copy, &[0, origin, 0, copy]).ok();
    }
    let (copy, second) = (machine.take_free(), machine.take_free());
    machine.call(Operation::Copy, &[0, endpoint, 0, copy]).ok();
    machine.call(Operation::Copy, &[0, copy, 0, second]).ok();
    let revoked = |machine: &mut Machine, address| machine.call(Operation::Revoke, &[0, address]).ok()[1];
    assert_eq!(revoked(&mut machine, copy), 0);
    assert_eq!(revoked(&mut machine, first + 1), 0);
    assert_eq!(revoked(&mut machine, first), 1);
    assert_eq!(kind_at(&mut machine, 0, first + 1), 0);
    assert_eq!(kind_at(&mut machine, 0, first + 3), Kind::Endpoint as u64);
    assert_eq!(revoked(&mut machine, endpoint), 5);
    assert_eq!(machine.call(Operation::Delete, &[0, endpoint]).ok()[1], 1);
    check(&mut machine);
}

#[test]
fn an_untyped_that_lies_in_its_own_memory_can_be_revoked() {
    let mut machine = Machine::new();
    let child = machine.make(Kind::Untyped, 20);
    let (node, frame) = (machine.take_free(), machine.take_free());
    machine.retype(child, Kind::CapNode, 8, 1, node).ok();
    machine.retype(child, Kind::Frame, 12, 1, frame).ok();
    machine.call(Operation::NodeInstall, &[0, 6, node]).ok();
    machine.call(Operation::Move, &[0, child, 0, 6 * 256 + 200]).ok();
    // The node is deleted first, and with it the capability that is being revoked.
    machine.call(Operation::Revoke, &[0, 6 * 256 + 200]).ok();
    check(&mut machine);
    machine.call(Operation::Revoke, &[0, RAM]).ok();
    assert_eq!(kind_at(&mut machine, 0, frame), 0);
    check(&mut machine);
}
