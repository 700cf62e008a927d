//! Experiments against their recorded figures: a change of a measured path is a failed test.

use miette::Result;

use super::Target;
use super::report::Report;
use crate::lab::{self, Booted, Experiment, baseline};

pub fn run(target: &Target, experiment: &'static Experiment, report: &mut Report) -> Result<()> {
    let name = format!("lab/{}", experiment.name);
    report.running(&name);
    let system = experiment.boots().map(|name| target.get(name)).transpose()?;
    let booted = match &system {
        Some((system, build)) => Some(Booted { packages: target.packages()?, system, build }),
        None => None,
    };
    let compiler = lab::compiler(&booted);
    let measured = lab::measure(target.workspace, booted, experiment, None)?;
    match baseline::check(target.workspace, experiment, &measured.figures, &compiler)? {
        baseline::Verdict::Equal => report.passed(&name),
        baseline::Verdict::OtherCompiler { recorded } => {
            report.ignored(&name, &format!("recorded with {recorded}, this is {compiler}"));
        }
        baseline::Verdict::Different(differences) => report.failed(&name, &differences.join("\n")),
    }
    Ok(())
}
