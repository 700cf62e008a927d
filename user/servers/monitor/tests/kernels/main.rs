//! Tests with several cores in one process: each with the real kernel and a monitor's ledger around it, in an order
//! that a seed decides.
//!
//! Which core runs, and which message is delivered, is chosen step by step; everything else is the code of the target.
//! A failure is repeated by its seed ([`simulation`]).

mod core;
mod judge;
#[path = "../simulation/mod.rs"]
mod simulation;
mod world;

use world::World;

/// Steps of a run.
const STEPS: usize = 400;
/// Runs of each test.
const RUNS: u64 = 60;

/// Later seeds with which a core that stops shows the effect of a mistake: a deletion that never ends, if the
/// revocation request of an exported capability stays set; a transfer that waits for ever, if an object that a stopped
/// owner had sent comes before its name.
const FOUND: [u64; 2] = [129, 823];

/// Runs all seeds and those that have `found` something. Returns how often a check for a stopped core found one.
fn play(found: &[u64], run: impl Fn(u64) -> World) -> usize {
    let worlds = simulation::play(RUNS, found, run);
    let (mut sent, mut refused, mut deleted, mut looked) = (0, 0, 0, 0);
    for world in &worlds {
        sent += world.tally.sent;
        refused += world.tally.refused;
        deleted += world.tally.deleted;
        looked += world.tally.found;
    }
    let runs = worlds.len();
    println!("{runs} runs: {sent} capabilities sent, {refused} refused, {deleted} roots taken back, {looked} looks");
    assert!(sent > 10 * runs && refused > runs && deleted > runs, "the traffic has dried up");
    looked
}

/// Whatever three cores make, copy, delete, send, lend and revoke: no memory ever has two uses, what was revoked is
/// nowhere, and in the end all memory is where it was.
#[test]
fn traffic_among_kernels_leaves_nothing() {
    let looked = play(&[], |seed| {
        let mut world = World::asking(3, seed);
        (0..STEPS).for_each(|_| world.act());
        world.drop_everything();
        world
    });
    assert_eq!(looked, 0, "none has stopped");
}

/// The property holds also if no client requests a revocation from a monitor: a revoke in the kernel is enough. One
/// core may stop.
#[test]
fn revoked_memory_returns_by_itself() {
    for count in [0, 1] {
        play(&[], |seed| with_ends(World::wanting(4, seed), count, World::stop_one));
    }
}

/// The property holds also with four cores, one of which stops at some step; the others are told at some later one.
#[test]
fn a_core_that_stops_takes_nothing_with_it() {
    play(&FOUND, |seed| with_ends(World::asking(4, seed), 1, World::stop_one));
}

/// The property holds also with one or two cores that stop unannounced: no client waits for them for ever, and all
/// memory comes back.
#[test]
fn cores_that_stop_without_a_word_are_found_by_who_waits_for_them() {
    for count in [1, 2] {
        let looked = play(&FOUND, |seed| with_ends(World::asking(4, seed), count, World::stop_one_silently));
        assert!(looked > 10, "hardly anybody waited");
    }
}

/// Runs a world of four cores, `count` of which stop, each at some step.
fn with_ends(mut world: World, count: usize, stop: impl Fn(&mut World)) -> World {
    let ends: Vec<usize> = (0..count).map(|_| world.dice.below(STEPS)).collect();
    for step in 0..STEPS {
        ends.iter().filter(|end| **end == step).for_each(|_| stop(&mut world));
        world.act();
    }
    world.drop_everything();
    world
}
