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
    assert!(queue.may_wait(1));
    queue.push(5, 1, 'a');
    assert!(!queue.may_wait(2));
    assert_eq!(queue.pop_expired(5), Some('a'));
    assert!(queue.may_wait(2));
}

#[test]
fn a_process_with_all_its_threads_at_the_clock_leaves_room_for_others() {
    let mut queue = Queue::new(8);
    for number in 0..4 {
        assert!(queue.may_wait(1));
        queue.push(number, 1, number);
    }
    assert!(!queue.may_wait(1) && queue.may_wait(2));
    queue.push(3, 2, 9);
    // Those who gave up are found when there is no room for their process.
    assert_eq!(queue.take_out(1, |number| *number < 3), [0, 1, 2]);
    assert!(queue.may_wait(1));
    queue.check_invariants();
    assert_eq!(queue.take_out(1, |_| false), []);
    assert_eq!([queue.pop_expired(9), queue.pop_expired(9), queue.pop_expired(9)], [Some(3), Some(9), None]);
    queue.check_invariants();
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
    fn whatever_is_asked_the_counts_are_right(steps in prop::collection::vec((0..5u64, 0..6u8, 0..50u64), 0..150)) {
        let mut queue = Queue::new(12);
        for (process, step, time) in steps {
            match step {
                0 => drop(queue.pop_expired(time)),
                1 => drop(queue.process_ended(process)),
                2 => drop(queue.take_out(process, |reply| reply % 3 == 0)),
                _ if queue.may_wait(process) => queue.push(time, process, time),
                _ => {}
            }
            queue.check_invariants();
        }
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
