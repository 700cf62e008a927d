//! Time: now, and waiting for later.
//!
//! Waiting costs one system call and no server: the kernel keeps the deadline. Nobody is woken early; how late, is up
//! to whoever is more important. In which order threads of one priority go on that wait for the very same tick is not
//! said; the clock server keeps to that in which they asked.
//!
//! | R4 | here | by the clock server |
//! |---|---|---|
//! | `Time` | [`Instant::now`], [`uptime`] | `Clock::time` |
//! | `Delay` | [`sleep`] | `Clock::delay` |
//! | `DelayUntil` | [`sleep_until`]; again and again: [`Periodic`] | `Clock::delay_until` |
//! | `AwaitEvent` | [`await_event`], [`await_interrupt`] | `Clock::await_event` |
//!
//! The clock server ([`crate::clock`]) is for whoever has no thread to spare for waiting on a deadline of its own, or
//! wants an answer that it can wait for like that of any server.

pub use core::time::Duration;

pub use tench_sys::time::{instructions, may_count};
pub use tench_sys::{Error, Instant};

use tench_sys::{Cap, Interrupt, Notification, SchedulingContext};

use crate::{process, thread};

/// Ticks of the system counter per second.
pub fn frequency() -> u64 {
    let frequency = process::info().map(|info| info.counter_frequency);
    frequency.or(process::boot_info().map(|info| info.counter_frequency)).unwrap_or(1)
}

/// How long the machine has been running.
pub fn uptime() -> Duration {
    elapsed(Instant::from_ticks(0))
}

/// How long ago that was.
pub fn elapsed(since: Instant) -> Duration {
    tench_sys::time::duration(Instant::now().since(since), frequency())
}

/// When a duration from now will have passed.
pub fn deadline(duration: Duration) -> Instant {
    Instant::now().after(tench_sys::time::ticks(duration, frequency()))
}

/// Lets other threads run for at least this long.
pub fn sleep(duration: Duration) {
    sleep_until(deadline(duration));
}

/// Lets other threads run until a time.
pub fn sleep_until(deadline: Instant) {
    let own = thread::own_notification();
    while Instant::now() < deadline {
        // A signal that came too late for something else ends the wait early; then it begins again.
        match own.map(|notification| notification.wait_until(deadline)) {
            Some(Err(Error::TimedOut)) => return,
            Some(_) => {}
            // Without memory for a notification, there is only waiting.
            None => thread::yield_now(),
        }
    }
}

/// Waits until a notification is signalled, and takes its bits; with a deadline, no longer than that.
/// Rights: `READ`. Errors: `TimedOut`, `Aborted` (the notification is gone); those of a capability that is no such.
pub fn await_event(event: Cap<Notification>, deadline: Option<Instant>) -> Result<u64, Error> {
    match deadline {
        Some(deadline) => event.wait_until(deadline),
        None => event.wait(),
    }
}

/// Lets an interrupt line's next interrupt in, and waits until it comes; with a deadline, no longer than that. The line
/// is bound to the notification, and its device has been told that what it said last was heard.
/// Rights: `WRITE` on the interrupt, `READ` on the notification. Errors: those of [`await_event`].
pub fn await_interrupt(
    line: Cap<Interrupt>,
    event: Cap<Notification>,
    deadline: Option<Instant>,
) -> Result<u64, Error> {
    line.acknowledge()?;
    await_event(event, deadline)
}

/// Something that is to be done again and again, at times that are whole periods from one another, however long it
/// takes each time.
#[derive(Clone, Debug)]
pub struct Periodic {
    next: Instant,
    ticks: u64,
}

impl Periodic {
    /// With this period, which is at least a tick of the system counter; the first one begins now.
    pub fn every(period: Duration) -> Periodic {
        let ticks = tench_sys::time::ticks(period, frequency()).max(1);
        Periodic { next: Instant::now().after(ticks), ticks }
    }

    /// When the next period begins.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Waits until the next period begins. Answers how many have begun besides it, unnoticed, because the last one took
    /// too long: 0 if all is well. Then they are over, and the next is the first that has not begun.
    pub fn wait(&mut self) -> u64 {
        sleep_until(self.next);
        let missed = self.pass(Instant::now());
        self.next = self.next.after(self.ticks);
        missed
    }

    /// At a time that is not before the next period's beginning: moves on to the period that it is in, and answers by
    /// how many.
    fn pass(&mut self, now: Instant) -> u64 {
        let missed = now.since(self.next) / self.ticks;
        self.next = self.next.after(missed.saturating_mul(self.ticks));
        missed
    }
}

/// How much of the processor a thread may use: so many ticks in any stretch of time that is as long as the period.
///
/// ```
/// use tench::time::Budget;
///
/// let budget = Budget::from_ticks(2_000, 10_000);
/// assert_eq!((budget.ticks(), budget.period(), budget.is_limit()), (2_000, 10_000, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    ticks: u64,
    period: u64,
}

impl Budget {
    /// As much as there is.
    pub const UNLIMITED: Budget = Budget { ticks: 0, period: 0 };

    /// Both in ticks of the system counter. The kernel refuses a budget longer than the period or shorter than
    /// [`MIN_BUDGET`](tench_abi::object::MIN_BUDGET).
    pub const fn from_ticks(ticks: u64, period: u64) -> Budget {
        Budget { ticks, period }
    }

    /// Both as durations, to the next tick.
    pub fn new(budget: Duration, period: Duration) -> Budget {
        let ticks = |duration| tench_sys::time::ticks(duration, frequency());
        Budget { ticks: ticks(budget), period: ticks(period) }
    }

    /// Both in microseconds, to the next tick.
    pub fn from_micros(budget: u64, period: u64) -> Budget {
        Budget::new(Duration::from_micros(budget), Duration::from_micros(period))
    }

    /// Ticks that can be used.
    pub const fn ticks(self) -> u64 {
        self.ticks
    }

    /// Ticks of the period.
    pub const fn period(self) -> u64 {
        self.period
    }

    /// Whether there is a limit.
    pub const fn is_limit(self) -> bool {
        self.period != 0
    }

    /// Limits a scheduling context, on the authority of another (`None`: that of the running thread). All of the budget
    /// can be used at once. Errors: `InvalidArgument` (no such budget), `PriorityTooHigh`, and those of the
    /// capabilities.
    pub fn limit(
        self,
        context: Cap<SchedulingContext>,
        authority: Option<Cap<SchedulingContext>>,
    ) -> Result<(), Error> {
        context.reserve(self.ticks, self.period, authority)
    }

    /// The limit of a scheduling context.
    pub fn of(context: Cap<SchedulingContext>) -> Result<Budget, Error> {
        let info = context.query()?;
        Ok(Budget { ticks: info.budget, period: info.period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_stay_on_their_grid() {
        let mut periodic = Periodic { next: Instant::from_ticks(100), ticks: 10 };
        for (now, missed, next) in [
            (100, 0, 100),
            (109, 0, 100),
            (110, 1, 110),
            (175, 6, 170),
            (u64::MAX, 1844674407370955144, 18446744073709551610),
        ] {
            assert_eq!(periodic.pass(Instant::from_ticks(now)), missed);
            assert_eq!(periodic.next(), Instant::from_ticks(next));
        }
        let mut long = Periodic { next: Instant::from_ticks(5), ticks: u64::MAX };
        assert_eq!((long.pass(Instant::from_ticks(u64::MAX)), long.next().ticks()), (0, 5));
    }
}
