//! Costs of the calls, faults and signals of Linux programs, beside Linux's own.

use miette::Result;

use crate::lab::reference;
use crate::lab::support::{Experiment, Measured, USUAL};
use crate::peer::figures;
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
    files: prepare::linux_programs,
    on_host: recorded_on_linux,
    derive: percent,
    targets: reference::SYSCALL_TARGETS,
    ..USUAL
};

/// Returns Linux's figures.
fn recorded_on_linux(workspace: &Workspace) -> Result<Measured> {
    let mut measured = Measured::default();
    for (key, value) in figures::load(workspace)?.figures {
        measured.figure(key, value as f64);
    }
    Ok(measured)
}

/// Adds Tench's costs in percent of Linux's; what one of them cannot do has none.
fn percent(measured: &mut Measured) {
    let pairs: Vec<(String, f64)> = measured
        .figures
        .iter()
        .filter_map(|(key, here)| {
            let name = key.strip_suffix(HERE)?;
            let there = measured.figures.get(&format!("{name}{THERE}"))?;
            Some((format!("{name}{PERCENT}"), (here / there * 1000.0).round() / 10.0))
        })
        .collect();
    pairs.into_iter().for_each(|(key, value)| measured.figure(key, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_are_of_what_both_can_do() {
        let mut measured = Measured::default();
        for (key, value) in [("a_tench", 150.0), ("a_linux", 450.0), ("b_linux", 7.0), ("c_tench", 7.0)] {
            measured.figure(key, value);
        }
        percent(&mut measured);
        assert_eq!(measured.figures.len(), 5);
        assert_eq!(measured.figures.get("a_percent"), Some(&33.3));
    }
}
