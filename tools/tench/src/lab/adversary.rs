//! For how long interrupts are off: the table of a kernel's longest stretches, path by path.

use tench_abi::object::stretch;

use super::experiments::{Experiment, PLAIN, Run, USUAL};
use super::measure::{Measured, Sample};
use super::table::Table;
use super::write::format_number;
use crate::build::Kernel;

/// The experiment.
pub const ADVERSARY: Experiment = Experiment {
    name: "adversary",
    title: "For how long interrupts are off, by what the kernel was entered for, whatever a program does",
    runs: &[Run { kernel: Kernel::Watching, memory: "4G", ..PLAIN }],
    targets: &[("irq_off_worst", 2000.0)],
    promises: true,
    endless: true,
    tables,
    ..USUAL
};

/// The longest time with interrupts off on each path, how often it was taken, and how long that was off on the average.
fn tables(measured: &Measured) -> Vec<Table> {
    let of = |series: &str, path: f64| {
        let sample = measured.samples.iter().find(|sample| sample.series == series && sample.x == path);
        sample.map_or_else(String::new, |sample| format_number(sample.y))
    };
    let heading = ["path", "longest", "taken in a round", "mean", ""].map(str::to_owned).to_vec();
    let longest = measured.samples.iter().filter(|sample| sample.series == "longest");
    let mut rows: Vec<(f64, Vec<String>)> = longest
        .map(|Sample { x: path, y, .. }| {
            let name = stretch::name(*path as u64).unwrap_or("?").to_owned();
            (*y, vec![name, format_number(*y), of("count", *path), of("mean", *path), String::new()])
        })
        .collect();
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let rows = std::iter::once(heading).chain(rows.into_iter().map(|(_, row)| row)).collect();
    let title = "Retired instructions with interrupts off".into();
    vec![Table { file: "stretches".into(), title, rows }]
}
