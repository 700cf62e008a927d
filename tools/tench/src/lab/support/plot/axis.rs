//! Computation of an axis: its range and its labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::Axis;
use crate::lab::support::format_number;

/// Scale of an axis for given data. Its coordinates are the values, or their decimal logarithms.
#[derive(Clone)]
pub struct Scale {
    logarithmic: bool,
    unit: f64,
    /// Range in coordinates.
    pub range: Range<f64>,
    /// Positions of labels, in coordinates.
    pub ticks: Vec<f64>,
    /// Names of the positions of a category axis.
    names: Vec<String>,
}

/// Approximate number of labels of an axis.
const LABELS: f64 = 6.0;

impl Scale {
    /// Returns a scale on which all `values` can be seen. A linear one begins at 0 if no value is below.
    pub fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Scale {
        let usable = values.map(|value| value / axis.unit).filter(|value| !axis.logarithmic || *value > 0.0);
        let (low, high) =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (range, ticks) = if axis.logarithmic { decades(low, high) } else { steps(low.min(0.0), high) };
        Scale { logarithmic: axis.logarithmic, unit: axis.unit, range, ticks, names: Vec::new() }
    }

    /// Returns a scale with a position for each name.
    pub fn of_names(names: &[String]) -> Scale {
        let ticks = (0..names.len()).map(|position| position as f64).collect();
        Scale { logarithmic: false, unit: 1.0, range: -0.6..names.len() as f64 - 0.4, ticks, names: names.to_vec() }
    }

    /// Returns the coordinate of a value. A value that a logarithmic axis cannot show lies at its beginning.
    pub fn at(&self, value: f64) -> f64 {
        let value = value / self.unit;
        if !self.logarithmic {
            value
        } else if value > 0.0 {
            value.log10().max(self.range.start)
        } else {
            self.range.start
        }
    }

    /// Returns the label of a tick.
    fn label(&self, tick: f64) -> String {
        if let Some(name) = self.names.get(tick.round().max(0.0) as usize) {
            return name.clone();
        }
        let value = if self.logarithmic { 10f64.powf(tick) } else { tick };
        // Values rounded by the logarithm become whole again.
        format_number((value * 1000.0).round() / 1000.0)
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        first + (f64::from(last - first) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, tick: &f64) -> String {
        self.label(*tick)
    }
}

/// Returns range and ticks at powers of ten, and 2 and 5 times those if there are few.
fn decades(low: f64, high: f64) -> (Range<f64>, Vec<f64>) {
    let (first, last) = (low.log10().floor(), high.log10());
    let last = if last > first { last } else { first + 1.0 };
    let between: &[f64] = if last - first > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = (0..=(last - first).ceil() as i32).map(|power| first + f64::from(power));
    let ticks = powers.flat_map(|power| between.iter().map(move |factor| power + factor.log10()));
    let end = last + (last - first) * 0.04;
    (first..end, ticks.filter(|tick| *tick <= end).collect())
}

/// Returns range and ticks at multiples of 1, 2 or 5 times a power of ten.
fn steps(low: f64, high: f64) -> (Range<f64>, Vec<f64>) {
    let span = if high > low { high - low } else { 1.0 };
    let rough = span / LABELS;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let end = low + span * 1.06;
    let ticks = (0..=LABELS as i32 + 1).map(|count| (low / step).ceil() * step + f64::from(count) * step);
    (low..end, ticks.filter(|tick| *tick <= end).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(logarithmic: bool, unit: f64) -> Axis {
        Axis { title: String::new(), logarithmic, unit }
    }

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks.iter().map(|tick| scale.label(*tick)).collect()
    }

    #[test]
    fn linear_axes_begin_at_zero_and_have_round_labels() {
        let scale = Scale::of(&axis(false, 1024.0), [1024.0, 2_723_584.0].into_iter());
        assert_eq!(labels(&scale), ["0", "500", "1,000", "1,500", "2,000", "2,500"]);
        assert_eq!(scale.at(512.0), 0.5);
        assert_eq!(labels(&Scale::of(&axis(false, 1.0), [-4.0, 4.0].into_iter())), ["-4", "-2", "0", "2", "4"]);
        assert_eq!(labels(&Scale::of(&axis(false, 1.0), [0.0].into_iter()))[..2], ["0", "0.2"]);
    }

    #[test]
    fn logarithmic_axes_have_powers_of_ten() {
        let scale = Scale::of(&axis(true, 1.0), [0.0, 1.0, 1_000_000.0].into_iter());
        assert_eq!(labels(&scale), ["1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"]);
        assert_eq!((scale.at(100.0), scale.at(0.0)), (2.0, 0.0));
        let scale = Scale::of(&axis(true, 1.0), [150.0, 900.0].into_iter());
        assert_eq!(labels(&scale), ["100", "200", "500"]);
        assert_eq!(labels(&Scale::of(&axis(true, 1.0), [7.0, 7.0].into_iter())), ["1", "2", "5"]);
        assert_eq!(labels(&Scale::of(&axis(true, 1.0), std::iter::empty())), ["1", "2", "5", "10"]);
    }
}
