//! Threads that query their own account while it is being suspended do not escape suspension.
#![cfg(feature = "preemption")]

use tench_abi::{Error, Operation};
use tench_arch_host::weave::{End, Weave};
use tench_kernel::object::Ref;
use tench_kernel::thread::Thread;

use crate::outcome::weave;
use crate::world::{Subject, WITH_PREEMPTION_POINTS, slots};

fn subject(name: &str) -> &'static Subject {
    WITH_PREEMPTION_POINTS.iter().find(|subject| subject.name == name).expect("a subject of this name")
}

/// Lets A query its account, and reach itself in that while B, which is suspending the account, is at a preemption
/// point. So A is not stopped when B finishes. A is at a preemption point then, and the first thread, which is no
/// member, runs.
fn passed_over() -> (Weave, Ref<Thread>) {
    let (mut run, actors) = weave(&[subject("ask an account"), subject("suspend an account")]);
    let mut choices = [1, 0].into_iter();
    run.run(Box::new(move |moment| {
        let wanted = choices.next().unwrap_or(1);
        moment.candidates.contains(&wanted).then_some(wanted)
    }));
    assert_eq!(run.points(), [1, 2]);
    assert!(matches!(run.ends()[1][..], [End::Returned(result)] if result.x[0] == 0), "B has suspended the account");
    assert!(!run.machine.thread(actors[0]).account_suspended, "A is not stopped yet");
    (run, actors[0])
}

#[test]
fn a_thread_whose_account_is_deleted_stops_with_the_others() {
    let (mut run, a) = passed_over();
    run.machine.call(Operation::Move, &[0, slots::ROOT, 0, slots::SPARE]).ok();
    run.run(Box::new(|moment| moment.candidates.contains(&0).then_some(0)));
    assert!(matches!(run.ends()[0][..], [End::Returned(result)] if result.err() == Error::InvalidCapability));
    assert!(run.machine.thread(a).account_suspended, "A may not run");
}

#[test]
fn a_thread_whose_operation_is_cancelled_stops_with_the_others() {
    let (mut run, a) = passed_over();
    run.machine.call(Operation::ThreadSuspend, &[slots::ACTORS]).ok();
    run.machine.call(Operation::ThreadWriteRegisters, &[slots::ACTORS, 1]).ok();
    assert!(run.machine.thread(a).account_suspended, "A may not run");
    run.machine.call(Operation::AccountSuspend, &[slots::ROOT, 0]).ok();
    assert!(!run.machine.thread(a).account_suspended, "A may run again");
    run.machine.check();
}
