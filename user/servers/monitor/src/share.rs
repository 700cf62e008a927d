//! How memory is divided among cores.

/// Log2 of the smallest piece that a core is given.
pub const SMALLEST: u32 = 20;
/// A core with less than this is not started: its servers would not run.
pub const LEAST: u64 = 8 << 20;
/// What is left to the core that gives, at least, in bytes: its servers and the shell need some.
pub const OWN: u64 = 32 << 20;

/// Bytes for each of `further` cores, if the memory that is free is divided evenly among them and the one that gives it. The block
/// that a core begins with, of `block` bytes, is part of its share, but not of the answer.
pub fn even(free: u64, further: u64, block: u64) -> u64 {
    let share = (free / (further + 1)).min(free.saturating_sub(OWN) / further.max(1));
    share.saturating_sub(block) >> SMALLEST << SMALLEST
}

/// Log2 of what a core gives to another that wants so many bytes, when they have so much free: afterwards it has no less than the other,
/// and at least [`OWN`]. `None` if that is nothing.
pub fn gift(wanted: u64, free: u64, free_there: u64) -> Option<u32> {
    let most = free.saturating_sub(OWN).min(free.saturating_sub(free_there) / 2);
    let bits = wanted.max(1 << SMALLEST).checked_next_power_of_two()?.ilog2();
    next_piece(most, bits)
}

/// Log2 of the next piece to ask for, if `left` bytes are still to be had: the largest that is not more. `None` if that is all.
pub fn next_piece(left: u64, limit: u32) -> Option<u32> {
    let bits = left.checked_ilog2()?.min(limit);
    (bits >= SMALLEST).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_the_same_and_the_first_has_enough() {
        let block = 2 << 20;
        assert_eq!(even(1 << 30, 3, block), 254 << 20);
        assert_eq!(even(100 << 20, 1, block), 48 << 20);
        assert_eq!(even(40 << 20, 1, block), 6 << 20, "the first keeps what it needs");
        assert_eq!(even(16 << 20, 3, block), 0);
        assert_eq!(even(1010 << 20, 63, block), 13 << 20);
        assert_eq!(even(1 << 40, 0, block), (1 << 40) - OWN - block, "nobody asks");
    }

    #[test]
    fn a_core_gives_to_one_that_has_less() {
        assert_eq!(gift(1, 200 << 20, 0), Some(20));
        assert_eq!(gift(3 << 20, 200 << 20, 10 << 20), Some(22));
        assert_eq!(gift(u64::MAX, 200 << 20, 10 << 20), None, "more than there can be");
        assert_eq!(gift(1 << 40, 200 << 20, 10 << 20), Some(26), "no more than makes them equal");
        assert_eq!(gift(1 << 40, 40 << 20, 0), Some(23), "it needs some itself");
        assert_eq!(gift(1 << 20, 100 << 20, 99 << 20), None);
        assert_eq!(gift(1 << 20, 32 << 20, 0), None);
        assert_eq!(gift(1 << 20, 100 << 20, 200 << 20), None);
    }

    #[test]
    fn a_share_is_made_of_the_largest_pieces() {
        let mut left = (200 << 20) + 5000;
        let mut pieces = [0; 8];
        for piece in &mut pieces {
            let Some(bits) = next_piece(left, 30) else { break };
            *piece = bits;
            left -= 1 << bits;
        }
        assert_eq!(pieces, [27, 26, 23, 0, 0, 0, 0, 0]);
        assert_eq!(next_piece(1 << 40, 30), Some(30));
        assert_eq!(next_piece(0, 30), None);
    }
}
