//! Three operations in random orders.
//!
//! `TENCH_WEAVES=n` sets the number of orders, `TENCH_SEED=n` plays the order of seed `n` alone.

use tench_abi::Error;
use tench_arch_host::weave::End;
use tench_random::Random;

use crate::outcome::{Shown, delete_all, weave};
use crate::pairs::HANDLERS;
use crate::world::{FORGOTTEN, Subject, WITH_PREEMPTION_POINTS, WITHOUT_PREEMPTION_POINTS};

/// The errors with which an operation may fail that finds things changed.
const EXPECTED_ERRORS: [Error; 20] = [
    Error::InvalidCapability,
    Error::WrongType,
    Error::NoSuchSlot,
    Error::SlotOccupied,
    Error::OutOfMemory,
    Error::Overlap,
    Error::AlreadyMapped,
    Error::NotMapped,
    Error::WrongState,
    Error::NotConfigured,
    Error::AlreadyBound,
    Error::Aborted,
    Error::WouldBlock,
    Error::NoReplyObject,
    Error::NoIpcBuffer,
    Error::DeviceMemory,
    Error::Busy,
    Error::RemoteCopies,
    Error::Lent,
    Error::NotExported,
];

/// Returns a number from the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Plays one order of three operations. Returns the number of preemption points that were passed.
fn weave_three(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let subject = |random: &mut Random| -> &'static Subject {
        let n = random.index(WITH_PREEMPTION_POINTS.len() + WITHOUT_PREEMPTION_POINTS.len());
        WITH_PREEMPTION_POINTS.get(n).unwrap_or_else(|| &WITHOUT_PREEMPTION_POINTS[n - WITH_PREEMPTION_POINTS.len()])
    };
    let first = &WITH_PREEMPTION_POINTS[random.index(WITH_PREEMPTION_POINTS.len())];
    let three = [first, subject(&mut random), subject(&mut random)];
    let shown = Shown { subjects: &three, choices: vec![seed as usize] };
    let (mut run, actors) = weave(&three);
    run.at_preemption_points(Box::new(move |k, (who, _)| {
        let number = k.get(actors[who]).registers.x[10];
        let known = HANDLERS.iter().any(|operation| *operation as u64 == number);
        assert!(known, "operation {number} passes a preemption point; add it to the table of pairs");
    }));
    run.run(Box::new(move |moment| Some(moment.candidates[random.index(moment.candidates.len())])));
    for (subject, ends) in three.iter().zip(run.ends()) {
        for end in ends {
            if let End::Returned(result) = end
                && result.x[0] != FORGOTTEN
            {
                let error = result.error();
                let fits = error.is_none_or(|error| EXPECTED_ERRORS.contains(&error));
                assert!(fits, "{} got {error:?}", subject.name);
            }
        }
    }
    delete_all(&mut run);
    drop(shown);
    run.points().into_iter().sum()
}

#[test]
fn three_in_random_orders() {
    if let Some(seed) = variable("TENCH_SEED") {
        weave_three(seed);
        return;
    }
    let count = variable("TENCH_WEAVES").unwrap_or(3000);
    let points: usize = (0..count).map(weave_three).sum();
    println!("{points} preemption points");
    assert!(
        !tench_kernel::preemption_point::PREEMPTIBLE || points as u64 > 2 * count,
        "few preemption points were passed: {points}"
    );
}
