//! Schedulability analysis of reservations: response times under fixed priorities.
//!
//! # Budgets in windows
//!
//! A reservation is for jobs: one at a time, at least a *period* apart, each with a *budget* that it needs within a
//! *deadline*. The kernel's budgets work otherwise: a scheduling context may use its budget in any *window* of a given
//! length, and each use is replenished a window later. A delayed job uses its budget late. If the window were the
//! period, the budget would be replenished late for the next job, which could be delayed again, and so on, until a
//! deadline is missed although every job keeps to its parameters. So the window is shorter: period less deadline. As
//! long as a job meets its deadline, all it has used is replenished when the next one begins. (Replenishments that the
//! kernel merges for lack of room come a window after the last use, which is soon enough.)
//!
//! # Response times
//!
//! For all of lower priority, a reservation is a task that may use its budget once in each window: that is what the
//! kernel permits, whether the task keeps to its period or not. The worst case for a job is that it is released
//! together with all of higher priority, just after a lower one has begun something that cannot be interrupted. Its
//! response time is then the smallest solution of
//!
//! ```text
//! R = blocking + budget + Σ ⌈R / window⌉ · budget     over all of a higher priority, the servers among them
//! ```
//! where each budget of a reservation is extended by the cost of switching to it and away again, which no budget pays
//! for.
//!
//! The deadline is met if R is not longer. This is exact: if R is longer, there is a case in which the deadline is
//! missed. (Joseph and Pandya 1986; Audsley et al. 1993.) Deadline-monotonic order is optimal: if any order of
//! priorities meets all deadlines, it does (Leung and Whitehead 1982).
//!
//! All times are in one unit; the server uses ticks of the system counter.

/// Jobs, or anything else that uses the processor repeatedly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Processor time that a job may use.
    pub budget: u64,
    /// Minimum time between the releases of two jobs.
    pub period: u64,
    /// Time from a job's release in which it must have had its budget; at most the period less a budget. 0 for a task
    /// of which only its use in any interval of one period is known.
    pub deadline: u64,
}

/// The whole processor.
pub const WHOLE: u64 = 1_000_000;

impl Task {
    /// Returns the length of the window in which it can use its budget once.
    pub const fn window(&self) -> u64 {
        self.period.saturating_sub(self.deadline)
    }

    /// Returns the share of the processor that it can use, in millionths, rounded up.
    pub const fn share(&self) -> u64 {
        if self.window() == 0 {
            return u64::MAX;
        }
        let share = (self.budget as u128 * WHOLE as u128).div_ceil(self.window() as u128);
        if share > u64::MAX as u128 { u64::MAX } else { share as u64 }
    }
}

/// Costs that affect every task besides those of higher priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// The servers, as one task of the highest priority.
    pub servers: Task,
    /// Maximum time without preemption.
    pub blocking: u64,
    /// Cost of each use of a budget beyond it: the switches to and from the task, and the delay until its exhaustion is
    /// noticed.
    pub switching: u64,
}

/// Returns the maximum time until `task` has had its budget, below `higher` (in any order); `None` if it can exceed the
/// deadline.
pub fn response_time(task: &Task, higher: &[Task], overhead: &Overhead) -> Option<u64> {
    let whole = |other: &Task| Task { budget: other.budget.saturating_add(overhead.switching), ..*other };
    let own = whole(task).budget.saturating_add(overhead.blocking);
    let above = || higher.iter().map(whole).chain([overhead.servers]);
    // Each task is released at least once.
    let mut time = above().fold(own, |sum, other| sum.saturating_add(other.budget));
    loop {
        if time > task.deadline {
            return None;
        }
        let demand = |other: &Task| time.div_ceil(other.window().max(1)).saturating_mul(other.budget);
        let next = above().fold(own, |sum, other| sum.saturating_add(demand(&other)));
        // The value never decreases, so it reaches the solution from below, or the deadline.
        if next == time {
            return Some(time);
        }
        time = next;
    }
}

/// Returns whether all tasks from position `from` on meet their deadlines. `tasks` are in the order of priorities,
/// highest first. Those before `from` are known to meet theirs: lower ones do not affect them.
pub fn are_met(tasks: &[Task], from: usize, overhead: &Overhead) -> bool {
    tasks
        .iter()
        .enumerate()
        .skip(from)
        .all(|(position, task)| response_time(task, &tasks[..position], overhead).is_some())
}
