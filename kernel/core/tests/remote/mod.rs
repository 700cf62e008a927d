//! Remote capabilities: exported ones stay, and imported ones are used like any others. One test for each error, and
//! what deleting and revoking do around capabilities that stay.

mod containers;
mod preempted;
mod revoking;

use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{Error, Kind, Operation, Rights};
use tench_arch_host::Machine;
use tench_arch_host::machine::{DEVICE, RAM, RAM_SMALL, at};
use tench_arch_host::memory::RAM_START;
use tench_kernel::slot::flag;

use crate::common::{capabilities, check, interrupt_at, let_work, take_over, watermark, worker};

const KERNEL: u64 = at(slot::KERNEL);
/// Address of RAM in no boot untyped, which stands for another core's.
const REMOTE: u64 = RAM_START + (12 << 20);
const ALL: u64 = Rights::all().bits() as u64;
/// Entry of the first thread's root CNode in which the tests install nodes.
const INDEX: u64 = 1;

fn export(m: &mut Machine, address: u64) -> Result<(), Error> {
    m.call(Operation::KernelExport, &[KERNEL, 0, address]).error().map_or(Ok(()), Err)
}

fn unexport(m: &mut Machine, address: u64) -> Result<(), Error> {
    m.call(Operation::KernelUnexport, &[KERNEL, 0, address]).error().map_or(Ok(()), Err)
}

/// Imports memory into the next free slot.
fn import(m: &mut Machine, kind: Kind, physical: u64, bits: u64) -> Result<u64, Error> {
    let to = m.take_free();
    let result = m.call(Operation::KernelImport, &[KERNEL, kind as u64, physical, bits, ALL, 0, to]);
    result.error().map_or(Ok(to), Err)
}

/// Returns three numbers: other cores have the object; this capability is exported (2 if revocation is requested); the
/// object is imported.
fn holders(m: &mut Machine, address: u64) -> [u64; 3] {
    let result = m.call(Operation::KernelHolders, &[KERNEL, 0, address]).ok();
    [result[1], result[2], result[3]]
}

fn delete(m: &mut Machine, address: u64) -> Result<u64, Error> {
    let result = m.call(Operation::Delete, &[0, address]);
    result.error().map_or(Ok(result.x[1]), Err)
}

fn revoke(m: &mut Machine, address: u64) -> Result<u64, Error> {
    let result = m.call(Operation::Revoke, &[0, address]);
    result.error().map_or(Ok(result.x[1]), Err)
}

fn copy(m: &mut Machine, address: u64) -> u64 {
    mint(m, address, 0)
}

fn mint(m: &mut Machine, address: u64, badge: u64) -> u64 {
    let to = m.take_free();
    m.call(Operation::Mint, &[0, address, 0, to, ALL, badge]).ok();
    to
}

/// Returns true if a slot holds a capability.
fn holds(m: &mut Machine, address: u64) -> bool {
    m.call(Operation::Identify, &[0, address]).ok()[1] != Kind::Null as u64
}

/// Makes a node that holds these capabilities, from its slot 1 on.
fn node_with(m: &mut Machine, addresses: &[u64]) -> u64 {
    let node = m.make(Kind::CapNode, 8);
    m.call(Operation::NodeInstall, &[0, INDEX, node]).ok();
    for (i, address) in addresses.iter().enumerate() {
        m.call(Operation::Move, &[0, *address, 0, INDEX * 256 + 1 + i as u64]).ok();
    }
    m.call(Operation::NodeRemove, &[0, INDEX, node]).ok();
    node
}

/// Makes a small untyped of the test's own, in the next slot.
fn pool(m: &mut Machine, bits: u64) -> u64 {
    m.make(Kind::Untyped, bits)
}

fn make_in(m: &mut Machine, pool: u64, kind: Kind, size: u64) -> u64 {
    let to = m.take_free();
    m.retype(pool, kind, size, 1, to).ok();
    to
}

// ── Errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn each_needs_the_kernel_with_write() {
    let mut m = Machine::new();
    let (frame, weak) = (m.make(Kind::Frame, 12), m.take_free());
    m.call(Operation::Mint, &[0, KERNEL, 0, weak, Rights::READ.bits().into(), 0]).ok();
    for operation in
        [Operation::KernelExport, Operation::KernelUnexport, Operation::KernelImport, Operation::KernelHolders]
    {
        let arguments = |kernel| [kernel, 0, frame, 12, ALL, 0, weak];
        assert_eq!(m.call(operation, &arguments(weak)).err(), Error::MissingRights, "{operation}");
        assert_eq!(m.call(operation, &arguments(frame)).err(), Error::WrongType, "{operation}");
        assert_eq!(m.call(operation, &arguments(250)).err(), Error::InvalidCapability, "{operation}");
    }
    check(&mut m);
}

#[test]
fn other_kinds_are_not_exported() {
    let mut m = Machine::new();
    for (kind, size) in
        [(Kind::Endpoint, 0), (Kind::Notification, 0), (Kind::Thread, 0), (Kind::CapNode, 8), (Kind::PageTable, 0)]
    {
        let address = m.make(kind, size);
        assert_eq!(export(&mut m, address), Err(Error::WrongType), "{kind:?}");
    }
    let endpoint = m.make(Kind::Endpoint, 0);
    let five = mint(&mut m, endpoint, 5);
    assert_eq!(export(&mut m, five), Err(Error::WrongType), "nor with a badge");
    assert_eq!(delete(&mut m, five), Ok(0), "it has no mark");
    assert_eq!(export(&mut m, KERNEL), Err(Error::WrongType));
    assert_eq!(export(&mut m, 250), Err(Error::InvalidCapability));
    check(&mut m);
}

#[test]
fn an_object_has_one_exported_capability() {
    let mut m = Machine::new();
    let (untyped, frame) = (m.make(Kind::Untyped, 14), m.make(Kind::Frame, 12));
    for original in [untyped, frame] {
        assert_eq!(export(&mut m, original), Ok(()));
        assert_eq!(export(&mut m, original), Err(Error::Lent));
    }
    let other = copy(&mut m, frame);
    assert_eq!(export(&mut m, other), Err(Error::Lent), "there is another exported capability");
    check(&mut m);
    assert_eq!(unexport(&mut m, frame), Ok(()));
    assert_eq!(export(&mut m, other), Ok(()), "one that followed becomes the first");
    check(&mut m);
}

#[test]
fn memory_of_devices_is_not_exported() {
    let mut m = Machine::new();
    assert_eq!(export(&mut m, DEVICE), Err(Error::DeviceMemory));
    let frame = make_in(&mut m, DEVICE, Kind::Frame, 12);
    assert_eq!(export(&mut m, frame), Err(Error::DeviceMemory));
}

#[test]
fn untyped_memory_with_children_is_not_exported() {
    let mut m = Machine::new();
    let untyped = pool(&mut m, 14);
    let endpoint = make_in(&mut m, untyped, Kind::Endpoint, 0);
    assert_eq!(export(&mut m, untyped), Err(Error::Busy));
    assert_eq!(delete(&mut m, endpoint), Ok(1));
    assert_eq!(export(&mut m, untyped), Ok(()));
    check(&mut m);
}

#[test]
fn lent_memory_is_not_retyped_or_split() {
    let mut m = Machine::new();
    let (untyped, to) = (pool(&mut m, 14), m.take_free());
    assert_eq!(export(&mut m, untyped), Ok(()));
    assert_eq!(m.retype(untyped, Kind::Endpoint, 0, 1, to).err(), Error::Lent);
    assert_eq!(m.call(Operation::UntypedSplit, &[untyped, 0, to]).err(), Error::Lent);
    let account = m.call(Operation::UntypedQuery, &[untyped]).ok();
    assert_eq!(account[1..3], [14, 0], "it can be asked about");
    assert_eq!(unexport(&mut m, untyped), Ok(()));
    m.retype(untyped, Kind::Endpoint, 0, 1, to).ok();
    check(&mut m);
}

#[test]
fn an_exported_capability_is_not_deleted() {
    let mut m = Machine::new();
    for (kind, size) in [(Kind::Untyped, 14), (Kind::Frame, 12)] {
        let address = m.make(kind, size);
        assert_eq!(export(&mut m, address), Ok(()));
        assert_eq!(delete(&mut m, address), Err(Error::RemoteCopies), "{kind:?}");
        assert_eq!(holders(&mut m, address), [0, 2, 0], "nothing has changed, but that revoking is requested");
        let moved = m.take_free();
        m.call(Operation::Move, &[0, address, 0, moved]).ok();
        assert_eq!(delete(&mut m, moved), Err(Error::RemoteCopies), "{kind:?}, moved");
        assert_eq!(unexport(&mut m, moved), Ok(()));
        assert_eq!(delete(&mut m, moved), Ok(1));
        check(&mut m);
    }
}

/// Checks that a revoke request lasts until the export ends, and that a new export has none.
#[test]
fn a_revoke_stays_requested_until_the_unexport() {
    let mut m = Machine::new();
    for (kind, size) in [(Kind::Untyped, 14), (Kind::Frame, 12)] {
        let address = m.make(kind, size);
        for _ in 0..2 {
            assert_eq!(export(&mut m, address), Ok(()));
            assert_eq!(holders(&mut m, address), [0, 1, 0], "{kind:?}");
            assert_eq!(
                revoke(&mut m, address),
                Err(Error::RemoteCopies),
                "{kind:?}: of the exported capability itself"
            );
            assert_eq!(holders(&mut m, address), [0, 2, 0], "{kind:?}");
            assert_eq!(unexport(&mut m, address), Ok(()));
            assert_eq!(holders(&mut m, address), [0, 0, 0], "{kind:?}");
        }
        check(&mut m);
    }
}

/// Checks that revoking a copy, which deletes nothing, requests no revocation from other cores either.
#[test]
fn revoking_is_not_requested_without_the_right_to_delete() {
    let mut m = Machine::new();
    let frame = m.make(Kind::Frame, 12);
    let other = copy(&mut m, frame);
    assert_eq!(export(&mut m, frame), Ok(()));
    assert_eq!(revoke(&mut m, other), Ok(0));
    assert_eq!(holders(&mut m, frame), [1, 1, 0]);
    let kept = copy(&mut m, frame);
    assert_eq!(delete(&mut m, kept), Ok(0));
    assert_eq!(holders(&mut m, frame), [1, 1, 0]);
}

#[test]
fn capabilities_not_exported_cannot_be_unexported() {
    let mut m = Machine::new();
    let frame = m.make(Kind::Frame, 12);
    assert_eq!(unexport(&mut m, frame), Err(Error::NotExported));
    assert_eq!(export(&mut m, frame), Ok(()));
    let other = copy(&mut m, frame);
    assert_eq!(unexport(&mut m, other), Err(Error::NotExported), "copies are not marked");
    assert_eq!(unexport(&mut m, KERNEL), Err(Error::NotExported));
    assert_eq!(unexport(&mut m, 250), Err(Error::InvalidCapability));
    assert_eq!(unexport(&mut m, frame), Ok(()));
    assert_eq!(unexport(&mut m, frame), Err(Error::NotExported));
}

#[test]
fn borrowed_memory_is_not_exported_but_objects_made_from_it_are() {
    let mut m = Machine::new();
    let frame = import(&mut m, Kind::Frame, REMOTE, 12).expect("imported");
    let untyped = import(&mut m, Kind::Untyped, REMOTE + 0x4000, 14).expect("imported");
    let other = copy(&mut m, frame);
    for address in [frame, other, untyped] {
        assert_eq!(export(&mut m, address), Err(Error::Borrowed));
    }
    let made = make_in(&mut m, untyped, Kind::Frame, 12);
    assert_eq!(export(&mut m, made), Ok(()));
    assert_eq!(holders(&mut m, made), [0, 1, 0]);
    assert_eq!(holders(&mut m, other), [1, 0, 1]);
    check(&mut m);
}

#[test]
fn imports_do_not_overlap_own_memory() {
    let mut m = Machine::new();
    let small = m.physical(RAM_SMALL);
    for kind in [Kind::Frame, Kind::Untyped] {
        assert_eq!(import(&mut m, kind, small, 12), Err(Error::Overlap), "{kind:?}: of what is free");
        assert_eq!(import(&mut m, kind, small, 14), Err(Error::Overlap), "{kind:?}: all of it");
        assert_eq!(import(&mut m, kind, small, 16), Err(Error::Overlap), "{kind:?}: and more");
    }
    let frame = make_in(&mut m, RAM_SMALL, Kind::Frame, 12);
    let second = make_in(&mut m, RAM_SMALL, Kind::Frame, 13);
    assert_eq!(delete(&mut m, RAM_SMALL), Ok(0), "its children stay, in nothing");
    let start = m.physical(frame);
    assert_eq!(import(&mut m, Kind::Frame, start, 12), Err(Error::Overlap), "an object's own place");
    assert_eq!(import(&mut m, Kind::Untyped, start, 14), Err(Error::Overlap), "around objects");
    let middle = m.physical(second) + 0x1000;
    assert_eq!(import(&mut m, Kind::Frame, middle, 12), Err(Error::Overlap), "in an object");
    assert_eq!(import(&mut m, Kind::Untyped, middle, 4), Err(Error::Overlap), "a little of one");
    check(&mut m);
    assert!(import(&mut m, Kind::Frame, start + 0x1000, 12).is_ok(), "between them nothing is left");
    check(&mut m);
}

#[test]
fn imports_do_not_overlap_the_kernel_or_each_other() {
    let mut m = Machine::new();
    assert_eq!(import(&mut m, Kind::Frame, RAM_START, 12), Err(Error::Overlap));
    assert_eq!(import(&mut m, Kind::Untyped, RAM_START, 20), Err(Error::Overlap));
    let untyped = import(&mut m, Kind::Untyped, REMOTE, 14).expect("imported");
    for (start, bits) in [(0, 14), (0, 12), (0x1000, 12), (0, 16)] {
        assert_eq!(import(&mut m, Kind::Untyped, REMOTE + start, bits), Err(Error::Overlap));
    }
    assert_eq!(delete(&mut m, untyped), Ok(1));
    assert!(import(&mut m, Kind::Frame, REMOTE + 0x1000, 12).is_ok());
    check(&mut m);
}

#[test]
fn imports_are_aligned_and_ram() {
    let mut m = Machine::new();
    assert_eq!(import(&mut m, Kind::Frame, REMOTE + 0x800, 12), Err(Error::Misaligned));
    assert_eq!(import(&mut m, Kind::Untyped, REMOTE + 8, 4), Err(Error::Misaligned));
    let device = m.physical(DEVICE);
    for start in [0, device, RAM_START + (32 << 20), 1 << 47, u64::MAX << 12] {
        assert_eq!(import(&mut m, Kind::Frame, start, 12), Err(Error::InvalidArgument), "{start:#x}");
    }
    assert_eq!(import(&mut m, Kind::Untyped, 0, 47), Err(Error::InvalidArgument));
}

#[test]
fn imports_are_frames_or_untyped_in_their_sizes_and_rights() {
    let mut m = Machine::new();
    for (kind, bits) in
        [(Kind::Endpoint, 0), (Kind::Null, 12), (Kind::Frame, 11), (Kind::Frame, 31), (Kind::Untyped, 3)]
    {
        assert_eq!(import(&mut m, kind, REMOTE, bits), Err(Error::InvalidArgument), "{kind:?} {bits}");
    }
    let to = m.take_free();
    let attempt = |m: &mut Machine, kind: u64, rights: u64, to: u64| {
        m.call(Operation::KernelImport, &[KERNEL, kind, REMOTE, 12, rights, 0, to]).error()
    };
    let (frame, untyped) = (Kind::Frame as u64, Kind::Untyped as u64);
    assert_eq!(attempt(&mut m, 77, ALL, to), Some(Error::InvalidArgument));
    assert_eq!(attempt(&mut m, frame, 16, to), Some(Error::InvalidArgument));
    assert_eq!(attempt(&mut m, frame, 1 << 32 | 1, to), Some(Error::InvalidArgument));
    assert_eq!(attempt(&mut m, untyped, 3, to), Some(Error::InvalidArgument));
    assert_eq!(attempt(&mut m, frame, 1, KERNEL), Some(Error::SlotOccupied));
    assert_eq!(attempt(&mut m, frame, 1, 9 * 256), Some(Error::NoSuchSlot));
    assert_eq!(attempt(&mut m, frame, 1, to), None);
    assert_eq!(m.call(Operation::Identify, &[0, to]).ok()[2], 1, "it has these rights");
    check(&mut m);
}

// ── Importing back ───────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn part_of_what_was_lent_can_be_borrowed_back() {
    let mut m = Machine::new();
    let untyped = pool(&mut m, 14);
    let start = m.physical(untyped);
    assert_eq!(export(&mut m, untyped), Ok(()));
    assert_eq!(import(&mut m, Kind::Untyped, start, 15), Err(Error::Overlap), "more than was lent");
    let part = import(&mut m, Kind::Untyped, start + 0x1000, 12).expect("lent");
    assert_eq!(import(&mut m, Kind::Frame, start + 0x1000, 12), Err(Error::Overlap));
    let frame = import(&mut m, Kind::Frame, start + 0x2000, 12).expect("lent");
    check(&mut m);
    assert_eq!(holders(&mut m, untyped), [1, 1, 0]);
    assert_eq!(unexport(&mut m, untyped), Err(Error::Busy));
    for address in [part, frame] {
        assert_eq!(delete(&mut m, address), Ok(1));
        check(&mut m);
    }
    assert_eq!(unexport(&mut m, untyped), Ok(()));
    assert_eq!(watermark(&mut m, untyped), 0);
    let whole = make_in(&mut m, untyped, Kind::Frame, 14);
    assert_eq!(m.physical(whole), start, "all of it is free");
}

#[test]
fn the_same_memory_can_be_lent_back_and_forth() {
    let mut m = Machine::new();
    let outer = pool(&mut m, 16);
    let mut lent = make_in(&mut m, outer, Kind::Untyped, 14);
    let (start, first) = (m.physical(lent), lent);
    let (mut stay, mut go) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        assert_eq!(export(&mut m, lent), Ok(()));
        stay.push(lent);
        let borrowed = import(&mut m, Kind::Untyped, start, 14).expect("lent");
        lent = make_in(&mut m, borrowed, Kind::Untyped, 14);
        go.push(borrowed);
    }
    check(&mut m);
    go.push(lent);
    for revoked in [first, outer] {
        assert_eq!(revoke(&mut m, revoked), Err(Error::RemoteCopies));
        assert!(go.iter().all(|address| !holds(&mut m, *address)), "what could go is gone");
        assert!(stay.iter().all(|address| holds(&mut m, *address)));
        check(&mut m);
    }
    for address in stay.into_iter().rev() {
        assert_eq!(unexport(&mut m, address), Ok(()), "nothing lies in it any more");
        assert_eq!(delete(&mut m, address), Ok(1));
    }
    assert_eq!(watermark(&mut m, outer), 0);
    check(&mut m);
}

#[test]
fn memory_around_what_is_lent_is_not_given_again() {
    let mut m = Machine::new();
    let outer = pool(&mut m, 16);
    let (lent, to) = (make_in(&mut m, outer, Kind::Untyped, 14), m.take_free());
    assert_eq!(export(&mut m, lent), Ok(()));
    let retype = [outer, Kind::Frame as u64, 12, 1, 0, 0, to];
    assert_eq!(m.call(Operation::UntypedRetype, &retype).err(), Error::Overlap);
    m.retype(outer, Kind::Frame, 12, 1, to).ok();
    m.call(Operation::UntypedSplit, &[outer, 0, m.free]).ok();
    check(&mut m);
}

// ── Revoking ─────────────────────────────────────────────────────────────────────────────────────────────────────────
