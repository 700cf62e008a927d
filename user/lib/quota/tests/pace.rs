//! The number of replies before a pause.

use tench_quota::pace::{Pace, REPLIES, URGENT};

/// Nanoseconds.
const PAUSE: u64 = 50_000;

#[test]
fn a_pause_follows_a_number_of_replies() {
    let frequency = 1_000_000_000;
    let mut pace = Pace::new(PAUSE, frequency);
    let replies = |pace: &mut Pace, now: u64| {
        let mut count = 0;
        while pace.admits(now) {
            pace.count(now);
            count += 1;
            assert!(count <= REPLIES);
        }
        count
    };
    assert_eq!(pace.earliest(1000), 1000);
    assert_eq!(replies(&mut pace, 1000), REPLIES);
    assert_eq!(
        [pace.earliest(0), pace.earliest(1000 + PAUSE), pace.earliest(u64::MAX)],
        [1000 + PAUSE, 1000 + PAUSE, u64::MAX]
    );
    assert_eq!(replies(&mut pace, 1000 + PAUSE - 1), 0);
    assert_eq!(replies(&mut pace, 1000 + PAUSE), REPLIES);
    // One at a time, with time between them, never pauses.
    for round in 2..30 {
        let now = 1000 + round * PAUSE;
        assert!(pace.admits(now) && pace.earliest(now) == now);
        pace.count(now);
        assert_eq!(pace.earliest(now + 1), now + 1);
    }
    // A clock that ticks slowly pauses at least as long.
    let mut slow = Pace::new(PAUSE, 1_000_000);
    assert_eq!((replies(&mut slow, 7), slow.earliest(7)), (REPLIES, 57));
}

#[test]
fn an_urgent_request_counts_as_several_replies() {
    let mut pace = Pace::new(PAUSE, 1_000_000_000);
    for _ in 0..REPLIES / URGENT {
        assert!(pace.admits(1000) && pace.earliest(7) == 7);
        pace.count_urgent(1000);
    }
    assert_eq!((pace.admits(1001), pace.earliest(7)), (false, 1000 + PAUSE));
    // After a pause there is as much as before.
    for _ in 0..REPLIES / URGENT {
        assert!(pace.admits(1000 + PAUSE));
        pace.count_urgent(1000 + PAUSE);
    }
    assert!(!pace.admits(1001 + PAUSE));
}
