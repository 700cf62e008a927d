//! Every sequence of system calls in a small universe; see docs/manual/proof.md.
//!
//! `TENCH_DEPTH=n` changes how long the sequences are.

use std::time::Instant;

use tench_model::small_scope::{Finding, Level, Scope, explore};

/// States after one, two and three calls by which threads wait, where long operations pass windows and where they do not.
const STATES: [u64; 3] = if cfg!(feature = "preemption") { [102, 2_673, 45_812] } else { [102, 2_671, 45_685] };

/// Explores, and says how it goes.
fn explored(scope: Scope, depth: usize) -> Vec<Level> {
    let start = Instant::now();
    let report = |depth: usize, level: Level| {
        eprintln!("{scope:?}, {depth}: {} states, {} steps, {:.1?}", level.states, level.steps, start.elapsed());
    };
    explore(scope, depth, 2, report).unwrap_or_else(|Finding { wrong, history }| {
        panic!("the state is inconsistent: {wrong}; after\n  {}", history.join("\n  "));
    })
}

/// How long the sequences are: as asked for, or as long as the tests have time for.
fn depth(usual: usize) -> usize {
    std::env::var("TENCH_DEPTH").map_or(usual, |depth| depth.parse().expect("TENCH_DEPTH is a number"))
}

#[test]
fn all_calls() {
    explored(Scope::All, depth(2));
}

#[test]
fn waiting_calls() {
    let levels = explored(Scope::Waiting, depth(3));
    let states: Vec<u64> = levels.iter().map(|level| level.states).take(STATES.len()).collect();
    // Fewer would mean that something is left out. When calls change, docs/manual/proof.md does.
    assert_eq!(states, STATES[..states.len()]);
}
