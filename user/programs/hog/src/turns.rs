//! The turns of threads: when each works and when it waits.
//!
//! Time is divided into periods. In each, every thread has a part of its own, and all parts together are the share that
//! was asked for: threads that work one after another take no more than that, however many there are.
//!
//! ```text
//! ├──────────────── period ───────────────┤
//! │ thread 0 │ thread 1 │ none            │ thread 0 │ …
//! ├─────── share ───────┤
//! ```

/// A thread's part of each period. Times are in ticks; the unit is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    period: u64,
    /// Offsets in the period at which the part begins and ends.
    from: u64,
    to: u64,
}

/// The action of a thread at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Works until this time.
    Work(u64),
    /// Waits until this time.
    Wait(u64),
}

impl Turns {
    /// Returns the part of one of `threads` threads, when all together work `percent` of the time. With 100 percent no
    /// thread ever waits: the threads yield to each other at the end of each period.
    pub const fn new(period: u64, percent: u64, thread: u64, threads: u64) -> Turns {
        if percent >= 100 || threads == 0 {
            return Turns { period, from: 0, to: period };
        }
        let share = period * percent / 100;
        Turns { period, from: share * thread / threads, to: share * (thread + 1) / threads }
    }

    /// Returns what the thread does at `now`.
    pub const fn at(&self, now: u64) -> Turn {
        let (begin, place) = (now - now % self.period, now % self.period);
        if place < self.from {
            Turn::Wait(begin + self.from)
        } else if place < self.to {
            Turn::Work(begin + self.to)
        } else {
            Turn::Wait(begin.saturating_add(self.period).saturating_add(self.from))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_comes_once_in_each_period() {
        let second = Turns::new(100, 30, 1, 2);
        assert_eq!(second.at(500), Turn::Wait(515));
        assert_eq!(second.at(515), Turn::Work(530));
        assert_eq!(second.at(529), Turn::Work(530));
        assert_eq!(second.at(530), Turn::Wait(615));
        let whole = Turns::new(100, 100, 1, 2);
        assert_eq!((whole.at(0), whole.at(99), whole.at(100)), (Turn::Work(100), Turn::Work(100), Turn::Work(200)));
    }

    proptest! {
        #[test]
        fn all_together_work_their_share_one_after_another(
            period in 1000..1_000_000_u64,
            percent in 1..100_u64,
            threads in 1..20_u64,
            start in 0..1_u64 << 40,
        ) {
            let start = start - start % period;
            let mut worked = 0;
            for thread in 0..threads {
                let turns = Turns::new(period, percent, thread, threads);
                let (mut now, mut steps) = (start, 0);
                while now < start + period {
                    // Parts do not overlap: each begins where the previous one ends.
                    let until = match turns.at(now) {
                        Turn::Work(until) => {
                            prop_assert_eq!(now, start + worked);
                            worked += until - now;
                            until
                        }
                        Turn::Wait(until) => until,
                    };
                    prop_assert!(until > now, "time goes on");
                    now = until;
                    steps += 1;
                }
                prop_assert!(steps <= 3);
            }
            prop_assert_eq!(worked, period * percent / 100);
        }
    }
}
