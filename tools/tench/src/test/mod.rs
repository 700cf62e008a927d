//! `./tench test`: every test there is, on the host and on the target.
//!
//! | name | what | module |
//! |---|---|---|
//! | `check/NAME` | format, lints, documentation | [`crate::check`] |
//! | `host` | everything that `cargo test` runs on this machine, the kernel and its model also without preemption points | [`host`] |
//! | `crash` | reports when the kernel or an essential server fails | [`crash`] |
//! | `cases` | the named cases, on the target, in one boot | [`cases`] |
//! | `cases/2-cores`, `cases/4-cores` | the cases on the first core of a machine with so many | [`cases`] |
//! | `cases/non-preemptible` | the cases with the kernel whose long operations never let interrupts in | [`cases`] |
//! | `cases/measuring` | the cases about interrupts-off intervals, with a measuring kernel | [`cases`] |
//! | `hostile` | attacks by programs without powers, beside a reserved thread and a client | [`cases`] |
//! | `seed` | the same seed, the same addresses; another seed, others | [`seed`] |
//! | `isolation` | two kernels in one machine share nothing that one of them writes | [`isolation`] |
//! | `holders` | the capabilities of every process are those of the manual's table | [`authority`] |
//! | `scenario/NAME` | a recorded session with the shell | [`scenario`] |
//! | `lab/NAME` | an experiment against its recorded figures | [`figures`] |
//! | `host/long/NAME` | with `--long` only: long tests | [`host`] |
//!
//! The booted systems are built once, by one cargo invocation, after the tests of the host.

mod authority;
mod cases;
mod crash;
mod figures;
mod host;
mod isolation;
mod report;
mod scenario;
mod seed;
mod transcript;

use std::cell::OnceCell;

use miette::Result;

use crate::build::Build;
use crate::check::Check;
use crate::cli::TestOptions;
use crate::lab;
use crate::system::{Packages, System};
use crate::workspace::Workspace;
use report::Report;

/// A test as `--list` and the filter see it.
enum Test {
    Check(Check),
    Host,
    Crash,
    Cases(cases::Boot),
    Seed,
    Isolation,
    Authority,
    Scenario(scenario::Scenario),
    Figures(&'static lab::Experiment),
    Long(host::Long),
}

impl Test {
    fn name(&self) -> String {
        match self {
            Test::Check(check) => format!("check/{}", check.name),
            Test::Host => "host".to_owned(),
            Test::Crash => "crash".to_owned(),
            Test::Cases(boot) => boot.name(),
            Test::Seed => "seed".to_owned(),
            Test::Isolation => "isolation".to_owned(),
            Test::Authority => "holders".to_owned(),
            Test::Scenario(scenario) => format!("scenario/{}", scenario.name),
            Test::Figures(experiment) => format!("lab/{}", experiment.name),
            Test::Long(long) => format!("host/long/{}", long.name),
        }
    }

    /// Returns the system descriptions that it boots.
    fn systems(&self) -> Vec<&'static str> {
        match self {
            Test::Check(_) | Test::Host | Test::Long(_) => Vec::new(),
            Test::Crash => vec![crash::SYSTEM, crash::SYSTEM_OF_SEVERAL],
            Test::Cases(_) => vec![cases::SYSTEM],
            Test::Seed => vec![seed::SYSTEM],
            Test::Isolation => vec![isolation::SYSTEM],
            Test::Authority => vec![authority::SYSTEM],
            Test::Scenario(scenario) => vec![scenario.system],
            Test::Figures(experiment) => experiment.boots().into_iter().collect(),
        }
    }
}

/// State that the tests of the target share.
pub struct Target<'w> {
    /// The source tree.
    pub workspace: &'w Workspace,
    packages: OnceCell<Packages>,
    /// Descriptions to build, loaded before the first of them is needed.
    names: Vec<&'static str>,
    built: OnceCell<(Vec<System>, Build)>,
}

impl<'w> Target<'w> {
    fn new(workspace: &'w Workspace, tests: &[Test]) -> Target<'w> {
        let mut names: Vec<&str> = tests.iter().flat_map(Test::systems).collect();
        names.sort();
        names.dedup();
        Target { workspace, packages: OnceCell::new(), names, built: OnceCell::new() }
    }

    /// Returns the workspace's packages.
    pub fn packages(&self) -> Result<&Packages> {
        if self.packages.get().is_none() {
            let _ = self.packages.set(Packages::find(self.workspace)?);
        }
        Ok(self.packages.get().unwrap_or_else(|| unreachable!("it was set above")))
    }

    /// Returns a system description, and the build of everything that the tests boot.
    pub fn get(&self, name: &str) -> Result<(System, &Build)> {
        if self.built.get().is_none() {
            let load = |name: &&str| System::load(self.workspace, self.packages()?, name);
            let systems = self.names.iter().map(load).collect::<Result<Vec<System>>>()?;
            let build = Build::new(self.workspace, self.packages()?, &systems.iter().collect::<Vec<_>>())?;
            let _ = self.built.set((systems, build));
        }
        let (systems, build) = self.built.get().unwrap_or_else(|| unreachable!("it was set above"));
        let system = systems.iter().find(|system| system.name == name);
        Ok((system.unwrap_or_else(|| unreachable!("each test's system is in the list")).clone(), build))
    }
}

/// Runs a check as a test.
fn judge(workspace: &Workspace, check: &Check, report: &mut Report) -> Result<()> {
    let name = format!("check/{}", check.name);
    match check.missing() {
        Some(missing) => report.ignored(&name, &missing),
        None => {
            report.running(&name);
            check.run(workspace)?;
            report.passed(&name);
        }
    }
    Ok(())
}

/// Runs the tests that the filter selects; returns status 1 if one failed, or if there was none.
pub fn run(workspace: &Workspace, options: &TestOptions) -> Result<u8> {
    let mut tests: Vec<Test> = Check::ALL.into_iter().map(Test::Check).collect();
    tests.extend([Test::Host, Test::Crash]);
    tests.extend(cases::Boot::ALL.map(Test::Cases));
    tests.extend([Test::Seed, Test::Isolation, Test::Authority]);
    tests.extend(scenario::find(workspace)?.into_iter().map(Test::Scenario));
    tests.extend(lab::EXPERIMENTS.iter().filter(|one| one.has_baseline(workspace)).map(Test::Figures));
    if options.long {
        tests.extend(host::Long::ALL.map(Test::Long));
    }
    if let Some(filter) = &options.filter {
        tests.retain(|test| test.name().contains(filter.as_str()));
    }
    if options.list {
        tests.iter().for_each(|test| println!("{}", test.name()));
        return Ok(0);
    }

    let target = Target::new(workspace, &tests);
    let mut report = Report::new();
    for test in &tests {
        let outcome = match test {
            Test::Check(check) => judge(workspace, check, &mut report),
            Test::Host => host::run(&target, &mut report),
            Test::Crash => crash::run(&target, &mut report),
            Test::Cases(boot) => cases::run(&target, *boot, &mut report),
            Test::Seed => seed::run(&target, &mut report),
            Test::Isolation => isolation::run(&target, &mut report),
            Test::Authority => authority::run(&target, options.bless, &mut report),
            Test::Scenario(scenario) => scenario.run(&target, options.bless, &mut report),
            Test::Figures(experiment) => figures::run(&target, experiment, &mut report),
            Test::Long(long) => host::run_long(&target, long, &mut report),
        };
        if let Err(error) = outcome {
            report.failed(&test.name(), &format!("{error:?}"));
        }
    }
    Ok(u8::from(!report.close()))
}
