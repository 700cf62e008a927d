//! Lateness of a thread that waits for the timer, beside R3's section 5: figures, samples, distribution functions.
//!
//! The target prints the latencies alone, one series for each load and kernel; everything else is computed here.

use crate::build::Kernel;
use crate::lab::support::plot::{BLUE, ORANGE, Panel, Plot, Shape};
use crate::lab::support::{Experiment, Measured, PLAIN, Run, Sample, USUAL};

/// Kernels' names in keys and series, and in words.
const KERNELS: [(&str, &str); 2] = [("preempt", "preemptible"), ("nopreempt", "not preemptible")];
/// Names of the loads.
const LOADS: [&str; 3] = ["cpu", "io", "adversary"];
/// R3's pictures: load, title, and the letters of the panels: samples without and with preemption, then the
/// distribution functions.
const R3_LOADS: [(&str, &str, [char; 4]); 2] =
    [("io", "I/O-bound", ['a', 'b', 'e', 'f']), ("cpu", "CPU-bound", ['c', 'd', 'g', 'h'])];

/// Targets: at most 2,500 instructions with preemption where R3 reaches 2,500 cycles; a tenth of the worst case without
/// it where a program makes the longest system calls; four fifths of the mean; and no cost on the shortest message and
/// on computations.
const TARGETS: &[(&str, f64)] = &[
    ("io_worst_preempt", 2500.0),
    ("io_mean_percent", 80.0),
    ("adversary_worst_percent", 10.0),
    ("call_0_more", 0.0),
    ("overhead_percent", 0.1),
];

/// One boot for each kernel, and one with a measuring kernel.
const RUNS: &[Run] = &[
    Run { prefix: "preempt_", kernel: Kernel::Usual, ..PLAIN },
    Run { prefix: "nopreempt_", kernel: Kernel::NonPreemptible, ..PLAIN },
    Run { prefix: "irq_off_", arguments: &["measuring"], kernel: Kernel::Measuring, ..PLAIN },
];

/// The experiment.
pub const LATENCY: Experiment = Experiment {
    name: "latency",
    title: "From a timer's deadline to the thread that waits for it, with and without preemption, beside three loads",
    runs: RUNS,
    targets: TARGETS,
    derive,
    plots,
    ..USUAL
};

/// Returns the values of a series in ascending order.
fn sorted(samples: &[Sample], series: &str) -> Vec<f64> {
    let mut values: Vec<f64> = samples.iter().filter(|sample| sample.series == series).map(|sample| sample.y).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the mean to a tenth.
fn mean(values: &[f64]) -> f64 {
    (values.iter().sum::<f64>() / values.len() as f64 * 10.0).round() / 10.0
}

/// Returns the smallest of ascending values that at most one in a hundred exceeds.
fn percentile_99(values: &[f64]) -> f64 {
    let place = (values.len() * 99).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}

/// Returns a distribution function: which percentage of ascending values is at most so large. It begins with none at
/// the least value, and has a point for each different value.
fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = values.first().map(|least| (*least, 0.0)).into_iter().collect();
    for (index, value) in values.iter().enumerate() {
        let percent = 100.0 * (index + 1) as f64 / values.len() as f64;
        match points.last_mut() {
            Some(last) if last.0 == *value && last.1 > 0.0 => last.1 = percent,
            _ => points.push((*value, percent)),
        }
    }
    points
}

/// Computes figures and distribution functions from the series.
fn derive(measured: &mut Measured) {
    for (kernel, _) in KERNELS {
        for name in LOADS.into_iter().chain(["overhead"]) {
            let series = format!("{kernel}_{name}");
            let values = sorted(&measured.samples, &series);
            if values.is_empty() {
                continue;
            }
            for (value, percent) in distribution(&values) {
                measured.sample(format!("{series}_distribution"), value, percent);
            }
            let worst = values.last().copied().unwrap_or_default();
            if name == "overhead" {
                measured.figure(format!("overhead_{kernel}"), mean(&values));
                measured.figure(format!("overhead_worst_{kernel}"), worst);
                continue;
            }
            measured.figure(format!("{name}_mean_{kernel}"), mean(&values));
            measured.figure(format!("{name}_p99_{kernel}"), percentile_99(&values));
            measured.figure(format!("{name}_worst_{kernel}"), worst);
        }
    }
    relations(measured);
}

/// Computes the effects of preemption.
fn relations(measured: &mut Measured) {
    let figures = &measured.figures;
    let of = |key: String| figures.get(&key).copied();
    let percent = |key: &str| {
        let (with, without) = (of(format!("{key}_preempt"))?, of(format!("{key}_nopreempt"))?);
        Some((1000.0 * with / without).round() / 10.0)
    };
    let more = |key: &str| Some(of(format!("preempt_{key}"))? - of(format!("nopreempt_{key}"))?);
    // Additional overhead of timer interrupts with preemption, in ten-thousandths of a percent of the work.
    let added = || Some(of("overhead_preempt".into())? - of("overhead_nopreempt".into())?);
    let overhead = || Some((1e6 * added()? / of("preempt_work".into())?).round() / 1e4);
    let relations = [
        ("cpu_mean_percent", percent("cpu_mean")),
        ("io_mean_percent", percent("io_mean")),
        ("io_worst_percent", percent("io_worst")),
        ("adversary_mean_percent", percent("adversary_mean")),
        ("adversary_worst_percent", percent("adversary_worst")),
        ("call_0_more", more("call_0")),
        ("overhead_percent", overhead()),
    ];
    for (key, value) in relations {
        if let Some(value) = value {
            measured.figure(key, value);
        }
    }
}

/// Draws R3's figures 3 (a) to (h) and 4 (a) to (d), and the same for the adversary.
fn plots(_: &Measured) -> Vec<Plot> {
    let colours = [ORANGE, BLUE];
    // R3 shows the kernel without preemption first.
    let kernels = || KERNELS.into_iter().rev().zip(colours);
    let both = |x: &str, suffix: &str, load: &str| {
        kernels().fold(Panel::new(x, "percent of the samples"), |panel, ((kernel, words), colour)| {
            panel.steps(format!("{kernel}_{load}{suffix}"), words, colour, false)
        })
    };
    let samples =
        |x: String, series: String, colour| Panel::new(x, "instructions").marks(series, "", colour, Shape::Speck);
    let mut figure_3 = Plot::new("figure-3", "Latency of a one-shot timer (R3, figure 3)");
    for (load, words, letters) in R3_LOADS {
        for (((kernel, which), colour), letter) in kernels().zip(letters) {
            let x = format!("({letter}) sample, {words}, {which}");
            figure_3 = figure_3.with(samples(x, format!("{kernel}_{load}"), colour));
        }
    }
    for (load, words, letters) in R3_LOADS {
        for (((kernel, which), colour), letter) in kernels().zip(&letters[2..]) {
            let x = format!("({letter}) latency in instructions, {words}, {which}");
            let panel = Panel::new(x, "percent of the samples");
            figure_3 = figure_3.with(panel.steps(format!("{kernel}_{load}_distribution"), "", colour, false));
        }
    }
    let mut figure_4 = Plot::new("figure-4", "Overhead of timer interrupts on a million instructions (R3, figure 4)");
    for (((kernel, which), colour), letter) in kernels().zip(['a', 'b']) {
        let x = format!("({letter}) piece of work, {which}");
        figure_4 = figure_4.with(samples(x, format!("{kernel}_overhead"), colour));
    }
    for (((kernel, which), colour), letter) in kernels().zip(['c', 'd']) {
        let panel = Panel::new(format!("({letter}) overhead in instructions, {which}"), "percent of the pieces");
        figure_4 = figure_4.with(panel.steps(format!("{kernel}_overhead_distribution"), "", colour, false));
    }
    let adversary = kernels().fold(Panel::new("sample", "instructions").log_y(), |panel, ((kernel, words), colour)| {
        panel.marks(format!("{kernel}_adversary"), words, colour, Shape::Speck)
    });
    let compared = Plot::new("plot", "Latency with and without preemption")
        .with(both("latency in instructions, CPU-bound", "_distribution", "cpu"))
        .with(both("latency in instructions, I/O-bound", "_distribution", "io"))
        .with(both("latency in instructions, adversary", "_distribution", "adversary").log_x());
    vec![figure_3, figure_4, compared, Plot::new("adversary", "Latency beside the adversary").with(adversary)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_rise_to_all() {
        assert_eq!(distribution(&[1.0, 1.0, 3.0, 7.0]), [(1.0, 0.0), (1.0, 50.0), (3.0, 75.0), (7.0, 100.0)]);
        assert!(distribution(&[]).is_empty());
    }

    #[test]
    fn one_in_a_hundred_is_worse() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(percentile_99(&values), 990.0);
        assert_eq!(percentile_99(&[5.0]), 5.0);
        assert_eq!(percentile_99(&[]), 0.0);
    }

    #[test]
    fn figures_come_from_series() {
        let mut measured = Measured::default();
        for (kernel, factor) in [("preempt", 1.0), ("nopreempt", 2.0)] {
            for (number, value) in [100.0, 200.0, 600.0].into_iter().enumerate() {
                measured.sample(format!("{kernel}_io"), number as f64, value * factor);
                measured.sample(format!("{kernel}_overhead"), number as f64, value + factor);
            }
            measured.figure(format!("{kernel}_work"), 1e6);
            measured.figure(format!("{kernel}_call_0"), 94.0);
        }
        derive(&mut measured);
        let figure = |key: &str| measured.figures.get(key).copied();
        assert_eq!(figure("io_mean_preempt"), Some(300.0));
        assert_eq!(figure("io_worst_nopreempt"), Some(1200.0));
        assert_eq!(figure("io_p99_preempt"), Some(600.0));
        assert_eq!(figure("io_mean_percent"), Some(50.0));
        assert_eq!(figure("overhead_nopreempt"), Some(302.0));
        assert_eq!(figure("overhead_percent"), Some(-0.0001));
        assert_eq!(figure("call_0_more"), Some(0.0));
        assert_eq!(figure("cpu_mean_preempt"), None);
        let last = measured.samples.iter().rfind(|sample| sample.series == "preempt_io_distribution").unwrap();
        assert_eq!((last.x, last.y), (600.0, 100.0));
    }
}
