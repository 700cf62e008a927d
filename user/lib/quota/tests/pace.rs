//! The number of replies before a pause.

use tench_quota::pace::{ANSWERS, Pace, URGENT};

/// Nanoseconds.
const PAUSE: u64 = 50_000;

#[test]
fn after_some_answers_there_is_a_pause() {
    let frequency = 1_000_000_000;
    let mut pace = Pace::new(PAUSE, frequency);
    let answered = |pace: &mut Pace, now: u64| {
        let mut count = 0;
        while pace.admits(now) {
            pace.count(now);
            count += 1;
            assert!(count <= ANSWERS);
        }
        count
    };
    assert_eq!(pace.earliest(1000), 1000);
    assert_eq!(answered(&mut pace, 1000), ANSWERS);
    assert_eq!(
        [pace.earliest(0), pace.earliest(1000 + PAUSE), pace.earliest(u64::MAX)],
        [1000 + PAUSE, 1000 + PAUSE, u64::MAX]
    );
    assert_eq!(answered(&mut pace, 1000 + PAUSE - 1), 0);
    assert_eq!(answered(&mut pace, 1000 + PAUSE), ANSWERS);
    // One at a time, with time between them, never pauses.
    for round in 2..30 {
        let now = 1000 + round * PAUSE;
        assert!(pace.admits(now) && pace.earliest(now) == now);
        pace.count(now);
        assert_eq!(pace.earliest(now + 1), now + 1);
    }
    // A clock that ticks slowly pauses at least as long.
    let mut slow = Pace::new(PAUSE, 1_000_000);
    assert_eq!((answered(&mut slow, 7), slow.earliest(7)), (ANSWERS, 57));
}

#[test]
fn an_urgent_request_counts_as_some_answers() {
    let mut pace = Pace::new(PAUSE, 1_000_000_000);
    for _ in 0..ANSWERS / URGENT {
        assert!(pace.admits(1000) && pace.earliest(7) == 7);
        pace.count_urgent(1000);
    }
    assert_eq!((pace.admits(1001), pace.earliest(7)), (false, 1000 + PAUSE));
    // After a pause there is as much as before.
    for _ in 0..ANSWERS / URGENT {
        assert!(pace.admits(1000 + PAUSE));
        pace.count_urgent(1000 + PAUSE);
    }
    assert!(!pace.admits(1001 + PAUSE));
}
