//! The report that is printed at the end.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::Load;

/// The work that the threads of a kind have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The kind of load.
    pub load: Load,
    /// Number of threads.
    pub threads: u64,
    /// Number of rounds of all of them.
    pub rounds: u64,
}

/// Returns the number of rounds per second. Times below a microsecond count as one.
pub fn rate(rounds: u64, elapsed: Duration) -> u64 {
    let microseconds = elapsed.as_micros().max(1);
    (u128::from(rounds) * 1_000_000 / microseconds).min(u128::from(u64::MAX)) as u64
}

/// Returns the line of a kind.
pub fn line(work: &Work, elapsed: Duration) -> String {
    let Work { load, threads, rounds } = *work;
    let noun = if threads == 1 { "thread " } else { "threads" };
    let rate = rate(rounds, elapsed);
    format!("{:10} {threads:2} {noun} {rounds:12} {:9} {rate:10} per second", load.name(), load.rounds())
}

/// Returns the line about time: how long the program took, and its share of the processor, both in ticks.
pub fn time(elapsed: Duration, used: u64, ticks: u64) -> String {
    // The end is read slightly before the time used by then.
    let share = u128::from(used.min(ticks)) * 1000 / u128::from(ticks.max(1));
    let (seconds, millis) = (elapsed.as_secs(), elapsed.subsec_millis());
    format!("{seconds}.{millis:03} s, {}.{} % of the processor", share / 10, share % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_was_done() {
        let work = Work { load: Load::Interrupts, threads: 2, rounds: 3_000 };
        let expected = "interrupts  2 threads         3000 deadlines       2000 per second";
        assert_eq!(line(&work, Duration::from_millis(1500)), expected);
        let work = Work { load: Load::Cpu, threads: 1, rounds: u64::MAX };
        assert!(line(&work, Duration::ZERO).starts_with("cpu         1 thread  18446744073709551615 loops"));
        assert_eq!((rate(0, Duration::ZERO), rate(5, Duration::ZERO)), (0, 5_000_000));
    }

    #[test]
    fn the_share_has_a_digit_behind_the_point() {
        assert_eq!(time(Duration::from_millis(2_005), 305, 1000), "2.005 s, 30.5 % of the processor");
        assert_eq!(time(Duration::ZERO, 0, 0), "0.000 s, 0.0 % of the processor");
        assert_eq!(time(Duration::from_micros(9), 599, 580), "0.000 s, 100.0 % of the processor");
    }
}
