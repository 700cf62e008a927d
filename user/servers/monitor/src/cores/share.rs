//! Division of memory among cores at the start, as the system description asks.

use tench_system::{MAX_SHARES, Share, Shares};

use crate::transfer::grant::{OWN, SMALLEST};

/// Memory below which a core is not started, in bytes: its servers would not run.
pub const LEAST: u64 = 8 << 20;
/// Maximum number of cores.
pub const MAX_CORES: usize = MAX_SHARES;

/// Returns the bytes for each further core, of the memory that is free on the first. The first core keeps the rest and
/// has no entry: at least its part by weight, and [`OWN`]. The block of `block` bytes with which a core begins is part
/// of its share, but not of the returned number.
///
/// Sizes come first, in the order of the cores. A core with a size that cannot be had in full gets nothing, since less
/// would contradict the description. The rest is divided by weight. A core that gets less than [`LEAST`] is not
/// started.
pub fn divide(free: u64, cores: u64, block: u64, shares: Shares<'_>) -> [u64; MAX_CORES] {
    let mut all = [0; MAX_CORES];
    let further = || (1..cores).zip(1..MAX_CORES);
    let (mut left, mut weights) = (free, 0);
    for (core, index) in further() {
        match shares.of(core) {
            Share::Size(bytes) if left.checked_sub(bytes).is_some_and(|rest| rest >= OWN) => {
                (all[index], left) = (bytes.saturating_sub(block), left - bytes);
            }
            Share::Size(_) => {}
            Share::Weight(weight) => weights += weight,
        }
    }
    let own = if let Share::Weight(weight) = shares.of(0) { weight } else { 0 };
    let part = |of: u64, weight: u64, sum: u64| (u128::from(of) * u128::from(weight) / u128::from(sum.max(1))) as u64;
    for (core, index) in further() {
        if let Share::Weight(weight) = shares.of(core) {
            let share = part(left, weight, weights + own).min(part(left.saturating_sub(OWN), weight, weights));
            all[index] = share.saturating_sub(block) >> SMALLEST << SMALLEST;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use proptest::prelude::*;
    use tench_system::{MAX_WEIGHT, Strings};

    use super::*;

    const BLOCK: u64 = 2 << 20;

    /// Returns the cores' parts of `free` mebibytes, in mebibytes including the block.
    fn divided(free: u64, cores: u64, texts: &str) -> Vec<u64> {
        let all = divide(free << 20, cores, BLOCK, Shares::new(Strings::new(texts.as_bytes())));
        all[1..cores as usize].iter().map(|bytes| if *bytes == 0 { 0 } else { (bytes + BLOCK) >> 20 }).collect()
    }

    #[test]
    fn all_shares_are_equal_and_the_first_is_large_enough() {
        assert_eq!(divided(1 << 10, 4, ""), [256; 3]);
        assert_eq!(divided(100, 2, ""), [50]);
        assert_eq!(divided(40, 2, ""), [8], "the first keeps what it needs");
        assert_eq!(divided(16, 4, ""), [0; 3]);
        assert_eq!(divided(1010, 64, ""), [15; 63]);
        assert_eq!(divided(1 << 40, 1, ""), [0; 0], "nobody asks");
    }

    #[test]
    fn a_description_divides_as_it_says() {
        assert_eq!(divided(1000, 4, "1\x001\x002\x001\0"), [200, 400, 200]);
        assert_eq!(divided(1000, 4, "7\0"), [100; 3], "who is not named has a weight of 1");
        assert_eq!(divided(1000, 5, "1\x00100M\x003\0"), [100, 450, 150, 150], "sizes come first");
        assert_eq!(divided(300, 4, "1\x00200M\x00100M\x0032M\0"), [200, 0, 32], "all of a size, or nothing");
        assert_eq!(divided(300, 3, "1000\x001\x001\0"), [0, 0], "as good as nothing");
        assert_eq!(divided(300, 3, "1\x001000\x001000\0"), [134, 134], "the first keeps what it needs");
    }

    proptest! {
        /// For any description: no more is given than there is, the first core keeps its part, sizes are exact, and the
        /// other parts are proportional to their weights.
        #[test]
        fn the_shares_cover_existing_memory(
            free in prop_oneof![0..2u64 << 30, 0..1u64 << 41],
            cores in 1..=64u64,
            shares in prop::collection::vec(prop_oneof![
                (1..=MAX_WEIGHT).prop_map(Share::Weight),
                (16..400u64).prop_map(|mebibytes| Share::Size(mebibytes << 20)),
            ], 0..64),
            own in 1..=MAX_WEIGHT,
        ) {
            let shares: Vec<Share> = [Share::Weight(own)].into_iter().chain(shares).collect();
            let texts: String = shares.iter().map(|share| match share {
                Share::Weight(weight) => format!("{weight}\0"),
                Share::Size(bytes) => format!("{}M\0", bytes >> 20),
            }).collect();
            let all = divide(free, cores, BLOCK, Shares::new(Strings::new(texts.as_bytes())));
            let of = |core: usize| shares.get(core).copied().unwrap_or(Share::USUAL);
            let given: u64 = all.iter().filter(|bytes| **bytes > 0).map(|bytes| bytes + BLOCK).sum();
            prop_assert!(given == 0 || given + OWN <= free, "{given} of {free}");
            prop_assert_eq!(all[0], 0);
            prop_assert!(all[cores as usize..].iter().all(|bytes| *bytes == 0));
            let mut left = free;
            for (core, given) in all.iter().enumerate().take(cores as usize).skip(1) {
                if let Share::Size(bytes) = of(core) {
                    let fits = left >= bytes + OWN;
                    prop_assert_eq!(*given, if fits { bytes - BLOCK } else { 0 });
                    left -= if fits { bytes } else { 0 };
                }
            }
            let weighted: Vec<(u64, u64)> = (1..cores as usize)
                .filter_map(|core| if let Share::Weight(weight) = of(core) { Some((weight, all[core])) } else { None })
                .collect();
            let kept = free - given;
            let unit = 1 << SMALLEST;
            for &(weight, bytes) in &weighted {
                prop_assert!(bytes.is_multiple_of(unit));
                // No core gets more than the first has for the same weight.
                prop_assert!(bytes == 0 || (bytes + BLOCK) / weight <= kept / own, "{bytes} for {weight}, {kept} for {own}");
                for &(other, others) in weighted.iter().filter(|_| bytes > 0) {
                    let wanted = u128::from(bytes + BLOCK) * u128::from(other) / u128::from(weight);
                    let wanted = (wanted as u64).saturating_sub(BLOCK);
                    prop_assert!(others + unit > wanted, "{others} for {other} and {bytes} for {weight}");
                }
            }
        }
    }
}
