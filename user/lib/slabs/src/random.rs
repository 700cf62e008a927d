//! R1's random workload: each step either frees a random live object or requests one of random type.

use alloc::vec::Vec;

use crate::bundle::{Descriptor, Lifetime};
use crate::replay::{Source, Step};

/// Parameters of a random workload. The default is R1's, with a chance of 16 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomSettings {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of steps before all live objects are freed.
    pub requests: usize,
    /// Chance in per cent that a step frees an object.
    pub chance: u32,
    /// Maximum number of live bundles; when it is reached, the next step frees one.
    pub limit: usize,
}

impl Default for RandomSettings {
    fn default() -> RandomSettings {
        RandomSettings { seed: 42, requests: 1000, chance: 16, limit: 1000 }
    }
}

/// A random workload in progress. Its requests depend on which were granted, since only those can be freed.
#[derive(Clone, Debug)]
pub struct Random {
    settings: RandomSettings,
    numbers: Numbers,
    /// Number of requests made so far.
    made: usize,
    /// Request numbers of the live bundles.
    live: Vec<u32>,
    /// Set if the last request was an `alloc` with an unknown result.
    asked: bool,
}

impl Random {
    /// Returns the workload at its beginning.
    pub fn new(settings: RandomSettings) -> Random {
        Random { settings, numbers: Numbers::new(settings.seed), made: 0, live: Vec::new(), asked: false }
    }

    /// Returns one of R1's nine types of objects, of a random size if there are several. Sizes are those of RV32.
    fn object(&mut self) -> Descriptor {
        match self.numbers.below(9) {
            0 => Descriptor::new(1 << (4 + self.numbers.below(11)), 1), // untyped memory
            1 => Descriptor::new(1 << (4 + self.numbers.below(7)), 1),  // capability nodes
            2 => Descriptor::new(1 << (8 + self.numbers.below(3)), 1),  // scheduling contexts
            3 => Descriptor::new(4096, 1 + self.numbers.below(10)),     // pages
            4 => Descriptor::new(512, 1),                               // threads
            5 => Descriptor::new(16, 1),                                // endpoints
            6 => Descriptor::new(32, 1),                                // notifications
            7 => Descriptor::new(4096, 1),                              // page tables
            _ => Descriptor::new(16, 1),                                // reply objects
        }
    }
}

impl Source for Random {
    fn next(&mut self, step: &mut Step) -> bool {
        debug_assert!(!self.asked, "the outcome of the last request is not known");
        self.made += 1;
        if self.made > self.settings.requests {
            if self.live.is_empty() {
                return false;
            }
            step.free(&[self.live.remove(0)]);
            return true;
        }
        let roll = 1 + self.numbers.below(100);
        let frees = self.live.len() >= self.settings.limit || roll < self.settings.chance;
        if frees && !self.live.is_empty() {
            let which = self.numbers.below(self.live.len() as u32);
            step.free(&[self.live.swap_remove(which as usize)]);
        } else {
            step.alloc(&[self.object()], Lifetime::Dynamic);
            self.asked = true;
        }
        true
    }

    fn note_outcome(&mut self, granted: bool) {
        if granted {
            self.live.push(self.made as u32 - 1);
        }
        self.asked = false;
    }

    fn active(&self) -> usize {
        self.settings.requests
    }
}

/// Random numbers: xoshiro128++, whose state is filled from the seed by a 64-bit linear congruential generator with a
/// permuted output (PCG-XSH-RR), like the generator of R1's system. The order of that system's draws is unknown, so its
/// sequences cannot be reproduced from a seed; they are in `lab/traces`, from its logs.
#[derive(Clone, Debug)]
struct Numbers([u32; 4]);

impl Numbers {
    fn new(mut seed: u64) -> Numbers {
        let state = core::array::from_fn(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11_634_580_027_462_260_723);
            let mixed = (((seed >> 18) ^ seed) >> 27) as u32;
            mixed.rotate_right((seed >> 59) as u32)
        });
        Numbers(state)
    }

    fn next(&mut self) -> u32 {
        let [a, b, c, d] = self.0;
        let result = a.wrapping_add(d).rotate_left(7).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ (b << 9), d.rotate_left(11)];
        result
    }

    /// Returns a number below `limit`, uniformly distributed: the high half of a product, rejected if its low half lies
    /// in the part that would bias the result.
    fn below(&mut self, limit: u32) -> u32 {
        let zone = (limit << limit.leading_zeros()).wrapping_sub(1);
        loop {
            let product = u64::from(self.next()) * u64::from(limit);
            if product as u32 <= zone {
                return (product >> 32) as u32;
            }
        }
    }
}
