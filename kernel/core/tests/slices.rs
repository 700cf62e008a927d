//! Time slices: threads of equal priority take turns, whatever interrupts them, and no thread can make a limited slice
//! longer.

use proptest::prelude::*;
use tench_abi::layout::slot;
use tench_abi::{Error, Kind, Operation, Tag};
use tench_arch_host::Machine;

const SLICE: u64 = 100;

/// Lets two equals take turns, with slices of `SLICE` ticks, while a thread of a higher priority is woken every
/// `distance` ticks. Returns the number of ticks that each of them ran.
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

/// Returns true if a slice is longer than `SLICE`; 0 means unlimited, the longest.
fn is_long(slice: u64) -> bool {
    slice == 0 || slice > SLICE
}

#[test]
fn at_the_ceiling_a_slice_is_no_longer_than_its_authority_s() {
    const TOP: u64 = 50;
    let mut machine = Machine::new();
    let [authority, context] = [0; 2].map(|size| machine.make(Kind::SchedulingContext, size));
    machine.call(Operation::SchedulingConfigure, &[authority, 10, TOP, SLICE]).ok();
    for priority in [0, TOP - 1, TOP, TOP + 1] {
        for ceiling in [0, TOP - 1, TOP, TOP + 1] {
            for slice in [0, 1, SLICE - 1, SLICE, SLICE + 1, u64::MAX - 1, u64::MAX] {
                let result =
                    machine.call(Operation::SchedulingConfigure, &[context, priority, ceiling, slice, authority]);
                let expected = if priority > TOP || ceiling > TOP {
                    Some(Error::PriorityTooHigh)
                } else if is_long(slice) && (priority == TOP || ceiling == TOP) {
                    Some(Error::SliceTooLong)
                } else {
                    None
                };
                assert_eq!(result.error(), expected, "{priority}, {ceiling}, {slice}");
            }
        }
    }
}

#[test]
fn a_thread_without_a_slice_donates_none() {
    let mut machine = Machine::new();
    let time = u64::from(slot::SCHEDULING.0);
    assert_eq!(machine.call(Operation::SchedulingQuery, &[time]).ok()[1..4], [255, 255, 0], "init's own");
    let context = machine.make(Kind::SchedulingContext, 0);
    assert_eq!(machine.call(Operation::SchedulingQuery, &[context]).ok()[1..4], [0, 0, 1], "a new one");
    machine.call(Operation::SchedulingConfigure, &[context, 255, 255, 0]).ok();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    /// Checks that a holder of one context who makes any number of others, and lets each authorise others, gets a
    /// longer slice than that context's only below its ceiling. The slices of new contexts authorise nothing.
    #[test]
    fn no_detour_leads_to_a_longer_slice(
        top in 0_u64..3,
        steps in prop::collection::vec(
            (0_usize..5, 0_u64..3, 0_u64..3, prop::sample::select(vec![0, 1, SLICE, SLICE + 1, u64::MAX]), 0_usize..5),
            1..40,
        ),
    ) {
        let mut machine = Machine::new();
        let contexts = [0; 5].map(|size| machine.make(Kind::SchedulingContext, size));
        machine.call(Operation::SchedulingConfigure, &[contexts[0], 0, top, SLICE]).ok();
        for (which, priority, ceiling, slice, authority) in steps {
            let arguments = [contexts[which], priority, ceiling, slice, contexts[authority]];
            let _ = machine.call(Operation::SchedulingConfigure, &arguments);
            for context in contexts {
                let [_, priority, ceiling, slice, ..] = machine.call(Operation::SchedulingQuery, &[context]).ok();
                prop_assert!(priority.max(ceiling) <= top);
                prop_assert!(!is_long(slice) || priority.max(ceiling) < top, "{priority}, {ceiling}, {slice}");
            }
        }
    }
}
