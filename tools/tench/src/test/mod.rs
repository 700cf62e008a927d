//! `./tench test`: every test there is, on the host and on the target.
//!
//! | name | what | module |
//! |---|---|---|
//! | `check/NAME` | format, lints, documentation | [`crate::check`] |
//! | `host`, `host/NAME` | everything that `cargo test` runs on this machine, the kernel and its model also without preemption points | [`host`] |
//! | `crash` | reports when the kernel or an essential server fails | [`crash`] |
//! | `machines` | machines that differ from the usual one | [`machines`] |
//! | `help/NAME` | every program prints its usage if it is asked to | [`help`] |
//! | `cases` | the named cases, on the target, in one boot | [`cases`] |
//! | `cases/2-cores`, `cases/4-cores` | the cases on the first core of a machine with so many | [`cases`] |
//! | `cases/non-preemptible` | the cases with the kernel whose long operations never let interrupts in | [`cases`] |
//! | `cases/measuring` | the cases about interrupts-off intervals, with a measuring kernel | [`cases`] |
//! | `hostile` | attacks by programs without powers, beside a reserved thread and a client | [`cases`] |
//! | `seed` | the same seed, the same addresses; another seed, others | [`seed`] |
//! | `isolation` | two kernels in one machine share nothing that one of them writes | [`isolation`] |
//! | `resident` | what stays of the kernels refers to nothing that is free after the boot | [`resident`] |
//! | `stack` | no stack of the kernels can overflow, on whichever path | [`stack`] |
//! | `holders` | the capabilities of every process are those of the manual's table | [`authority`] |
//! | `scenario/NAME` | a recorded session with the shell | [`scenario`] |
//! | `linux/NAME` | a program for Linux, or a script for Debian's, prints what it prints there | [`linux`] |
//! | `lab/NAME` | an experiment against its recorded figures | [`figures`] |
//! | `host/long/NAME` | with `--long` only: long tests | [`host`] |
//! | `host/long/fuzz/NAME` | with `--long` only: a fuzz target, for a minute | [`fuzz`] |
//! | `linux-peer/NAME` | with `--long` only: the same program on Linux again | [`linux`] |
//! | `mutants/NAME` | with `--long` or by name only: mistakes in the kernel that a test must find | [`mutants`] |
//!
//! The booted systems are built once, by one cargo invocation. The checks come first, since they are quick and whoever
//! breaks one wants to know at once; all other tests are shared among as many workers as the machine has processors,
//! those that take longest first, so that no worker still runs a long one when all others have finished.

mod authority;
mod cases;
mod crash;
mod figures;
mod fuzz;
mod help;
mod host;
mod isolation;
mod linux;
mod machines;
mod mutants;
mod report;
mod resident;
mod scenario;
mod seed;
mod stack;

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use miette::Result;

use crate::build::Build;
use crate::check::Check;
use crate::cli::TestOptions;
use crate::disk;
use crate::lab;
use crate::peer::golden;
use crate::prepare::{self, BootFiles};
use crate::system::{Packages, System};
use crate::workspace::Workspace;
use mutants::Mutant;
use report::Report;

/// A test as `--list` and the filter see it.
enum Test {
    Check(Check),
    Host(host::Stage),
    Crash,
    Machines,
    Help,
    Cases(cases::Boot),
    Seed,
    Isolation,
    Resident,
    Stack,
    Authority,
    Scenario(scenario::Scenario),
    Linux(golden::Subject),
    LinuxPeer(golden::Subject),
    Figures(&'static lab::Experiment),
    Long(host::Long),
    Fuzz(fuzz::Fuzz),
    Mutants(Vec<Mutant>),
}

impl Test {
    fn name(&self) -> String {
        match self {
            Test::Check(check) => format!("check/{}", check.name),
            Test::Host(stage) => stage.name.to_owned(),
            Test::Crash => "crash".to_owned(),
            Test::Machines => "machines".to_owned(),
            Test::Help => "help".to_owned(),
            Test::Cases(boot) => boot.name(),
            Test::Seed => "seed".to_owned(),
            Test::Isolation => "isolation".to_owned(),
            Test::Resident => "resident".to_owned(),
            Test::Stack => "stack".to_owned(),
            Test::Authority => "holders".to_owned(),
            Test::Scenario(scenario) => format!("scenario/{}", scenario.name),
            Test::Linux(subject) => format!("linux/{}", subject.name()),
            Test::LinuxPeer(subject) => format!("linux-peer/{}", subject.name()),
            Test::Figures(experiment) => format!("lab/{}", experiment.name),
            Test::Long(long) => format!("host/long/{}", long.name),
            Test::Fuzz(fuzz) => fuzz.full_name(),
            Test::Mutants(_) => "mutants".to_owned(),
        }
    }

    /// Returns what it does, if it takes long enough for somebody to wonder.
    fn what(&self) -> Option<&'static str> {
        Some(match self {
            Test::Check(_) | Test::Scenario(_) | Test::Linux(_) | Test::Figures(_) => return None,
            Test::Host(stage) => stage.what,
            Test::Crash => "reports when the kernel or a server fails",
            Test::Machines => "machines that differ from the usual one",
            Test::Help => "what programs say about themselves",
            Test::Cases(boot) => boot.what(),
            Test::Seed => "addresses that follow from the seed",
            Test::Isolation => "what two kernels in one machine share",
            Test::Resident => "what stays of the kernels after the boot",
            Test::Stack => "how deep the kernels' stacks can get",
            Test::Authority => "the capabilities of every process",
            Test::LinuxPeer(_) => "a program or script on Linux again",
            Test::Long(long) => long.what,
            Test::Fuzz(_) => "a fuzz target, for a minute",
            Test::Mutants(_) => "the kernel with one mistake each, which a test must find",
        })
    }

    /// Returns about how many seconds the test takes on one processor; 10 for the many that take little.
    fn seconds(&self) -> u32 {
        match self {
            Test::Host(stage) => stage.seconds,
            Test::Cases(boot) => boot.seconds(),
            Test::Crash => 70,
            // Unoptimised programs are built only for this run.
            Test::Figures(experiment) => experiment.runs.iter().map(|run| if run.optimised { 15 } else { 110 }).sum(),
            Test::Long(_) => 3600,
            Test::Fuzz(_) => fuzz::SECONDS,
            Test::Mutants(mutants) => 4 * mutants.len() as u32,
            _ => 10,
        }
    }

    /// Returns the system descriptions that it boots.
    fn systems(&self) -> Vec<&'static str> {
        match self {
            Test::Check(_) | Test::Host(_) | Test::Long(_) | Test::Fuzz(_) | Test::Mutants(_) | Test::LinuxPeer(_) => {
                Vec::new()
            }
            Test::Crash => vec![crash::SYSTEM, crash::SYSTEM_OF_SEVERAL],
            Test::Machines => vec![machines::SYSTEM, machines::SYSTEM_FOR_LINUX],
            Test::Help => vec![help::SYSTEM],
            Test::Cases(_) => vec![cases::SYSTEM],
            Test::Seed => vec![seed::SYSTEM],
            Test::Isolation => vec![isolation::SYSTEM],
            Test::Resident | Test::Stack => vec![resident::SYSTEM],
            Test::Authority => vec![authority::SYSTEM],
            Test::Scenario(scenario) => vec![scenario.system],
            Test::Linux(_) => vec![linux::SYSTEM],
            Test::Figures(experiment) => experiment.boots().into_iter().collect(),
        }
    }
}

/// State that all workers share.
struct Shared<'w> {
    workspace: &'w Workspace,
    packages: OnceLock<Packages>,
    /// Descriptions to build, loaded before the first of them is needed.
    names: Vec<&'static str>,
    built: OnceLock<(Vec<System>, Build)>,
    /// Held while the above are made, so that one worker makes them.
    making: Mutex<()>,
}

impl<'w> Shared<'w> {
    fn new(workspace: &'w Workspace, tests: &[Test]) -> Shared<'w> {
        let mut names: Vec<&str> = tests.iter().flat_map(Test::systems).collect();
        names.sort();
        names.dedup();
        Shared { workspace, packages: OnceLock::new(), names, built: OnceLock::new(), making: Mutex::new(()) }
    }

    fn build(&self) -> Result<&(Vec<System>, Build)> {
        let _made_once = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(built) = self.built.get() {
            return Ok(built);
        }
        let packages = Packages::find(self.workspace)?;
        let load = |name: &&str| System::load(self.workspace, &packages, name);
        let systems = self.names.iter().map(load).collect::<Result<Vec<System>>>()?;
        let build = Build::new(self.workspace, &packages, &systems.iter().collect::<Vec<_>>())?;
        self.packages.get_or_init(|| packages);
        Ok(self.built.get_or_init(|| (systems, build)))
    }
}

/// The target as one worker sees it.
pub struct Target<'w> {
    /// The source tree.
    pub workspace: &'w Workspace,
    shared: &'w Shared<'w>,
    /// Folder of `target/tench` for the worker's boot files.
    label: String,
}

impl Target<'_> {
    /// Returns the workspace's packages.
    pub fn packages(&self) -> Result<&Packages> {
        self.shared.build()?;
        Ok(self.shared.packages.get().unwrap_or_else(|| unreachable!("it was set with the build")))
    }

    /// Returns a system description, and the build of everything that the tests boot.
    pub fn get(&self, name: &str) -> Result<(System, &Build)> {
        let (systems, build) = self.shared.build()?;
        let system = systems.iter().find(|system| system.name == name);
        Ok((system.unwrap_or_else(|| unreachable!("each test's system is in the list")).clone(), build))
    }

    /// Writes the boot files of a system, with further host files in the archive, over the worker's last ones.
    pub fn prepare(&self, build: &Build, system: &System, with: &[String]) -> Result<BootFiles> {
        prepare::prepare(self.workspace, build, system, &self.label, with, None)
    }

    /// Writes the boot files of a system like [`prepare`](Self::prepare), with a tree of files in which the programs of
    /// `tests/linux` are.
    pub fn prepare_linux_tree(&self, build: &Build, system: &System) -> Result<BootFiles> {
        let packed = crate::linux::pack(&[prepare::linux_tree(self.workspace, &self.label)?])?;
        prepare::prepare(self.workspace, build, system, &self.label, &[], packed.as_deref())
    }

    /// Writes the boot files of a system like [`prepare`](Self::prepare), with packed files for Linux programs.
    pub fn prepare_packed(&self, build: &Build, system: &System, packed: &[u8]) -> Result<BootFiles> {
        prepare::prepare(self.workspace, build, system, &self.label, &[], Some(packed))
    }

    /// Writes programs that must be refused, and valid ones beside them; returns them as arguments for
    /// [`prepare`](Self::prepare).
    pub fn corpus(&self) -> Result<Vec<String>> {
        prepare::corpus(self.workspace, &self.label)
    }

    /// Compiles the programs of `tests/linux`; returns them as [`prepare`](Self::prepare) takes them.
    pub fn linux_programs(&self) -> Result<Vec<String>> {
        prepare::linux_programs(self.workspace, &self.label)
    }
}

/// Runs a check as a test.
fn judge(workspace: &Workspace, check: &Check, report: &Report) -> Result<()> {
    let name = format!("check/{}", check.name);
    match check.missing() {
        Some(missing) => report.ignored(&name, &missing),
        None => {
            check.run(workspace)?;
            report.passed(&name);
        }
    }
    Ok(())
}

/// Runs a test.
fn run_one(test: &Test, target: &Target, bless: bool, report: &Report) {
    let name = test.name();
    report.begin(&name, test.what());
    let outcome = match test {
        Test::Check(check) => judge(target.workspace, check, report),
        Test::Host(stage) => host::run(target, *stage, report),
        Test::Crash => crash::run(target, report),
        Test::Machines => machines::run(target, report),
        Test::Help => help::run(target, report),
        Test::Cases(boot) => cases::run(target, *boot, report),
        Test::Seed => seed::run(target, report),
        Test::Isolation => isolation::run(target, report),
        Test::Resident => resident::run(target, report),
        Test::Stack => stack::run(target, report),
        Test::Authority => authority::run(target, bless, report),
        Test::Scenario(scenario) => scenario.run(target, bless, report),
        Test::Linux(subject) => linux::run(target, subject, report),
        Test::LinuxPeer(subject) => linux::run_on_linux(target, subject, report),
        Test::Figures(experiment) => figures::run(target, experiment, report),
        Test::Long(long) => host::run_long(target, long, report),
        Test::Fuzz(fuzz) => fuzz::run(target, *fuzz, report),
        Test::Mutants(mutants) => mutants::run(target, mutants, report),
    };
    if let Err(error) = outcome {
        report.failed(&name, &format!("{error:?}"));
    }
    report.end(&name);
}

/// Returns the tests that there are, and that the filter selects: the checks first.
fn select(workspace: &Workspace, options: &TestOptions) -> Result<Vec<Test>> {
    let mut tests: Vec<Test> = Check::ALL.into_iter().map(Test::Check).collect();
    tests.extend(host::Stage::ALL.map(Test::Host));
    tests.extend([Test::Crash, Test::Machines, Test::Help]);
    tests.extend(cases::Boot::ALL.map(Test::Cases));
    tests.extend([Test::Seed, Test::Isolation, Test::Resident, Test::Stack, Test::Authority]);
    tests.extend(scenario::find(workspace)?.into_iter().map(Test::Scenario));
    let golden = golden::Golden::load(workspace)?;
    tests.extend(golden.subjects().into_iter().filter(|one| options.long || !one.is_long()).map(Test::Linux));
    tests.extend(lab::EXPERIMENTS.iter().filter(|one| one.has_baseline(workspace)).map(Test::Figures));
    if options.long {
        tests.extend(host::Long::ALL.map(Test::Long));
        tests.extend(fuzz::Fuzz::ALL.map(Test::Fuzz));
        tests.extend(golden.subjects().into_iter().map(Test::LinuxPeer));
    }
    if let Some(filter) = &options.filter {
        tests.retain(|test| test.name().contains(filter.as_str()));
    }
    tests.extend(select_mutants(workspace, options)?);
    Ok(tests)
}

/// Returns the test of those mutants that the filter selects. Without `--long`, a filter has to name them.
fn select_mutants(workspace: &Workspace, options: &TestOptions) -> Result<Option<Test>> {
    let filter = options.filter.as_deref().unwrap_or_default();
    let is_named = filter.starts_with("mutants");
    if !options.long && !is_named {
        return Ok(None);
    }
    let all = Mutant::all(workspace)?;
    let selected: Vec<Mutant> = all.iter().filter(|mutant| mutant.full_name().contains(filter)).cloned().collect();
    match selected.is_empty() {
        false => Ok(Some(Test::Mutants(selected))),
        true if is_named => Err(mutants::unknown(filter, &all)),
        true => Ok(None),
    }
}

/// Runs the tests that the filter selects; returns status 1 if one failed, or if there was none.
pub fn run(workspace: &Workspace, options: &TestOptions) -> Result<u8> {
    let tests = select(workspace, options)?;
    if options.list {
        for test in tests {
            match test {
                Test::Mutants(mutants) => mutants.iter().for_each(|mutant| println!("{}", mutant.full_name())),
                _ => println!("{}", test.name()),
            }
        }
        return Ok(0);
    }
    let report = Report::new(tests.len());
    if let Some(warning) = disk::warning(workspace).filter(|_| options.filter.is_none()) {
        report.say(&format!("note: {warning}"));
    }
    let shared = Shared::new(workspace, &tests);
    let target = |worker: usize| Target { workspace, shared: &shared, label: format!("tests-{worker}") };
    let (checks, mut others): (Vec<&Test>, Vec<&Test>) = tests.iter().partition(|test| matches!(test, Test::Check(_)));
    others.sort_by_key(|test| std::cmp::Reverse(test.seconds()));
    checks.iter().for_each(|check| run_one(check, &target(0), options.bless, &report));

    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let workers = options.jobs.map_or(processors, usize::from).min(others.len());
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let target = target(worker);
        while let Some(test) = others.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_one(test, &target, options.bless, &report);
        }
    };
    thread::scope(|scope| (0..workers).for_each(|worker| drop(scope.spawn(move || work(worker)))));
    Ok(u8::from(!report.close()))
}
