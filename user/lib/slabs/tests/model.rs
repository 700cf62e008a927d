//! Random bundles and frees under every policy, with the watermark rule and without. After every step the metadata
//! equals the model kernel's account; in a second test, on small slabs, a map of every sixteen bytes determines what is
//! free, whether a refusal was right, and whether the position was the one that the policy defines.

use proptest::prelude::*;
use tench_random::Random;
use tench_slabs::{Allocation, Backend, Descriptor, Error, Lifetime, Model, Placement, Policy, Refused, Slabs};

/// Slabs, a kernel, and live objects, as a memory server and its clients would have them.
struct World {
    slabs: Slabs,
    kernel: Model,
    live: Vec<(u64, u64)>,
}

impl World {
    fn new(mut slabs: Slabs, policy: Policy, lifted: bool) -> World {
        slabs.set_policy(policy);
        slabs.lift(lifted).unwrap();
        World { kernel: Model::new(&slabs), slabs, live: Vec::new() }
    }

    fn grant(&mut self, bundle: &[Descriptor], lifetime: Lifetime) -> Result<Vec<Allocation>, Error> {
        let allocations = self.slabs.grant(bundle, lifetime, &mut self.kernel)?;
        assert_eq!(allocations.len(), bundle.len());
        for (allocation, descriptor) in allocations.iter().zip(bundle) {
            assert_eq!((allocation.size, allocation.count), (descriptor.size, descriptor.count));
            assert_eq!(self.slabs.slabs()[allocation.slab].lifetime(), lifetime);
            self.live.extend(allocation.objects(&self.slabs));
        }
        Ok(allocations)
    }

    fn free(&mut self, which: usize) {
        let (address, size) = self.live.swap_remove(which);
        assert!(self.kernel.delete(address, size), "an object that was granted is not there");
        self.slabs.freed(address, size).unwrap();
        assert!(!self.kernel.delete(address, size), "an object is deleted twice");
    }

    fn check(&self) {
        self.slabs.check_invariants().unwrap();
        for number in 0..self.slabs.slabs().len() {
            assert_eq!(self.slabs.account(number).unwrap(), self.kernel.account(number), "slab {number}");
        }
        assert_eq!(self.slabs.figures().objects, self.live.len() as u64);
        assert_eq!(self.slabs.figures().live, self.live.iter().map(|(_, size)| size).sum::<u64>());
    }
}

/// Returns a bundle of one to four descriptors, now and then of static objects.
fn bundle(numbers: &mut Random) -> (Vec<Descriptor>, Lifetime) {
    let parts = if numbers.below(4) == 0 { 1 + numbers.below(4) } else { 1 };
    let descriptor = |numbers: &mut Random| Descriptor::new(16 << numbers.below(12), 1 + numbers.below(6) as u32);
    let lifetime = if numbers.below(64) == 0 { Lifetime::Static } else { Lifetime::Dynamic };
    ((0..parts).map(|_| descriptor(numbers)).collect(), lifetime)
}

#[test]
fn a_million_operations_keep_the_ledger_right() {
    const EACH: usize = 62_500;
    for (number, policy) in Policy::ALL.into_iter().enumerate() {
        for lifted in [false, true] {
            let mut numbers = Random::new(number as u64 * 2 + u64::from(lifted));
            let mut world = World::new(Slabs::standard(), policy, lifted);
            let mut refused = 0;
            for step in 0..EACH {
                // Phases of growing and of shrinking, so that slabs become full and empty.
                let grows = if step / 2000 % 2 == 0 { 7 } else { 3 };
                if world.live.is_empty() || numbers.below(10) < grows {
                    let (bundle, lifetime) = bundle(&mut numbers);
                    let before: Vec<_> = (0..23).map(|number| world.kernel.account(number)).collect();
                    match world.grant(&bundle, lifetime) {
                        Ok(_) => {}
                        Err(Error::OutOfMemory) => {
                            refused += 1;
                            let plans = policy != Policy::NextFitGuessing || lifted;
                            let after: Vec<_> = (0..23).map(|number| world.kernel.account(number)).collect();
                            assert!(!plans || before == after, "{policy}: a refused bundle left something behind");
                        }
                        Err(error) => panic!("{policy}: {error:?}"),
                    }
                } else {
                    let count = 1 + numbers.below(4);
                    for _ in 0..count.min(world.live.len() as u64) {
                        let which = numbers.below(world.live.len() as u64) as usize;
                        world.free(which);
                    }
                }
                world.check();
            }
            let guesses = policy == Policy::NextFitGuessing && !lifted;
            assert!(refused > 0, "{policy}: never short of memory, so that was not tested");
            assert_eq!(world.slabs.figures().failed_retypes > 0, guesses, "{policy} lifted {lifted}");
            assert_eq!(world.slabs.figures().failed_retypes, world.kernel.retypes().1);
            assert_eq!(world.slabs.figures().out_of_memory, refused);
            assert!(world.slabs.figures().resets > 0);
            while !world.live.is_empty() {
                world.free(world.live.len() - 1);
            }
            world.check();
            let end = world.slabs.figures();
            assert_eq!((end.live, end.objects, end.watermark_loss, end.alignment_loss), (0, 0, 0, 0));
        }
    }
}

/// Returns every position at which objects fit, found by examining each sixteen bytes: slab, offset, start and end of
/// the free range around it.
fn candidates(world: &World, descriptor: Descriptor) -> Vec<(usize, u64, u64, u64)> {
    let mut found = Vec::new();
    for (number, slab) in world.slabs.slabs().iter().enumerate() {
        let size = slab.size();
        let used = |at: u64| {
            let below = !world.slabs.lifted() && at < world.kernel.account(number).watermark;
            let address = slab.base() + at;
            below || world.live.iter().any(|(start, length)| *start <= address && address < start + length)
        };
        let map: Vec<bool> = (0..size / 16).map(|unit| used(unit * 16)).collect();
        for offset in (0..size).step_by(descriptor.size as usize) {
            let end = offset + descriptor.bytes();
            if end > size || map[(offset / 16) as usize..(end / 16) as usize].iter().any(|used| *used) {
                continue;
            }
            let first = (0..offset / 16).rev().take_while(|unit| !map[*unit as usize]).count() as u64;
            let after = (end / 16..size / 16).take_while(|unit| !map[*unit as usize]).count() as u64;
            found.push((number, offset, offset - first * 16, end + after * 16));
        }
    }
    found
}

/// Returns whether a policy follows its rule: no position costs less than the chosen one.
fn follows_policy(policy: Policy, all: &[(usize, u64, u64, u64)], taken: Allocation) -> bool {
    let bytes = taken.bytes();
    let cost = |&(slab, offset, start, end): &(usize, u64, u64, u64)| match policy {
        Policy::BestFit => end - offset - bytes,
        Policy::BestFitAlignment => end - start - bytes,
        Policy::WorstFit => u64::MAX - (end - offset - bytes),
        Policy::FirstFit => (slab as u64) << 32 | offset,
        _ => 0,
    };
    // Objects go to the lowest aligned position of a free range.
    let lowest = |position: &&(usize, u64, u64, u64)| position.1 - position.2 < taken.size;
    let own = all.iter().find(|position| (position.0, position.1) == (taken.slab, taken.offset));
    own.is_some_and(|own| all.iter().filter(lowest).all(|other| cost(own) <= cost(other)))
}

#[derive(Clone, Debug)]
enum Op {
    Grant(Vec<(u32, u32)>),
    Free(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => prop::collection::vec((0u32..6, 1u32..4), 1..3).prop_map(Op::Grant),
        2 => any::<usize>().prop_map(Op::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn policies_choose_the_cheapest_position(ops in prop::collection::vec(op(), 1..60), code in 0u64..8, lifted: bool) {
        let policy = Policy::from_code(code).unwrap();
        let slabs = Slabs::with_sizes(&[1024, 512, 512, 256, 64], &[]).unwrap();
        let mut world = World::new(slabs, policy, lifted);
        for op in ops {
            match op {
                Op::Grant(parts) => {
                    let bundle: Vec<_> = parts.iter().map(|&(bits, count)| Descriptor::new(16 << bits, count)).collect();
                    let all = candidates(&world, bundle[0]);
                    match world.grant(&bundle, Lifetime::Dynamic) {
                        Ok(allocations) => prop_assert!(follows_policy(policy, &all, allocations[0]), "{policy}: {allocations:?}"),
                        Err(error) => {
                            prop_assert_eq!(error, Error::OutOfMemory);
                            prop_assert!(bundle.len() > 1 || all.is_empty(), "{policy}: there is room at {all:?}");
                        }
                    }
                }
                Op::Free(_) if world.live.is_empty() => {}
                Op::Free(which) => world.free(which % world.live.len()),
            }
            world.check();
        }
    }
}

/// A kernel that refuses a retype after a number of them, as one without slots would.
struct Failing {
    kernel: Model,
    left: u32,
}

impl Backend for Failing {
    fn retype(
        &mut self,
        slab: usize,
        part: usize,
        placement: Placement,
        size: u64,
        count: u32,
    ) -> Result<u64, Refused> {
        self.left = self.left.checked_sub(1).ok_or(Refused::Otherwise)?;
        self.kernel.retype(slab, part, placement, size, count)
    }

    fn undo(&mut self, part: usize, allocation: Allocation) {
        self.kernel.undo(part, allocation);
    }
}

#[test]
fn a_bundle_that_the_kernel_refuses_in_the_middle_is_undone() {
    let bundle = [Descriptor::new(4096, 3), Descriptor::new(16, 2), Descriptor::new(64, 1), Descriptor::new(4096, 1)];
    for policy in Policy::ALL {
        for (lifted, left) in [(false, 0), (false, 1), (false, 3), (true, 0), (true, 2), (true, 3)] {
            let mut slabs = Slabs::standard();
            slabs.set_policy(policy);
            slabs.lift(lifted).unwrap();
            let mut backend = Failing { kernel: Model::new(&slabs), left: u32::MAX };
            let held = slabs.grant(&bundle, Lifetime::Dynamic, &mut backend).unwrap();
            backend.left = left;
            let held_figures = slabs.figures();
            assert_eq!(slabs.grant(&bundle, Lifetime::Dynamic, &mut backend), Err(Error::Refused), "{policy}");
            slabs.check_invariants().unwrap();
            for number in 0..slabs.slabs().len() {
                assert_eq!(slabs.account(number).unwrap(), backend.kernel.account(number), "{policy}, slab {number}");
            }
            assert_eq!((slabs.figures().live, slabs.figures().objects), (held_figures.live, held_figures.objects));
            assert_eq!(slabs.figures().requested, held_figures.requested);
            backend.left = u32::MAX;
            assert!(slabs.grant(&bundle, Lifetime::Dynamic, &mut backend).is_ok());
            assert_eq!(held.len(), bundle.len());
        }
    }
}

#[test]
fn impossible_requests_are_refused_and_change_nothing() {
    let mut slabs = Slabs::standard();
    let mut kernel = Model::new(&slabs);
    let bad: [&[Descriptor]; 5] = [
        &[],
        &[Descriptor::new(24, 1)],
        &[Descriptor::new(8, 1)],
        &[Descriptor::new(16, 0)],
        &[Descriptor::new(16, 1), Descriptor::new(16, tench_slabs::MAX_COUNT + 1)],
    ];
    for bundle in bad {
        assert_eq!(slabs.grant(bundle, Lifetime::Dynamic, &mut kernel), Err(Error::BadBundle));
    }
    let large = [Descriptor::new(512, 1), Descriptor::new(1 << 20, 1)];
    assert_eq!(slabs.grant(&large, Lifetime::Dynamic, &mut kernel), Err(Error::OutOfMemory));
    assert_eq!(slabs.freed(0, 16), Err(Error::NoSuchObject));
    let allocation = slabs.grant(&[Descriptor::new(64, 1)], Lifetime::Dynamic, &mut kernel).unwrap()[0];
    let (address, size) = allocation.objects(&slabs).next().unwrap();
    for (address, size) in [(address, 128), (address + 16, 64), (address + 64, 64), (1 << 50, 64), (address, 0)] {
        assert_eq!(slabs.freed(address, size), Err(Error::NoSuchObject), "{address:#x} {size}");
    }
    assert_eq!(slabs.lift(true), Err(Error::InUse));
    slabs.freed(address, size).unwrap();
    assert_eq!(slabs.freed(address, size), Err(Error::NoSuchObject));
    slabs.check_invariants().unwrap();
    assert_eq!(Slabs::new(&[(0, 48, Lifetime::Dynamic)]).unwrap_err(), Error::BadSlab);
    assert_eq!(Slabs::new(&[(16, 32, Lifetime::Dynamic)]).unwrap_err(), Error::BadSlab);
    let twice = [(0, 64, Lifetime::Dynamic), (32, 32, Lifetime::Static)];
    assert_eq!(Slabs::new(&twice).unwrap_err(), Error::BadSlab);
}

#[test]
fn policies_have_names_and_codes() {
    for (code, policy) in Policy::ALL.into_iter().enumerate() {
        assert_eq!(policy.code(), code as u64);
        assert_eq!(Policy::from_code(code as u64), Some(policy));
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    assert_eq!(Policy::from_code(8), None);
    assert_eq!("best".parse::<Policy>(), Err(()));
}
