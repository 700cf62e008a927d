//! Time: now, and waiting for later.

pub use core::time::Duration;

pub use tench_sys::time::instructions;
pub use tench_sys::{Error, Instant};

use tench_sys::{Cap, SchedulingContext};

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

    /// Limits a scheduling context, on the authority of another (`None`: that of the running thread). All of the budget can be
    /// used at once. Errors: `InvalidArgument` (no such budget), `PriorityTooHigh`, and those of the capabilities.
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
