//! Conversions between ticks of the system counter and other units.

use tench_clock_interface::protocol::TICKS_PER_SECOND;

/// Returns the nanoseconds in `ticks` at `frequency` ticks per second, rounded down.
pub const fn nanoseconds(ticks: u64, frequency: u64) -> u64 {
    (ticks as u128 * 1_000_000_000 / frequency as u128) as u64
}

/// Returns the time of the first 10 ms tick after `now`.
///
/// Tick n happens at n × frequency / 100, rounded down, so that no error accumulates if 100 does not divide the
/// frequency.
pub const fn next_tick(now: u64, frequency: u64) -> u64 {
    let (now, frequency, rate) = (now as u128, frequency as u128, TICKS_PER_SECOND as u128);
    let mut number = now * rate / frequency;
    // Rounding can put the tick with this number, or the one after it, at or before `now`.
    while number * frequency / rate <= now {
        number += 1;
    }
    (number * frequency / rate) as u64
}

/// The beginning of 2020 in seconds since 1970: no machine of this system was started before.
const LEAST: u64 = 1_577_836_800;

/// Returns the wall-clock time at which the counter was 0, in nanoseconds, if a clock that counts seconds shows
/// `seconds` when the counter shows `now`. Returns nothing if that is so long ago that nobody can have set the clock:
/// it counts from about when the machine was started.
///
/// Only whole seconds are subtracted. What the clock leaves out is as unknown as what the counter has of a second,
/// so this is off by up to a second, and it is the same at each reading if both change at the same time. A restarted
/// server does not turn the time back then.
pub const fn wall_clock_at_start(seconds: u32, now: u64, frequency: u64) -> Option<u64> {
    match (seconds as u64).checked_sub(now / frequency) {
        Some(start) if start >= LEAST => Some(start * 1_000_000_000),
        _ => None,
    }
}
