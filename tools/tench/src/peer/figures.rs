//! Figures of Linux itself for the experiments that compare Tench with it, recorded once: `lab/linux/NAME.json`.

use std::collections::BTreeMap;

use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::compared::{self, Compared};
use super::{Peer, Ran};
use crate::workspace::{self, Workspace};

const DIRECTORY: &str = "lab/linux";

/// A recorded file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Package of the kernel, and its version.
    kernel: String,
    /// Values by name.
    pub figures: BTreeMap<String, Number>,
}

/// Returns the experiments of these names, or all if there are none.
pub fn choose(names: &[String]) -> Result<Vec<&'static Compared>> {
    let allowed = || compared::ALL.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let help = || format!("allowed: {}", allowed());
        compared::find(name).ok_or_else(|| miette!(help = help(), "no experiment {name} compares with Linux"))
    };
    if names.is_empty() { Ok(compared::ALL.iter().collect()) } else { names.iter().map(find).collect() }
}

/// Measures on Linux, and compares with the recorded figures or records them. Returns whether they are equal.
pub fn measure(workspace: &Workspace, peer: &Peer, compared: &Compared, is_recorded: bool) -> Result<bool> {
    let name = compared.name;
    let Ran { lines, status } = peer.run_compared(workspace, compared)?;
    let figures = figures(&lines);
    if status != 0 || figures.is_empty() {
        return Err(miette!("{name} ended with status {status} on Linux and printed:\n{}", lines.join("\n")));
    }
    if !is_recorded {
        let differences = differences(&load(workspace, name)?.figures, &figures);
        differences.iter().for_each(|difference| println!("{name}: {difference}"));
        if differences.is_empty() {
            println!("{name}: as recorded");
        }
        return Ok(differences.is_empty());
    }
    let recorded = Recorded { kernel: peer.version.clone(), figures };
    let file = file(name);
    let text = serde_json::to_string_pretty(&recorded).map_err(|error| miette!("cannot write {file}: {error}"))?;
    workspace::write_file(&workspace.root.join(&file), format!("{text}\n").as_bytes())?;
    println!("recorded in {file}");
    Ok(true)
}

/// Returns the path of an experiment's file.
fn file(name: &str) -> String {
    format!("{DIRECTORY}/{name}.json")
}

/// Returns the recorded figures of an experiment.
pub fn load(workspace: &Workspace, name: &str) -> Result<Recorded> {
    parse(name, &workspace::read_text(&workspace.root.join(file(name)))?)
}

fn parse(name: &str, text: &str) -> Result<Recorded> {
    let help = format!("./tench linux-peer --record-figures {name} writes it anew");
    serde_json::from_str(text).map_err(|error| miette!(help = help, "{} is damaged: {error}", file(name)))
}

/// Returns the figures among what a program printed.
fn figures(lines: &[String]) -> BTreeMap<String, Number> {
    let number =
        |word: &str| word.parse::<u64>().map(Number::from).ok().or_else(|| Number::from_f64(word.parse().ok()?));
    let figure = |line: &String| {
        let (key, value) = line.strip_prefix("figure: ")?.split_once(' ')?;
        Some((key.to_owned(), number(value)?))
    };
    lines.iter().filter_map(figure).collect()
}

/// Returns a line for each figure that is not as recorded.
fn differences(recorded: &BTreeMap<String, Number>, measured: &BTreeMap<String, Number>) -> Vec<String> {
    let mut keys: Vec<&String> = recorded.keys().chain(measured.keys()).collect();
    keys.sort();
    keys.dedup();
    let show = |figure: Option<&Number>| figure.map_or("none".to_owned(), Number::to_string);
    let line = |key: &&String| {
        let (was, is) = (recorded.get(*key), measured.get(*key));
        (was != is).then(|| format!("{key}: {}, recorded {}", show(is), show(was)))
    };
    keys.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(list: &[(&str, u64)]) -> BTreeMap<String, Number> {
        list.iter().map(|(key, value)| (key.to_string(), (*value).into())).collect()
    }

    #[test]
    fn figures_are_taken_from_their_lines_alone() {
        let lines = ["figure: getppid_linux 500", "note: x: failed", "figure: a", "figure: a b", "a 1"];
        assert_eq!(figures(&lines.map(str::to_owned)), some(&[("getppid_linux", 500)]));
        let found = figures(&["figure: null_linux 0.4480", "figure: x_linux inf"].map(str::to_owned));
        assert_eq!(found.get("null_linux").map(Number::to_string), Some("0.448".to_owned()));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn each_difference_is_named() {
        let (was, is) = (some(&[("a", 1), ("b", 2), ("c", 3)]), some(&[("a", 1), ("b", 3), ("d", 4)]));
        assert_eq!(differences(&was, &is), ["b: 3, recorded 2", "c: none, recorded 3", "d: 4, recorded none"]);
        assert!(differences(&was, &was).is_empty());
    }

    #[test]
    fn a_damaged_file_is_an_error_that_says_what_to_do() {
        let error = parse("pthreads", "{\"kernel\": \"x\"}").unwrap_err();
        assert!(
            error.to_string().starts_with("lab/linux/pthreads.json is damaged: missing field `figures`"),
            "{error}"
        );
        assert!(error.help().unwrap().to_string().contains("--record-figures pthreads"));
    }

    #[test]
    fn an_unknown_experiment_is_an_error_that_names_the_others() {
        assert_eq!(choose(&[]).unwrap().len(), compared::ALL.len());
        assert_eq!(choose(&["pthreads".into()]).unwrap()[0].name, "pthreads");
        let error = choose(&["pthreads".into(), "ipc".into()]).unwrap_err();
        assert_eq!(error.to_string(), "no experiment ipc compares with Linux");
        assert!(error.help().unwrap().to_string().starts_with("allowed: syscall, pthreads"));
    }
}
