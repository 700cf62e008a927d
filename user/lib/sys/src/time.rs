//! The system counter, and the count of retired instructions.

use core::time::Duration;

/// Nanoseconds in a second.
const NANOSECONDS: u128 = 1_000_000_000;

/// A point in time, in ticks of the system counter since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Returns the time with this many ticks.
    pub const fn from_ticks(ticks: u64) -> Instant {
        Instant(ticks)
    }

    /// Returns the current time.
    #[inline]
    pub fn now() -> Instant {
        Instant(counter())
    }

    /// Returns the time in ticks.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Returns the time `ticks` later, or the end of time if that is beyond it.
    pub const fn after(self, ticks: u64) -> Instant {
        Instant(self.0.saturating_add(ticks))
    }

    /// Returns the ticks since an earlier time; 0 if that was later.
    pub const fn since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Returns the ticks in a duration, rounded up, at `frequency` ticks per second. Overflow saturates.
pub const fn ticks(duration: Duration, frequency: u64) -> u64 {
    // Below 2^64 seconds of 10^9 nanoseconds at 2^64 Hz could exceed 128 bits; whole seconds are counted apart.
    let seconds = duration.as_secs() as u128 * frequency as u128;
    let rest = (duration.subsec_nanos() as u128 * frequency as u128).div_ceil(NANOSECONDS);
    let ticks = seconds.saturating_add(rest);
    if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 }
}

/// Returns the duration of `ticks` at `frequency` ticks per second, rounded down; zero if the frequency is 0.
pub const fn duration(ticks: u64, frequency: u64) -> Duration {
    if frequency == 0 {
        return Duration::ZERO;
    }
    let nanoseconds = (ticks % frequency) as u128 * NANOSECONDS / frequency as u128;
    Duration::new(ticks / frequency, nanoseconds as u32)
}

/// Returns the system counter.
#[inline]
fn counter() -> u64 {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    {
        let ticks: u64;
        // SAFETY: reads a register that the kernel lets programs read.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }
    #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
    0
}

/// Returns whether programs on this core may read its counters ([`let_count`](crate::Cap::let_count)).
#[inline]
pub fn may_count() -> bool {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    {
        /// The bit for counters of events.
        const EVENTS: u64 = 1 << 3;
        let access: u64;
        // SAFETY: reads a register that programs may always read.
        unsafe { core::arch::asm!("mrs {}, pmuserenr_el0", out(reg) access, options(nomem, nostack, preserves_flags)) };
        access & EVENTS != 0
    }
    #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
    true
}

/// Returns the number of retired instructions on this core, by kernel and programs. Reading it is an exception where
/// programs [may not count](may_count). The count wraps at 2³² on some processors, so only differences are meaningful.
#[inline]
pub fn instructions() -> u64 {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    {
        let count: u64;
        // SAFETY: reads event counter 0, which the kernel lets programs read and has set to count instructions.
        unsafe { core::arch::asm!("mrs {}, pmevcntr0_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
        count
    }
    #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// QEMU's `virt` machine.
    const FREQUENCY: u64 = 62_500_000;

    #[test]
    fn durations_round_up_to_ticks() {
        assert_eq!(ticks(Duration::from_secs(2), FREQUENCY), 125_000_000);
        assert_eq!(ticks(Duration::from_nanos(1), FREQUENCY), 1);
        assert_eq!(ticks(Duration::from_nanos(16), FREQUENCY), 1);
        assert_eq!(ticks(Duration::from_nanos(17), FREQUENCY), 2);
        assert_eq!(ticks(Duration::ZERO, FREQUENCY), 0);
        assert_eq!(ticks(Duration::MAX, FREQUENCY), u64::MAX);
        assert_eq!(ticks(Duration::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn ticks_become_durations() {
        assert_eq!(duration(125_000_001, FREQUENCY), Duration::new(2, 16));
        assert_eq!(duration(u64::MAX, 1), Duration::from_secs(u64::MAX));
        assert_eq!(duration(5, 0), Duration::ZERO);
    }

    #[test]
    fn instants_stay_in_range() {
        let instant = Instant::from_ticks(u64::MAX - 1);
        assert_eq!(instant.after(5).ticks(), u64::MAX);
        assert_eq!(Instant::from_ticks(3).since(Instant::from_ticks(5)), 0);
        assert!(Instant::from_ticks(3) < Instant::from_ticks(5));
    }
}
