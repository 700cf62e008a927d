//! Time slices: equals take turns, whatever interrupts them.

use tench_abi::layout::slot;
use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::Machine;

const SLICE: u64 = 100;

/// The turns of two equals of `SLICE` ticks each, while somebody of a higher priority is woken every `distance` ticks. Answers for
/// how many ticks each of them ran.
fn shares(distance: u64) -> [u64; 2] {
    let mut machine = Machine::new();
    machine.call(Operation::SchedulingConfigure, &[u64::from(slot::SCHEDULING.0), 250, 255, 0]).ok();
    let notification = machine.make(Kind::Notification, 0);
    let equals = [0; 2].map(|_| {
        let thread = machine.make_thread(50);
        let time = machine.free - 3;
        machine.call(Operation::SchedulingConfigure, &[time, 50, 50, SLICE]).ok();
        thread
    });
    let mut ran = [0; 2];
    while ran[0] + ran[1] < 20 * SLICE {
        // The first thread is the one that interrupts.
        let now = machine.host().time;
        let mut wait = [0; 13];
        (wait[0], wait[1], wait[12]) = (notification, Tag::DEADLINE, now + distance);
        machine.system_call(Operation::Receive as u64, &wait);
        while machine.current() != machine.first {
            let current = machine.current();
            let which = equals.iter().position(|thread| *thread == current).expect("one of the two runs");
            ran[which] += 1;
            machine.pass_time(1);
            machine.check();
        }
    }
    ran
}

#[test]
fn equals_take_turns() {
    assert_eq!(shares(20 * SLICE), [10 * SLICE; 2]);
}

#[test]
fn interrupts_that_come_faster_than_slices_end_starve_nobody() {
    for distance in [1, 7, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE] {
        let [one, other] = shares(distance);
        assert!(one.abs_diff(other) <= SLICE + distance, "every {distance} ticks: {one} and {other}");
    }
}
