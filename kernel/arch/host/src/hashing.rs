//! Sets and maps for checks, which are made millions of times: their keys are addresses and numbers that nobody chooses to collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map that hashes fast.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set that hashes fast.
pub type Set<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// Multiplies what it is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quick(u64);

impl Quick {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    fn write_u16(&mut self, number: u16) {
        self.mix(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        // Addresses differ in few bits, and the lowest of a product hang on the lowest alone.
        self.0 ^ self.0 >> 32
    }
}
