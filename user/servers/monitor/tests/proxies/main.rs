//! Tests of endpoints and notifications that are reached from other cores: several cores in one process, each with a
//! monitor's ledger and a fake kernel. Their processes send, copy, mint, drop, revoke, call and signal in an order that
//! a seed decides.
//!
//! A failure is repeated by its seed: `TENCH_SEED=N cargo test -p tench-monitor --test proxies`. `TENCH_RUNS=N` sets
//! the number of runs.

mod kernel;
mod rules;
mod signals;
mod world;

use world::World;

/// Steps of a run.
const STEPS: usize = 500;
/// Runs of each test.
const RUNS: u64 = 60;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Runs all seeds, or the one that is requested, and reports the seed of a failure.
fn play(run: impl Fn(u64) -> World) {
    let seeds = match variable("TENCH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("TENCH_RUNS").unwrap_or(RUNS),
    };
    let runs = (seeds.end - seeds.start) as usize;
    let mut all = world::Tally::default();
    for seed in seeds {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
        let mut world = result.unwrap_or_else(|why| {
            eprintln!("play it again with TENCH_SEED={seed}");
            std::panic::resume_unwind(why)
        });
        all.add(&mut world.tally);
    }
    println!("{runs} runs: {all:?}");
    all.check(runs);
}

/// Whatever processes of two to four cores do, a capability keeps its meaning, wherever it is, until it is revoked, and
/// nothing is left in the end.
#[test]
fn every_capability_stays_what_it_is() {
    play(|seed| {
        let mut world = World::new(2 + seed as usize % 3, seed);
        (0..STEPS).for_each(|_| world.act());
        world.drop_everything();
        world
    });
}

/// The property holds also if a core stops at some step, and the others are told at some later one.
#[test]
fn a_core_that_stops_takes_what_leads_over_it() {
    play(|seed| {
        let mut world = World::new(3 + seed as usize % 2, seed);
        let (lost, stops_at) = (world.random(3), world.random(STEPS));
        for step in 0..STEPS {
            if step == stops_at {
                world.stop(lost);
            }
            world.act();
        }
        world.drop_everything();
        world
    });
}

/// The property holds also if a monitor names numbers that it does not have, and releases numbers twice.
#[test]
fn a_monitor_that_says_anything_changes_nothing_of_others() {
    play(|seed| {
        let mut world = World::new(3 + seed as usize % 2, seed);
        let hostile = world.random(3);
        world.lies(hostile);
        (0..STEPS).for_each(|_| world.act());
        world.drop_everything();
        world
    });
}
