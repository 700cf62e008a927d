//! Every sequence of system calls in a small universe; see docs/manual/proof.md.
//!
//! `TENCH_DEPTH=n` sets the length of the sequences that the usual tests make. `./tench test --long host/long` makes
//! the longest.

use std::time::Instant;

use tench_kernel::preemption_point::PREEMPTIBLE;
use tench_model::small_scope::{Finding, Level, Progress, Scope, explore};

/// Number of states after one, two and three calls. docs/manual/proof.md has the same numbers.
const ALL: [u64; 3] = [250, 17_068, 752_089];
/// Number of states after one, two and three calls by which threads wait.
const WAITING: [u64; 3] = [102, 2_665, 45_420];
/// These numbers for a kernel in which no operation is ever left halfway.
const WAITING_WITHOUT_PREEMPTION: [u64; 3] = [102, 2_663, 45_291];

/// Explores, and prints the progress.
fn explored(scope: Scope, depth: usize) -> Vec<Level> {
    let start = Instant::now();
    let report = |progress| match progress {
        Progress::Part { depth, done, of } => {
            eprintln!("{scope:?}, {depth}: {done} of {of} states left by every call, {:.1?}", start.elapsed());
        }
        Progress::Level(depth, Level { states, steps }) => {
            eprintln!("{scope:?}, {depth}: {states} states, {steps} steps, {:.1?}", start.elapsed());
        }
    };
    explore(scope, depth, 2, report).unwrap_or_else(|Finding { wrong, history }| {
        panic!("the state is inconsistent: {wrong}; after\n  {}", history.join("\n  "));
    })
}

/// Explores, and compares the numbers of states. Fewer states would mean that something is left out.
fn compared(scope: Scope, depth: usize, expected: &[u64]) {
    let levels = explored(scope, depth);
    let states: Vec<u64> = levels.iter().map(|level| level.states).take(expected.len()).collect();
    assert_eq!(states, expected[..states.len()]);
}

/// Returns the length of the sequences: from the environment, or what the tests have time for.
fn depth(usual: usize) -> usize {
    std::env::var("TENCH_DEPTH").map_or(usual, |depth| depth.parse().expect("TENCH_DEPTH is a number"))
}

#[test]
fn all_calls() {
    // Three calls take half a minute. Without preemption points there are fewer states, and two calls are enough.
    if PREEMPTIBLE { compared(Scope::All, depth(3), &ALL) } else { compared(Scope::All, depth(2), &[]) }
}

#[test]
fn waiting_calls() {
    let expected = if PREEMPTIBLE { &WAITING[..] } else { &WAITING_WITHOUT_PREEMPTION };
    compared(Scope::Waiting, depth(3), expected);
}

#[test]
#[ignore = "takes long: ./tench test --long"]
fn all_calls_four_times() {
    compared(Scope::All, 4, &ALL);
}

#[test]
#[ignore = "takes long: ./tench test --long"]
fn waiting_calls_five_times() {
    compared(Scope::Waiting, 5, &WAITING);
}
