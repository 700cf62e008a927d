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
