//! Several cores in one process: each with the kernel itself and a monitor's books around it, in an order that a seed decides.
//!
//! What runs on a core and what is on its way between two is chosen step by step; everything else is what runs on the target. So
//! a run that went wrong is played again by its seed: `TENCH_SEED=N cargo test -p tench-monitor --test kernels`.
//! `TENCH_RUNS=N` plays so many.

mod core;
mod judge;
mod world;

use world::World;

/// Steps of a run.
const STEPS: usize = 400;
/// Runs of each test.
const RUNS: u64 = 60;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Later seeds with which a core that stops shows what a mistake would do: a deletion that never ends, if a stand-in stays marked; a letter
/// that waits for ever, if what a stopped owner had sent comes before its name.
const FOUND: [u64; 2] = [129, 823];

/// Plays all seeds and those that have `found` something, or the one that is wanted, and says with which one it went wrong.
fn play(found: &[u64], run: impl Fn(u64) -> World) {
    let seeds: Vec<u64> = match variable("TENCH_SEED") {
        Some(seed) => vec![seed],
        None => (0..variable("TENCH_RUNS").unwrap_or(RUNS)).chain(found.iter().copied()).collect(),
    };
    let (mut sent, mut refused, mut deleted) = (0, 0, 0);
    for &seed in &seeds {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
        let world = result.unwrap_or_else(|why| {
            eprintln!("play it again with TENCH_SEED={seed}");
            std::panic::resume_unwind(why)
        });
        sent += world.tally.sent;
        refused += world.tally.refused;
        deleted += world.tally.deleted;
    }
    let runs = seeds.len();
    println!("{runs} runs: {sent} capabilities sent, {refused} refused, {deleted} roots taken back");
    assert!(sent > 10 * runs && refused > runs && deleted > runs, "the traffic has dried up");
}

/// Whatever three cores make, copy, delete, send, lend and take back: no memory is two things at any time, what was taken back is
/// nowhere, and in the end all memory is where it was.
#[test]
fn traffic_among_kernels_leaves_nothing() {
    play(&[], |seed| {
        let mut world = World::new(3, seed);
        (0..STEPS).for_each(|_| world.act());
        world.end();
        world
    });
}

/// The same with four, one of which stops at some step, and of which the others hear at some later one.
#[test]
fn a_core_that_stops_takes_nothing_with_it() {
    play(&FOUND, |seed| {
        let mut world = World::new(4, seed);
        let stops_at = world.random(STEPS);
        for step in 0..STEPS {
            if step == stops_at {
                world.stop_one();
            }
            world.act();
        }
        world.end();
        world
    });
}
