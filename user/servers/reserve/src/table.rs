//! The table of all reservations: requests, grants and refusals.

use tench::server::Lasting;
use tench_protocol::ArrayVec;
use tench_quota::{Client, allows};
use tench_reserve_interface::protocol::{
    Error, LONGEST_PERIOD, MAX_RESERVATIONS, RESERVABLE, SHORTEST_BUDGET, SHORTEST_PERIOD, WHOLE,
};

use crate::analysis::{self, Overhead, Task, are_met};
use crate::kept::{Before, Entry, Journal};
use crate::levels::{self, Moves};

const _: () = assert!(analysis::WHOLE == WHOLE);

/// Maximum time that the servers are expected to need in [`SERVERS_PERIOD`], in nanoseconds.
pub const SERVERS_BUDGET: u64 = 250_000;
/// Period of [`SERVERS_BUDGET`], in nanoseconds.
pub const SERVERS_PERIOD: u64 = 2_500_000;
/// Maximum time without preemption, in nanoseconds, including the switch to another thread.
pub const BLOCKING: u64 = 10_000;
/// Cost of each use of a budget beyond it, in nanoseconds.
pub const SWITCHING: u64 = 4_800;
/// The holder of an unbadged capability, who may have everything.
const AUTHORITY: Client = Client::AUTHORITY;

/// Conversion between ticks and nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Ticks in a second.
    pub frequency: u64,
}

impl Clock {
    /// Returns the ticks in `nanoseconds`, rounded down.
    pub const fn floor(self, nanoseconds: u64) -> u64 {
        let ticks = nanoseconds as u128 * self.frequency as u128 / 1_000_000_000;
        if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 }
    }

    /// Returns the ticks in `nanoseconds`, rounded up.
    pub const fn ceil(self, nanoseconds: u64) -> u64 {
        let ticks = (nanoseconds as u128 * self.frequency as u128).div_ceil(1_000_000_000);
        if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 }
    }

    /// Returns the nanoseconds in `ticks`, rounded down.
    pub const fn nanoseconds(self, ticks: u64) -> u64 {
        let nanoseconds =
            ticks as u128 * 1_000_000_000 / (if self.frequency == 0 { 1 } else { self.frequency }) as u128;
        if nanoseconds > u64::MAX as u128 { u64::MAX } else { nanoseconds as u64 }
    }

    /// Returns the costs for the analysis.
    pub const fn overhead(self) -> Overhead {
        let (budget, period) = (self.ceil(SERVERS_BUDGET), self.floor(SERVERS_PERIOD));
        let servers = Task { budget, period, deadline: 0 };
        Overhead { servers, blocking: self.ceil(BLOCKING), switching: self.ceil(SWITCHING) }
    }
}

/// Steps to grant a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The free position for it.
    pub position: usize,
    /// Number of the reservation.
    pub id: u64,
    /// Priority of the reservation.
    pub level: u8,
    /// Reservations that move before, in this order; by position in the table.
    pub moves: Moves,
}

/// All reservations.
pub struct Table<M> {
    entries: [Option<Entry>; MAX_RESERVATIONS],
    journal: Journal<M>,
    clock: Clock,
    /// The highest number that was given.
    last_id: u64,
}

/// Positions in the order of priorities, highest first.
type Order = ArrayVec<usize, MAX_RESERVATIONS>;
/// Tasks at these positions, and perhaps one more.
type Tasks = ArrayVec<Task, { MAX_RESERVATIONS + 1 }>;

impl<M: Lasting> Table<M> {
    /// Returns the table of what the memory says is granted.
    pub fn new(memory: M, clock: Clock) -> Table<M> {
        let journal = Journal::new(memory);
        let entries = core::array::from_fn(|position| journal.entry(position));
        let last_id = journal.last_id();
        Table { entries, journal, clock, last_id }
    }

    /// Returns the reservation at a position.
    pub fn entry(&self, position: usize) -> Option<&Entry> {
        self.entries.get(position)?.as_ref().filter(|entry| entry.ends == 0)
    }

    /// Returns the position of a reservation.
    pub fn find(&self, id: u64) -> Option<usize> {
        (0..MAX_RESERVATIONS).find(|position| self.entry(*position).is_some_and(|entry| entry.id == id))
    }

    /// Returns the position of the reservation with the next higher number.
    pub fn next(&self, after: u64) -> Option<usize> {
        let id = |position: usize| self.entry(position).map(|entry| entry.id).filter(|id| *id > after);
        (0..MAX_RESERVATIONS).filter_map(|position| Some((id(position)?, position))).min().map(|(_, position)| position)
    }

    /// Returns the positions in the order of priorities.
    fn order(&self) -> Order {
        let mut order: Order = (0..MAX_RESERVATIONS).filter(|position| self.entries[*position].is_some()).collect();
        order.sort_unstable_by_key(|position| {
            core::cmp::Reverse(self.entries[*position].map_or(0, |entry| entry.level))
        });
        order
    }

    /// Returns the granted tasks, in the order of priorities.
    fn tasks(&self, order: &Order) -> Tasks {
        order.iter().filter_map(|position| self.entries[*position]).map(|entry| entry.task).collect()
    }

    /// Returns the sum of all shares, and that of one family.
    fn shares(&self, family: u64) -> (u64, u64) {
        let all = || self.entries.iter().flatten();
        let sum = |total: u64, entry: &Entry| total.saturating_add(entry.task.share());
        (all().fold(0, sum), all().filter(|entry| entry.owner.family == family).fold(0, sum))
    }

    /// Returns the share that one owner can still get: its family may not have more than it leaves to others.
    fn free_share(&self, owner: Client) -> u64 {
        let (all, own) = self.shares(owner.family);
        let free = RESERVABLE.saturating_sub(all);
        if owner == AUTHORITY { free } else { free.saturating_sub(own) / 2 }
    }

    /// Returns the maximum time until the reservation at a position has had its budget, in ticks.
    pub fn response(&self, position: usize) -> Option<u64> {
        let order = self.order();
        let at = order.iter().position(|other| *other == position)?;
        let tasks = self.tasks(&order);
        analysis::response_time(&tasks[at], &tasks[..at], &self.clock.overhead())
    }

    /// Returns period and deadline in ticks, if they are possible.
    fn times(&self, period: u64, deadline: u64) -> Result<(u64, u64), Error> {
        let deadline = if deadline == 0 { period / 2 } else { deadline };
        if period < SHORTEST_PERIOD {
            return Err(Error::PeriodTooShort);
        }
        if period > LONGEST_PERIOD {
            return Err(Error::PeriodTooLong);
        }
        if deadline > period {
            return Err(Error::DeadlineTooLong);
        }
        let (period, deadline) = (self.clock.floor(period), self.clock.floor(deadline));
        if deadline + self.clock.ceil(SHORTEST_BUDGET) > period {
            Err(Error::DeadlineTooLong)
        } else {
            Ok((period, deadline))
        }
    }

    /// Returns all tasks with one more, and its position by deadline: after those with the same one.
    fn with(&self, order: &Order, task: Task) -> (Tasks, usize) {
        let mut tasks = self.tasks(order);
        let position = tasks.iter().position(|other| other.deadline > task.deadline).unwrap_or(tasks.len());
        tasks.insert(position, task);
        (tasks, position)
    }

    /// Returns the steps for a reservation with these times in nanoseconds. Nothing is changed.
    pub fn admit(&self, owner: Client, budget: u64, period: u64, deadline: u64) -> Result<(Grant, Task), Error> {
        let (period, deadline) = self.times(period, deadline)?;
        if budget < SHORTEST_BUDGET {
            return Err(Error::BudgetTooShort);
        }
        let task = Task { budget: self.clock.ceil(budget), period, deadline };
        if task.budget > task.deadline || task.budget > task.window() {
            return Err(Error::BudgetTooLong);
        }
        let (all, _) = self.shares(owner.family);
        let share = task.share();
        if share > RESERVABLE.saturating_sub(all) {
            return Err(Error::Overcommitted);
        }
        if share > self.free_share(owner) {
            return Err(Error::Excessive);
        }
        let taken = self.entries.iter().flatten().count();
        let held = self.entries.iter().flatten().filter(|entry| entry.owner.family == owner.family).count();
        let may_take =
            if owner == AUTHORITY { taken < MAX_RESERVATIONS } else { allows(held, taken, MAX_RESERVATIONS) };
        let position = self.entries.iter().position(Option::is_none).filter(|_| may_take).ok_or(Error::Full)?;
        let order = self.order();
        let (tasks, rank) = self.with(&order, task);
        if !are_met(&tasks, rank, &self.clock.overhead()) {
            return Err(Error::Unschedulable);
        }
        let levels: ArrayVec<u8, MAX_RESERVATIONS> =
            order.iter().map(|position| self.entries[*position].map_or(0, |entry| entry.level)).collect();
        let (mut moves, level) = levels::insert(&levels, rank).ok_or(Error::Full)?;
        moves.iter_mut().for_each(|step| step.position = order[step.position]);
        Ok((Grant { position, id: self.last_id + 1, level, moves }, task))
    }

    /// Returns what an owner could have with this period and deadline: a free share, and the longest budget in
    /// nanoseconds.
    pub fn possible(&self, owner: Client, period: u64, deadline: u64) -> Result<(u64, u64), Error> {
        let (ticks, deadline) = self.times(period, deadline)?;
        let free = self.free_share(owner);
        let (order, overhead) = (self.order(), self.clock.overhead());
        let is_possible = |budget: u64| {
            let task = Task { budget, period: ticks, deadline };
            let (tasks, rank) = self.with(&order, task);
            task.share() <= free && budget <= deadline.min(task.window()) && are_met(&tasks, rank, &overhead)
        };
        let shortest = self.clock.ceil(SHORTEST_BUDGET);
        if self.entries.iter().all(Option::is_some) || !is_possible(shortest) {
            return Ok((free, 0));
        }
        // If a budget is possible, so is any smaller one.
        let (mut yes, mut no) = (shortest, deadline + 1);
        while no - yes > 1 {
            let middle = yes + (no - yes) / 2;
            if is_possible(middle) { yes = middle } else { no = middle }
        }
        // The request rounds this up again, to the same number of ticks.
        Ok((free, self.clock.nanoseconds(yes)))
    }

    /// Records a reservation's new priority.
    pub fn set_level(&mut self, position: usize, level: u8) {
        if let Some(Some(entry)) = self.entries.get_mut(position) {
            entry.level = level;
            self.journal.set_level(position, level);
        }
    }

    /// Records a granted reservation.
    pub fn write(&mut self, owner: Client, task: Task, grant: &Grant, before: Before) {
        let entry = Entry { id: grant.id, owner, task, level: grant.level, before, ends: 0 };
        self.last_id = self.last_id.max(grant.id);
        if let Some(position) = self.entries.get_mut(grant.position) {
            *position = Some(entry);
            self.journal.write(grant.position, &entry);
        }
    }

    /// Records the end of a reservation, whose budget may have been used up to now. Its share is free when that has
    /// been replenished: otherwise ending a reservation and requesting another would give a fresh budget each time.
    pub fn retire(&mut self, position: usize, now: u64) {
        if let Some(Some(entry)) = self.entries.get_mut(position) {
            entry.ends = now.saturating_add(entry.task.window()).max(1);
            self.journal.set_end(position, entry.ends);
        }
    }

    /// Frees the shares of reservations that ended long enough ago.
    pub fn expire(&mut self, now: u64) {
        for position in 0..MAX_RESERVATIONS {
            if self.entries[position].is_some_and(|entry| entry.ends != 0 && entry.ends <= now) {
                self.clear(position);
            }
        }
    }

    /// Records that a reservation is gone, and its share free.
    pub fn clear(&mut self, position: usize) {
        if let Some(entry) = self.entries.get_mut(position) {
            *entry = None;
            self.journal.clear(position);
        }
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        for (position, entry) in self.entries.iter().enumerate() {
            assert_eq!(self.journal.entry(position), *entry, "memory and what stays say the same");
        }
        let order = self.order();
        let tasks = self.tasks(&order);
        assert!(tasks.is_sorted_by_key(|task| task.deadline), "shorter deadlines go first");
        let level = |position: &usize| self.entries[*position].map(|entry| entry.level);
        assert!(order.windows(2).all(|pair| level(&pair[0]) > level(&pair[1])), "nobody has another's priority");
        assert!(tasks.iter().map(Task::share).sum::<u64>() <= RESERVABLE, "more is granted than there is");
        assert!(are_met(&tasks, 0, &self.clock.overhead()), "a deadline can be missed");
    }
}
