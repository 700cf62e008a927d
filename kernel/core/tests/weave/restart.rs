//! Restarting operations: the outcome of each operation if a preemption point did not suspend it but forgot it, and it
//! were started again from its registers. This is the evidence for docs/decisions/0006.
#![cfg(feature = "preemption")]

use tench_abi::Error;
use tench_arch_host::weave::{End, Policy, Weave};

use crate::outcome::{Outcome, outcome, weave};
use crate::world::{Subject, WITH_PREEMPTION_POINTS};

/// The outcome of an operation that is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restarted {
    /// The undisturbed outcome, however often the operation is interrupted.
    Same,
    /// The operation fails, though no other thread has intervened: it finds its own earlier effects.
    Refused(Error),
    /// The operation returns another result than undisturbed.
    OtherResult,
    /// The outcome is the undisturbed one if the operation is interrupted once, but the operation never ends if it is
    /// interrupted at its first preemption point each time.
    NeverEnds,
}

use Restarted::{NeverEnds, OtherResult, Refused, Same};

/// The outcomes, by subject.
const VERDICTS: &[(&str, Restarted)] = &[
    ("retype 3 frames", Refused(Error::SlotOccupied)),
    ("retype 12 endpoints", Refused(Error::SlotOccupied)),
    ("retype 7 untypeds at an offset", Refused(Error::Overlap)),
    ("retype of the inner untyped", Refused(Error::SlotOccupied)),
    ("children", NeverEnds),
    ("delete a mapped frame", Same),
    ("delete a mapping", Same),
    ("delete a node", Same),
    ("delete a thread", Same),
    ("delete a table", Same),
    ("delete an endpoint", Same),
    ("revoke the pool", OtherResult),
    ("revoke the inner untyped", OtherResult),
    ("revoke an endpoint", OtherResult),
    // The revocation deletes one capability, in the last step.
    ("revoke a mapped frame", Same),
    ("revoke a frame", OtherResult),
    // Before its first preemption point the revocation finds only capabilities that stay.
    ("revoke past exported capabilities", NeverEnds),
    ("revoke a frame past an exported copy", NeverEnds),
    ("delete a node with an exported capability", Same),
    ("map", Refused(Error::AlreadyMapped)),
    ("map instructions", NeverEnds),
    ("protect", NeverEnds),
    ("protect, uncached", NeverEnds),
    ("delete a scattered mapping", Same),
    ("clone a scattered mapping", OtherResult),
    ("ask an account", NeverEnds),
    ("suspend an account", NeverEnds),
    ("let an account go on", NeverEnds),
    ("configure a thread", Same),
    ("unbind a notification", Same),
    ("direct faults elsewhere", Same),
    ("ask a thread", NeverEnds),
    ("ask for the deepest stack", NeverEnds),
    ("print", NeverEnds),
];

/// Returns a policy that runs until `points` preemption points were passed.
fn until(points: usize) -> Policy {
    let mut steps = 0;
    Box::new(move |moment| {
        steps += 1;
        (steps <= points).then_some(moment.candidates[0])
    })
}

/// Interrupts the operation at preemption point number `at`, forgets it and starts it again, at most `times`. Returns
/// the outcome.
fn restart(subject: &Subject, at: usize, times: usize) -> Outcome {
    let (mut run, actors) = weave(&[subject]);
    run.run(until(at));
    let mut left = times;
    while run.ends()[0].contains(&End::Never) && left > 0 {
        left -= 1;
        let mut machine = run.machine;
        machine.thread(actors[0]).kernel_stack_pointer = 0;
        run = Weave::new(machine, vec![(actors[0], (subject.calls)(0))]);
        run.run(until(if left == 0 { usize::MAX } else { at }));
    }
    outcome(&mut run, &actors)
}

/// Returns the outcome of restarting a subject; `None` if it deletes its own thread, and so never ends.
fn verdict(subject: &Subject) -> Option<Restarted> {
    let undisturbed = restart(subject, usize::MAX, 0);
    if undisturbed.ends[0].contains(&End::Never) {
        return None;
    }
    let (mut run, _) = weave(&[subject]);
    run.run(until(usize::MAX));
    let points = run.points()[0];
    for at in 1..=points {
        let once = restart(subject, at, 1);
        match (&once.ends[0][..], once == undisturbed) {
            (_, true) => {}
            ([End::Returned(result)], _) if result.error().is_some() => return Some(Refused(result.err())),
            _ => return Some(OtherResult),
        }
    }
    // Each time the operation reaches its first preemption point.
    let (mut run, actors) = weave(&[subject]);
    for _ in 0..100 {
        run.run(until(1));
        if !run.ends()[0].contains(&End::Never) {
            return Some(Same);
        }
        let mut machine = run.machine;
        machine.thread(actors[0]).kernel_stack_pointer = 0;
        run = Weave::new(machine, vec![(actors[0], (subject.calls)(0))]);
    }
    Some(NeverEnds)
}

#[test]
fn operations_that_could_not_be_begun_anew() {
    let found = WITH_PREEMPTION_POINTS.iter().filter_map(|subject| Some((subject.name, verdict(subject)?)));
    assert_eq!(found.collect::<Vec<_>>(), VERDICTS);
}
