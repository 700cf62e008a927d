//! Costs of Linux's calls on Linux itself, recorded once: `lab/linux.json`.

use std::collections::BTreeMap;

use miette::{Result, miette};
use serde::{Deserialize, Serialize};

use super::{Peer, Ran};
use crate::workspace::{self, Workspace};

const FILE: &str = "lab/linux.json";
/// Program of `tests/linux` that measures, and the word that ends its figures' names.
const PROGRAM: &str = "costs";
const WHERE: &str = "linux";

/// The recorded file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Package of the kernel, and its version.
    kernel: String,
    /// Instructions by name.
    pub figures: BTreeMap<String, u64>,
}

/// Measures on Linux, and compares with the recorded figures or records them. Returns whether they are equal.
pub fn measure(workspace: &Workspace, peer: &Peer, is_recorded: bool) -> Result<bool> {
    let Ran { lines, status } = peer.run_test(workspace, PROGRAM, &[WHERE.to_owned()])?;
    let figures = figures(&lines);
    if status != 0 || figures.is_empty() {
        return Err(miette!("{PROGRAM} ended with status {status} on Linux and printed:\n{}", lines.join("\n")));
    }
    if !is_recorded {
        let differences = differences(&load(workspace)?.figures, &figures);
        differences.iter().for_each(|difference| println!("{difference}"));
        return Ok(differences.is_empty());
    }
    let recorded = Recorded { kernel: peer.version.clone(), figures };
    let text = serde_json::to_string_pretty(&recorded).map_err(|error| miette!("cannot write {FILE}: {error}"))?;
    workspace::write_file(&workspace.root.join(FILE), format!("{text}\n").as_bytes())?;
    println!("recorded in {FILE}");
    Ok(true)
}

/// Returns the recorded figures.
pub fn load(workspace: &Workspace) -> Result<Recorded> {
    parse(&workspace::read_text(&workspace.root.join(FILE))?)
}

fn parse(text: &str) -> Result<Recorded> {
    let help = "./tench linux-peer --record-figures writes it anew";
    serde_json::from_str(text).map_err(|error| miette!(help = help, "{FILE} is damaged: {error}"))
}

/// Returns the figures among what the program printed.
fn figures(lines: &[String]) -> BTreeMap<String, u64> {
    let figure = |line: &String| {
        let (key, value) = line.strip_prefix("figure: ")?.split_once(' ')?;
        Some((key.to_owned(), value.parse().ok()?))
    };
    lines.iter().filter_map(figure).collect()
}

/// Returns a line for each figure that is not as recorded.
fn differences(recorded: &BTreeMap<String, u64>, measured: &BTreeMap<String, u64>) -> Vec<String> {
    let mut keys: Vec<&String> = recorded.keys().chain(measured.keys()).collect();
    keys.sort();
    keys.dedup();
    let show = |figure: Option<&u64>| figure.map_or("none".to_owned(), u64::to_string);
    let line = |key: &&String| {
        let (was, is) = (recorded.get(*key), measured.get(*key));
        (was != is).then(|| format!("{key}: {}, recorded {}", show(is), show(was)))
    };
    keys.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
        list.iter().map(|(key, value)| (key.to_string(), *value)).collect()
    }

    #[test]
    fn figures_are_taken_from_their_lines_alone() {
        let lines = ["figure: getppid_linux 500", "note: x: failed", "figure: a", "figure: a b", "a 1"];
        assert_eq!(figures(&lines.map(str::to_owned)), some(&[("getppid_linux", 500)]));
    }

    #[test]
    fn each_difference_is_named() {
        let (was, is) = (some(&[("a", 1), ("b", 2), ("c", 3)]), some(&[("a", 1), ("b", 3), ("d", 4)]));
        assert_eq!(differences(&was, &is), ["b: 3, recorded 2", "c: none, recorded 3", "d: 4, recorded none"]);
        assert!(differences(&was, &was).is_empty());
    }

    #[test]
    fn a_damaged_file_is_an_error_that_says_what_to_do() {
        let error = parse("{\"kernel\": \"x\"}").unwrap_err();
        assert!(error.to_string().starts_with("lab/linux.json is damaged: missing field `figures`"), "{error}");
        assert!(error.help().unwrap().to_string().contains("--record-figures"));
    }
}
