//! Tests of experiments against their recorded figures: a change of a measured path is a failed test.

use miette::Result;

use super::Target;
use super::linux;
use super::report::Report;
use crate::lab::{self, Booted, Experiment, Figures, baseline};

pub fn run(target: &Target, experiment: &'static Experiment, report: &Report) -> Result<()> {
    let name = format!("lab/{}", experiment.name);
    let system = experiment.boots().map(|name| target.get(name)).transpose()?;
    let booted = match &system {
        Some((system, build)) => Some(Booted { packages: target.packages()?, system, build }),
        None => None,
    };
    let compiler = lab::compiler(&booted);
    let measured = lab::measure(target.workspace, booted, experiment, None);
    let Some(measured) = linux::judge(measured, &name, report)? else { return Ok(()) };
    let missed = missed_targets(experiment, &measured.figures);
    if !missed.is_empty() {
        report.failed(&name, &missed.join("\n"));
        return Ok(());
    }
    match baseline::check(target.workspace, experiment, &measured.figures, &compiler)? {
        baseline::Verdict::Equal => report.passed(&name),
        baseline::Verdict::Close { recorded } => {
            report.say(&format!("{name} is compared with the figures of {recorded}; this is {compiler}"));
            report.passed(&name);
        }
        baseline::Verdict::Different(differences) => report.failed(&name, &differences.join("\n")),
    }
    Ok(())
}

/// Returns messages for promises that are not kept.
fn missed_targets(experiment: &Experiment, figures: &Figures) -> Vec<String> {
    let targets = experiment.targets.iter().filter(|(key, _)| experiment.enforced.contains(key));
    let missed = targets.filter(|(key, most)| !figures.get(*key).is_some_and(|is| is <= most));
    missed.map(|(key, most)| format!("{key}: {:?} where at most {most} is allowed", figures.get(*key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_missed_by_a_larger_figure_or_by_none() {
        let find = |name: &str| lab::EXPERIMENTS.iter().find(|one| one.name == name).expect("it exists");
        let experiment = find("adversary");
        let figures = |instructions: f64, lines: f64| {
            Figures::from([("irq_off_worst".to_owned(), instructions), ("lines_worst".to_owned(), lines)])
        };
        assert!(missed_targets(experiment, &figures(2000.0, 320.0)).is_empty());
        assert_eq!(missed_targets(experiment, &figures(2001.0, 320.0)).len(), 1);
        assert_eq!(missed_targets(experiment, &figures(2000.0, 321.0)).len(), 1);
        assert_eq!(missed_targets(experiment, &Figures::new()).len(), 2);
        // The kernel's text is larger than it should be, which fails nothing.
        assert_eq!(missed_targets(find("boot"), &Figures::new()).len(), 2);
    }
}
