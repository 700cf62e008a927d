//! Whether reservations meet their deadlines: response times of fixed priorities.
//!
//! # Budgets in windows
//!
//! A reservation is for jobs: one at a time, at least a *period* apart, each with a *budget* that it needs within a
//! *deadline*. The kernel gives budgets another way: it lets a scheduling context use one in any *window* of a length,
//! and what was used comes back a window after it was used. A job that was held up uses its budget late. If the window
//! were the period, the budget would come back late for the next job, which could be held up again, and so on, until a
//! deadline is missed although everybody keeps to what was agreed. So the window is shorter: period less deadline. As
//! long as a job meets its deadline, all it has used is back when the next one begins. (What the kernel brings together
//! for want of room comes back a window after the last of it was used, which is soon enough.)
//!
//! # Response times
//!
//! For everybody below, a reservation is a task that may use its budget once in each window: that is what the kernel
//! lets it do, whether it keeps to its period or not. The worst that can happen to a job is that it begins together
//! with all of a higher priority, just after somebody lower has begun something that cannot be interrupted. Its
//! response time is then the smallest solution of
//!
//! ```text
//! R = blocking + budget + Σ ⌈R / window⌉ · budget     over all of a higher priority, the servers among them
//! ```
//! where each budget of a reservation is longer by what it costs to switch to it and away again, which nobody's budget
//! pays for.
//!
//! and the deadline is met if R is not longer. This is exact: where R is longer, there is a case in which the deadline
//! is missed. (Joseph and Pandya 1986; Audsley et al. 1993.) The order of deadlines is the best order of priorities: if
//! any meets all deadlines, it does (Leung and Whitehead 1982).
//!
//! Times are in one unit, whichever; the server's is the tick of the system counter.

/// Jobs, or whoever else uses the processor again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Time that a job may use.
    pub budget: u64,
    /// The shortest time between the beginnings of two jobs.
    pub period: u64,
    /// The time from a job's beginning in which it must have had its budget. It leaves at least a budget of the period.
    /// 0 for somebody of whom it is only known how much he uses in any stretch of time as long as the period.
    pub deadline: u64,
}

/// The whole processor.
pub const WHOLE: u64 = 1_000_000;

impl Task {
    /// The length of the stretches of time in each of which it can use its budget once.
    pub const fn window(&self) -> u64 {
        self.period.saturating_sub(self.deadline)
    }

    /// The share that it can use, in millionths, rounded up.
    pub const fn share(&self) -> u64 {
        if self.window() == 0 {
            return u64::MAX;
        }
        let share = (self.budget as u128 * WHOLE as u128).div_ceil(self.window() as u128);
        if share > u64::MAX as u128 { u64::MAX } else { share as u64 }
    }
}

/// What everybody suffers from besides those of higher priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// The servers, as one task of the highest priority.
    pub servers: Task,
    /// The longest time for which nobody can be interrupted.
    pub blocking: u64,
    /// What each use of a budget takes beyond it: the switches to and from who uses it, and how late it is noticed that
    /// it is used up.
    pub switching: u64,
}

/// The longest time until `task` has had its budget, below `higher` (in any order); `None` if it can be longer than its
/// deadline.
pub fn response_time(task: &Task, higher: &[Task], overhead: &Overhead) -> Option<u64> {
    let whole = |other: &Task| Task { budget: other.budget.saturating_add(overhead.switching), ..*other };
    let own = whole(task).budget.saturating_add(overhead.blocking);
    let above = || higher.iter().map(whole).chain([overhead.servers]);
    // Everybody comes once at least.
    let mut time = above().fold(own, |sum, other| sum.saturating_add(other.budget));
    loop {
        if time > task.deadline {
            return None;
        }
        let demand = |other: &Task| time.div_ceil(other.window().max(1)).saturating_mul(other.budget);
        let next = above().fold(own, |sum, other| sum.saturating_add(demand(&other)));
        // It never becomes shorter, so it reaches the solution from below, or the deadline.
        if next == time {
            return Some(time);
        }
        time = next;
    }
}

/// Whether everybody from place `from` on meets all deadlines. `tasks` are in the order of priorities, the highest
/// first. Of those before `from` it is known: what comes below does not concern them.
pub fn are_met(tasks: &[Task], from: usize, overhead: &Overhead) -> bool {
    tasks.iter().enumerate().skip(from).all(|(place, task)| response_time(task, &tasks[..place], overhead).is_some())
}
