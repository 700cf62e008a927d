//! Recorded figures, and differences from them.
//!
//! With a compiler whose figures are recorded the comparison is exact: the machine is deterministic, so one instruction
//! more is one instruction more. Figures are recorded for each compiler that `./tench` chooses by itself: an installed
//! one with the target's libraries, and Debian's with the sources ([`FROM_SOURCE`]). Any other generates other
//! instructions, so its figures may differ by [`TOLERANCE`]. Figures that this tool computes without a target are the
//! same with every compiler.

use std::collections::BTreeSet;
use std::path::PathBuf;

use miette::{Result, miette};
use serde::Deserialize;
use serde_json::json;

use super::experiment::Experiment;
use super::measure::Figures;
use super::write::{format_number, number};
use crate::toolchain::FROM_SOURCE;
use crate::workspace::{self, Workspace};

/// Name in place of the compiler for figures that this tool computes, which no compiler changes.
pub const NO_COMPILER: &str = "any";

/// Part of a recorded figure by which another compiler's may differ from it.
const TOLERANCE: f64 = 0.05;

#[derive(Deserialize)]
struct Baseline {
    compiler: String,
    figures: Figures,
}

impl Baseline {
    fn read(workspace: &Workspace, path: &std::path::Path) -> Result<Baseline> {
        let text = workspace::read_text(path)?;
        serde_json::from_str(&text)
            .map_err(|error| miette!("{} is damaged: {error}; --record writes it anew", workspace.relative(path)))
    }
}

/// Result of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every figure is as recorded.
    Equal,
    /// No figures are recorded with this compiler, and all are close to those of another.
    Close {
        /// Recorded compiler.
        recorded: String,
    },
    /// Differences, a line each.
    Different(Vec<String>),
}

/// Returns where the figures of a compiler are recorded.
pub fn path(workspace: &Workspace, experiment: &Experiment, compiler: &str) -> PathBuf {
    let folder = if compiler.ends_with(FROM_SOURCE) { "lab/baseline/from-source" } else { "lab/baseline" };
    workspace.root.join(folder).join(experiment.name).with_extension("json")
}

/// Compares with the recorded figures.
///
/// # Errors
/// No figures are recorded, or the file is damaged.
pub fn check(workspace: &Workspace, experiment: &Experiment, figures: &Figures, compiler: &str) -> Result<Verdict> {
    let paths = [path(workspace, experiment, compiler), experiment.baseline(workspace)];
    let Some(path) = paths.iter().find(|path| path.is_file()) else {
        return Err(miette!(help = "--record records them", "{} has no recorded figures", experiment.name));
    };
    Ok(compare(&Baseline::read(workspace, path)?, figures, compiler, experiment.unit))
}

fn compare(baseline: &Baseline, figures: &Figures, compiler: &str, unit: &str) -> Verdict {
    let is_same = baseline.compiler == compiler;
    let may_be = |was: f64, is: f64| if is_same { was == is } else { (is - was).abs() <= TOLERANCE * was.abs() };
    let keys: BTreeSet<&String> = baseline.figures.keys().chain(figures.keys()).collect();
    let difference = |key: &&String| match (baseline.figures.get(*key), figures.get(*key)) {
        (Some(was), Some(is)) if may_be(*was, *is) => None,
        (Some(was), Some(is)) => {
            let sign = if is > was { "+" } else { "" };
            let unit = if key.ends_with("_bytes") { "bytes" } else { unit.split(',').next().unwrap_or(unit) };
            let (was, is, change) = (format_number(*was), format_number(*is), format_number(is - was));
            Some(format!("{key}: {sign}{change} {unit} ({is}, recorded {was})"))
        }
        (Some(was), None) => Some(format!("{key}: not measured (recorded {})", format_number(*was))),
        (None, is) => Some(format!("{key}: not recorded ({})", format_number(is.copied().unwrap_or_default()))),
    };
    let mut differences: Vec<String> = keys.iter().filter_map(difference).collect();
    match (differences.is_empty(), is_same) {
        (true, true) => Verdict::Equal,
        (true, false) => Verdict::Close { recorded: baseline.compiler.clone() },
        (false, true) => Verdict::Different(differences),
        (false, false) => {
            let percent = TOLERANCE * 100.0;
            let recorded = &baseline.compiler;
            differences.insert(0, format!("more than {percent} % from those of {recorded}; this is {compiler}:"));
            Verdict::Different(differences)
        }
    }
}

/// Records the figures. Returns the file's path.
pub fn record(workspace: &Workspace, experiment: &Experiment, figures: &Figures, compiler: &str) -> Result<PathBuf> {
    let figures: serde_json::Map<_, _> = figures.iter().map(|(key, value)| (key.clone(), number(*value))).collect();
    let json = json!({
        "experiment": experiment.name,
        "unit": experiment.unit,
        "compiler": compiler,
        "figures": figures,
    });
    let path = path(workspace, experiment, compiler);
    workspace::write_file(&path, format!("{json:#}\n").as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(values: &[(&str, f64)]) -> Figures {
        values.iter().map(|(key, value)| (key.to_string(), *value)).collect()
    }

    fn verdict(recorded: &[(&str, f64)], measured: &[(&str, f64)]) -> Verdict {
        let baseline = Baseline { compiler: "rustc 1".into(), figures: figures(recorded) };
        compare(&baseline, &figures(measured), "rustc 1", "instructions, bytes")
    }

    #[test]
    fn equal_is_equal() {
        assert_eq!(verdict(&[("a", 1.0), ("b", 2.5)], &[("a", 1.0), ("b", 2.5)]), Verdict::Equal);
    }

    #[test]
    fn each_difference_is_named() {
        let recorded = [("call", 90.0), ("gone", 1.0), ("reply", 100.0), ("text_bytes", 10.0)];
        let measured = [("call", 93.0), ("new", 7.0), ("reply", 99.5), ("text_bytes", 12.0)];
        let expected = [
            "call: +3 instructions (93, recorded 90)",
            "gone: not measured (recorded 1)",
            "new: not recorded (7)",
            "reply: -0.5 instructions (99.5, recorded 100)",
            "text_bytes: +2 bytes (12, recorded 10)",
        ];
        assert_eq!(verdict(&recorded, &measured), Verdict::Different(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn figures_of_another_compiler_differ_by_a_twentieth_at_most() {
        let baseline = Baseline { compiler: "rustc 1".into(), figures: figures(&[("a", 100.0)]) };
        let verdict = |value: f64| compare(&baseline, &figures(&[("a", value)]), "rustc 2", "instructions");
        for close in [95.0, 100.0, 105.0] {
            assert_eq!(verdict(close), Verdict::Close { recorded: "rustc 1".into() });
        }
        for far in [94.9, 105.1] {
            let Verdict::Different(lines) = verdict(far) else { panic!("{far} is close") };
            assert_eq!(lines[0], "more than 5 % from those of rustc 1; this is rustc 2:");
            assert_eq!(lines.len(), 2);
        }
    }

    #[test]
    fn each_kind_of_compiler_has_figures_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_owned(), target: root.path().join("target") };
        let experiment = &crate::lab::EXPERIMENTS[0];
        let from_source = format!("rustc 1, {FROM_SOURCE}");
        let (here, there) = (figures(&[("a", 100.0)]), figures(&[("a", 103.0)]));
        record(&workspace, experiment, &here, "rustc 1").unwrap();
        let close = Verdict::Close { recorded: "rustc 1".into() };
        assert_eq!(check(&workspace, experiment, &there, &from_source).unwrap(), close);
        record(&workspace, experiment, &there, &from_source).unwrap();
        assert_eq!(check(&workspace, experiment, &there, &from_source).unwrap(), Verdict::Equal);
        assert!(matches!(check(&workspace, experiment, &here, &from_source).unwrap(), Verdict::Different(_)));
        assert_eq!(check(&workspace, experiment, &here, "rustc 1").unwrap(), Verdict::Equal);
    }

    #[test]
    fn new_figures_are_compared_with_recorded_ones() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_owned(), target: root.path().join("target") };
        let experiment = &crate::lab::EXPERIMENTS[0];
        let measured = figures(&[("call_0", 93.0), ("map_each_512", 11.5), ("loss", 206_257.575)]);
        assert!(check(&workspace, experiment, &measured, "c").is_err());
        record(&workspace, experiment, &measured, "c").unwrap();
        assert_eq!(check(&workspace, experiment, &measured, "c").unwrap(), Verdict::Equal);
        let text = std::fs::read_to_string(experiment.baseline(&workspace)).unwrap();
        assert!(text.contains("\"call_0\": 93,"), "{text}");
    }
}
