//! A malicious monitor on one core. The others stay correct about all objects that it never had.

mod world;

use proptest::prelude::*;
use tench_abi::Rights;
use tench_remote::{Cores, Error, Input, Kind, Message, ObjectId, RequestId, Shape};
use world::judge::judge;
use world::kernel::Name;
use world::random::{CORES, OPS, Random};
use world::script::{Op, Script};
use world::{Event, Waits, World, core};

/// The core with the malicious monitor.
const HOSTILE: u8 = CORES - 1;
/// Memory and a frame, among the initial objects, that are sent to it; the others never are.
const EXPOSED: [Name; 2] = [3, 4];

fn root(script: &Script, name: Name) -> Name {
    script.objects[name as usize].of.map_or(name, |of| root(script, of))
}

fn is_exposed(script: &Script, name: Name) -> bool {
    EXPOSED.contains(&root(script, name))
}

/// Returns a random name: of an exported object, or a similar one, or of an object of the malicious core.
fn some_object(random: &mut Random, world: &World) -> ObjectId {
    let all = world.machines.iter().flat_map(|machine| machine.exports().map(|(object, _)| object));
    let all: Vec<ObjectId> = all.collect();
    let own = ObjectId { owner: core(HOSTILE), number: random.below(3) as u32, generation: random.below(2) as u32 };
    let mut object = if all.is_empty() || random.below(3) == 0 { own } else { all[random.below(all.len())] };
    match random.below(12) {
        0 => object.generation = object.generation.wrapping_add(random.below(3) as u32).wrapping_sub(1),
        1 => object.number = random.below(1 << 24) as u32,
        2 => object.owner = core(random.below(64) as u8),
        _ => {}
    }
    object
}

fn some_message(random: &mut Random, world: &World) -> Message {
    let object = some_object(random, world);
    let small = |random: &mut Random| if random.below(20) == 0 { u64::MAX } else { random.below(4) as u64 };
    let (count, request) = (small(random), RequestId(small(random) << 32 | small(random)));
    let cores = if random.below(4) == 0 { 64 } else { CORES as usize };
    let some_core = core(random.below(cores) as u8);
    let result = if random.below(3) == 0 { Err(Error::Kernel) } else { Ok(()) };
    let rights = Rights::from_bits_truncate(random.below(16) as u8);
    let tainted = Cores(if random.below(2) == 0 { 0 } else { random.below(256) as u64 });
    match random.below(8) {
        0 => Message::Ask {
            object,
            to: some_core,
            rights: if count == 0 { rights | Rights::READ } else { Rights::READ },
            request,
        },
        1 => Message::Reply { object, to: some_core, request, result },
        2 => {
            let kind = [Kind::Untyped, Kind::Frame][random.below(2)];
            // Mostly memory unknown to the others: kernels refuse memory that is in use.
            let base = if random.below(4) == 0 { small(random) } else { 1 << 20 | (small(random) & 0xff) << 4 };
            let shape = Shape { kind, base, bytes: small(random).saturating_mul(4) };
            Message::Grant { object, shape, rights, count, requester: some_core, request }
        }
        3 => Message::Taken { object, count, requester: some_core, request, result },
        4 => Message::Release { object, count },
        5 => Message::Withdraw { object, count },
        6 => Message::Withdrawn { object, count, tainted },
        _ => Message::Gone { core: some_core, tainted },
    }
}

/// Restricts a script to sending the malicious core only exposed objects.
fn spare(script: &mut Script) {
    for index in 0..script.threads.len() {
        let exposed = script.threads[index].1.last().is_some_and(|op| match *op {
            Op::Send(name, HOSTILE) => !is_exposed(script, name),
            _ => false,
        });
        if exposed {
            script.threads[index].1.pop();
        }
    }
}

/// Returns the error if a thread that the malicious core does not concern still waits when nothing more can happen.
fn waits_for_nothing(script: &Script, world: &World) -> Option<String> {
    let mut threads = script.threads.iter().zip(&world.threads).filter(|((at, _), _)| *at != HOSTILE);
    threads.find_map(|((_, ops), thread)| {
        let op = ops.get(thread.done as usize)?;
        let (Op::Send(name, _) | Op::Revoke(name) | Op::GiveBack(name)) = *op else { return None };
        (thread.waits != Waits::No && !is_exposed(script, name)).then(|| format!("{op:?} never gets a reply"))
    })
}

fn walk(seed: u64) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let mut script = random.script();
    script.loses.clear();
    script.hostile = Some(HOSTILE);
    for (at, _) in &mut script.start {
        *at %= HOSTILE;
    }
    let mut world = World::new(&script);
    let (mut events, mut left) = (Vec::new(), OPS);
    loop {
        if left > 0 {
            left -= 1;
            random.extend(&mut script, &world);
            spare(&mut script);
            if random.below(2) == 0 {
                let (at, message) = (random.below(HOSTILE as usize) as u8, some_message(&mut random, &world));
                world.step(&script, at, Input::Message { from: core(HOSTILE), message }, None);
            }
        }
        events.clear();
        world.events(&script, &mut events);
        // No other monitor uses memory that the malicious core claims to have lent.
        events.retain(|event| !matches!(event, Event::Run(index) if script.threads[*index as usize].0 == HOSTILE));
        if !events.is_empty() {
            random.choose(&events, None).into_iter().for_each(|event| world.happen(&script, event));
        } else if left == 0 {
            break;
        }
        if let Some(wrong) = judge(&script, &world) {
            return Err(format!("seed {seed:#x}: {wrong}"));
        }
    }
    waits_for_nothing(&script, &world).map_or(Ok(()), |wrong| Err(format!("seed {seed:#x}: {wrong}")))?;
    Ok(world.machines.iter().map(|machine| machine.faults()).sum())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_hostile_monitor_disturbs_only_what_it_had(seed: u64) {
        walk(seed).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn faults_are_counted() {
    let faults: u64 = (0..100).map(|seed| walk(seed).unwrap()).sum();
    println!("{faults} faults in 100 walks");
    assert!(faults > 1000);
}
