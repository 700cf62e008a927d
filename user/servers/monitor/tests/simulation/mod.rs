//! Parts of all simulated worlds: random choices, cores that exchange messages and may stop, and runs that a seed
//! repeats.
//!
//! Which core acts, and which message is delivered, is chosen step by step from the seed. So `TENCH_SEED=N` repeats a
//! failure; `TENCH_RUNS=N` sets the number of runs.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Random choices that follow from a seed.
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Returns a random number below `below`.
    pub fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }

    /// Returns any 64-bit word.
    pub fn word(&mut self) -> u64 {
        let [high, middle, low] = [40, 20, 0].map(|shift| (self.below(1 << 31) as u64) << shift);
        high ^ middle ^ low
    }

    /// Returns one of these.
    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        let index = self.below(of.len());
        of.get(index).copied()
    }
}

/// The cores, and the messages on their way between any two of them.
pub struct Network<M> {
    channels: BTreeMap<(usize, usize), VecDeque<M>>,
    /// For each core, whether it has stopped.
    stopped: Vec<bool>,
    /// Cores that do not know yet that another core has stopped, as (core, stopped core).
    pub unaware: Vec<(usize, usize)>,
}

impl<M> Network<M> {
    pub fn new(cores: usize) -> Network<M> {
        Network { channels: BTreeMap::new(), stopped: vec![false; cores], unaware: Vec::new() }
    }

    /// Sends a message. A core that has stopped receives nothing: the message is returned.
    pub fn send(&mut self, from: usize, to: usize, message: M) -> Option<M> {
        if self.stopped[to] {
            return Some(message);
        }
        self.channels.entry((from, to)).or_default().push_back(message);
        None
    }

    /// Returns the pairs of sender and receiver that have messages on their way.
    pub fn ready(&self) -> Vec<(usize, usize)> {
        self.channels.iter().filter(|(_, messages)| !messages.is_empty()).map(|(pair, _)| *pair).collect()
    }

    /// Removes and returns the next message between two cores.
    pub fn next(&mut self, from: usize, to: usize) -> Option<M> {
        self.channels.get_mut(&(from, to))?.pop_front()
    }

    pub fn has_stopped(&self, core: usize) -> bool {
        self.stopped[core]
    }

    /// Returns the cores that have not stopped.
    pub fn alive(&self) -> Vec<usize> {
        (0..self.stopped.len()).filter(|core| !self.stopped[*core]).collect()
    }

    /// Stops a core for good. Returns the messages that it does not receive; what it has sent arrives.
    pub fn stop(&mut self, lost: usize) -> Vec<M> {
        self.stopped[lost] = true;
        let to_it = self.channels.iter_mut().filter(|((_, to), _)| *to == lost);
        to_it.flat_map(|(_, messages)| messages.drain(..)).collect()
    }

    /// Sees to it that all other cores are told that one has stopped, each at some time.
    pub fn announce(&mut self, lost: usize) {
        self.unaware.extend(self.alive().into_iter().map(|core| (core, lost)));
    }
}

/// Runs a world with each seed from 0 on, and with these further ones, or with the one that is requested; reports the
/// seed of a failure. Returns the worlds.
pub fn play<W>(runs: u64, further: &[u64], run: impl Fn(u64) -> W) -> Vec<W> {
    let seeds: Vec<u64> = match variable("TENCH_SEED") {
        Some(seed) => vec![seed],
        None => (0..variable("TENCH_RUNS").unwrap_or(runs)).chain(further.iter().copied()).collect(),
    };
    let play_one = |seed| {
        catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|why| {
            eprintln!("play it again with TENCH_SEED={seed}");
            resume_unwind(why)
        })
    };
    seeds.into_iter().map(play_one).collect()
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}
