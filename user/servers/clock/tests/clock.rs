//! Tests of the clock server's arithmetic.

use proptest::prelude::*;
use tench_clock::time::{nanoseconds, next_tick};

#[test]
fn nanoseconds_do_not_overflow() {
    assert_eq!(nanoseconds(62_500_000, 62_500_000), 1_000_000_000);
    assert_eq!(nanoseconds(1, 62_500_000), 16);
    assert_eq!(nanoseconds(62_500_000 * 3_600 * 24 * 365 * 100, 62_500_000), 3_153_600_000_000_000_000);
}

proptest! {
    #[test]
    fn the_next_tick_is_after_now_and_at_most_a_tick_away(now in 0..1u64 << 56, frequency in 1_000..4_000_000_000u64) {
        let next = next_tick(now, frequency);
        prop_assert!(next > now);
        prop_assert!(next - now <= frequency / 100 + 1);
        prop_assert!(next_tick(next, frequency) - next <= frequency / 100 + 1);
    }
}
