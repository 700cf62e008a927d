//! Response times beside a thread that overruns.

use crate::lab::reference;
use crate::lab::support::plot::{BLUE, GREEN, ORANGE, PURPLE, Panel, Plot, Shape};
use crate::lab::support::{Experiment, Measured, Table, USUAL, format_number};

/// The experiment.
pub const ISOLATION: Experiment = Experiment {
    name: "isolation",
    title: "Deadlines beside a thread of the highest priority that overruns, with budgets and without",
    unit: "deadlines, percent",
    targets: reference::ISOLATION_TARGETS,
    enforced: &["missed_others"],
    plots,
    tables,
    ..USUAL
};

/// Sets of periods, and their names for readers.
const SETS: [(&str, &str); 2] = [("harmonic", "harmonic periods"), ("mixed", "other periods")];
/// Number of threads with deadlines.
const THREADS: usize = 4;

/// Draws the response times of a set over the time: with budgets above, without below.
fn plots(_: &Measured) -> Vec<Plot> {
    let panel = |key: String, title: String| {
        let colours = [BLUE, GREEN, ORANGE, PURPLE];
        (1..=THREADS).zip(colours).fold(Panel::new("release, ticks", title).log_y(), |panel, (thread, colour)| {
            let label = format!("thread {thread}");
            panel.marks(format!("{key}_{thread}"), label, colour, Shape::Dot)
        })
    };
    SETS.into_iter()
        .map(|(key, name)| {
            Plot::new(format!("plot-{key}"), format!("Response times beside a thread that overruns, {name}"))
                .with(panel(key.to_owned(), "percent of the deadline, with budgets".to_owned()))
                .with(panel(format!("{key}_unlimited"), "percent of the deadline, without".to_owned()))
        })
        .collect()
}

/// Returns the table of deadlines and response times of each thread.
fn tables(measured: &Measured) -> Vec<Table> {
    let cell = |key: String| measured.figures.get(&key).map_or("–".to_owned(), |value| format_number(*value));
    let heading = ["set", "thread", "missed", "worst, %", "missed without budgets", "worst without budgets, %"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for (key, name) in SETS {
        for thread in 1..=THREADS {
            let mut row = vec![name.to_owned(), thread.to_string()];
            for variant in ["", "_unlimited"] {
                row.push(cell(format!("{key}{variant}_missed_{thread}")));
                row.push(cell(format!("{key}{variant}_worst_{thread}")));
            }
            rows.push(row);
        }
        for (what, suffix) in [("overruns", "overrun"), ("the rest", "idle_share")] {
            let mut row = vec![name.to_owned(), what.to_owned()];
            for variant in ["", "_unlimited"] {
                row.push(String::new());
                row.push(cell(format!("{key}{variant}_{suffix}")));
            }
            rows.push(row);
        }
    }
    vec![Table {
        file: "threads".into(),
        title: "Deadlines missed, and response times in percent of them".into(),
        rows,
    }]
}
