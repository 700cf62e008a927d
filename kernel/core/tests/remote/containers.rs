//! Nodes and threads that hold exported capabilities.

use super::*;

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
    let marked = m.make(Kind::Frame, 12);
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
