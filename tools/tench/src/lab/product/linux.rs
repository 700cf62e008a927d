//! Costs of Linux programs, beside Linux's own: calls, faults and signals; threads.

use miette::{Result, miette};

use crate::lab::reference;
use crate::lab::support::plot::{BLUE, COLOURS, ORANGE, Panel, Plot, Shape};
use crate::lab::support::{Experiment, Measured, PLAIN, Run, Table, USUAL, format_number};
use crate::linux;
use crate::peer::{compared, figures};
use crate::prepare;
use crate::workspace::Workspace;

/// Ends of the keys: measured here, recorded on Linux, and the first in percent of the second.
const HERE: &str = "_tench";
const THERE: &str = "_linux";
const PERCENT: &str = "_percent";

/// Calls of Linux programs.
pub const SYSCALL: Experiment = Experiment {
    name: "syscall",
    title: "Calls, faults and signals of Linux programs: here, on Linux 6.1 in the same machine, and in percent of it",
    unit: "instructions, percent",
    system: "linux",
    runs: &[Run { arguments: &["linux/costs", "tench"], ..PLAIN }, Run { arguments: &["linux/entrances"], ..PLAIN }],
    files: prepare::linux_programs,
    on_host: |workspace| recorded(workspace, "syscall"),
    derive: percent,
    targets: reference::SYSCALL_TARGETS,
    tables: |measured| vec![side_by_side(measured, "Calls of Linux programs: instructions")],
    ..USUAL
};

/// Threads of Linux programs.
pub const PTHREADS: Experiment = Experiment {
    name: "pthreads",
    title: "POSIX threads of a Linux program with Debian's C library: here, on Linux 6.1 in the same machine, in percent",
    unit: "instructions, percent",
    system: "linux",
    runs: &[Run { arguments: &["/lab/pthreads", "tench"], ..PLAIN }],
    packed: |workspace| packed(workspace, "pthreads"),
    on_host: |workspace| recorded(workspace, "pthreads"),
    derive: |measured| {
        percent(measured);
        curves(measured);
    },
    plots: |_| threads(),
    tables: |measured| vec![side_by_side(measured, "POSIX threads of Linux programs: instructions")],
    ..USUAL
};

/// Debian's lmbench.
pub const LMBENCH: Experiment = Experiment {
    name: "lmbench",
    title: "Debian's lmbench, unchanged: here, on Linux 6.1 in the same machine, and in percent of it",
    unit: "microseconds of the machine, megabytes in a second, percent",
    system: "linux",
    runs: &[Run { arguments: &["/bin/dash", "/lab/lmbench.sh", "tench"], ..PLAIN }],
    packed: |workspace| packed(workspace, "lmbench"),
    on_host: |workspace| recorded(workspace, "lmbench"),
    derive: |measured| {
        percent(measured);
        curves(measured);
    },
    plots: |_| switches(),
    tables: |measured| vec![side_by_side(measured, "lmbench: microseconds, and of bw_… megabytes in a second")],
    ..USUAL
};

/// Returns Linux's figures.
fn recorded(workspace: &Workspace, name: &str) -> Result<Measured> {
    let mut measured = Measured::default();
    for (key, value) in figures::load(workspace, name)?.figures {
        let value = value.as_f64().ok_or_else(|| miette!("the recorded figure {key} is not a number"))?;
        measured.figure(key, value);
    }
    Ok(measured)
}

/// Packs the files with which an experiment's program runs.
fn packed(workspace: &Workspace, name: &str) -> Result<Option<Vec<u8>>> {
    let compared = compared::find(name).ok_or_else(|| miette!("the experiment {name} runs nothing on Linux"))?;
    compared.tree(workspace)?.map(|tree| linux::pack_tree(&tree)).transpose()
}

/// Returns what is known of both systems: its name, and the figures of Linux and of Tench.
fn pairs(measured: &Measured) -> Vec<(String, f64, f64)> {
    let both = measured.figures.iter().filter_map(|(key, here)| {
        let name = key.strip_suffix(HERE)?;
        let there = measured.figures.get(&format!("{name}{THERE}"))?;
        Some((name.to_owned(), *there, *here))
    });
    both.collect()
}

/// Returns a name without the number at its end, and that.
fn numbered(name: &str) -> Option<(&str, f64)> {
    let (kind, number) = name.rsplit_once('_')?;
    Some((kind, number.parse().ok()?))
}

/// Adds Tench's costs in percent of Linux's; what one of them cannot do has none.
fn percent(measured: &mut Measured) {
    for (name, there, here) in pairs(measured) {
        measured.figure(format!("{name}{PERCENT}"), (here / there * 1000.0).round() / 10.0);
    }
}

/// Adds a curve for each system and each kind of cost that is measured with several numbers.
fn curves(measured: &mut Measured) {
    let mut points: Vec<(String, f64, f64, f64)> = Vec::new();
    for (name, there, here) in pairs(measured) {
        points.extend(numbered(&name).map(|(kind, number)| (kind.to_owned(), number, there, here)));
    }
    points.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    for (kind, number, there, here) in points {
        measured.sample(format!("{kind}{THERE}"), number, there);
        measured.sample(format!("{kind}{HERE}"), number, here);
    }
}

/// Returns the table of both systems.
fn side_by_side(measured: &Measured, title: &str) -> Table {
    let mut pairs = pairs(measured);
    let order = |name: &str| numbered(name).map_or((name.to_owned(), 0.0), |(kind, number)| (kind.to_owned(), number));
    pairs.sort_by(|one, other| order(&one.0).partial_cmp(&order(&other.0)).unwrap_or(std::cmp::Ordering::Equal));
    let heading = ["what", "Linux", "Tench", "percent"].map(str::to_owned).to_vec();
    let row = |(name, there, here): &(String, f64, f64)| {
        vec![name.clone(), format_number(*there), format_number(*here), format!("{:.1}", here / there * 100.0)]
    };
    let rows = std::iter::once(heading).chain(pairs.iter().map(row)).collect();
    Table { file: "side-by-side".into(), title: title.into(), rows }
}

/// Draws what an increment costs by the number of threads.
fn threads() -> Vec<Plot> {
    let empty = || Panel::new("threads", "instructions for each increment").log_x().log_y();
    let reference = [("mutex_linux", "Linux", ORANGE), ("mutex_tench", "Tench", BLUE)];
    let mutexes = reference.into_iter().fold(empty(), |panel, (series, label, colour)| {
        panel.line(series, label, colour).marks(series, "", colour, Shape::Dot)
    });
    let kinds = ["semaphore", "condition", "barrier", "contended", "inheriting", "shared_mutex", "shared_condition"];
    let others = kinds.into_iter().zip(COLOURS).fold(empty(), |panel, (kind, colour)| {
        let panel = panel.dashed(format!("{kind}{THERE}"), format!("{kind}: Linux"), colour);
        panel.line(format!("{kind}{HERE}"), format!("{kind}: Tench"), colour)
    });
    vec![Plot::new("plot", "POSIX threads of one Linux program on both systems").with(mutexes).with(others)]
}

/// Draws what a switch between processes costs by their number.
fn switches() -> Vec<Plot> {
    let systems = [("switch_linux", "Linux", ORANGE), ("switch_tench", "Tench", BLUE)];
    let empty = Panel::new("processes in a ring of pipes", "microseconds for each switch").log_x();
    let panel = systems.into_iter().fold(empty, |panel, (series, label, colour)| {
        panel.line(series, label, colour).marks(series, "", colour, Shape::Dot)
    });
    vec![Plot::new("plot", "lmbench's lat_ctx on both systems").with(panel)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(figures: &[(&str, f64)]) -> Measured {
        let mut measured = Measured::default();
        figures.iter().for_each(|(key, value)| measured.figure(*key, *value));
        measured
    }

    #[test]
    fn percent_are_of_what_both_can_do() {
        let mut measured = measured(&[("a_tench", 150.0), ("a_linux", 450.0), ("b_linux", 7.0), ("c_tench", 7.0)]);
        percent(&mut measured);
        assert_eq!(measured.figures.len(), 5);
        assert_eq!(measured.figures.get("a_percent"), Some(&33.3));
    }

    #[test]
    fn curves_and_rows_are_in_the_order_of_the_numbers() {
        let keys = [("a_16_tench", 3.0), ("a_16_linux", 2.0), ("a_2_tench", 1.0), ("a_2_linux", 4.0)];
        let mut measured = measured(&[&keys[..], &[("b_c_tench", 5.0), ("b_c_linux", 5.0)]].concat());
        curves(&mut measured);
        let points: Vec<(&str, f64, f64)> =
            measured.samples.iter().map(|sample| (sample.series.as_str(), sample.x, sample.y)).collect();
        let expected = [("a_linux", 2.0, 4.0), ("a_tench", 2.0, 1.0), ("a_linux", 16.0, 2.0), ("a_tench", 16.0, 3.0)];
        assert_eq!(points, expected);
        let rows = side_by_side(&measured, "").rows;
        assert_eq!(rows[1..], [["a_2", "4", "1", "25.0"], ["a_16", "2", "3", "150.0"], ["b_c", "5", "5", "100.0"]]);
    }
}
