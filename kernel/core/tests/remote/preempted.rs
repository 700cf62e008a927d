//! Revocations past exported capabilities that are preempted.

use super::*;

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
        let frame = m.make(Kind::Frame, 12);
        let copies: Vec<u64> = (0..40).map(|_| copy(&mut m, frame)).collect();
        let (_, worker) = worker(&mut m);
        let_work(&mut m, worker);
        let first = m.first;
        interrupt_at(&mut m, first, n);
        m.call(Operation::Revoke, &[0, frame]);
        let interrupted = m.current() == first;
        take_over(&mut m);
        if interrupted {
            assert_eq!(export(&mut m, frame), Ok(()));
        }
        m.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
        take_over(&mut m);
        check(&mut m);
        let expected = interrupted.then_some(Error::RemoteCopies);
        assert_eq!(m.results(worker).error(), expected, "preemption point {n}");
        assert!(copies.iter().all(|address| !holds(&mut m, *address)), "preemption point {n}");
        assert_eq!(m.cap(frame).flags & flag::EMBEDDED != 0, interrupted);
        if !interrupted {
            assert!(n > 3, "only {n} preemption points");
            break;
        }
    }
}
