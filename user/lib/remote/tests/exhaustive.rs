//! Exhaustive exploration of all orders of events, for a few cores and short scripts.

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stateright::{Checker, HasDiscoveries, Model, Property};
use world::judge::{judge, judge_end};
use world::script::Op::{Copy, Delete, GiveBack, Retype, Revoke, Send};
use world::script::{Mistake, Op, Script, frame, untyped};
use world::{Event, World};

#[derive(Clone)]
struct Explored {
    script: Script,
    /// Number of states in which nothing more can happen.
    ends: Arc<AtomicUsize>,
}

impl Model for Explored {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.script)]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        world.events(&self.script, events);
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut next = world.clone();
        next.happen(&self.script, event);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("is right", |model, world| judge(&model.script, world).is_none()),
            Property::always("ends well", |model: &Self, world: &World| {
                let mut events = Vec::new();
                world.events(&model.script, &mut events);
                if !events.is_empty() {
                    return true;
                }
                model.ends.fetch_add(1, Ordering::Relaxed);
                judge_end(&model.script, world).is_none()
            }),
            // Otherwise a script tests less than it seems to.
            Property::sometimes("everything is done", |model: &Self, world: &World| {
                let threads = model.script.threads.iter().zip(&world.threads);
                threads.into_iter().all(|((_, ops), thread)| ops.len() == thread.done as usize)
            }),
        ]
    }
}

/// Results over all states of a world.
struct Found {
    states: usize,
    ends: usize,
    /// The violated property, and the events that lead there.
    wrong: Option<(&'static str, Vec<Event>)>,
    /// Set if all threads can finish.
    is_complete: bool,
}

/// Visits every state.
fn explore(script: &Script) -> Found {
    let model = Explored { script: script.clone(), ends: Arc::default() };
    let ends = model.ends.clone();
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    let wrong = ["is right", "ends well"].into_iter().find_map(|name| checker.discovery(name)).map(|path| {
        let world = path.last_state();
        let wrong = judge(script, world).or_else(|| judge_end(script, world)).unwrap_or("nothing");
        (wrong, path.into_actions())
    });
    Found {
        states: checker.unique_state_count(),
        ends: ends.load(Ordering::Relaxed),
        wrong,
        is_complete: checker.discovery("everything is done").is_some(),
    }
}

fn check(name: &str, script: &Script) {
    let begin = std::time::Instant::now();
    let Found { states, ends, wrong, is_complete } = explore(script);
    println!("{name}: {states} states, {ends} of them ends, {:.1} s", begin.elapsed().as_secs_f32());
    if let Some((wrong, way)) = wrong {
        panic!("{name}: {wrong}, after {way:?}");
    }
    assert!(is_complete, "{name}: some thread never comes to its end");
}

/// Memory and objects made from it: frames, and memory that is lent back and forth.
const MEMORY: [world::script::Object; 6] = [
    untyped(0, 8, None),
    frame(0, 4, Some(0)),
    frame(0, 8, Some(0)),
    untyped(0, 8, Some(0)),
    untyped(0, 8, Some(3)),
    frame(4, 4, Some(4)),
];

fn two(objects: &[world::script::Object], threads: &[(u8, &[Op])]) -> Script {
    Script::new(2, objects, &[(0, 0)], threads)
}

fn three(objects: &[world::script::Object], threads: &[(u8, &[Op])]) -> Script {
    Script::new(3, objects, &[(0, 0)], threads)
}

#[test]
fn a_frame_of_two_cores() {
    let script = two(
        &[frame(0, 4, None)],
        &[
            (0, &[Send(0, 1), Send(0, 1), Send(0, 1)]),
            (0, &[Revoke(0), Revoke(0)]),
            (0, &[Copy(0), Delete(0), Delete(0)]),
            (1, &[Delete(0), Delete(0)]),
            (1, &[Copy(0), Send(0, 0)]),
        ],
    );
    check("a frame of two cores", &script);
}

#[test]
fn two_objects_that_cross() {
    let objects = [frame(0, 4, None), frame(8, 1, None)];
    let threads: [(u8, &[Op]); 6] = [
        (0, &[Send(0, 1), Delete(0)]),
        (0, &[Revoke(0)]),
        (1, &[Send(1, 0), Send(1, 0)]),
        (1, &[Revoke(1)]),
        (1, &[Send(0, 0), Delete(0)]),
        (0, &[Send(1, 1), Delete(1)]),
    ];
    check("two objects that cross", &Script::new(2, &objects, &[(0, 0), (1, 1)], &threads));
}

#[test]
fn memory_and_a_frame_made_of_it() {
    let script = two(
        &MEMORY,
        &[
            (0, &[Send(0, 1), Retype(0, 2), Send(2, 1)]),
            (0, &[Revoke(0), Revoke(0)]),
            (0, &[Copy(1), Delete(1)]),
            (1, &[Retype(0, 1), Send(1, 0), Send(1, 0)]),
            (1, &[Revoke(1), Delete(1)]),
            (1, &[GiveBack(0), GiveBack(0)]),
            (0, &[Send(0, 1)]),
            (0, &[Revoke(2)]),
        ],
    );
    check("memory and a frame made of it", &script);
}

#[test]
fn memory_that_is_lent_back_and_forth() {
    let script = two(
        &MEMORY,
        &[
            (0, &[Send(0, 1), Send(0, 1)]),
            (1, &[Retype(0, 3), Send(3, 0)]),
            (0, &[Retype(3, 4), Send(4, 1)]),
            (1, &[Retype(4, 5), Send(5, 0)]),
            (0, &[Revoke(0)]),
            (1, &[Revoke(3)]),
            (0, &[GiveBack(3)]),
        ],
    );
    check("memory that is lent back and forth", &script);
}

#[test]
fn memory_deleted_while_it_is_lent() {
    let script = two(
        &MEMORY,
        &[
            (0, &[Send(0, 1), Delete(0)]),
            (1, &[Retype(0, 1), Send(1, 0), Send(1, 0), Delete(1)]),
            (1, &[Delete(0)]),
            (1, &[Revoke(1)]),
            (0, &[Delete(1), Copy(1), Delete(1)]),
        ],
    );
    check("memory deleted while it is lent", &script);
}

#[test]
fn a_table_that_is_full() {
    let objects = [frame(0, 4, None), frame(4, 4, None)];
    let threads: [(u8, &[Op]); 4] = [
        (0, &[Send(0, 1), Send(0, 1)]),
        (0, &[Send(1, 1), Send(1, 1)]),
        (0, &[Revoke(0)]),
        (1, &[Delete(0), Delete(1)]),
    ];
    let mut script = Script::new(2, &objects, &[(0, 0), (0, 1)], &threads);
    script.limits.copies = 1;
    check("a table that is full", &script);
    script.limits.copies = 4;
    script.limits.exports = 1;
    check("another table that is full", &script);
    script.limits.exports = 3;
    script.limits.requests = 1;
    check("a third", &script);
}

#[test]
fn a_frame_of_three_cores() {
    let script = three(
        &[frame(0, 4, None)],
        &[
            (0, &[Send(0, 1), Send(0, 1)]),
            (0, &[Send(0, 2)]),
            (1, &[Send(0, 2), Delete(0)]),
            (2, &[Send(0, 1), Delete(0)]),
            (0, &[Revoke(0), Revoke(0)]),
        ],
    );
    check("a frame of three cores", &script);
}

#[test]
fn memory_that_goes_around() {
    let script = three(
        &MEMORY,
        &[
            (0, &[Send(0, 1)]),
            (1, &[Retype(0, 3), Send(3, 2)]),
            (2, &[Retype(3, 4), Send(4, 0)]),
            (0, &[Retype(4, 5), Send(5, 1)]),
            (0, &[Revoke(0)]),
            (1, &[Revoke(3)]),
            (2, &[Revoke(4)]),
            (0, &[GiveBack(4)]),
            (1, &[Delete(5)]),
        ],
    );
    check("memory that goes around", &script);
}

#[test]
fn a_core_that_does_nothing_more() {
    let threads: [(u8, &[Op]); 5] = [
        (0, &[Send(0, 1)]),
        (0, &[Send(0, 2)]),
        (0, &[Revoke(0)]),
        (0, &[Send(1, 1), Revoke(1)]),
        (1, &[Send(0, 0), Send(1, 0)]),
    ];
    let objects = [frame(0, 4, None), frame(4, 4, None)];
    let mut script = Script::new(3, &objects, &[(0, 0), (0, 1)], &threads);
    // The revocation of object 0 needs core 2 if that has a copy.
    script.limits.requests = 6;
    script.stalls = Some((2, vec![0, 3, 4]));
    check("a core that does nothing more", &script);
}

/// Memory borrowed by core 1 comes back although core 2 has stalled, as long as core 2 has nothing of it.
#[test]
fn borrowed_memory_and_a_core_that_does_nothing_more() {
    let objects = [untyped(0, 8, None), frame(0, 8, Some(0)), untyped(8, 8, None), frame(8, 8, Some(2))];
    let threads: [(u8, &[Op]); 6] = [
        (0, &[Send(0, 1), Revoke(0), Send(0, 1)]),
        (1, &[Retype(0, 1), Send(1, 0), Revoke(1)]),
        (1, &[GiveBack(0)]),
        (0, &[Send(2, 2)]),
        (2, &[Retype(2, 3), Send(3, 1)]),
        (0, &[Revoke(2)]),
    ];
    let mut script = Script::new(3, &objects, &[(0, 0), (0, 2)], &threads);
    script.limits.requests = 6;
    script.stalls = Some((2, vec![0, 1, 2]));
    check("borrowed memory and a core that does nothing more", &script);
}

#[test]
fn a_frame_and_a_core_that_stops() {
    for lost in 0..3 {
        let mut script = three(
            &[frame(0, 4, None)],
            &[(0, &[Send(0, 1)]), (1, &[Send(0, 2)]), (2, &[Send(0, 0), Delete(0)]), (0, &[Revoke(0)])],
        );
        script.loses = vec![lost];
        check(&format!("a frame, and core {lost} stops"), &script);
    }
}

#[test]
fn memory_and_a_core_that_stops() {
    for lost in 0..3 {
        let mut script = three(
            &MEMORY,
            &[
                (0, &[Send(0, 1), Retype(0, 2)]),
                (1, &[Retype(0, 3), Send(3, 2)]),
                (2, &[Retype(3, 4), Send(4, 0)]),
                (2, &[GiveBack(3)]),
                (0, &[Revoke(0)]),
                (1, &[Revoke(3)]),
            ],
        );
        script.loses = vec![lost];
        check(&format!("memory, and core {lost} stops"), &script);
    }
}

/// Memory that core 1 lent back to core 2 cannot be reused there, although both it and the memory around it are
/// withdrawn because core 2 stops.
#[test]
fn memory_within_memory_of_a_core_that_stops() {
    let objects = [
        untyped(0, 8, None),
        untyped(0, 8, Some(0)),
        untyped(0, 8, Some(1)),
        untyped(0, 4, Some(2)),
        untyped(0, 8, Some(0)),
        frame(0, 4, Some(4)),
    ];
    let threads: [(u8, &[Op]); 6] = [
        (2, &[Send(0, 1)]),
        (1, &[Retype(0, 1), Send(1, 2)]),
        (1, &[Delete(1), Retype(0, 4), Retype(4, 5)]),
        (2, &[Retype(1, 2), Send(2, 1)]),
        (1, &[Retype(2, 3), Send(3, 0)]),
        (1, &[Revoke(1)]),
    ];
    let mut script = Script::new(3, &objects, &[(2, 0)], &threads);
    script.loses = vec![2];
    check("memory within memory of a core that stops", &script);
}

/// Chain 0 → 1 → 2 → 3 → 2: an object that core 3 made is found although only cores 1 and 2 know that core 3 has
/// something, and core 1 stops too.
#[test]
fn two_cores_that_stop() {
    let objects = [
        untyped(0, 8, None),
        untyped(0, 8, Some(0)),
        untyped(0, 8, Some(1)),
        frame(0, 8, Some(2)),
        frame(0, 8, Some(0)),
    ];
    let threads: [(u8, &[Op]); 4] = [
        (0, &[Send(0, 1), Retype(0, 4)]),
        (1, &[Retype(0, 1), Send(1, 2)]),
        (2, &[Retype(1, 2), Send(2, 3)]),
        (3, &[Retype(2, 3), Send(3, 2)]),
    ];
    let mut script = Script::new(4, &objects, &[(0, 0)], &threads);
    script.loses = vec![1, 3];
    check("two cores that stop", &script);
}

/// Asserts that the checks find a mistake.
fn must_find(mistake: Mistake, mut script: Script, expected: &[&str]) {
    script.mistake = Some(mistake);
    let Found { states, wrong, .. } = explore(&script);
    let (wrong, way) = wrong.unwrap_or_else(|| panic!("{mistake:?} was not found in {states} states"));
    println!("{mistake:?}: {wrong}, after {} events, {states} states", way.len());
    assert!(expected.contains(&wrong), "{mistake:?}: {wrong}");
}

#[test]
fn mistakes_are_found() {
    let survives = "a capability survives its revocation";
    let appears = "a copy appears that was sent before the reply to its revocation";
    let reused = "memory was reused while a capability to it exists";
    let frames = two(&[frame(0, 4, None)], &[(0, &[Send(0, 1)]), (0, &[Revoke(0)]), (1, &[Delete(0)])]);
    must_find(Mistake::NotWaiting, frames.clone(), &[survives, appears]);
    must_find(Mistake::EarlyDeleted, frames.clone(), &[survives]);
    must_find(Mistake::AnyOrder, frames, &[survives, appears]);
    let mut memory =
        three(&MEMORY, &[(0, &[Send(0, 1), Retype(0, 2)]), (1, &[Retype(0, 1), Send(1, 2)]), (2, &[Copy(1)])]);
    memory.loses = vec![1];
    must_find(Mistake::Unsettled, memory, &[reused]);
}
