//! The experiment on interrupts-off intervals: the table of a kernel's longest intervals, path by path, and the
//! workload of each.

use tench_abi::object::entry_path;

use crate::build::Kernel;
use crate::lab::support::{Experiment, LINES_WORST, Measured, PLAIN, Run, Sample, Table, USUAL, format_number};

/// The experiment.
pub const ADVERSARY: Experiment = Experiment {
    name: "adversary",
    title: "For how long interrupts are off, by what the kernel was entered for, whatever a program does",
    runs: &[Run { kernel: Kernel::Measuring, memory: "4G", counts_lines: true, ..PLAIN }],
    targets: &[("irq_off_worst", 2000.0), (LINES_WORST, 320.0)],
    enforced: &["irq_off_worst", LINES_WORST],
    endless: true,
    tables,
    ..USUAL
};

/// Returns the table of each path's longest interrupts-off interval, number of intervals, their mean length, and the
/// workload of the longest.
fn tables(measured: &Measured) -> Vec<Table> {
    let of = |series: &str, path: f64| {
        let sample = measured.samples.iter().find(|sample| sample.series == series && sample.x == path);
        sample.map_or_else(String::new, |sample| format_number(sample.y))
    };
    let heading = ["path", "longest", "taken in a round", "mean", "workload"].map(str::to_owned).to_vec();
    let longest = measured.samples.iter().filter(|sample| sample.series == "longest");
    let mut rows: Vec<(f64, Vec<String>)> = longest
        .map(|Sample { x: path, y, .. }| {
            let name = entry_path::name(*path as u64).unwrap_or("?").to_owned();
            let workload = measured.texts.get(&("workload".to_owned(), *path as u64)).cloned().unwrap_or_default();
            (*y, vec![name, format_number(*y), of("count", *path), of("mean", *path), workload])
        })
        .collect();
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let rows = std::iter::once(heading).chain(rows.into_iter().map(|(_, row)| row)).collect();
    let title = "Retired instructions with interrupts off".into();
    vec![Table { file: "intervals".into(), title, rows }]
}

#[cfg(test)]
mod tests {
    use tench_abi::Operation;

    use super::*;

    #[test]
    fn each_path_has_its_workload_and_the_longest_comes_first() {
        let mut measured = Measured::default();
        let paths =
            [(Operation::Delete as u64, 900.0, "nodes in nodes"), (entry_path::IDLE, 1500.0, "faults, and more")];
        for (path, longest, workload) in paths {
            measured.sample("longest", path as f64, longest);
            measured.sample("count", path as f64, 12.0);
            measured.sample("mean", path as f64, 300.0);
            measured.texts.insert(("workload".into(), path), workload.into());
        }
        let [table] = &tables(&measured)[..] else { panic!("there is one table") };
        let expected = [
            ["path", "longest", "taken in a round", "mean", "workload"],
            ["idle", "1,500", "12", "300", "faults, and more"],
            ["Delete", "900", "12", "300", "nodes in nodes"],
        ];
        assert_eq!(table.rows, expected);
    }
}
