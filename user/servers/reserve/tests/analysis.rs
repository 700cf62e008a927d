//! Tests of the analysis against a simulation of reservations, tick by tick.

use proptest::prelude::*;
use tench_reserve::analysis::{Overhead, Task, are_met, response_time};

/// A task that uses the processor by priority.
#[derive(Clone, Copy, Debug)]
struct Running {
    budget: u64,
    /// Minimum ticks until it wants the budget again.
    again: u64,
    /// Additional delay of its releases.
    late: u64,
    next: u64,
    /// Time that it still wants.
    left: u64,
}

/// Simulates this many ticks: `higher` and the servers use all that the kernel permits, `task` has jobs, and each use
/// of a budget except the servers' costs the switching in addition. Tasks are released at these offsets, and again with
/// these delays; at `from` nothing can be preempted for the blocking time. Returns the longest response of a job, and
/// whether one missed its deadline.
fn play(
    (task, higher): (&Task, &[Task]),
    offsets: &[(u64, u64)],
    ticks: u64,
    overhead: &Overhead,
    from: u64,
) -> (u64, bool) {
    let whole = |task: &Task| task.budget + overhead.switching;
    let greedy = [(overhead.servers.budget, overhead.servers.window())].into_iter();
    let mut all: Vec<Running> = greedy
        .chain(higher.iter().map(|task| (whole(task), task.window())))
        .chain([(whole(task), task.period)])
        .zip(offsets)
        .map(|((budget, again), &(offset, late))| Running { budget, again, late, next: offset, left: 0 })
        .collect();
    let own = all.len() - 1;
    let (mut longest, mut missed, mut began, mut blocked) = (0, false, 0, 0);
    for now in 0..ticks {
        for (index, running) in all.iter_mut().enumerate().filter(|(_, running)| running.next == now) {
            running.left += running.budget;
            running.next = now + running.again + running.late;
            if index == own {
                began = now;
            }
        }
        missed |= all[own].left > 0 && now - began >= task.deadline;
        if now == from {
            blocked = overhead.blocking;
        }
        if blocked > 0 {
            blocked -= 1;
        } else if let Some((index, first)) = all.iter_mut().enumerate().find(|(_, running)| running.left > 0) {
            first.left -= 1;
            if first.left == 0 && index == own {
                longest = longest.max(now + 1 - began);
            }
        }
    }
    (longest, missed)
}

/// Returns tasks in the order of deadlines.
fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let task = (1..40u64, 2..40u64).prop_flat_map(|(deadline, window)| {
        let most = deadline.min(window).div_ceil(3);
        (1..=most).prop_map(move |budget| Task { budget, period: deadline + window, deadline })
    });
    prop::collection::vec(task, 1..6).prop_map(|mut tasks| {
        tasks.sort_by_key(|task| task.deadline);
        tasks
    })
}

fn overhead() -> impl Strategy<Value = Overhead> {
    let servers = prop_oneof![
        Just(Task { budget: 0, period: 10, deadline: 0 }),
        (1..3u64, 8..20u64).prop_map(|(budget, period)| Task { budget, period, deadline: 0 })
    ];
    (servers, 0..3u64, 0..3u64).prop_map(|(servers, blocking, switching)| Overhead { servers, blocking, switching })
}

/// Returns each task with those above it.
fn each(tasks: &[Task]) -> impl Iterator<Item = (&Task, &[Task])> {
    tasks.iter().enumerate().map(|(position, task)| (task, &tasks[..position]))
}

/// All are released at once, and again as soon as possible.
const AT_ONCE: [(u64, u64); 8] = [(0, 0); 8];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The computed case is the worst: all are released together, just when nothing can be preempted.
    #[test]
    fn response_times_are_those_of_the_critical_instant(tasks in tasks(), overhead in overhead()) {
        for one in each(&tasks) {
            // The first job is the worst, and has its budget before its deadline, or not.
            let (longest, missed) = play(one, &AT_ONCE, one.0.deadline + 1, &overhead, 0);
            match response_time(one.0, one.1, &overhead) {
                Some(time) => prop_assert!(!missed && longest == time, "{time}, not {longest}"),
                None => prop_assert!(missed),
            }
        }
    }

    /// An admitted task meets every deadline, whenever the others are released, and however late.
    #[test]
    fn an_admitted_set_never_misses_a_deadline(
        tasks in tasks(),
        overhead in overhead(),
        offsets in prop::collection::vec((0..40u64, 0..3u64), 8),
        from in 0..400u64,
    ) {
        if are_met(&tasks, 0, &overhead) {
            for one in each(&tasks) {
                let (longest, missed) = play(one, &offsets, 2000, &overhead, from);
                prop_assert!(!missed && longest <= response_time(one.0, one.1, &overhead).unwrap());
            }
        }
    }

    /// In a refused set, some task would miss a deadline.
    #[test]
    fn a_refused_set_misses_one_in_the_critical_instant(tasks in tasks(), overhead in overhead()) {
        let misses = |one: (&Task, &[Task])| play(one, &AT_ONCE, one.0.deadline + 1, &overhead, 0).1;
        prop_assert_eq!(are_met(&tasks, 0, &overhead), !each(&tasks).any(misses));
    }

    /// Upper tasks need not be checked again for the sake of lower ones.
    #[test]
    fn lower_ones_do_not_concern_upper_ones(tasks in tasks(), overhead in overhead(), position in 0..6usize) {
        let position = position % tasks.len();
        let others: Vec<_> = tasks.iter().enumerate().filter(|(index, _)| *index != position).map(|(_, task)| *task).collect();
        if are_met(&others, 0, &overhead) {
            prop_assert_eq!(are_met(&tasks, position, &overhead), are_met(&tasks, 0, &overhead));
        }
    }

    #[test]
    fn any_numbers_have_a_result(numbers in prop::collection::vec(any::<u64>(), 9)) {
        let task = |n: usize| Task { budget: numbers[n], period: numbers[n + 1], deadline: numbers[n + 2].min(1 << 20) };
        let overhead = Overhead { servers: task(0), blocking: numbers[6], switching: numbers[5] };
        let _ = response_time(&task(3), &[task(6)], &overhead);
        let _ = task(3).share();
    }
}

/// These sets were checked by hand.
#[test]
fn the_full_use_of_harmonic_periods_is_admitted_and_of_others_not() {
    let none = Overhead { servers: Task { budget: 0, period: 1, deadline: 0 }, blocking: 0, switching: 0 };
    // The windows are as long as the deadlines.
    let task = |budget, window| Task { budget, period: 2 * window, deadline: window };
    // Above the bound of Liu and Layland, and yet possible.
    assert!(are_met(&[task(1, 2), task(1, 4), task(2, 8)], 0, &none));
    assert!(!are_met(&[task(1, 2), task(1, 4), task(3, 8)], 0, &none));
    // The same share is possible in one case and not in the other.
    assert!(are_met(&[task(2, 4), task(4, 8)], 0, &none));
    assert!(!are_met(&[task(3, 6), task(4, 8)], 0, &none));
    assert_eq!(response_time(&task(5, 20), &[task(1, 4), task(1, 5)], &none), Some(10));
}
