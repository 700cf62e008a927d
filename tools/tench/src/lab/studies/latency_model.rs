//! R3's analytic model (its equations (20) and (23)) beside measurements.
//!
//! An interrupt that comes at a random moment within a time `T` finds interrupts off in an interval of length `c` with
//! probability `c / T`, and then waits `c / 2` on average. So it waits `Σ c² / 2T` on average: equation (20), summed
//! over all sections with equation (8), if an interval is everything from an entry to user mode; equation (23), if an
//! operation consists of several intervals with preemption points between them. The kernel sums the `c²` of its
//! intervals in either case. docs/manual/latency.md derives it.

use std::collections::BTreeMap;

use tench_abi::object::entry_path;

use crate::build::Kernel;
use crate::lab::support::plot::{BLUE, ORANGE, Panel, Plot, Shape};
use crate::lab::support::{Experiment, Measured, PLAIN, Run, Table, USUAL, format_number};

const KERNELS: [(&str, &str); 2] = [("preempt", "preemptible"), ("nopreempt", "not preemptible")];
const LOADS: [(&str, &str); 2] = [("cpu", "CPU-bound"), ("io", "I/O-bound")];

const RUNS: &[Run] = &[
    Run { prefix: "preempt_", kernel: Kernel::Measuring, ..PLAIN },
    Run { prefix: "nopreempt_", kernel: Kernel::MeasuringNonPreemptible, ..PLAIN },
];

/// The experiment.
pub const LATENCY_MODEL: Experiment = Experiment {
    name: "latency-model",
    title: "Mean time until the kernel takes a timer interrupt: as R3's model predicts, and as measured",
    unit: "instructions, percent",
    runs: RUNS,
    derive,
    plots,
    tables,
    ..USUAL
};

/// Interrupts-off intervals of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Intervals {
    count: f64,
    sum: f64,
    squares: f64,
    longest: f64,
}

/// Returns the measured intervals of a load with a kernel, by path.
fn intervals(measured: &Measured, kernel: &str, load: &str) -> BTreeMap<u64, Intervals> {
    let mut paths: BTreeMap<u64, Intervals> = BTreeMap::new();
    let prefix = format!("{kernel}_{load}_");
    for sample in &measured.samples {
        let Some(what) = sample.series.strip_prefix(&prefix) else { continue };
        let path = || sample.x as u64;
        match what {
            "count" => paths.entry(path()).or_default().count = sample.y,
            "sum" => paths.entry(path()).or_default().sum = sample.y,
            "squares" => paths.entry(path()).or_default().squares = sample.y,
            "longest" => paths.entry(path()).or_default().longest = sample.y,
            _ => {}
        }
    }
    paths
}

/// Returns the time from each deadline to the kernel's entry.
fn entries(measured: &Measured, kernel: &str, load: &str) -> Vec<f64> {
    let series = format!("{kernel}_{load}_entry");
    measured.samples.iter().filter(|sample| sample.series == series).map(|sample| sample.y).collect()
}

/// Returns the mean, and its standard error: how far it may be from that of infinitely many samples.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, (variance / count).sqrt())
}

/// Rounds to a thousandth.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Computes the model's figures beside the measured ones.
fn derive(measured: &mut Measured) {
    for (kernel, _) in KERNELS {
        // Instructions between an interrupt and the reading of the counter when nothing keeps the interrupt out.
        let least = entries(measured, kernel, "cpu").into_iter().fold(f64::INFINITY, f64::min);
        for (load, _) in LOADS {
            let paths = intervals(measured, kernel, load);
            let Some(time) = measured.figures.remove(&format!("{kernel}_{load}_time")) else { continue };
            let predicted = paths.values().map(|path| path.squares).sum::<f64>() / (2.0 * time);
            let late: Vec<f64> =
                entries(measured, kernel, load).into_iter().map(|entry| (entry - least).max(0.0)).collect();
            let (mean, error) = mean_and_error(&late);
            let off = paths.values().map(|path| path.sum).sum::<f64>();
            let longest = paths.values().map(|path| path.longest).fold(0.0, f64::max);
            measured.figure(format!("{load}_predicted_{kernel}"), rounded(predicted));
            measured.figure(format!("{load}_measured_{kernel}"), rounded(mean));
            if predicted > 0.0 {
                let difference = 100.0 * (mean - predicted) / predicted;
                measured.figure(format!("{load}_difference_{kernel}"), rounded(difference));
            }
            measured.figure(format!("{load}_error_{kernel}"), rounded(error));
            measured.figure(format!("{load}_off_percent_{kernel}"), rounded(100.0 * off / time));
            measured.figure(format!("{load}_longest_{kernel}"), longest);
        }
    }
}

/// Draws the lateness of the kernel's entry, sample by sample.
fn plots(_: &Measured) -> Vec<Plot> {
    let plot = Plot::new("plot", "From the deadline to the kernel's entry");
    vec![LOADS.into_iter().fold(plot, |plot, (load, words)| {
        let empty = Panel::new("sample", format!("instructions, {words}"));
        let kernels = KERNELS.into_iter().rev().zip([ORANGE, BLUE]);
        plot.with(kernels.fold(empty, |panel, ((kernel, which), colour)| {
            panel.marks(format!("{kernel}_{load}_entry"), which, colour, Shape::Speck)
        }))
    })]
}

/// Returns the intervals of each path, and its share of the predicted mean.
fn tables(measured: &Measured) -> Vec<Table> {
    let row = |cells: [&str; 8]| cells.map(str::to_owned).to_vec();
    let mut rows = vec![row(["path", "load", "kernel", "intervals", "mean", "longest", "of the prediction, %", ""])];
    for (load, load_words) in LOADS {
        for (kernel, kernel_words) in KERNELS {
            let paths = intervals(measured, kernel, load);
            let all = paths.values().map(|path| path.squares).sum::<f64>();
            for (number, path) in paths {
                let tenths = |value: f64| format_number((value * 10.0).round() / 10.0);
                rows.push(row([
                    entry_path::name(number).unwrap_or("?"),
                    load_words,
                    kernel_words,
                    &format_number(path.count),
                    &tenths(path.sum / path.count),
                    &format_number(path.longest),
                    &tenths(100.0 * path.squares / all),
                    "",
                ]));
            }
        }
    }
    vec![Table { file: "paths".into(), title: "Interrupts-off intervals, while the load runs alone".into(), rows }]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a load with interrupts off for 100 of every 1,000 instructions in one interval.
    fn example() -> Measured {
        let mut measured = Measured::default();
        measured.figure("preempt_io_time", 1_000_000.0);
        for (what, value) in [("count", 1000.0), ("sum", 100_000.0), ("squares", 10_000_000.0), ("longest", 100.0)] {
            measured.sample(format!("preempt_io_{what}"), 8.0, value);
        }
        // Ten of eleven interrupts are taken at once, one waits for half of an interval.
        for number in 0..10 {
            let late = if number == 3 { 50.0 } else { 0.0 };
            measured.sample("preempt_cpu_entry", f64::from(number), 12.0);
            measured.sample("preempt_io_entry", f64::from(number), 12.0 + late);
        }
        // An interrupt taken by an entry that had begun before.
        measured.sample("preempt_io_entry", 10.0, 0.0);
        measured
    }

    #[test]
    fn the_model_is_half_the_squares_over_the_time() {
        let mut measured = example();
        derive(&mut measured);
        let figure = |key: &str| measured.figures.get(key).copied();
        assert_eq!(figure("io_predicted_preempt"), Some(5.0));
        assert_eq!(figure("io_measured_preempt"), Some(4.545));
        assert_eq!(figure("io_difference_preempt"), Some(-9.091));
        assert_eq!(figure("io_error_preempt"), Some(4.334));
        assert_eq!(figure("io_off_percent_preempt"), Some(10.0));
        assert_eq!(figure("io_longest_preempt"), Some(100.0));
        assert_eq!(figure("preempt_io_time"), None, "it is no figure to compare");
        assert_eq!(figure("cpu_predicted_preempt"), None);
    }

    #[test]
    fn paths_have_their_shares() {
        let mut measured = example();
        measured.sample("preempt_io_count", 120.0, 1.0);
        measured.sample("preempt_io_squares", 120.0, 10_000_000.0);
        let [table] = &tables(&measured)[..] else { panic!("one table") };
        assert_eq!(table.rows[1][..4], ["Signal", "I/O-bound", "preemptible", "1,000"]);
        assert_eq!(table.rows[1][6], "50");
        assert_eq!(table.rows[2][0], "interrupt of a program");
    }
}
