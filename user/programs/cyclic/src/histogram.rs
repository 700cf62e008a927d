//! Histograms of durations.

use alloc::vec;
use alloc::vec::Vec;

/// Counts of values by size: buckets of equal width from 0 on, and a count of values beyond the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    width: u64,
    counts: Vec<u64>,
    beyond: u64,
    total: u64,
}

/// The value that a given part of all values does not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// The values are less than this, the end of a bucket.
    Below(u64),
    /// The values go beyond the last bucket.
    Beyond,
    /// There are no values.
    Unknown,
}

impl Histogram {
    /// Returns an empty histogram of `buckets` buckets, each `width` wide; neither is 0.
    pub fn new(width: u64, buckets: usize) -> Histogram {
        Histogram { width: width.max(1), counts: vec![0; buckets.max(1)], beyond: 0, total: 0 }
    }

    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.total += 1;
        let bucket = usize::try_from(value / self.width).ok();
        match bucket.and_then(|bucket| self.counts.get_mut(bucket)) {
            Some(count) => *count += 1,
            None => self.beyond += 1,
        }
    }

    /// Returns the width of a bucket.
    pub const fn width(&self) -> u64 {
        self.width
    }

    /// Returns the counts of the buckets.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of values beyond the last bucket.
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the number of all values.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of buckets up to the last one that is not empty.
    pub fn used(&self) -> usize {
        self.counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1)
    }

    /// Returns the value that `part` of `whole` values do not exceed.
    pub fn quantile(&self, part: u64, whole: u64) -> Quantile {
        if self.total == 0 {
            return Quantile::Unknown;
        }
        let wanted = (u128::from(self.total) * u128::from(part)).div_ceil(u128::from(whole.max(1))).max(1);
        let mut sum = 0_u128;
        for (index, count) in self.counts.iter().enumerate() {
            sum += u128::from(*count);
            if sum >= wanted {
                return Quantile::Below((index as u64 + 1).saturating_mul(self.width));
            }
        }
        Quantile::Beyond
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        assert!(self.width > 0 && !self.counts.is_empty());
        assert_eq!(self.counts.iter().sum::<u64>() + self.beyond, self.total);
        assert!(self.counts[self.used()..].iter().all(|count| *count == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_fall_into_buckets_and_beyond() {
        let mut histogram = Histogram::new(10, 3);
        assert_eq!((histogram.quantile(1, 2), histogram.used()), (Quantile::Unknown, 0));
        for value in [0, 9, 10, 29, 30, u64::MAX] {
            histogram.record(value);
            histogram.check_invariants();
        }
        assert_eq!((histogram.counts(), histogram.beyond(), histogram.total()), (&[2, 1, 1][..], 2, 6));
        assert_eq!(histogram.used(), 3);
        assert_eq!(histogram.quantile(1, 3), Quantile::Below(10));
        assert_eq!(histogram.quantile(1, 2), Quantile::Below(20));
        assert_eq!(histogram.quantile(4, 6), Quantile::Below(30));
        assert_eq!(histogram.quantile(67, 100), Quantile::Beyond);
        assert_eq!(histogram.quantile(0, 100), Quantile::Below(10));
    }

    proptest! {
        #[test]
        fn a_quantile_is_what_sorting_finds(
            values in prop::collection::vec(0..500_u64, 1..200),
            width in 1..40_u64,
            buckets in 1..30_usize,
            part in 1..=1000_u64,
        ) {
            let mut histogram = Histogram::new(width, buckets);
            for value in &values {
                histogram.record(*value);
                histogram.check_invariants();
            }
            let mut sorted = values;
            sorted.sort_unstable();
            let place = (sorted.len() as u64 * part).div_ceil(1000).max(1) as usize - 1;
            let bucket = sorted[place] / width;
            let expected =
                if bucket < buckets as u64 { Quantile::Below((bucket + 1) * width) } else { Quantile::Beyond };
            prop_assert_eq!(histogram.quantile(part, 1000), expected);
        }
    }
}
