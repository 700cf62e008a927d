//! The arithmetic of budgets against the obvious model: a queue of as many tokens as the budget has ticks. A tick takes
//! the first token, and puts it back as the last, usable again a period later.

use std::collections::VecDeque;

use proptest::prelude::*;
use tench_abi::object::MIN_BUDGET;
use tench_arch_host::check_queues::check_budget;
use tench_kernel::budget::{Budget, REFILLS};

/// Tokens, as the times at which they can be used.
struct Tokens {
    row: VecDeque<u64>,
    period: u64,
}

impl Tokens {
    fn new(budget: u64, period: u64, now: u64) -> Tokens {
        Tokens { row: (0..budget).map(|_| now).collect(), period }
    }

    /// Returns for how many consecutive ticks from `now` on there is a usable token.
    fn usable(&self, now: u64) -> u64 {
        self.row.iter().zip(now..).take_while(|(due, at)| *due <= at).count() as u64
    }

    /// Uses one tick, due or not. Returns true if it was due.
    fn consume(&mut self, at: u64) -> bool {
        let due = self.row.pop_front().expect("there are always as many tokens");
        self.row.push_back(at.max(due) + self.period);
        due <= at
    }
}

/// A step of a thread with a budget.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Waits, for a number of ticks.
    Wait(u64),
    /// Runs for a number of ticks, or until the budget is used up.
    Run(u64),
    /// Runs for a number of ticks without being stopped.
    Overrun(u64),
    /// Waits for the refill, and runs until the budget is used up.
    Use,
}

fn step(overruns: bool) -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_u64..400).prop_map(Step::Wait),
        (1_u64..120).prop_map(Step::Run),
        Just(Step::Use),
        (1_u64..90).prop_map(move |ticks| if overruns { Step::Overrun(ticks) } else { Step::Run(ticks) }),
        (1_u64..1200).prop_map(move |ticks| if overruns { Step::Overrun(ticks) } else { Step::Wait(ticks) }),
    ]
}

fn budget_and_period() -> impl Strategy<Value = (u64, u64)> {
    (MIN_BUDGET..200).prop_flat_map(|budget| (Just(budget), prop_oneof![Just(budget), budget..4 * budget]))
}

/// A run of a thread with a budget, and the history of its use.
struct Run {
    now: u64,
    budget: Budget,
    tokens: Tokens,
    /// For each tick since the start: whether it was used, and whether that was allowed.
    used: Vec<(bool, bool)>,
}

impl Run {
    fn new(budget: u64, period: u64) -> Run {
        let now = 1000;
        let (tokens, budget) = (Tokens::new(budget, period, now), Budget::new(budget, period, now));
        Run { now, budget, tokens, used: Vec::new() }
    }

    fn wait(&mut self, ticks: u64) {
        self.now += ticks;
        self.used.extend((0..ticks).map(|_| (false, true)));
    }

    fn run(&mut self, ticks: u64) {
        for at in self.now..self.now + ticks {
            let allowed = self.tokens.consume(at);
            self.used.push((true, allowed));
        }
        self.budget.consume(self.now, self.now + ticks);
        self.now += ticks;
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait(ticks) => self.wait(ticks),
            Step::Run(ticks) => self.run(ticks.min(self.budget.usable(self.now))),
            Step::Overrun(ticks) => self.run(ticks),
            Step::Use => {
                if self.budget.usable(self.now) == 0 {
                    let next = self.budget.next_refill(self.now).expect("what was used comes back");
                    self.wait(next - self.now);
                }
                self.run(self.budget.usable(self.now));
            }
        }
        self.check();
    }

    fn check(&self) {
        check_budget(&self.budget);
        let (usable, allowed) = (self.budget.usable(self.now), self.tokens.usable(self.now));
        assert!(
            usable <= allowed,
            "{usable} can be used at {}, the model allows {allowed}: {:?}",
            self.now,
            self.budget
        );
        if usable == 0 {
            let next = self.budget.next_refill(self.now).expect("somebody without budget gets more");
            assert!(self.budget.usable(next) >= MIN_BUDGET, "what comes next is worth to run for");
        }
    }

    /// Checks that in no interval as long as the period more is used than the budget, except what was used without
    /// being allowed.
    fn check_windows(&self) {
        let (mut used, mut forbidden) = (0, 0);
        for (i, (now, allowed)) in self.used.iter().enumerate() {
            used += u64::from(*now);
            forbidden += u64::from(*now && !*allowed);
            if let Some((then, allowed)) = i.checked_sub(self.budget.period as usize).map(|i| self.used[i]) {
                used -= u64::from(then);
                forbidden -= u64::from(then && !allowed);
            }
            assert!(used <= self.budget.budget + forbidden, "{used} ticks in the period that ends {i} after the start");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_period_has_more_than_the_budget(
        (budget, period) in budget_and_period(),
        steps in prop::collection::vec(step(false), 1..60),
    ) {
        let mut run = Run::new(budget, period);
        for step in steps {
            run.step(step);
        }
        prop_assert!(run.used.iter().all(|(_, allowed)| *allowed), "whoever stops in time uses nothing that is not due");
        run.check_windows();
    }

    #[test]
    fn overruns_are_paid_back(
        (budget, period) in budget_and_period(),
        steps in prop::collection::vec(step(true), 1..60),
    ) {
        let mut run = Run::new(budget, period);
        for step in steps {
            run.step(step);
        }
        run.check_windows();
    }

    #[test]
    fn nothing_is_lost((budget, period) in budget_and_period(), steps in prop::collection::vec(step(true), 1..30)) {
        let mut run = Run::new(budget, period);
        for step in steps {
            run.step(step);
        }
        let used = run.used.iter().filter(|(now, _)| *now).count() as u64;
        // All that was ever used too early comes back in so many periods.
        run.wait((used / budget + 2) * (period + budget));
        prop_assert_eq!(run.budget.usable(run.now), budget);
    }

    #[test]
    fn a_thread_that_runs_whenever_possible_gets_its_whole_budget((budget, period) in budget_and_period(), periods in 2_u64..12) {
        let mut run = Run::new(budget, period);
        let end = run.now + periods * period;
        while run.now < end {
            run.step(Step::Use);
        }
        let used = run.used.iter().take((periods * period) as usize).filter(|(now, _)| *now).count() as u64;
        prop_assert!(used == periods * budget, "{} ticks in {} periods of {}", used, periods, budget);
    }
}

#[test]
fn budget_consumed_in_parts_is_refilled_in_parts() {
    let mut budget = Budget::new(400, 1000, 0);
    budget.consume(0, 100);
    budget.consume(200, 300);
    assert_eq!(budget.usable(300), 200);
    assert_eq!(budget.next_refill(300), Some(1000));
    budget.consume(500, 700);
    assert_eq!((budget.usable(700), budget.next_refill(700)), (0, Some(1000)));
    assert_eq!((budget.usable(1000), budget.usable(1200), budget.usable(1500)), (100, 200, 400));
    check_budget(&budget);
}

#[test]
fn parts_beyond_the_refills_are_refilled_later_and_together() {
    let mut budget = Budget::new(1000, 10_000, 0);
    for part in 0..6 {
        budget.consume(part * 300, part * 300 + 70);
        check_budget(&budget);
    }
    assert_eq!(budget.refills().len(), REFILLS);
    assert_eq!(budget.refills()[REFILLS - 1].time, 11_500, "the last is due when the last of its parts would be");
    assert_eq!(budget.refills()[REFILLS - 1].amount, 4 * 70);
}

#[test]
fn a_refill_too_small_to_run_on_waits_for_more() {
    let mut budget = Budget::new(MIN_BUDGET, 1000, 0);
    budget.consume(0, 10);
    assert_eq!(budget.usable(10), 0);
    assert_eq!(budget.next_refill(10), Some(1000));
    assert_eq!(budget.usable(1000), MIN_BUDGET);
}

#[test]
fn a_long_overrun_is_charged_in_one_step() {
    let mut budget = Budget::new(100, 1000, 0);
    budget.consume(0, 1 << 50);
    check_budget(&budget);
    let periods = (1_u64 << 50) / 100;
    let next = budget.next_refill(1 << 50).expect("more comes");
    assert!((periods * 1000..(periods + 2) * 1000).contains(&next), "{next} is {periods} periods after the start");
}

#[test]
fn a_budget_as_long_as_its_period_never_ends() {
    let mut budget = Budget::new(500, 500, 0);
    for i in 0..100 {
        assert_eq!(budget.usable(i * 37), 500);
        budget.consume(i * 37, i * 37 + 37);
        check_budget(&budget);
    }
}

#[test]
fn without_a_limit_nothing_is_counted() {
    let mut none = Budget::default();
    none.consume(0, 1000);
    check_budget(&none);
    assert!(!none.is_limited() && none.refills().is_empty() && none.next_refill(0).is_none());
}
