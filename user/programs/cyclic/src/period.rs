//! The times at which a periodic thread wants to run.

/// Returns the next time at which a thread wants to run that wanted to run at `time` and has run until `now`, and the
/// number of times that it has missed: those that were over before it began to wait for them. `interval` is not 0; the
/// unit is the caller's.
pub const fn next(time: u64, interval: u64, now: u64) -> (u64, u64) {
    let missed = now.saturating_sub(time) / interval;
    (time.saturating_add(interval.saturating_mul(missed.saturating_add(1))), missed)
}

/// Returns how many times have come, from `time` on, until `now`.
pub const fn due(time: u64, interval: u64, now: u64) -> u64 {
    if now < time { 0 } else { ((now - time) / interval).saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_is_missed_when_it_has_come() {
        assert_eq!(next(100, 10, 100), (110, 0));
        assert_eq!(next(100, 10, 109), (110, 0));
        assert_eq!(next(100, 10, 110), (120, 1));
        assert_eq!(next(100, 10, 135), (140, 3));
        assert_eq!(next(100, 10, 90), (110, 0), "it was there early");
        assert_eq!(next(u64::MAX - 5, 10, u64::MAX), (u64::MAX, 0), "the end of time is no time to be late");
    }

    #[test]
    fn a_time_is_due_at_its_moment() {
        assert_eq!([99, 100, 109, 110, 200].map(|now| due(100, 10, now)), [0, 1, 1, 2, 11]);
        assert_eq!(due(0, 1, u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn the_next_time_lies_ahead_and_in_step(time in 0..1_u64 << 60, interval in 1..1_u64 << 40, late in 0..1_u64 << 50) {
            let now = time + late;
            let (then, missed) = next(time, interval, now);
            prop_assert!(then > now && then - now <= interval);
            prop_assert_eq!(then - time, (missed + 1) * interval);
            // The thread ran once, and all other due times were missed.
            prop_assert_eq!(due(time, interval, now), missed + 1);
        }
    }
}
