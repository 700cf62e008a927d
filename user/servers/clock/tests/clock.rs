//! The clock server's queue and arithmetic.

use proptest::prelude::*;
use tench_clock::queue::Queue;
use tench_clock::time::{nanoseconds, next_tick};

#[test]
fn the_earliest_is_first_and_equals_are_in_order_of_arrival() {
    let mut queue = Queue::new(10);
    for (deadline, name) in [(30, "d"), (10, "a"), (20, "b"), (20, "c")] {
        queue.push(deadline, 1, name);
    }
    assert_eq!(queue.next_deadline(), Some(10));
    assert_eq!(queue.pop_expired(9), None);
    let mut order = Vec::new();
    while let Some(name) = queue.pop_expired(20) {
        order.push(name);
    }
    assert_eq!(order, ["a", "b", "c"]);
    assert_eq!(queue.next_deadline(), Some(30));
}

#[test]
fn a_full_queue_has_room_when_somebody_leaves() {
    let mut queue = Queue::new(1);
    assert!(!queue.is_full());
    queue.push(5, 1, 'a');
    assert!(queue.is_full());
    assert_eq!(queue.pop_expired(5), Some('a'));
    assert!(!queue.is_full());
}

#[test]
fn those_of_an_ended_process_are_taken_out() {
    let mut queue = Queue::new(10);
    queue.push(1, 7, 'a');
    queue.push(2, 8, 'b');
    queue.push(3, 7, 'c');
    assert_eq!(queue.process_ended(7), ['a', 'c']);
    assert_eq!(queue.next_deadline(), Some(2));
}

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

    #[test]
    fn the_queue_is_a_stable_sort(deadlines in prop::collection::vec(0..50u64, 0..60)) {
        let mut queue = Queue::new(100);
        let mut wanted: Vec<_> = deadlines.iter().copied().enumerate().collect();
        wanted.sort_by_key(|&(_, deadline)| deadline);
        for (index, deadline) in deadlines.into_iter().enumerate() {
            queue.push(deadline, 1, index);
        }
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop_expired(100)).collect();
        prop_assert_eq!(popped, wanted.into_iter().map(|(index, _)| index).collect::<Vec<_>>());
    }
}
