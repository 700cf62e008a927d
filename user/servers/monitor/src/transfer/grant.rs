//! How much memory a core gives another on request.

use tench_monitor_interface::protocol::Error;

/// Log2 of the smallest block that a core is given.
pub const SMALLEST: u32 = 20;
/// Minimum that remains on the core that gives, in bytes: its servers and the shell need some.
pub const OWN: u64 = 32 << 20;

/// Returns log2 of the block that a core gives to another that wants `wanted` bytes, if they have `free` and
/// `free_there`: afterwards it has no less than the other, and at least [`OWN`].
///
/// # Errors
/// Fails with `NothingToSpare` or `NoRicher` if it gives nothing.
pub fn grant_bits(wanted: u64, free: u64, free_there: u64) -> Result<u32, Error> {
    let bits = wanted.max(1 << SMALLEST).checked_next_power_of_two().map_or(u64::BITS - 1, u64::ilog2);
    let spare = next_block_bits(free.saturating_sub(OWN), bits).ok_or(Error::NothingToSpare)?;
    next_block_bits(free.saturating_sub(free_there) / 2, spare).ok_or(Error::NoRicher)
}

/// Returns log2 of the next block to take if `left` bytes are still wanted: the largest that is no larger. `None` if
/// nothing is left.
pub fn next_block_bits(left: u64, limit: u32) -> Option<u32> {
    let bits = left.checked_ilog2()?.min(limit);
    (bits >= SMALLEST).then_some(bits)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_core_gives_to_one_that_has_less() {
        assert_eq!(grant_bits(1, 200 << 20, 0), Ok(20));
        assert_eq!(grant_bits(3 << 20, 200 << 20, 10 << 20), Ok(22));
        assert_eq!(grant_bits(1 << 40, 200 << 20, 10 << 20), Ok(26), "no more than makes them equal");
        assert_eq!(grant_bits(u64::MAX, 200 << 20, 10 << 20), Ok(26), "whatever is wanted");
        assert_eq!(grant_bits(1 << 40, 40 << 20, 0), Ok(23), "it needs some itself");
    }

    #[test]
    fn a_core_that_gives_nothing_says_why() {
        assert_eq!(grant_bits(1 << 20, 100 << 20, 99 << 20), Err(Error::NoRicher));
        assert_eq!(grant_bits(1 << 20, 100 << 20, 200 << 20), Err(Error::NoRicher));
        assert_eq!(grant_bits(1 << 20, 32 << 20, 0), Err(Error::NothingToSpare));
        assert_eq!(grant_bits(1 << 20, (33 << 20) - 1, 0), Err(Error::NothingToSpare));
        assert_eq!(grant_bits(1 << 20, 0, u64::MAX), Err(Error::NothingToSpare));
        assert_eq!(grant_bits(1 << 20, 33 << 20, 31 << 20), Ok(20));
    }

    proptest! {
        #[test]
        fn a_core_that_gives_keeps_no_less_than_the_requester_has(wanted in any::<u64>(), free in 0..1u64 << 41, there in 0..1u64 << 41) {
            match grant_bits(wanted, free, there) {
                Ok(bits) => {
                    let left = free - (1 << bits);
                    prop_assert!(left >= OWN && left >= there + (1 << bits) && bits >= SMALLEST);
                }
                Err(Error::NothingToSpare) => prop_assert!(free < OWN + (1 << SMALLEST)),
                Err(why) => {
                    prop_assert_eq!(why, Error::NoRicher);
                    prop_assert!(free < there + (2 << SMALLEST));
                }
            }
        }
    }

    #[test]
    fn a_share_is_made_of_the_largest_blocks() {
        let mut left = (200 << 20) + 5000;
        let mut blocks = [0; 8];
        for block in &mut blocks {
            let Some(bits) = next_block_bits(left, 30) else { break };
            *block = bits;
            left -= 1 << bits;
        }
        assert_eq!(blocks, [27, 26, 23, 0, 0, 0, 0, 0]);
        assert_eq!(next_block_bits(1 << 40, 30), Some(30));
        assert_eq!(next_block_bits(0, 30), None);
    }
}
