//! Experiments against their recorded figures: a change of a measured path is a failed test.

use miette::Result;

use super::Target;
use super::report::Report;
use crate::lab::{self, Experiment, baseline};

pub fn run(target: &Target, experiment: &'static Experiment, report: &mut Report) -> Result<()> {
    let name = format!("lab/{}", experiment.name);
    report.running(&name);
    let (system, build) = target.get(experiment.system)?;
    let measured = lab::measure(target.workspace, target.packages()?, &system, build, experiment)?;
    match baseline::check(target.workspace, experiment, &measured.figures, &build.compiler)? {
        baseline::Verdict::Equal => report.passed(&name),
        baseline::Verdict::OtherCompiler { recorded } => {
            report.ignored(&name, &format!("recorded with {recorded}, this is {}", build.compiler));
        }
        baseline::Verdict::Different(differences) => report.failed(&name, &differences.join("\n")),
    }
    Ok(())
}
