//! Tests of reservations under the kernel's own budgets: jobs that keep to their parameters meet their deadlines beside
//! jobs that do not.

use proptest::prelude::*;
use tench_abi::object::MIN_BUDGET;
use tench_kernel::budget::Budget;
use tench_reserve::analysis::{Overhead, Task, are_met};

/// Ticks of a step: less is no budget.
const STEP: u64 = MIN_BUDGET;

/// A job with a reservation.
struct Running {
    task: Task,
    budget: Budget,
    /// Set if the holder uses all the time that it can get. Otherwise it has jobs: `next` is when the next one is
    /// released, and `late` how much later than possible that is each time.
    is_greedy: bool,
    next: u64,
    late: u64,
    began: u64,
    /// Time that its job still needs.
    left: u64,
}

/// Simulates this many steps. Returns a reservation that missed a deadline although it kept to its parameters.
fn play(all: &mut [Running], steps: u64, overhead: &Overhead) -> Option<usize> {
    let (mut servers, mut since) = (0, None::<(usize, u64)>);
    for now in (0..steps).map(|step| step * STEP) {
        if now.is_multiple_of(overhead.servers.window()) {
            servers = overhead.servers.budget;
        }
        for (index, running) in all.iter_mut().enumerate() {
            if running.next <= now && !running.is_greedy {
                (running.began, running.left) = (now, running.task.budget);
                running.next = now + running.task.period + running.late;
            }
            if running.left > 0 && !running.is_greedy && now - running.began >= running.task.deadline {
                return Some(index);
            }
        }
        // The kernel charges uninterrupted use when it switches to another thread, and reads the clock then.
        let used = |running: &Running| match since {
            Some((index, from)) if core::ptr::eq(&all[index], running) => now - from,
            _ => 0,
        };
        let may_run = |running: &Running| {
            let mut budget = running.budget;
            budget.consume(now - used(running), now);
            (running.is_greedy || running.left > 0) && budget.usable(now) >= STEP
        };
        let next = if servers > 0 { None } else { all.iter().position(may_run) };
        if let Some((index, from)) = since.filter(|(index, _)| Some(*index) != next) {
            all[index].budget.consume(from, now);
            since = None;
        }
        match next {
            Some(index) => {
                since = since.or(Some((index, now)));
                all[index].left = all[index].left.saturating_sub(STEP);
            }
            None => servers = servers.saturating_sub(STEP),
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_thread_that_keeps_to_its_reservation_meets_every_deadline(
        tasks in prop::collection::vec((2..60u64, 4..60u64, 1..40u64, 0..3u64, any::<bool>(), 0..200u64), 1..6),
        servers in (0..2u64, 8..30u64),
    ) {
        let (budget, period) = (servers.0 * STEP, servers.1 * STEP);
        let overhead = Overhead { servers: Task { budget, period, deadline: 0 }, blocking: 0, switching: 0 };
        let mut all: Vec<Running> = tasks
            .into_iter()
            .map(|(deadline, window, part, late, is_greedy, begin)| {
                let budget = (deadline.min(window) * part / 40).max(1) * STEP;
                let task = Task { budget, period: (deadline + window) * STEP, deadline: deadline * STEP };
                let (budget, begin) = (Budget::new(budget, task.window(), 0), begin * STEP);
                Running { task, budget, is_greedy, next: begin, late: late * STEP, began: 0, left: 0 }
            })
            .collect();
        all.sort_by_key(|running| running.task.deadline);
        // Reservations that are refused are left out.
        let mut position = 0;
        while position < all.len() {
            let tasks: Vec<Task> = all[..=position].iter().map(|running| running.task).collect();
            if are_met(&tasks, position, &overhead) { position += 1 } else { _ = all.remove(position) }
        }
        prop_assert_eq!(play(&mut all, 4000, &overhead), None);
    }
}

/// This shows why windows are shorter than periods: with a window as long as the period, a delayed job is replenished
/// late, the next one is delayed again, and later ones miss their deadlines.
#[test]
fn with_windows_as_long_as_periods_a_deadline_would_be_missed() {
    let overhead = Overhead { servers: Task { budget: 0, period: STEP, deadline: 0 }, blocking: 0, switching: 0 };
    let high = Task { budget: 3 * STEP, period: 13 * STEP, deadline: 3 * STEP };
    let low = Task { budget: 2 * STEP, period: 10 * STEP, deadline: 5 * STEP };
    assert!(are_met(&[high, low], 0, &overhead));
    let play_with = |windows: [u64; 2]| {
        let running = |(task, window): (Task, u64)| Running {
            task,
            budget: Budget::new(task.budget, window, 0),
            is_greedy: false,
            next: 0,
            late: 0,
            began: 0,
            left: 0,
        };
        play(&mut [(high, windows[0]), (low, windows[1])].map(running), 1000, &overhead)
    };
    assert_eq!(play_with([high.period, low.period]), Some(1));
    assert_eq!(play_with([high.window(), low.window()]), None);
}
