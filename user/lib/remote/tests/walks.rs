//! Long random walks: four cores, random clients, a random scheduler that slows down a core for a while. Two cores may
//! stop.
//!
//! A walk is determined by its seed. A failing walk prints its seed; put it into [`SEEDS`] to repeat it.

mod world;

use proptest::prelude::*;
use world::judge::{judge, judge_end};
use world::random::{CORES, OPS, Random};
use world::{Event, World};

/// Seeds of walks that failed once.
const SEEDS: [u64; 0] = [];

/// Statistics of a walk.
#[derive(Default)]
struct Walk {
    events: usize,
    delivered: usize,
    revoked: usize,
}

fn walk(seed: u64) -> Result<Walk, String> {
    let mut random = Random::new(seed);
    let mut script = random.script();
    let mut world = World::new(&script);
    let (mut done, mut events, mut slow, mut left) = (Walk::default(), Vec::new(), None, OPS);
    loop {
        if left > 0 && random.below(3) == 0 {
            left -= 1;
            random.extend(&mut script, &world);
        }
        events.clear();
        world.events(&script, &mut events);
        if events.is_empty() && left > 0 {
            continue;
        }
        if events.is_empty() {
            break;
        }
        if random.below(64) == 0 {
            slow = Some(random.below(2 * CORES as usize) as u8);
        }
        let Some(event) = random.choose(&events, slow) else { continue };
        world.happen(&script, event);
        done.events += 1;
        done.delivered += usize::from(matches!(event, Event::Deliver(..)));
        if let Some(wrong) = judge(&script, &world) {
            return Err(format!("seed {seed:#x}: {wrong}, after {} events, the last of them {event:?}", done.events));
        }
    }
    done.revoked = world.revoked.iter().map(|&count| count as usize).sum();
    match judge_end(&script, &world) {
        Some(wrong) => Err(format!("seed {seed:#x}: {wrong}, after {} events", done.events)),
        None => Ok(done),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_walks_end_with_consistent_ledgers(seed: u64) {
        walk(seed).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn walks_that_failed_once() {
    for seed in SEEDS {
        walk(seed).unwrap();
    }
}

#[test]
fn walks_are_long() {
    let walks: Vec<Walk> = (0..200).map(|seed| walk(seed).unwrap()).collect();
    let sum = |of: fn(&Walk) -> usize| walks.iter().map(of).sum::<usize>();
    let (events, delivered, revoked) = (sum(|walk| walk.events), sum(|walk| walk.delivered), sum(|walk| walk.revoked));
    println!("200 walks: {events} events, {delivered} messages, {revoked} revocations of what had left its core");
    assert!(delivered > 200 * 50 && revoked > 200);
}
