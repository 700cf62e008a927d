//! Runs: frames that one call makes, in the derivation order.

use tench_abi::message::IpcBuffer;
use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_arch_host::machine::RAM;

/// Returns whether a slot holds a frame's capability.
fn holds(m: &mut Machine, address: u64) -> bool {
    m.call(Operation::Identify, &[0, address, 0]).ok()[1] == Kind::Frame as u64
}

/// Makes four frames, moves them by one message in this order, and returns whether each has arrived.
fn moved(is_fast: bool, order: [u64; 4]) -> [bool; 4] {
    let mut m = Machine::new();
    let server = m.make_thread(255);
    let endpoint = m.make(Kind::Endpoint, 0);
    let (frames, offered) = (m.free, m.free + 10);
    m.free += 20;
    m.retype(RAM, Kind::Frame, 12, 4, frames).ok();
    m.run(server);
    m.buffer(server).receive_slots = core::array::from_fn(|i| (offered + i as u64) as u32);
    m.call(Operation::Receive, &[endpoint, 0]);
    let first = m.first;
    m.buffer(first).send_caps = order.map(|i| (frames + i) as u32 | IpcBuffer::MOVE);
    m.fast = is_fast;
    m.call(Operation::Call, &[endpoint, Tag::new(0, 0).with_caps(4).0]);
    m.check();
    assert_eq!(Tag(m.results(server).ok()[1]).caps(), 4, "all arrive");
    assert!(!(0..4).any(|i| holds(&mut m, frames + i)), "none stays");
    core::array::from_fn(|i| holds(&mut m, offered + i as u64))
}

#[test]
fn frames_that_were_made_together_are_moved_by_one_message() {
    for is_fast in [false, true] {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            assert_eq!(moved(is_fast, order), [true; 4], "{order:?}, fast: {is_fast}");
        }
    }
}

#[test]
fn revoking_memory_spares_the_frames_behind_it_in_a_run() {
    let mut m = Machine::new();
    let (below, above, frames) = (m.free, m.free + 1, m.free + 2);
    m.free += 16;
    m.retype(RAM, Kind::Untyped, 14, 2, below).ok();
    // Frames of the upper half, which then belong to what contains both, and all of the lower half.
    m.retype(above, Kind::Frame, 12, 2, frames + 4).ok();
    m.call(Operation::Delete, &[0, above]).ok();
    m.retype(below, Kind::Frame, 12, 4, frames).ok();
    m.check();
    let k = m.kernel();
    let last = tench_kernel::cspace::lookup(k, frames + 3).expect("there");
    assert!(tench_kernel::derivation::is_in_run(k, last) && k.slot(last).links.continues != 0, "one run");
    assert_eq!(m.call(Operation::Revoke, &[0, below]).ok()[1], 4);
    m.check();
    assert!(!(0..4).any(|i| holds(&mut m, frames + i)));
    assert!((4..6).all(|i| holds(&mut m, frames + i)));
}

#[test]
fn a_frame_can_go_wherever_it_is_in_its_run_and_wherever_copies_are() {
    // One bit for each frame of a run: whether it has a copy, which lies where the next frame could or elsewhere.
    for (count, victim, copied, near) in (1..5).flat_map(|count| {
        let copies =
            move |victim| (0..1 << count).flat_map(move |c| [(count, victim, c, true), (count, victim, c, false)]);
        (0..count).flat_map(copies)
    }) {
        let mut m = Machine::new();
        let frames = m.free;
        m.free += 16;
        m.retype(RAM, Kind::Frame, 12, count, frames).ok();
        let copies: Vec<u64> = (0..count).filter(|i| copied >> i & 1 != 0).collect();
        let place = |i: u64| frames + if near { count + (i + count - victim - 1) % count } else { 8 + i };
        for i in &copies {
            m.call(Operation::Copy, &[0, frames + i, 0, place(*i)]).ok();
        }
        let has_copy = copies.contains(&victim);
        let freed = m.call(Operation::Delete, &[0, frames + victim]).ok()[1];
        let what = format!("{count} frames, {victim} deleted, copies of {copied:b}, near: {near}");
        assert_eq!(freed, u64::from(!has_copy), "{what}");
        m.check();
        assert!((0..count).all(|i| (i == victim) != holds(&mut m, frames + i)), "{what}");
        assert!(copies.iter().all(|i| holds(&mut m, place(*i))), "{what}");
        let deleted = m.call(Operation::Revoke, &[0, RAM]).ok()[1];
        assert_eq!(deleted, count - 1 + copies.len() as u64, "{what}");
        m.check();
    }
}
