//! The timer fires at a preemption point and wakes a thread of higher priority, which makes a call at once.

use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::machine::RAM_MEDIUM;
use tench_arch_host::weave::{Call, End, Weave};
use tench_kernel::entry;

use crate::outcome::{Shown, delete_all};
use crate::world::{Subject, WITH_PREEMPTION_POINTS, WITHOUT_PREEMPTION_POINTS, World, slots};

/// Time at which the timer fires.
const DEADLINE: u64 = 1000;

/// Interrupts `subject` at its preemption point number `at` by the timer, which wakes a thread that makes the calls of
/// `other`. Returns true if the subject passed that preemption point.
fn interrupt(subject: &Subject, other: &Subject, at: usize) -> bool {
    let subjects = [subject, other];
    let shown = Shown { subjects: &subjects, choices: vec![at] };
    let World { mut machine, actors } = World::new(subject.parts | other.parts, 2);
    // The notification is neither among the deleted objects nor made of the memory that they are made of.
    let notification = slots::SPARE + 1;
    machine.retype(RAM_MEDIUM, Kind::Notification, 0, 1, notification).ok();
    machine.call(Operation::SchedulingConfigure, &[slots::TIMES + 1, 120, 120, 0]).ok();
    let mut arguments = [0; 13];
    (arguments[0], arguments[1], arguments[12]) = (notification, Tag::DEADLINE, DEADLINE);
    let mut calls = vec![Call::new(Operation::Receive, &arguments)];
    calls.extend((other.calls)(1));
    // Afterwards the thread waits, if it still can.
    calls.push(Call::new(Operation::Receive, &[notification]));
    let expected = calls.len();
    let mut weave = Weave::new(machine, vec![(actors[0], (subject.calls)(0)), (actors[1], calls)]);
    weave.at_preemption_points(Box::new(move |k, (who, point)| {
        if (who, point) == (0, at) {
            k.arch().time = DEADLINE;
            assert!(k.arch().interrupted(), "the timer was set");
            entry::kernel_interrupt(k);
        }
    }));
    weave.run(Box::new(|moment| moment.candidates.iter().copied().max()));
    let passed = weave.points()[0] >= at;
    let ends = weave.ends();
    if passed && !matches!(other.name, "suspend itself" | "delete the own thread") {
        let woken = &ends[1];
        assert!(woken.len() + 1 >= expected, "the thread that was woken came to its end: {woken:?}");
        assert_eq!(woken.iter().filter(|end| matches!(end, End::Returned(_))).count() + 1, expected, "{woken:?}");
    }
    delete_all(&mut weave);
    drop(shown);
    passed
}

#[test]
fn a_thread_woken_by_an_interrupt_may_call_anything() {
    let mut interrupted = 0;
    for subject in WITH_PREEMPTION_POINTS {
        for other in WITHOUT_PREEMPTION_POINTS {
            interrupted += (1..).take_while(|at| interrupt(subject, other, *at)).count();
        }
    }
    println!("{interrupted} interrupts");
    assert!(
        !tench_kernel::preemption_point::PREEMPTIBLE || interrupted > 1000,
        "few preemption points were interrupted: {interrupted}"
    );
}
