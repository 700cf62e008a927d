//! Measurement: gets an experiment's numbers from this tool, from the target's serial port, and from what was built.

use std::collections::BTreeMap;
use std::time::Duration;

use miette::{Result, miette};

use super::experiment::{Experiment, Run};
use super::lines;
use crate::build::{Build, Optimisation};
use crate::meter;
use crate::prepare;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Patience};
use crate::system::{Packages, System};
use crate::workspace::Workspace;

/// Name of the measuring program.
const PROGRAM: &str = "bench";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(120), total: Duration::from_secs(1200) };
/// Patience with a run of given length: it prints something now and then, and takes as long as it takes.
const ENDURANCE: Patience = Patience { silence: Duration::from_secs(1200), total: Duration::from_secs(86_400) };

/// Figures by key.
pub type Figures = BTreeMap<String, f64>;

/// A point of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name of the curve.
    pub series: String,
    pub x: f64,
    pub y: f64,
}

/// Results of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Figures of the experiment.
    pub figures: Figures,
    /// Points of the curves, in the order in which they were printed.
    pub samples: Vec<Sample>,
    /// Words by series and position, for tables: they are not compared.
    pub texts: BTreeMap<(String, u64), String>,
}

impl Measured {
    /// Adds a figure.
    pub fn figure(&mut self, key: impl Into<String>, value: f64) {
        self.figures.insert(key.into(), value);
    }

    /// Adds a point to a series.
    pub fn sample(&mut self, series: impl Into<String>, x: f64, y: f64) {
        self.samples.push(Sample { series: series.into(), x, y });
    }
}

/// Files that an experiment with runs on the target boots.
pub struct Booted<'b> {
    /// The workspace's packages.
    pub packages: &'b Packages,
    /// The experiment's system.
    pub system: &'b System,
    /// The built system.
    pub build: &'b Build,
}

/// Length of a run, for an experiment that can go on for ever.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// Number of instructions.
    pub instructions: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Runs an experiment: first the host's part, then the boots.
pub fn measure(
    workspace: &Workspace,
    booted: Option<Booted>,
    experiment: &Experiment,
    length: Option<Length>,
) -> Result<Measured> {
    let mut measured = (experiment.on_host)(workspace)?;
    let Some(Booted { packages, system, build }) = booted else { return Ok(measured) };
    let built = (experiment.from_build)(system, build)?;
    measured.figures.extend(built.figures);
    measured.texts.extend(built.texts);
    for run in experiment.runs {
        let build = match run.optimised {
            true => build.clone(),
            false => Build::with(workspace, packages, &[system], Optimisation::AllButPrograms)?,
        };
        let build = build.with_kernel(workspace, packages, system, run.kernel)?;
        boot(workspace, system, &build, experiment, (run, length), &mut measured)?;
    }
    (experiment.derive)(&mut measured);
    Ok(measured)
}

/// Boots once and adds the printed results.
fn boot(
    workspace: &Workspace,
    system: &System,
    build: &Build,
    experiment: &Experiment,
    (run, length): (&Run, Option<Length>),
    measured: &mut Measured,
) -> Result<()> {
    let mut system = system.clone();
    let mut arguments: Vec<String> =
        std::iter::once(experiment.name).chain(run.arguments.iter().copied()).map(str::to_owned).collect();
    arguments.extend(length.into_iter().flat_map(|length| [length.instructions, length.seed]).map(|n| n.to_string()));
    system.set_arguments(PROGRAM, &arguments);
    let label = format!("lab-{}{}", run.prefix, experiment.name);
    let further = (experiment.files)(workspace, &label)?;
    let packed = (experiment.packed)(workspace)?;
    let files = prepare::prepare(workspace, build, &system, &label, &further, packed.as_deref())?;
    let mut symbols = build.symbols(workspace, &system, &files)?;
    let mut machine = Machine { icount: true, memory: run.memory.to_owned(), cores: run.cores, ..Machine::default() };
    let lines_file = files.image.with_file_name("lines");
    if run.counts_lines {
        machine.plugin = Some(meter::lines(workspace, &lines_file)?);
    }
    let patience = if length.is_some() { ENDURANCE } else { PATIENCE };
    let outcome = script::run(&mut machine.command(&files, Serial::Pipe), &[], patience, |line| symbols.explain(line))?;
    show_notes(experiment.name, &outcome.lines);
    let count = outcome.lines.iter().filter(|line| take(line, run.prefix, measured)).count();
    let problem = match &outcome.end {
        End::Stopped(reason) => format!("the guest was stopped: {reason}"),
        End::Exited(0) if count > 0 && run.counts_lines => {
            return lines::take(&lines_file, &mut symbols, (experiment.name, run.prefix), measured);
        }
        End::Exited(0) if count > 0 => return Ok(()),
        End::Exited(0) => "the guest printed no figure".to_owned(),
        End::Exited(status) => format!("the guest ended with status {status}"),
    };
    Err(miette!("experiment {}: {problem}; what was last on the terminal:\n{}", experiment.name, outcome.last_screen()))
}

/// Shows the notes, and addresses in them with their symbols.
fn show_notes(name: &str, lines: &[String]) {
    let mut behind_note = false;
    for line in lines {
        match line.strip_prefix("note: ") {
            Some(note) => eprintln!("{name}: {note}"),
            None if behind_note && line.starts_with("  ") => eprintln!("{line}"),
            None => {}
        }
        behind_note = line.starts_with("note: ") || behind_note && line.starts_with("  ");
    }
}

/// Takes the number or the words of a line, if it has some.
fn take(line: &str, prefix: &str, measured: &mut Measured) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
    match words.as_slice() {
        ["figure:", key, value] => match number(value) {
            Some(value) => {
                measured.figures.insert(format!("{prefix}{key}"), value);
                true
            }
            None => false,
        },
        ["sample:", series, x, y] => match (number(x), number(y)) {
            (Some(x), Some(y)) => {
                measured.samples.push(Sample { series: format!("{prefix}{series}"), x, y });
                true
            }
            _ => false,
        },
        ["text:", series, x, text @ ..] => match x.parse::<u64>() {
            Ok(x) if !text.is_empty() => {
                measured.texts.insert((format!("{prefix}{series}"), x), text.join(" "));
                true
            }
            _ => false,
        },
        ["values:", series, first, values @ ..] => match number(first) {
            Some(first) => take_values(&format!("{prefix}{series}"), first, values, measured),
            None => false,
        },
        _ => false,
    }
}

/// Takes adjacent points of a series.
fn take_values(series: &str, first: f64, values: &[&str], measured: &mut Measured) -> bool {
    let Ok(values) = values.iter().map(|value| value.parse::<u32>()).collect::<Result<Vec<_>, _>>() else {
        return false;
    };
    for (index, value) in values.iter().enumerate() {
        measured.sample(series, first + index as f64, f64::from(*value));
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_are_taken_from_their_lines_alone() {
        let mut measured = Measured::default();
        for line in ["figure: call_0 93", "sample: latency 1 2.5", "values: late 32 5 7"] {
            assert!(take(line, "x_", &mut measured), "{line}");
        }
        let bad = ["figure: call_0", "figure: a b", "a figure: a 1", "sample: a 1", "figure: a inf", "", "values: a 1"];
        for line in bad.into_iter().chain(["values: a 1 2 x", "values: a b 1"]) {
            assert!(!take(line, "", &mut measured), "{line}");
        }
        for line in ["text: workload 5", "text: workload", "text: workload x y", "text: workload -1 y"] {
            assert!(!take(line, "", &mut measured), "{line}");
        }
        assert!(take("text: workload 5 nodes in nodes", "x_", &mut measured));
        assert_eq!(measured.texts, BTreeMap::from([(("x_workload".to_owned(), 5), "nodes in nodes".to_owned())]));
        assert_eq!(measured.figures, BTreeMap::from([("x_call_0".to_owned(), 93.0)]));
        let sample = |series: &str, x, y| Sample { series: series.into(), x, y };
        let late = [sample("x_late", 32.0, 5.0), sample("x_late", 33.0, 7.0)];
        assert_eq!(measured.samples, [&[sample("x_latency", 1.0, 2.5)], &late[..]].concat());
    }
}
