//! Statistics of one thread.

use crate::histogram::Histogram;

/// The numbers of a thread. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of times that it has run.
    pub cycles: u64,
    /// Number of times at which it should have run and did not run at all.
    pub overruns: u64,
    /// Least lateness; 0 if it has not run.
    pub least: u64,
    /// Last lateness.
    pub last: u64,
    /// Greatest lateness.
    pub most: u64,
    /// Sum of all lateness.
    pub sum: u64,
}

impl Figures {
    /// Returns the average lateness, rounded down; `None` if the thread has not run.
    pub const fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.cycles)
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        match self.mean() {
            None => assert_eq!((self.least, self.last, self.most, self.sum), (0, 0, 0, 0)),
            Some(mean) => {
                assert!(self.least <= mean && mean <= self.most);
                assert!((self.least..=self.most).contains(&self.last));
            }
        }
    }
}

/// The numbers and the histogram of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The numbers.
    pub figures: Figures,
    /// The histogram, if one was asked for.
    pub histogram: Option<Histogram>,
}

impl Statistics {
    /// Returns empty statistics.
    pub fn new(histogram: Option<Histogram>) -> Statistics {
        Statistics { figures: Figures::default(), histogram }
    }

    /// Records a run that was `late` nanoseconds late.
    pub fn record(&mut self, late: u64) {
        let figures = &mut self.figures;
        figures.least = if figures.cycles == 0 { late } else { figures.least.min(late) };
        figures.most = figures.most.max(late);
        figures.last = late;
        figures.cycles += 1;
        figures.sum = figures.sum.saturating_add(late);
        if let Some(histogram) = &mut self.histogram {
            histogram.record(late);
        }
    }

    /// Records missed times.
    pub fn miss(&mut self, times: u64) {
        self.figures.overruns += times;
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.figures.check_invariants();
        if let Some(histogram) = &self.histogram {
            histogram.check_invariants();
            assert_eq!(histogram.total(), self.figures.cycles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_all_values(values in prop::collection::vec((0..1_u64 << 40, 0..3_u64), 0..200)) {
            let mut statistics = Statistics::new(Some(Histogram::new(1 << 32, 100)));
            statistics.check_invariants();
            for (late, missed) in &values {
                statistics.record(*late);
                statistics.miss(*missed);
                statistics.check_invariants();
            }
            let late = || values.iter().map(|value| value.0);
            let expected = Figures {
                cycles: values.len() as u64,
                overruns: values.iter().map(|value| value.1).sum(),
                least: late().min().unwrap_or(0),
                last: late().next_back().unwrap_or(0),
                most: late().max().unwrap_or(0),
                sum: late().sum(),
            };
            prop_assert_eq!(statistics.figures, expected);
            prop_assert_eq!(expected.mean(), late().sum::<u64>().checked_div(values.len() as u64));
        }
    }
}
