//! Time: now, and waiting for later.

pub use core::time::Duration;

pub use tench_sys::time::instructions;
pub use tench_sys::{Error, Instant};

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
