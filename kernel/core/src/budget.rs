//! How much processor time a scheduling context may still use, and when more comes.
//!
//! A budget is a row of *refills*: amounts of time, each usable from a point in time on. What is consumed is taken from
//! the first of them and comes back as a new last one, a period after it was consumed: a sporadic server. So whoever
//! runs on the budget gets, in any stretch of time as long as the period, no more than the budget, whenever it chooses
//! to run.
//!
//! ```text
//!  refills   (t0, a)  (t1, b)  (t2, c)          t0 ≤ t1 ≤ t2,  a + b + c = budget
//!  consumed     └──── u at the time s ────► (t0, a - u)  (t1, b)  (t2, c)  (s + period, u)
//! ```
//! Why this bounds every stretch: think of the budget as that many tokens in a row, taken from the front. The token
//! that is `j` behind the first of a refill cannot be used before the refill's time and `j` ticks more, since those
//! before it are used first. A token used at time `s` lies in a refill where it is `j` behind the first, and that
//! begins at `s - j + period` or later. All that is done with refills to have few of them keeps this: they move later,
//! never earlier.
//!
//! What the kernel lets a thread use beyond what was usable (it looks at the clock at its entries and windows alone) is
//! taken from refills that are not due yet, so that those are due later: an overrun is paid back.
//!
//! Everything here is arithmetic on plain numbers; [`scheduling`](crate::scheduling) and
//! [`scheduler`](crate::scheduler) know whose budget it is.

use tench_abi::object::MIN_BUDGET;

/// Refills of one budget. A program that consumes in more pieces than these within a period gets some of it later.
pub const REFILLS: usize = 4;

/// Time that can be used from a point in time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Refill {
    /// From when on, as a reading of the counter.
    pub time: u64,
    /// Ticks.
    pub amount: u64,
}

impl Refill {
    /// When the last of it has been used, at the earliest.
    const fn end(self) -> u64 {
        self.time.saturating_add(self.amount)
    }
}

/// A budget. All zero: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Budget {
    /// Ticks that can be used within any period; 0 without a limit.
    pub budget: u64,
    /// Ticks; 0 without a limit.
    pub period: u64,
    /// The refills, in the order of their times. Those from `count` on are zero.
    refills: [Refill; REFILLS],
}

impl Budget {
    /// A budget, all of which can be used from `now` on. `budget` is at least [`MIN_BUDGET`] and at most `period`.
    pub fn new(budget: u64, period: u64, now: u64) -> Budget {
        let mut made = Budget { budget, period, ..Budget::default() };
        made.refills[0] = Refill { time: now, amount: budget };
        made
    }

    /// Whether there is a limit.
    #[inline(always)]
    pub const fn is_limited(&self) -> bool {
        self.period != 0
    }

    /// The refills that there are. (An amount of 0 is none.)
    fn count(&self) -> usize {
        self.refills.iter().take_while(|refill| refill.amount != 0).count()
    }

    /// The refills, first the one that is used next.
    pub fn refills(&self) -> &[Refill] {
        self.refills.get(..self.count()).unwrap_or(&[])
    }

    /// For how long it can be used from `now` on without a break, refills that become due meanwhile included.
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

    /// When the first refill that cannot be used at `now` can be used; `None` if there is no such.
    pub fn next_refill(&self, now: u64) -> Option<u64> {
        self.refills().iter().map(|refill| refill.time).find(|time| *time > now)
    }

    /// Takes what was used without a break from `from` on, until `until`, off the budget.
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

    /// What became usable before `now` is one refill: none of it is used before.
    fn join_due(&mut self, now: u64) {
        while self.refills[1].amount != 0 && self.refills[1].time <= now {
            self.join_first_two();
        }
        if self.refills[0].time < now {
            self.refills[0].time = now;
            self.join_touching();
        }
    }

    /// A refill that is due when the one before it has been used, or earlier, becomes part of that.
    fn join_touching(&mut self) {
        while self.refills[1].amount != 0 && self.refills[1].time <= self.refills[0].end() {
            let time = self.refills[0].time;
            self.join_first_two();
            self.refills[0].time = time;
        }
    }

    /// A first refill that is too small to run on becomes part of the second.
    fn join_small(&mut self) {
        self.join_touching();
        while self.refills[1].amount != 0 && self.refills[0].amount < MIN_BUDGET {
            self.join_first_two();
            self.join_touching();
        }
    }

    /// Makes the first two refills one, at the time of the second.
    fn join_first_two(&mut self) {
        let first = self.take_first();
        self.refills[0].amount += first.amount;
    }

    /// Takes the first refill out.
    fn take_first(&mut self) -> Refill {
        let first = self.refills[0];
        self.refills.copy_within(1.., 0);
        self.refills[REFILLS - 1] = Refill::default();
        first
    }

    /// Takes as many whole budgets as there are in `used`, in one step: a thread that was not stopped for long may have
    /// used very many. Answers what is left.
    fn consume_whole(&mut self, from: u64, used: u64) -> u64 {
        self.consume_part(from, self.budget);
        let further = used / self.budget - 1;
        let delay = further.saturating_mul(self.period);
        for refill in &mut self.refills {
            if refill.amount != 0 {
                refill.time = refill.time.saturating_add(delay);
            }
        }
        used % self.budget
    }

    /// Takes up to a whole budget.
    fn consume_part(&mut self, mut at: u64, mut used: u64) {
        while used > 0 {
            let first = self.refills[0];
            // Not due yet: it is used too early, and counts as used when it is due.
            let start = at.max(first.time);
            let taken = used.min(first.amount);
            if taken == first.amount {
                self.take_first();
            } else {
                self.refills[0] = Refill { time: start + taken, amount: first.amount - taken };
                self.join_touching();
            }
            self.append(Refill { time: start.saturating_add(self.period), amount: taken });
            at += taken;
            used -= taken;
        }
    }

    /// Appends a refill, or makes it part of the last one: if it is due before that has been used, or there is no room.
    fn append(&mut self, new: Refill) {
        let count = self.count();
        let last = count.checked_sub(1).and_then(|last| self.refills.get_mut(last));
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
        if let Some(free) = self.refills.get_mut(count) {
            *free = new;
        }
    }

    /// Panics unless the refills are in order and make up the budget. For tests.
    pub fn check_invariants(&self) {
        let refills = self.refills();
        if !self.is_limited() {
            assert!(*self == Budget::default(), "nothing is left of a budget that was taken off");
            return;
        }
        assert!(MIN_BUDGET <= self.budget && self.budget <= self.period, "the budget is one");
        assert_eq!(refills.iter().map(|refill| refill.amount).sum::<u64>(), self.budget, "the amounts are the budget");
        assert!(refills.is_sorted_by_key(|refill| refill.time), "refills are in the order of their times");
        assert!(refills[0].amount >= MIN_BUDGET, "the first refill is large enough to run on");
        assert!(self.refills[refills.len()..].iter().all(|refill| *refill == Refill::default()), "the rest is empty");
    }
}
