//! Costs of several cores.

use crate::lab::reference;
use crate::lab::support::plot::{BLUE, GREEN, ORANGE, Panel, Plot, Shape};
use crate::lab::support::{Experiment, Measured, PLAIN, Run, USUAL};

/// Messages, programs, work and memory of several cores.
pub const CORES: Experiment = Experiment {
    name: "cores",
    title: "Several cores: channels that poll and sleep, programs on another core, independent work, memory that is taken back",
    unit: "instructions, percent",
    runs: &[
        PLAIN,
        Run { arguments: &["remote"], cores: 2, ..PLAIN },
        Run { arguments: &["work"], cores: 8, ..PLAIN },
        Run { arguments: &["share"], cores: 8, ..PLAIN },
    ],
    targets: reference::CORES_TARGETS,
    plots: cores,
    ..USUAL
};

/// Draws round trips between cores by the number of requests in flight.
fn cores(_: &Measured) -> Vec<Plot> {
    let panel = |title: &str, kinds: Vec<(&str, &str, _)>| {
        let empty = Panel::new("requests in flight", title).log_x().log_y();
        kinds.into_iter().fold(empty, |panel, (series, label, colour)| {
            panel.line(series, label, colour).marks(series, "", colour, Shape::Dot)
        })
    };
    let polling = vec![("poll_7", "a line", BLUE), ("poll_64", "64 words", GREEN), ("poll_512", "4 KiB", ORANGE)];
    let sleeping =
        vec![("doorbell_7", "threads of a core, a line", BLUE), ("sleep_1", "by the monitors of two", ORANGE)];
    let plot = Plot::new("plot", "Round trips between cores");
    vec![
        plot.with(panel("instructions of each side, polling", polling))
            .with(panel("instructions of the machine, sleeping", sleeping)),
    ]
}
