//! Revoking around capabilities that stay.

use super::*;

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
        let marked = [frame, others[0]][i % 2];
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
