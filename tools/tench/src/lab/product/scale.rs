//! The experiment on costs beside many capabilities and many threads: its curves, and how much each operation grows.

use crate::lab::support::plot::{BLUE, GREEN, GREY, ORANGE, PURPLE, Panel, Plot, Shape};
use crate::lab::support::{Experiment, Measured, PLAIN, Run, Table, USUAL, format_number};

/// The experiment.
pub const SCALE: Experiment = Experiment {
    name: "scale",
    title: "What operations cost beside up to 1,000,000 capabilities, and beside up to 100,000 threads",
    runs: &[Run { memory: "4G", ..PLAIN }],
    unit: "instructions, ratio",
    derive: look_up,
    // Look-up is constant.
    targets: &[("growth_identify", 1.0)],
    enforced: &["growth_identify"],
    plots,
    tables,
    ..USUAL
};

/// Operations on capabilities, and beside threads, in the order of the tables.
const CAPABILITIES: [&str; 9] = [
    "identify",
    "copy",
    "move",
    "mint",
    "mint_badge",
    "delete_copy",
    "revoke_one",
    "delete_object",
    "retype_signal_delete",
];
const THREADS: [&str; 5] = ["make_thread", "receive", "send", "sleep", "ready"];

/// Returns the costs of an operation, from the smallest number to the largest, with the numbers.
fn costs(measured: &Measured, operation: &str) -> Vec<(f64, f64)> {
    let samples = measured.samples.iter().filter(|sample| sample.series == operation);
    samples.map(|sample| (sample.x, sample.y)).collect()
}

/// Returns the last cost divided by the first; `None` if there are not two.
fn ratio(costs: &[(f64, f64)]) -> Option<f64> {
    match costs {
        [(_, first), .., (_, last)] => Some(last / first),
        _ => None,
    }
}

/// Adds the growth of a look-up as a figure.
fn look_up(measured: &mut Measured) {
    if let Some(growth) = ratio(&costs(measured, "identify")) {
        measured.figure("growth_identify", growth);
    }
}

/// Returns the two tables.
fn tables(measured: &Measured) -> Vec<Table> {
    vec![
        growth(measured, "capabilities", "Instructions beside so many capabilities", &CAPABILITIES),
        growth(measured, "threads", "Instructions beside so many threads", &THREADS),
    ]
}

/// Returns the table of some operations, with their growth from the smallest number to the largest.
fn growth(measured: &Measured, file: &str, title: &str, operations: &[&str]) -> Table {
    let numbers = costs(measured, operations[0]).into_iter().map(|(x, _)| format_number(x));
    let heading = ["operation".to_owned()].into_iter().chain(numbers).chain(["growth".to_owned()]).collect();
    let row = |operation: &&str| {
        let costs = costs(measured, operation);
        let growth = ratio(&costs).map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let words = costs.into_iter().map(|(_, cost)| format_number(cost));
        [(*operation).to_owned()].into_iter().chain(words).chain([growth]).collect()
    };
    let rows = std::iter::once(heading).chain(operations.iter().map(row)).collect();
    Table { file: file.into(), title: title.into(), rows }
}

/// Draws the costs over the number of capabilities and of threads.
fn plots(_: &Measured) -> Vec<Plot> {
    let colours = [BLUE, ORANGE, GREEN, PURPLE, GREY];
    let panel = |axis: &str, lines: &[(&str, &str)]| {
        let empty = Panel::new(axis, "instructions, mean").log_x();
        lines.iter().zip(colours).fold(empty, |panel, ((series, label), colour)| {
            panel.line(*series, *label, colour).marks(*series, "", colour, Shape::Dot)
        })
    };
    let capabilities = [
        ("identify", "identify"),
        ("copy", "copy"),
        ("revoke_one", "revoke one copy"),
        ("delete_object", "delete an object"),
        ("retype_signal_delete", "make, signal, delete"),
    ];
    let threads = [
        ("make_thread", "make one"),
        ("receive", "receive from the first"),
        ("send", "send"),
        ("sleep", "wait for the timer"),
        ("ready", "become ready"),
    ];
    let plot = Plot::new("plot", "Costs beside many");
    vec![plot.with(panel("capabilities", &capabilities)).with(panel("threads", &threads))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_the_growth_from_the_smallest_number_to_the_largest() {
        let mut measured = Measured::default();
        for (series, costs) in [("receive", [400.0, 500.0, 1000.0]), ("ready", [80.0, 80.0, 80.0])] {
            for (count, cost) in [100.0, 1000.0, 10_000.0].into_iter().zip(costs) {
                measured.sample(series, count, cost);
            }
        }
        let table = growth(&measured, "threads", "", &["receive", "ready"]);
        let expected = [
            ["operation", "100", "1,000", "10,000", "growth"],
            ["receive", "400", "500", "1,000", "2.50"],
            ["ready", "80", "80", "80", "1.00"],
        ];
        assert_eq!(table.rows, expected);
    }

    #[test]
    fn a_look_up_that_grows_misses_its_target() {
        let mut measured = Measured::default();
        for (count, cost) in [(100.0, 300.0), (1_000_000.0, 303.0)] {
            measured.sample("identify", count, cost);
        }
        look_up(&mut measured);
        let (key, most) = SCALE.targets[0];
        assert!(measured.figures[key] > most && SCALE.enforced.contains(&key));
    }
}
