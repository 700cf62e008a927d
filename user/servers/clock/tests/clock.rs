//! Tests of the clock server's arithmetic.

use proptest::prelude::*;
use tench_clock::time::{nanoseconds, next_tick, wall_clock_at_start};

#[test]
fn nanoseconds_do_not_overflow() {
    assert_eq!(nanoseconds(62_500_000, 62_500_000), 1_000_000_000);
    assert_eq!(nanoseconds(1, 62_500_000), 16);
    assert_eq!(nanoseconds(62_500_000 * 3_600 * 24 * 365 * 100, 62_500_000), 3_153_600_000_000_000_000);
}

#[test]
fn a_clock_that_was_never_set_knows_no_date() {
    // The beginning of 2020 is the first date that is believed.
    const FIRST: u32 = 1_577_836_800;
    assert_eq!(wall_clock_at_start(0, 99, 100), None);
    assert_eq!(wall_clock_at_start(7, 800, 100), None);
    assert_eq!(wall_clock_at_start(7, 0, 100), None);
    assert_eq!(wall_clock_at_start(FIRST, 100, 100), None);
    assert_eq!(wall_clock_at_start(FIRST, 99, 100), Some(1_577_836_800_000_000_000));
    assert_eq!(wall_clock_at_start(u32::MAX, 0, 62_500_000), Some(4_294_967_295_000_000_000));
}

proptest! {
    #[test]
    fn the_next_tick_is_after_now_and_at_most_a_tick_away(now in 0..1u64 << 56, frequency in 1_000..4_000_000_000u64) {
        let next = next_tick(now, frequency);
        prop_assert!(next > now);
        prop_assert!(next - now <= frequency / 100 + 1);
        prop_assert!(next_tick(next, frequency) - next <= frequency / 100 + 1);
    }

    /// The clock's second begins `phase` ticks after the counter's. Both are read again `later`.
    #[test]
    fn the_wall_clock_is_wrong_by_a_second_at_most(
        seconds in 1_600_000_000..2_000_000_000u64,
        frequency in 1_000..4_000_000_000u64,
        phase in 0.0..1.0f64,
        first in 0..1u64 << 50,
        later in 0..1u64 << 50,
    ) {
        let phase = (phase * frequency as f64) as u64;
        let at = |now: u64| {
            let shown = seconds + (now + frequency - phase) / frequency;
            wall_clock_at_start(shown as u32, now, frequency).unwrap()
        };
        prop_assume!((first + later) / frequency < 1 << 30);
        let really = i128::from(seconds + 1) * 1_000_000_000 - i128::from(nanoseconds(phase, frequency));
        for read in [at(first), at(first + later)] {
            prop_assert!((i128::from(read) - really).abs() <= 1_000_000_000, "{read} is not {really}");
        }
        prop_assert!(at(first).abs_diff(at(first + later)) <= 1_000_000_000);
        prop_assert!(phase != 0 || at(first) == at(first + later));
    }
}
