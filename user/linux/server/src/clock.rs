//! The time since the machine started, which most calls ask for.

use core::time::Duration;

use tench::sys::Instant;
use tench::time;

/// Binary digits behind the point of a [`Clock`]'s rate.
const FRACTION: u32 = 32;

/// Turns ticks of the processor's counter into time without a division.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds per tick, in parts of 2^32.
    rate: u64,
}

impl Clock {
    /// Returns the clock of this machine.
    pub fn new() -> Clock {
        Clock { rate: (1_000_000_000 << FRACTION) / time::frequency() }
    }

    /// Returns how long so many ticks last: at most a nanosecond too short, and one more for each 2^32 ticks.
    pub const fn duration(self, ticks: u64) -> Duration {
        Duration::from_nanos(((ticks as u128 * self.rate as u128) >> FRACTION) as u64)
    }

    /// Returns the time since the machine started.
    pub fn uptime(self) -> Duration {
        self.duration(Instant::now().ticks())
    }
}
