//! Sources of random choices: a seed, or bytes that a fuzzer makes.

/// A source of choices.
pub trait Source {
    /// Returns 64 bits.
    fn word(&mut self) -> u64;

    /// Returns true if there is nothing left to choose from. Endless sources are never exhausted.
    fn exhausted(&self) -> bool {
        false
    }

    /// Returns a number below `bound`, which is not 0.
    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// Returns true once in `n` times.
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns one of several choices.
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Choices from a seed: SplitMix64, equal on every machine.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Returns the choices that belong to a seed.
    pub fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }
}

impl Source for Seeded {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Choices from bytes: small ones take one byte, so that a fuzzer's changes stay local.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// Takes the next `N` bytes, zeros beyond the end.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let count = N.min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        bytes[..count].copy_from_slice(taken);
        self.0 = rest;
        bytes
    }
}

impl Source for Bytes<'_> {
    fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn exhausted(&self) -> bool {
        self.0.is_empty()
    }

    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 256 { u64::from(self.take::<1>()[0]) % bound } else { self.word() % bound }
    }
}
