//! Recorded figures, and differences from them. The comparison is exact: the machine is deterministic, so one
//! instruction more is one instruction more. Another compiler generates other instructions, so its figures are not
//! compared; figures that this tool computes without a target are the same with every compiler.

use std::collections::BTreeSet;

use miette::{Result, miette};
use serde::Deserialize;
use serde_json::json;

use super::experiments::Experiment;
use super::measure::Figures;
use super::write::{format_number, number};
use crate::workspace::{self, Workspace};

/// Name in place of the compiler for figures that this tool computes, which no compiler changes.
pub const NO_COMPILER: &str = "any";

#[derive(Deserialize)]
struct Baseline {
    compiler: String,
    figures: Figures,
}

/// Result of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every figure is as recorded.
    Equal,
    /// The figures were recorded with another compiler.
    OtherCompiler {
        /// Recorded compiler.
        recorded: String,
    },
    /// Differences, a line each.
    Different(Vec<String>),
}

/// Compares with the recorded figures.
pub fn check(workspace: &Workspace, experiment: &Experiment, figures: &Figures, compiler: &str) -> Result<Verdict> {
    let path = experiment.baseline(workspace);
    if !path.is_file() {
        return Err(miette!(help = "--record records them", "{} has no recorded figures", experiment.name));
    }
    let text = workspace::read_text(&path)?;
    let baseline: Baseline = serde_json::from_str(&text)
        .map_err(|error| miette!("{} is damaged: {error}; --record writes it anew", workspace.relative(&path)))?;
    Ok(compare(&baseline, figures, compiler, experiment.unit))
}

fn compare(baseline: &Baseline, figures: &Figures, compiler: &str, unit: &str) -> Verdict {
    if baseline.compiler != compiler {
        return Verdict::OtherCompiler { recorded: baseline.compiler.clone() };
    }
    let keys: BTreeSet<&String> = baseline.figures.keys().chain(figures.keys()).collect();
    let difference = |key: &&String| match (baseline.figures.get(*key), figures.get(*key)) {
        (Some(was), Some(is)) if was == is => None,
        (Some(was), Some(is)) => {
            let sign = if is > was { "+" } else { "" };
            let unit = if key.ends_with("_bytes") { "bytes" } else { unit.split(',').next().unwrap_or(unit) };
            let (was, is, change) = (format_number(*was), format_number(*is), format_number(is - was));
            Some(format!("{key}: {sign}{change} {unit} ({is}, recorded {was})"))
        }
        (Some(was), None) => Some(format!("{key}: not measured (recorded {})", format_number(*was))),
        (None, is) => Some(format!("{key}: not recorded ({})", format_number(is.copied().unwrap_or_default()))),
    };
    let differences: Vec<String> = keys.iter().filter_map(difference).collect();
    if differences.is_empty() { Verdict::Equal } else { Verdict::Different(differences) }
}

/// Records the figures.
pub fn record(workspace: &Workspace, experiment: &Experiment, figures: &Figures, compiler: &str) -> Result<()> {
    let figures: serde_json::Map<_, _> = figures.iter().map(|(key, value)| (key.clone(), number(*value))).collect();
    let json = json!({
        "experiment": experiment.name,
        "unit": experiment.unit,
        "compiler": compiler,
        "figures": figures,
    });
    workspace::write_file(&experiment.baseline(workspace), format!("{json:#}\n").as_bytes())
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
    fn another_compiler_is_not_compared() {
        let baseline = Baseline { compiler: "rustc 1".into(), figures: figures(&[("a", 1.0)]) };
        let verdict = compare(&baseline, &figures(&[("a", 2.0)]), "rustc 2", "instructions");
        assert_eq!(verdict, Verdict::OtherCompiler { recorded: "rustc 1".into() });
    }

    #[test]
    fn new_figures_are_compared_with_recorded_ones() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_owned(), target: root.path().join("target") };
        let experiment = &super::super::EXPERIMENTS[0];
        let measured = figures(&[("call_0", 93.0), ("map_each_512", 11.5), ("loss", 206_257.575)]);
        assert!(check(&workspace, experiment, &measured, "c").is_err());
        record(&workspace, experiment, &measured, "c").unwrap();
        assert_eq!(check(&workspace, experiment, &measured, "c").unwrap(), Verdict::Equal);
        let text = std::fs::read_to_string(experiment.baseline(&workspace)).unwrap();
        assert!(text.contains("\"call_0\": 93,"), "{text}");
    }
}
