//! Tests of endpoints and notifications that are reached from other cores: several cores in one process, each with a
//! monitor's ledger and a fake kernel. Their processes send, copy, mint, drop, revoke, call and signal in an order that
//! a seed decides ([`simulation`]).

mod kernel;
mod rules;
mod signals;
#[path = "../simulation/mod.rs"]
mod simulation;
mod world;

use world::World;

/// Steps of a run.
const STEPS: usize = 500;
/// Runs of each test.
const RUNS: u64 = 60;

/// Runs all seeds, and checks that enough has happened.
fn play(run: impl Fn(u64) -> World) {
    let mut worlds = simulation::play(RUNS, &[], run);
    let mut all = world::Tally::default();
    worlds.iter_mut().for_each(|world| all.add(&mut world.tally));
    println!("{} runs: {all:?}", worlds.len());
    all.check(worlds.len());
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
        let (lost, stops_at) = (world.dice.below(3), world.dice.below(STEPS));
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
        let hostile = world.dice.below(3);
        world.lies(hostile);
        (0..STEPS).for_each(|_| world.act());
        world.drop_everything();
        world
    });
}
