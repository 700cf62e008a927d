//! Budgets: how much processor time a scheduling context may still use, and when more comes.
//!
//! A budget is a row of *refills*: amounts of time, each usable from a point in time on. Consumption is taken from the
//! first refill and comes back as a new last refill, one period after it was consumed (a sporadic server). So in any
//! interval as long as the period, threads that run on the budget get no more than the budget, whenever they run.
//!
//! ```text
//!  refills   (t0, a)  (t1, b)  (t2, c)          t0 ≤ t1 ≤ t2,  a + b + c = budget
//!  consumed     └──── u at the time s ────► (t0, a - u)  (t1, b)  (t2, c)  (s + period, u)
//! ```
//! Why this bounds every interval: think of the budget as that many tokens in a row, taken from the front. The token at
//! offset `j` in a refill cannot be used before the refill's time plus `j` ticks, since those before it are used first.
//! A token used at time `s` returns in a refill, at some offset `j`, and that refill begins at `s - j + period` or
//! later. Joining refills to have few of them preserves this: they move later, never earlier.
//!
//! The kernel looks at the clock only at entries and preemption points. What a thread uses beyond the usable amount
//! until then is taken from refills that are not due yet, which makes them due later: an overrun is paid back.
//!
//! This module is arithmetic on plain numbers; [`scheduling_context`](crate::scheduling_context) and
//! [`scheduler`](crate::scheduler) know whose budget it is.

use tench_abi::object::MIN_BUDGET;

/// Maximum number of refills of one budget. A program that consumes in more parts within a period gets some of them
/// back later.
pub const REFILLS: usize = 4;

/// An amount of time that can be used from a point in time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Refill {
    /// Counter reading from which the amount can be used.
    pub time: u64,
    /// Ticks.
    pub amount: u64,
}

impl Refill {
    /// Returns the earliest time at which the whole amount can have been used.
    const fn end(self) -> u64 {
        self.time.saturating_add(self.amount)
    }
}

/// A budget and its refills. All zero means no budget, that is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Budget {
    /// Ticks that can be used within any period; 0 for no limit.
    pub budget: u64,
    /// Period in ticks; 0 for no limit.
    pub period: u64,
    /// The refills in the order of their times, followed by zeros.
    pub places: [Refill; REFILLS],
}

impl Budget {
    /// Returns a budget, all of which can be used from `now` on. `budget` is at least [`MIN_BUDGET`] and at most
    /// `period`.
    pub fn new(budget: u64, period: u64, now: u64) -> Budget {
        let mut made = Budget { budget, period, ..Budget::default() };
        made.places[0] = Refill { time: now, amount: budget };
        made
    }

    /// Returns whether there is a limit.
    #[inline(always)]
    pub const fn is_limited(&self) -> bool {
        self.period != 0
    }

    /// Returns the number of refills. (A refill with amount 0 is a free place.)
    fn count(&self) -> usize {
        self.places.iter().take_while(|refill| refill.amount != 0).count()
    }

    /// Returns the refills, beginning with the one that is used next.
    pub fn refills(&self) -> &[Refill] {
        self.places.get(..self.count()).unwrap_or(&[])
    }

    /// Returns the number of ticks that can be used from `now` on without a break, including refills that become due
    /// meanwhile.
    pub fn usable(&self, now: u64) -> u64 {
        let mut sum = 0;
        for refill in self.refills() {
            if refill.time > now.saturating_add(sum) {
                break;
            }
            sum += refill.amount;
        }
        sum
    }

    /// Returns the time of the first refill that cannot be used at `now`, or `None` if there is none.
    pub fn next_refill(&self, now: u64) -> Option<u64> {
        self.refills().iter().map(|refill| refill.time).find(|time| *time > now)
    }

    /// Takes continuous use from `from` to `until` off the budget.
    pub fn consume(&mut self, from: u64, until: u64) {
        let used = until.saturating_sub(from);
        if !self.is_limited() || used == 0 {
            return;
        }
        self.join_due(from);
        let rest = if used >= self.budget { self.consume_whole(from, used) } else { used };
        self.consume_part(from + (used - rest), rest);
        self.join_small();
    }

    /// Joins all refills due before `now` into one at `now`: none of it is used before.
    fn join_due(&mut self, now: u64) {
        while self.places[1].amount != 0 && self.places[1].time <= now {
            self.join_first_two();
        }
        if self.places[0].time < now {
            self.places[0].time = now;
            self.join_touching();
        }
    }

    /// Joins to the first refill each further one that is due by the time at which the first can have been used.
    fn join_touching(&mut self) {
        while self.places[1].amount != 0 && self.places[1].time <= self.places[0].end() {
            let time = self.places[0].time;
            self.join_first_two();
            self.places[0].time = time;
        }
    }

    /// Joins a first refill that is too small to run on to the second.
    fn join_small(&mut self) {
        self.join_touching();
        while self.places[1].amount != 0 && self.places[0].amount < MIN_BUDGET {
            self.join_first_two();
            self.join_touching();
        }
    }

    /// Joins the first two refills at the time of the second.
    fn join_first_two(&mut self) {
        let first = self.take_first();
        self.places[0].amount += first.amount;
    }

    /// Removes and returns the first refill.
    fn take_first(&mut self) -> Refill {
        let first = self.places[0];
        self.places.copy_within(1.., 0);
        self.places[REFILLS - 1] = Refill::default();
        first
    }

    /// Takes as many whole budgets as `used` contains, in one step: a thread that was not stopped for long may have
    /// used very many. Returns the rest.
    fn consume_whole(&mut self, from: u64, used: u64) -> u64 {
        self.consume_part(from, self.budget);
        let further = used / self.budget - 1;
        let delay = further.saturating_mul(self.period);
        for refill in &mut self.places {
            if refill.amount != 0 {
                refill.time = refill.time.saturating_add(delay);
            }
        }
        used % self.budget
    }

    /// Takes up to one whole budget.
    fn consume_part(&mut self, mut at: u64, mut used: u64) {
        while used > 0 {
            let first = self.places[0];
            // A refill that is not due yet is used too early, and counts as used when it is due.
            let start = at.max(first.time);
            let taken = used.min(first.amount);
            if taken == first.amount {
                self.take_first();
            } else {
                self.places[0] = Refill { time: start + taken, amount: first.amount - taken };
                self.join_touching();
            }
            self.append(Refill { time: start.saturating_add(self.period), amount: taken });
            at += taken;
            used -= taken;
        }
    }

    /// Appends a refill. Joins it to the last one if it is due before that has been used, or if there is no free place.
    fn append(&mut self, new: Refill) {
        let count = self.count();
        let last = count.checked_sub(1).and_then(|last| self.places.get_mut(last));
        if let Some(last) = last {
            if new.time <= last.end() {
                last.amount += new.amount;
                return;
            }
            if count == REFILLS {
                last.time = new.time;
                last.amount += new.amount;
                return;
            }
        }
        if let Some(free) = self.places.get_mut(count) {
            *free = new;
        }
    }
}
