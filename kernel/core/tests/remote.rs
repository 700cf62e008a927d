//! Remote capabilities: exported ones stay, and imported ones are used like any others. One test for each error, and
//! what deleting and revoking do around capabilities that stay.

mod common;

use common::{capabilities, check, interrupt_at, let_work, take_over, watermark, worker};
use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{Error, Kind, Operation, Rights};
use tench_arch_host::Machine;
use tench_arch_host::machine::{DEVICE, RAM, RAM_SMALL, at};
use tench_arch_host::memory::RAM_START;
use tench_kernel::slot::flag;

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
    for (kind, size) in [(Kind::Thread, 0), (Kind::CapNode, 8), (Kind::Notification, 0), (Kind::PageTable, 0)] {
        let address = m.make(kind, size);
        assert_eq!(export(&mut m, address), Err(Error::WrongType), "{kind:?}");
    }
    assert_eq!(export(&mut m, KERNEL), Err(Error::WrongType));
    assert_eq!(export(&mut m, 250), Err(Error::InvalidCapability));
    check(&mut m);
}

#[test]
fn an_object_has_one_exported_capability() {
    let mut m = Machine::new();
    let (untyped, frame, endpoint) = (m.make(Kind::Untyped, 14), m.make(Kind::Frame, 12), m.make(Kind::Endpoint, 0));
    for original in [untyped, frame, endpoint] {
        assert_eq!(export(&mut m, original), Ok(()));
        assert_eq!(export(&mut m, original), Err(Error::Lent));
    }
    for original in [frame, endpoint] {
        let other = copy(&mut m, original);
        assert_eq!(export(&mut m, other), Err(Error::Lent), "there is another exported capability");
        check(&mut m);
    }
}

#[test]
fn each_badge_of_an_endpoint_has_one_exported_capability() {
    let mut m = Machine::new();
    let endpoint = m.make(Kind::Endpoint, 0);
    let (five, six) = (mint(&mut m, endpoint, 5), mint(&mut m, endpoint, 6));
    let second = copy(&mut m, five);
    for address in [five, six, endpoint] {
        assert_eq!(export(&mut m, address), Ok(()));
        check(&mut m);
    }
    assert_eq!(export(&mut m, second), Err(Error::Lent));
    assert_eq!(unexport(&mut m, five), Ok(()));
    assert_eq!(export(&mut m, second), Ok(()), "one that followed becomes the first");
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
    for (kind, size) in [(Kind::Untyped, 14), (Kind::Frame, 12), (Kind::Endpoint, 0)] {
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
    for (kind, size) in [(Kind::Untyped, 14), (Kind::Frame, 12), (Kind::Endpoint, 0)] {
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

#[test]
fn revoking_memory_deletes_all_but_exported_capabilities() {
    let mut m = Machine::new();
    let outer = pool(&mut m, 18);
    let mut stay = Vec::new();
    let mut go = Vec::new();
    for i in 0..8 {
        let inner = make_in(&mut m, outer, Kind::Untyped, 14);
        let frame = make_in(&mut m, inner, Kind::Frame, 12);
        let endpoint = make_in(&mut m, inner, Kind::Endpoint, 0);
        let others = [copy(&mut m, frame), mint(&mut m, endpoint, 7), copy(&mut m, endpoint)];
        let marked = [frame, endpoint, others[0], others[1]][i % 4];
        assert_eq!(export(&mut m, marked), Ok(()));
        go.extend([inner, frame, endpoint].into_iter().chain(others).filter(|address| *address != marked));
        stay.push(marked);
    }
    check(&mut m);
    assert_eq!(revoke(&mut m, outer), Err(Error::RemoteCopies));
    check(&mut m);
    for address in go {
        assert!(!holds(&mut m, address), "{address} is left");
    }
    for address in &stay {
        assert_eq!(holders(&mut m, *address), [0, 2, 0]);
        assert_eq!(unexport(&mut m, *address), Ok(()));
    }
    assert_eq!(revoke(&mut m, outer), Ok(stay.len() as u64));
    assert_eq!(watermark(&mut m, outer), 0);
    check(&mut m);
}

#[test]
fn revoking_an_object_deletes_all_but_its_exported_capability() {
    for which in 0..4 {
        let mut m = Machine::new();
        let frame = m.make(Kind::Frame, 12);
        let copies: Vec<u64> = (0..40).map(|_| copy(&mut m, frame)).collect();
        let marked = [frame, copies[0], copies[20], copies[39]][which];
        assert_eq!(export(&mut m, marked), Ok(()));
        assert_eq!(revoke(&mut m, frame), Err(Error::RemoteCopies));
        for address in copies {
            assert_eq!(holds(&mut m, address), address == marked);
        }
        check(&mut m);
        assert_eq!(unexport(&mut m, marked), Ok(()));
        assert_eq!(revoke(&mut m, frame), Ok(u64::from(which != 0)));
    }
}

#[test]
fn revoking_an_endpoint_deletes_all_but_the_exported_capabilities_of_its_badges() {
    let mut m = Machine::new();
    let endpoint = m.make(Kind::Endpoint, 0);
    let mut stay = Vec::new();
    let mut go = Vec::new();
    for badge in 1..20 {
        let origin = mint(&mut m, endpoint, badge);
        let other = copy(&mut m, origin);
        let (marked, free) = if badge % 2 == 0 { (origin, other) } else { (other, origin) };
        if badge % 3 != 0 {
            assert_eq!(export(&mut m, marked), Ok(()));
            stay.push(marked);
        } else {
            go.push(marked);
        }
        go.push(free);
    }
    assert_eq!(revoke(&mut m, endpoint), Err(Error::RemoteCopies));
    assert!(go.iter().all(|address| !holds(&mut m, *address)) && stay.iter().all(|address| holds(&mut m, *address)));
    assert_eq!(revoke(&mut m, endpoint), Err(Error::RemoteCopies), "as long as one is left");
    for address in stay {
        assert_eq!(unexport(&mut m, address), Ok(()));
    }
    assert!(revoke(&mut m, endpoint).is_ok());
    assert_eq!(holders(&mut m, endpoint), [0, 0, 0]);
    check(&mut m);
}

#[test]
fn revoking_a_badge_deletes_all_but_its_exported_capability() {
    let mut m = Machine::new();
    let endpoint = m.make(Kind::Endpoint, 0);
    let five = mint(&mut m, endpoint, 5);
    let (marked, other, six) = (copy(&mut m, five), copy(&mut m, five), mint(&mut m, endpoint, 6));
    assert_eq!(export(&mut m, marked), Ok(()));
    assert_eq!(revoke(&mut m, five), Err(Error::RemoteCopies));
    assert_eq!([five, marked, other, six].map(|address| holds(&mut m, address)), [true, true, false, true]);
    assert_eq!(revoke(&mut m, six), Ok(0), "another badge has nothing to do with it");
    assert_eq!(unexport(&mut m, marked), Ok(()));
    assert_eq!(revoke(&mut m, five), Ok(1));
    check(&mut m);
}

#[test]
fn revoking_an_exported_capability_says_that_there_are_remote_copies() {
    let mut m = Machine::new();
    let frame = m.make(Kind::Frame, 12);
    let other = copy(&mut m, frame);
    let untyped = pool(&mut m, 12);
    for address in [other, untyped] {
        assert_eq!(export(&mut m, address), Ok(()));
        assert_eq!(revoke(&mut m, address), Err(Error::RemoteCopies));
        assert!(holds(&mut m, frame), "nothing on this core was derived from it");
        assert_eq!(unexport(&mut m, address), Ok(()));
        assert_eq!(revoke(&mut m, address), Ok(0));
    }
}

#[test]
fn mappings_of_what_stays_are_deleted() {
    let mut m = Machine::new();
    let table = m.make(Kind::PageTable, 3);
    let outer = pool(&mut m, 14);
    let (frame, to) = (make_in(&mut m, outer, Kind::Frame, 13), m.take_free());
    m.call(Operation::FrameMap, &[frame, table, 0, 2, 0, MapFlags::READ.bits(), to]).ok();
    assert_eq!(export(&mut m, frame), Ok(()));
    assert_eq!(holders(&mut m, frame), [1, 1, 0]);
    assert_eq!(revoke(&mut m, outer), Err(Error::RemoteCopies));
    assert_eq!(holders(&mut m, frame), [0, 2, 0]);
    assert!(!holds(&mut m, to));
    check(&mut m);
}

#[test]
fn revoking_the_root_of_a_borrowed_frame_deletes_copies_and_mappings() {
    let mut m = Machine::new();
    let before = capabilities(&mut m);
    let table = m.make(Kind::PageTable, 3);
    let root = import(&mut m, Kind::Frame, REMOTE, 13).expect("imported");
    assert_eq!(holders(&mut m, root), [0, 0, 1]);
    let (weak, to) = (m.take_free(), m.take_free());
    m.call(Operation::Mint, &[0, root, 0, weak, Rights::READ.bits().into(), 0]).ok();
    assert_eq!(holders(&mut m, root), [1, 0, 1]);
    let map = |m: &mut Machine, flags: MapFlags| m.call(Operation::FrameMap, &[weak, table, 0, 2, 0, flags.bits(), to]);
    assert_eq!(map(&mut m, MapFlags::READ | MapFlags::WRITE).err(), Error::MissingRights);
    map(&mut m, MapFlags::READ).ok();
    assert_eq!(m.physical(to), REMOTE);
    check(&mut m);
    assert_eq!(delete(&mut m, weak), Ok(0));
    assert_eq!(holders(&mut m, root), [1, 0, 1], "it is mapped");
    assert_eq!(revoke(&mut m, root), Ok(1));
    assert_eq!(holders(&mut m, root), [0, 0, 1]);
    assert_eq!(delete(&mut m, root), Ok(1));
    assert_eq!(capabilities(&mut m), before + 1, "the table");
    check(&mut m);
}

#[test]
fn revoking_the_root_of_borrowed_memory_deletes_what_was_made_of_it() {
    let mut m = Machine::new();
    let before = capabilities(&mut m);
    let base = m.host().memory.base() as u64;
    m.host().memory.write(REMOTE, 0x5a5a);
    let root = import(&mut m, Kind::Untyped, REMOTE, 16).expect("imported");
    assert_eq!(holders(&mut m, root), [0, 0, 1]);
    let given = make_in(&mut m, root, Kind::Untyped, 16);
    assert_eq!(holders(&mut m, root), [1, 0, 1]);
    let thread = make_in(&mut m, given, Kind::Thread, 0);
    assert_eq!(m.cap(thread).object as u64 - base, REMOTE);
    let node = make_in(&mut m, given, Kind::CapNode, 8);
    m.call(Operation::NodeInstall, &[0, INDEX, node]).ok();
    m.retype(given, Kind::Endpoint, 0, 8, INDEX * 256).ok();
    let upper = m.take_free();
    m.call(Operation::UntypedSplit, &[given, 0, upper]).ok();
    check(&mut m);
    assert_eq!(revoke(&mut m, root), Ok(2 + 1 + 1 + 8));
    assert_eq!(holders(&mut m, root), [0, 0, 1]);
    assert_eq!(watermark(&mut m, root), 0);
    assert_eq!(delete(&mut m, root), Ok(1));
    assert_eq!(capabilities(&mut m), before);
    check(&mut m);
}

#[test]
fn many_exported_capabilities_are_passed_in_bounded_steps() {
    let mut m = Machine::new();
    let outer = pool(&mut m, 22);
    let node = m.make(Kind::CapNode, 8);
    m.call(Operation::NodeInstall, &[0, INDEX, node]).ok();
    m.retype(outer, Kind::Frame, 12, 256, INDEX * 256).ok();
    for i in 0..256 {
        if i % 8 != 7 {
            assert_eq!(export(&mut m, INDEX * 256 + i), Ok(()));
        }
    }
    let points = m.kernel().state().statistics.preemption_points;
    assert_eq!(revoke(&mut m, outer), Err(Error::RemoteCopies));
    let passed = m.kernel().state().statistics.preemption_points - points;
    assert!((20..200).contains(&passed), "{passed} preemption points for 224 that stay and 32 that go");
    for i in 0..256 {
        assert_eq!(holds(&mut m, INDEX * 256 + i), i % 8 != 7);
    }
    check(&mut m);
}

// ── Containers ───────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_node_with_an_exported_capability_stays_and_all_else_in_it_is_deleted() {
    let mut m = Machine::new();
    let (marked, other, endpoint) = (m.make(Kind::Frame, 12), m.make(Kind::Frame, 12), m.make(Kind::Endpoint, 0));
    let witness = copy(&mut m, other);
    assert_eq!(export(&mut m, marked), Ok(()));
    let node = node_with(&mut m, &[endpoint, marked, other]);
    for _ in 0..2 {
        assert_eq!(delete(&mut m, node), Err(Error::RemoteCopies));
        check(&mut m);
        assert!(m.call(Operation::NodeInstall, &[0, INDEX, node]).error().is_some(), "it cannot be used any more");
        assert_eq!(holders(&mut m, witness), [0, 0, 0], "its copy in there is gone");
    }
    assert_eq!(revoke(&mut m, RAM), Err(Error::RemoteCopies), "also with the memory around it");
    assert!(holds(&mut m, node) && !holds(&mut m, witness));
    assert_eq!(m.call(Operation::UntypedChildren, &[RAM]).ok()[1], 2, "the frame and the node");
    check(&mut m);
}

#[test]
fn a_nested_node_with_an_exported_capability_keeps_no_other() {
    for depth in [1, 2, 5] {
        let mut m = Machine::new();
        let marked = m.make(Kind::Frame, 12);
        assert_eq!(export(&mut m, marked), Ok(()));
        let mut node = node_with(&mut m, &[marked]);
        for _ in 0..depth {
            let (endpoint, frame) = (m.make(Kind::Endpoint, 0), m.make(Kind::Frame, 12));
            node = node_with(&mut m, &[endpoint, node, frame]);
        }
        check(&mut m);
        assert_eq!(delete(&mut m, node), Ok(1), "the outermost is free");
        check(&mut m);
        assert!(!holds(&mut m, node));
        assert_eq!(m.call(Operation::UntypedChildren, &[RAM]).ok()[1], 2, "the frame and the node around it are left");
        assert_eq!(revoke(&mut m, RAM), Err(Error::RemoteCopies));
        check(&mut m);
    }
}

#[test]
fn an_exported_capability_in_the_first_slot_is_moved_out_and_stays() {
    let mut m = Machine::new();
    let marked = m.make(Kind::Endpoint, 0);
    let others = [copy(&mut m, marked), copy(&mut m, marked)];
    assert_eq!(export(&mut m, others[1]), Ok(()));
    let inner = m.make(Kind::CapNode, 8);
    m.call(Operation::NodeInstall, &[0, INDEX, inner]).ok();
    m.call(Operation::Move, &[0, others[1], 0, INDEX * 256]).ok();
    m.call(Operation::NodeRemove, &[0, INDEX, inner]).ok();
    let outer = node_with(&mut m, &[inner]);
    // The inner node's capability changes places with the one in its first slot.
    assert_eq!(delete(&mut m, outer), Err(Error::RemoteCopies));
    check(&mut m);
    assert_eq!(holders(&mut m, marked), [1, 0, 0]);
    assert_eq!(export(&mut m, others[0]), Err(Error::Lent), "it is still the first of its equals");
    assert_eq!(revoke(&mut m, marked), Err(Error::RemoteCopies));
    check(&mut m);
}

#[test]
fn a_thread_whose_cspace_holds_an_exported_capability_is_deleted() {
    let mut m = Machine::new();
    let marked = m.make(Kind::Frame, 12);
    assert_eq!(export(&mut m, marked), Ok(()));
    let cspace = node_with(&mut m, &[marked]);
    let thread = m.make(Kind::Thread, 0);
    m.call(Operation::ThreadConfigure, &[thread, cspace, at(slot::VSPACE), 0, 0]).ok();
    assert_eq!(delete(&mut m, cspace), Ok(0));
    assert_eq!(delete(&mut m, thread), Ok(1));
    check(&mut m);
    assert_eq!(m.call(Operation::UntypedChildren, &[RAM]).ok()[1], 2, "the frame and the CSpace are left");
}

#[test]
fn a_thread_keeps_a_cspace_with_an_exported_capability() {
    let mut m = Machine::new();
    let marked = m.make(Kind::Frame, 12);
    assert_eq!(export(&mut m, marked), Ok(()));
    let cspace = node_with(&mut m, &[marked]);
    let thread = m.make(Kind::Thread, 0);
    m.call(Operation::ThreadConfigure, &[thread, cspace, at(slot::VSPACE), 0, 0]).ok();
    assert_eq!(delete(&mut m, cspace), Ok(0));
    let configure = [thread, at(slot::CSPACE), at(slot::VSPACE), 0, 0];
    for _ in 0..2 {
        assert_eq!(m.call(Operation::ThreadConfigure, &configure).err(), Error::RemoteCopies);
        check(&mut m);
    }
    assert_eq!(m.call(Operation::ThreadResume, &[thread]).err(), Error::NotConfigured);
    assert_eq!(delete(&mut m, thread), Ok(1));
    check(&mut m);
}

#[test]
fn a_node_in_itself_with_an_exported_capability_stays() {
    for position in [0, 1, 255] {
        let mut m = Machine::new();
        let marked = m.make(Kind::Frame, 12);
        assert_eq!(export(&mut m, marked), Ok(()));
        let node = m.make(Kind::CapNode, 8);
        let inside = copy(&mut m, node);
        m.call(Operation::NodeInstall, &[0, INDEX, node]).ok();
        m.call(Operation::Move, &[0, inside, 0, INDEX * 256 + position]).ok();
        m.call(Operation::Move, &[0, marked, 0, INDEX * 256 + 100]).ok();
        m.call(Operation::NodeRemove, &[0, INDEX, node]).ok();
        assert_eq!(delete(&mut m, node), Ok(0), "it is in itself");
        for _ in 0..2 {
            assert_eq!(revoke(&mut m, RAM), Err(Error::RemoteCopies));
            check(&mut m);
            assert_eq!(m.call(Operation::UntypedChildren, &[RAM]).ok()[1], 2);
        }
    }
}

#[test]
fn a_node_full_of_exported_capabilities_is_searched_in_bounded_steps() {
    let mut m = Machine::new();
    let outer = pool(&mut m, 22);
    let node = m.make(Kind::CapNode, 8);
    m.call(Operation::NodeInstall, &[0, INDEX, node]).ok();
    m.retype(outer, Kind::Frame, 12, 256, INDEX * 256).ok();
    for i in 0..256 {
        assert_eq!(export(&mut m, INDEX * 256 + i), Ok(()));
    }
    m.call(Operation::NodeRemove, &[0, INDEX, node]).ok();
    let points = m.kernel().state().statistics.preemption_points;
    assert_eq!(delete(&mut m, node), Err(Error::RemoteCopies));
    let passed = m.kernel().state().statistics.preemption_points - points;
    assert!((20..60).contains(&passed), "{passed} preemption points");
    check(&mut m);
}

// ── Preempted ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A world in which revoking `outer` passes some preemption points; the exported capabilities lie at `marked`.
struct World {
    machine: Machine,
    outer: u64,
    marked: Vec<u64>,
    threads: u64,
}

fn world() -> World {
    let mut m = Machine::new();
    let outer = pool(&mut m, 20);
    let mut marked = Vec::new();
    for i in 0..6 {
        let frame = make_in(&mut m, outer, Kind::Frame, 12);
        assert_eq!(export(&mut m, frame), Ok(()));
        marked.push(frame);
        for _ in 0..i % 3 {
            make_in(&mut m, outer, Kind::Endpoint, 0);
        }
    }
    let threads = m.free;
    make_in(&mut m, outer, Kind::Thread, 0);
    let node = make_in(&mut m, outer, Kind::CapNode, 8);
    m.call(Operation::NodeInstall, &[0, INDEX, node]).ok();
    m.retype(outer, Kind::Endpoint, 0, 12, INDEX * 256).ok();
    m.call(Operation::NodeRemove, &[0, INDEX, node]).ok();
    World { machine: m, outer, marked, threads }
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_revocation_past_exports_can_be_preempted_at_each_preemption_point() {
    for what in 0..4 {
        for n in 1.. {
            let World { machine: mut m, outer, marked, threads } = world();
            let (_, worker) = worker(&mut m);
            let_work(&mut m, worker);
            let first = m.first;
            interrupt_at(&mut m, first, n);
            m.call(Operation::Revoke, &[0, outer]);
            let interrupted = m.current() == first;
            take_over(&mut m);
            check(&mut m);
            if interrupted {
                match what {
                    0 => assert!(marked.iter().all(|address| unexport(&mut m, *address).is_ok())),
                    1 => assert_eq!(unexport(&mut m, marked[2]).and_then(|()| delete(&mut m, marked[2])), Ok(1)),
                    2 => assert!(delete(&mut m, threads).is_ok_and(|freed| freed < 2) || !holds(&mut m, threads)),
                    _ => assert_eq!(m.call(Operation::Move, &[0, outer, 0, 255]).error(), None),
                }
                check(&mut m);
            }
            // The worker finishes.
            m.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
            take_over(&mut m);
            check(&mut m);
            let result = m.results(worker);
            assert_eq!(result.error(), Some(Error::RemoteCopies), "{what}, preemption point {n}");
            if what != 3 {
                let children = m.call(Operation::UntypedChildren, &[outer]).ok()[1] as usize;
                let stayed = marked.iter().filter(|address| holds(&mut m, **address)).count();
                assert_eq!(
                    children, stayed,
                    "{what}, preemption point {n}: nothing but what has or had a mark is left"
                );
            }
            if !interrupted {
                assert!(n > 5, "only {n} preemption points");
                break;
            }
        }
    }
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_capability_that_is_exported_while_it_is_revoked_is_revoked_to_the_end() {
    for n in 1.. {
        let mut m = Machine::new();
        let endpoint = m.make(Kind::Endpoint, 0);
        let copies: Vec<u64> = (0..40).map(|_| copy(&mut m, endpoint)).collect();
        let (_, worker) = worker(&mut m);
        let_work(&mut m, worker);
        let first = m.first;
        interrupt_at(&mut m, first, n);
        m.call(Operation::Revoke, &[0, endpoint]);
        let interrupted = m.current() == first;
        take_over(&mut m);
        if interrupted {
            assert_eq!(export(&mut m, endpoint), Ok(()));
        }
        m.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
        take_over(&mut m);
        check(&mut m);
        let expected = interrupted.then_some(Error::RemoteCopies);
        assert_eq!(m.results(worker).error(), expected, "preemption point {n}");
        assert!(copies.iter().all(|address| !holds(&mut m, *address)), "preemption point {n}");
        assert_eq!(m.cap(endpoint).flags & flag::EMBEDDED != 0, interrupted);
        if !interrupted {
            assert!(n > 3, "only {n} preemption points");
            break;
        }
    }
}
