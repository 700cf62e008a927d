//! Deletion in parts, which has the same outcome as deletion at once.

use tench_abi::{Error, Operation};
use tench_arch_host::Machine;
use tench_arch_host::snapshot::snapshot;

use crate::world::{Subject, WITH_PREEMPTION_POINTS, World, part};

/// Returns the operation that does a part of another operation.
fn in_parts(operation: Operation) -> Option<Operation> {
    match operation {
        Operation::Delete => Some(Operation::DeletePart),
        Operation::Revoke => Some(Operation::RevokePart),
        _ => None,
    }
}

/// Makes a call. Returns its result, and the number of preemption points that it has passed.
fn call(m: &mut Machine, operation: Operation, arguments: &[u64]) -> (Result<[u64; 3], Error>, u64) {
    let before = m.kernel().state().statistics.preemption_points;
    let found = m.call(operation, arguments);
    let result = match Error::from_code(found.x[0]) {
        Some(error) => Err(error),
        None => Ok([found.x[1], found.x[2], found.x[3]]),
    };
    (result, m.kernel().state().statistics.preemption_points - before)
}

/// Plays a subject in a world of its own. Returns the last result, the state, and each call's number of preemption
/// points.
fn play(subject: &Subject, limit: Option<u64>) -> (Result<[u64; 3], Error>, String, Vec<u64>) {
    let World { machine: mut m, actors } = World::new(subject.parts, 1);
    let mut passed = Vec::new();
    let mut last = Ok([0; 3]);
    for one in (subject.calls)(0) {
        loop {
            let mut arguments = one.arguments.clone();
            let operation = match (in_parts(one.operation), limit) {
                (Some(part), Some(limit)) => {
                    arguments.push(limit);
                    part
                }
                _ => one.operation,
            };
            let (result, points) = call(&mut m, operation, &arguments);
            m.check();
            passed.push(points);
            assert!(passed.len() < 10_000, "{}: parts of {limit:?} preemption points come to no end", subject.name);
            last = result;
            if result != Err(Error::Unfinished) {
                break;
            }
        }
    }
    // The state contains the caller's registers, too; this makes them equal for both.
    let _ = m.call(Operation::Identify, &[0, 0]);
    let state = snapshot(m.kernel(), &actors).expect("the state is consistent");
    (last, state, passed)
}

#[test]
fn many_parts_come_to_the_same_as_one_call() {
    let mut divided = 0;
    for subject in WITH_PREEMPTION_POINTS.iter().filter(|subject| subject.points.and_then(in_parts).is_some()) {
        let (result, state, whole) = play(subject, None);
        for limit in [0, 1, 2, 5, 1000] {
            let (found, parts_state, parts) = play(subject, Some(limit));
            assert!(parts_state == state, "{}, parts of {limit} preemption points", subject.name);
            // A revocation returns the count of its last part.
            match (result, found) {
                (Ok([count, ..]), Ok([last, ..])) if subject.points == Some(Operation::Revoke) => {
                    assert!(last <= count)
                }
                _ => assert_eq!(found, result, "{}, parts of {limit} preemption points", subject.name),
            }
            divided += usize::from(parts.len() > whole.len());
            // Examining exported capabilities passes preemption points that do not count.
            if subject.parts & (part::EXPORTS | part::MARKED | part::IN_NODE) == 0 {
                let (most, all) = (parts.iter().copied().max().unwrap_or(0), whole.iter().sum::<u64>());
                assert!(most <= limit, "{}: {most} preemption points in a part of {limit}", subject.name);
                assert!(all <= limit || parts.len() > whole.len(), "{}: {all} preemption points at once", subject.name);
            }
        }
    }
    assert!(divided > 20, "{divided} were divided");
}
