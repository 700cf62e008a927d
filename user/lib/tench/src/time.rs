//! Time: reading the clock, and waiting.
//!
//! Waiting costs one system call and no server: the kernel keeps the deadline. No thread wakes early; how late it wakes
//! depends on threads of higher priority. The order in which threads of one priority continue that wait for the same
//! tick is unspecified; the clock server keeps the order of the requests.
//!
//! | R4 | here | by the clock server |
//! |---|---|---|
//! | `Time` | [`Instant::now`], [`uptime`] | `Clock::time` |
//! | `Delay` | [`sleep`] | `Clock::delay` |
//! | `DelayUntil` | [`sleep_until`]; again and again: [`Periodic`] | `Clock::delay_until` |
//! | `AwaitEvent` | [`await_event`], [`await_interrupt`] | `Clock::await_event` |
//!
//! The date is the wall clock's: [`wall_clock`], which asks the clock server.
//!
//! The clock server ([`crate::clock`]) is for programs that have no thread to spare for waiting on a deadline, or that
//! want a reply for which they can wait as for that of any server.

pub use core::time::Duration;

pub use tench_sys::time::{instructions, may_count};
pub use tench_sys::{Error, Instant};

use tench_clock_interface::{Clock, Failure};
use tench_names_interface::Names;
use tench_protocol::again;
use tench_sys::{Cap, CapAddress, Endpoint, Interrupt, Notification, SchedulingContext};

use crate::{memory, process, thread};

/// Number of attempts to reach a clock server that is being started again, and the pause before each but the first.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Returns the ticks of the system counter per second.
pub fn frequency() -> u64 {
    let frequency = process::info().map(|info| info.counter_frequency);
    frequency.or(process::boot_info().map(|info| info.counter_frequency)).unwrap_or(1)
}

/// Returns how long the machine has been running.
pub fn uptime() -> Duration {
    elapsed(Instant::from_ticks(0))
}

/// Returns the wall-clock time: since the beginning of 1970, in UTC.
///
/// # Errors
/// Those of [`wall_clock_at_start`].
pub fn wall_clock() -> Result<Duration, Failure> {
    Ok(wall_clock_at_start()?.saturating_add(uptime()))
}

/// Returns the wall-clock time at which the machine was started, when [`uptime`] was zero. It costs requests to two
/// servers, and remains true: who needs the time often keeps it.
///
/// # Errors
/// `NoWallClock` if nobody knows the date; `Lost` if there is no clock server.
pub fn wall_clock_at_start() -> Result<Duration, Failure> {
    let slot = memory::take_slot().map_err(|_| Failure::Lost(Error::NoSuchSlot))?;
    let mut reply = ask_wall_clock(slot);
    for _ in 1..ATTEMPTS {
        // The server may be starting again, and its name still lead to the one that has ended.
        if !matches!(reply, Err(Failure::Lost(_) | Failure::Restarted)) {
            break;
        }
        sleep(PAUSE);
        reply = ask_wall_clock(slot);
    }
    memory::free_slot(slot);
    reply.map(Duration::from_nanos)
}

/// Looks the clock server up, with an empty slot that is left empty, and asks it.
fn ask_wall_clock(slot: CapAddress) -> Result<u64, Failure> {
    let found: Cap<Endpoint> =
        again(|| Names::STANDARD.look_up(Clock::NAME, slot)).map_err(|_| Failure::Lost(Error::InvalidCapability))?;
    let reply = Clock::at(found).wall_clock_at_start();
    // If the server has ended, its capabilities have, too.
    let _ = found.delete();
    reply
}

/// Returns the time that has passed since an instant.
pub fn elapsed(since: Instant) -> Duration {
    tench_sys::time::duration(Instant::now().since(since), frequency())
}

/// Returns the instant at which a duration from now will have passed.
pub fn deadline(duration: Duration) -> Instant {
    Instant::now().after(tench_sys::time::ticks(duration, frequency()))
}

/// Suspends the running thread for at least this long.
pub fn sleep(duration: Duration) {
    sleep_until(deadline(duration));
}

/// Suspends the running thread until an instant.
pub fn sleep_until(deadline: Instant) {
    let own = thread::own_notification();
    while Instant::now() < deadline {
        // A late signal, meant for an earlier wait, ends this wait early; then it begins again.
        match own.map(|notification| notification.wait_until(deadline)) {
            Some(Err(Error::TimedOut)) => return,
            Some(_) => {}
            // Without memory for a notification, the thread can only poll.
            None => thread::yield_now(),
        }
    }
}

/// Waits until a notification is signalled or the deadline passes, and returns its bits.
/// Rights: `READ`. Errors: `TimedOut`, `Aborted` (the notification was deleted); those of an invalid capability.
pub fn await_event(event: Cap<Notification>, deadline: Option<Instant>) -> Result<u64, Error> {
    match deadline {
        Some(deadline) => event.wait_until(deadline),
        None => event.wait(),
    }
}

/// Lets the next interrupt of a line in, and waits until it comes or the deadline passes. The line must be bound to the
/// notification, and its device must have been told that its last interrupt was handled.
/// Rights: `WRITE` on the interrupt, `READ` on the notification. Errors: those of [`await_event`].
pub fn await_interrupt(
    line: Cap<Interrupt>,
    event: Cap<Notification>,
    deadline: Option<Instant>,
) -> Result<u64, Error> {
    line.acknowledge()?;
    await_event(event, deadline)
}

/// A periodic activity, whose times are whole periods apart however long each activation takes.
#[derive(Clone, Debug)]
pub struct Periodic {
    next: Instant,
    ticks: u64,
}

impl Periodic {
    /// Returns an activity with this period, at least a tick of the system counter; the first period begins now.
    pub fn every(period: Duration) -> Periodic {
        let ticks = tench_sys::time::ticks(period, frequency()).max(1);
        Periodic { next: Instant::now().after(ticks), ticks }
    }

    /// Returns the instant at which the next period begins.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Waits until the next period begins. Returns the number of periods missed because the last activation took too
    /// long: 0 if there was no overrun. The missed periods are skipped: the next one is the first that has not begun.
    pub fn wait(&mut self) -> u64 {
        sleep_until(self.next);
        let missed = self.pass(Instant::now());
        self.next = self.next.after(self.ticks);
        missed
    }

    /// Advances to the period that contains `now`, which must not be before the next period's beginning, and returns
    /// the number of periods skipped.
    fn pass(&mut self, now: Instant) -> u64 {
        let missed = now.since(self.next) / self.ticks;
        self.next = self.next.after(missed.saturating_mul(self.ticks));
        missed
    }
}

/// Limit to a thread's use of the processor: a number of ticks in any interval as long as the period.
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
    /// The unlimited budget.
    pub const UNLIMITED: Budget = Budget { ticks: 0, period: 0 };

    /// Returns a budget in ticks of the system counter. The kernel refuses a budget longer than the period or shorter
    /// than [`MIN_BUDGET`](tench_abi::object::MIN_BUDGET).
    pub const fn from_ticks(ticks: u64, period: u64) -> Budget {
        Budget { ticks, period }
    }

    /// Returns a budget with both durations rounded up to ticks.
    pub fn new(budget: Duration, period: Duration) -> Budget {
        let ticks = |duration| tench_sys::time::ticks(duration, frequency());
        Budget { ticks: ticks(budget), period: ticks(period) }
    }

    /// Returns a budget with both times in microseconds, rounded up to ticks.
    pub fn from_micros(budget: u64, period: u64) -> Budget {
        Budget::new(Duration::from_micros(budget), Duration::from_micros(period))
    }

    /// Returns the ticks that can be used in a period.
    pub const fn ticks(self) -> u64 {
        self.ticks
    }

    /// Returns the ticks of the period.
    pub const fn period(self) -> u64 {
        self.period
    }

    /// Returns whether there is a limit.
    pub const fn is_limit(self) -> bool {
        self.period != 0
    }

    /// Limits a scheduling context, authorised by another (`None`: that of the running thread). All of the budget can
    /// be used at once. Errors: `InvalidArgument` (no such budget), `PriorityTooHigh`, and those of the capabilities.
    pub fn limit(
        self,
        context: Cap<SchedulingContext>,
        authority: Option<Cap<SchedulingContext>>,
    ) -> Result<(), Error> {
        context.reserve(self.ticks, self.period, authority)
    }

    /// Returns the limit of a scheduling context.
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
