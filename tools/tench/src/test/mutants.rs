//! Mutants: the kernel with one mistake each, which a named test of the host must find.
//!
//! `tests/mutants/AREA.toml` lists them. Each replaces a text that occurs once in a file of `kernel/core/src`. The tree
//! is copied to `target/mutants` once, where one mutant after the other is applied, built and tested, so an
//! interrupted run leaves nothing behind. Before that, each named test has to pass in the unchanged copy.
//!
//! A mutant with a `check` claims more: that this check of the kernel's state
//! (`kernel/arch/host/src/check.rs`) is the only thing that finds it, so its test has to pass if the check is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Deserialize;

use super::Target;
use super::report::Report;
use crate::process;
use crate::workspace::{Workspace, read_file, read_text};

/// Folder of the lists.
const LISTS: &str = "tests/mutants";
/// Folder in which the mutated files lie.
const SOURCE: &str = "kernel/core/src";
/// Folders that are not copied.
const NOT_COPIED: [&str; 2] = ["target", ".git"];
/// Time that a test may take, beside any other work. One that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(300);
/// Packages that are compiled without optimisation here: each mutant needs them again, and runs few tests.
const UNOPTIMISED: [&str; 3] = ["tench-kernel", "tench-arch-host", "tench-model"];
/// Cases that a random test plays.
const CASES: &str = "40";
/// Variable that names a check which is left out.
const LEAVE_OUT: &str = "TENCH_LEAVE_OUT";

/// A mistake in the kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Name of the mutant: a mistake in a few words.
    pub name: String,
    /// File below `kernel/core/src`.
    file: String,
    /// Text of the file, which occurs once.
    from: String,
    /// Replacement for the text.
    to: String,
    /// The statement of docs/invariants.md that the mistake breaks.
    #[expect(dead_code, reason = "for the reader, and for the test that compares it with docs/invariants.md")]
    breaks: String,
    /// The test that finds it: the test program and the test's path.
    test: String,
    /// The one check that finds it.
    check: Option<String>,
}

/// A file of mutants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

impl Mutant {
    /// Returns all mutants, in the order of the files' names and then of the files.
    pub fn all(workspace: &Workspace) -> Result<Vec<Mutant>> {
        let folder = workspace.root.join(LISTS);
        let mut paths = children(&folder)?;
        paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
        let mut all = Vec::new();
        for path in paths {
            let list: List = toml::from_str(&read_text(&path)?)
                .into_diagnostic()
                .wrap_err_with(|| format!("{} is no list of mutants", workspace.relative(&path)))?;
            all.extend(list.mutant);
        }
        Ok(all)
    }

    /// Returns the name of the mutant's test in a run of the tests.
    pub fn full_name(&self) -> String {
        format!("mutants/{}", self.name)
    }

    /// Returns the test program, and the test's path in it.
    fn test(&self) -> Result<(&str, &str)> {
        let test = self.test.split_once(' ').filter(|(program, _)| package(program).is_some());
        test.ok_or_else(|| {
            miette!(
                "{} names the test {:?}; write one of {PROGRAMS:?}, a space and the test's path",
                self.name,
                self.test
            )
        })
    }

    /// Returns a file's text with the mistake.
    fn apply(&self, text: &str) -> Result<String> {
        match text.matches(&self.from).count() {
            1 if self.from != self.to => Ok(text.replacen(&self.from, &self.to, 1)),
            1 => Err(miette!("{} replaces a text by itself", self.name)),
            count => Err(miette!(
                "{} does not apply: its text occurs {count} times in {SOURCE}/{}, and has to occur once. \
                 The code has changed: write the same mistake for the present code, in {LISTS}",
                self.name,
                self.file
            )),
        }
    }
}

/// Returns the error for a filter that selects none of the mutants.
pub fn unknown(filter: &str, all: &[Mutant]) -> miette::Report {
    let count = all.len();
    miette!(
        help = format!(
            "allowed: mutants (all {count}), or mutants/ and the beginning of a name; ./tench test mutants --list"
        ),
        "no mutant has {filter} in its name"
    )
}

/// The test programs that a mutant can name, with their packages.
const PROGRAMS: [(&str, &str); 7] = [
    ("operations", "tench-kernel"),
    ("weave", "tench-kernel"),
    ("executions", "tench-model"),
    ("mappings", "tench-model"),
    ("messages", "tench-model"),
    ("random_calls", "tench-model"),
    ("small_scope", "tench-model"),
];

/// Returns the package of a test program.
fn package(program: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|(name, _)| *name == program).map(|(_, package)| *package)
}

/// Returns the paths in a folder, in order.
fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).into_diagnostic().wrap_err_with(|| format!("no folder {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry.into_diagnostic()?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

/// Makes a folder's copy equal. Does not write files that are equal already: cargo would compile them again.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).into_diagnostic()?;
    let names = |folder: &Path| -> Result<BTreeSet<PathBuf>> {
        let names = children(folder)?.into_iter().filter_map(|path| path.file_name().map(PathBuf::from));
        Ok(names.filter(|name| !NOT_COPIED.iter().any(|other| name.as_os_str() == *other)).collect())
    };
    let wanted = names(from)?;
    for gone in names(to)?.difference(&wanted) {
        let path = to.join(gone);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.into_diagnostic()?;
    }
    for name in &wanted {
        let (source, copied) = (from.join(name), to.join(name));
        if source.is_dir() {
            copy(&source, &copied)?;
        } else if !copied.is_file() || read_file(&source)? != read_file(&copied)? {
            fs::copy(&source, &copied).into_diagnostic()?;
        }
    }
    Ok(())
}

/// The copy of the tree.
struct Copied {
    root: PathBuf,
    target: PathBuf,
    /// File with the output of the last test.
    output: PathBuf,
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Hung,
}

impl Copied {
    /// Copies the tree.
    fn new(workspace: &Workspace) -> Result<Copied> {
        let folder = workspace.target.join("mutants");
        let copied =
            Copied { root: folder.join("tree"), target: folder.join("target"), output: folder.join("output.txt") };
        copy(&workspace.root, &copied.root)?;
        Ok(copied)
    }

    /// Builds a test program. Returns its path, or nothing if it does not compile; the errors are on the terminal.
    fn build(&self, program: &str, shows_errors: bool) -> Result<Option<PathBuf>> {
        let package = package(program).ok_or_else(|| miette!("no test program {program}"))?;
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        for package in UNOPTIMISED {
            command.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
        }
        command.args(["test", "--quiet", "--no-run", "-p", package, "--test", program, "--message-format", "json"]);
        command.stdin(Stdio::null());
        if !shows_errors {
            command.stderr(Stdio::null());
        }
        process::show(&command);
        let output = command.output().into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?;
        if !output.status.success() {
            return Ok(None);
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let executable = messages.lines().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let is_it = message["target"]["name"] == program && message["target"]["kind"][0] == "test";
            message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
        });
        executable.map(Some).ok_or_else(|| miette!("cargo has built no test program {program}"))
    }

    /// Runs one test, without one of the checks if that is named.
    fn run(&self, program: &Path, test: &str, without: Option<&str>) -> Result<Outcome> {
        let output = File::create(&self.output).into_diagnostic()?;
        let mut command = Command::new(program);
        command.current_dir(&self.root).args(["--exact", test]).stdin(Stdio::null());
        command.stderr(output.try_clone().into_diagnostic()?).stdout(output);
        // Random tests play the same each time, and need not look for the shortest failure.
        command.env("PROPTEST_CASES", CASES).env("PROPTEST_RNG_SEED", "1").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").env("RUST_BACKTRACE", "0");
        match without {
            Some(check) => command.env(LEAVE_OUT, check),
            None => command.env_remove(LEAVE_OUT),
        };
        process::show(&command);
        let mut child = command.spawn().into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?;
        let started = Instant::now();
        loop {
            match child.try_wait().into_diagnostic()? {
                Some(status) => return self.judge(status, test),
                None if started.elapsed() > PATIENCE => {
                    child.kill().and_then(|()| child.wait()).into_diagnostic()?;
                    return Ok(Outcome::Hung);
                }
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Returns the outcome of a test that has ended. A name that selects no test is an error.
    fn judge(&self, status: ExitStatus, test: &str) -> Result<Outcome> {
        if !status.success() {
            return Ok(Outcome::Failed);
        }
        if read_text(&self.output)?.contains("test result: ok. 1 passed") {
            return Ok(Outcome::Passed);
        }
        Err(miette!("there is no test {test}: a mutant has to name one test by its whole path"))
    }

    /// Checks that the tests which mutants name pass without any mistake.
    fn check_unchanged(&self, mutants: &[Mutant]) -> Result<()> {
        let mut tests: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for mutant in mutants {
            let (program, test) = mutant.test()?;
            tests.entry(program).or_default().insert(test);
        }
        for (program, tests) in tests {
            let path =
                self.build(program, true)?.ok_or_else(|| miette!("{program} does not build without a mistake"))?;
            for test in tests {
                let outcome = self.run(&path, test, None)?;
                if outcome != Outcome::Passed {
                    return Err(miette!("{test} of {program} fails without any mistake: {outcome:?}"));
                }
            }
        }
        Ok(())
    }

    /// Applies a mutant, tests it, and takes it back. Returns the outcome of its test. The error says what is wrong
    /// with the mutant.
    fn test(&self, mutant: &Mutant) -> Result<Outcome> {
        let path = self.root.join(SOURCE).join(&mutant.file);
        let text = read_text(&path)?;
        fs::write(&path, mutant.apply(&text)?).into_diagnostic()?;
        let outcome = self.test_applied(mutant);
        fs::write(&path, text).into_diagnostic()?;
        outcome
    }

    fn test_applied(&self, mutant: &Mutant) -> Result<Outcome> {
        let (program, test) = mutant.test()?;
        let Some(path) = self.build(program, false)? else {
            return Err(miette!("{} does not compile, so it proves nothing", mutant.name));
        };
        let outcome = self.run(&path, test, None)?;
        if outcome == Outcome::Passed {
            return Err(miette!(
                "SURVIVED: {test} of {program} passes with this mistake in {}. Write a test that finds it, or make the \
                 check find it, and name the test in the mutant",
                mutant.file
            ));
        }
        let Some(check) = &mutant.check else { return Ok(outcome) };
        match self.run(&path, test, Some(check))? {
            Outcome::Passed => Ok(outcome),
            other => {
                Err(miette!("without {check}, {test} still finds this mistake ({other:?}): the check is not alone"))
            }
        }
    }
}

/// Applies one mutant after the other.
pub fn run(target: &Target, mutants: &[Mutant], report: &Report) -> Result<()> {
    let copied = Copied::new(target.workspace)?;
    report.say("mutants: first their tests, without a mistake");
    copied.check_unchanged(mutants)?;
    let (mut killed, mut hung) = (0, 0);
    for mutant in mutants {
        let name = mutant.full_name();
        match copied.test(mutant) {
            Ok(outcome) => {
                killed += 1;
                if outcome == Outcome::Hung {
                    hung += 1;
                    report.say(&format!("{name}: its test hangs for {} s, which counts", PATIENCE.as_secs()));
                }
                report.passed(&name);
            }
            Err(error) => report.failed(&name, &format!("{error:?}")),
        }
    }
    let alone = mutants.iter().filter(|mutant| mutant.check.is_some()).count();
    report.say(&format!(
        "{} mutants, {killed} killed, {hung} of them by a hang; {alone} claim that one check alone finds them",
        mutants.len()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(from: &str, to: &str) -> Mutant {
        let text = |text: &str| text.to_owned();
        Mutant {
            name: text("name"),
            file: text("file.rs"),
            from: text(from),
            to: text(to),
            breaks: text("a rule"),
            test: text("operations a::test"),
            check: None,
        }
    }

    #[test]
    fn a_mutant_replaces_a_text_that_occurs_once() {
        assert_eq!(mutant("b", "c").apply("abd").expect("it applies"), "acd");
        for (from, to) in [("b", "b"), ("a", "b"), ("x", "y")] {
            assert!(mutant(from, to).apply("aab").is_err(), "{from} {to}");
        }
        assert!(mutant("", "").test().is_ok());
        assert!(Mutant { test: "elsewhere a::test".to_owned(), ..mutant("", "") }.test().is_err());
    }

    #[test]
    fn a_name_without_a_mutant_is_answered_with_what_is_allowed() {
        let error = unknown("mutants/nonsense", &[mutant("a", "b")]);
        assert_eq!(error.to_string(), "no mutant has mutants/nonsense in its name");
        let help = error.help().map(|help| help.to_string()).unwrap_or_default();
        assert_eq!(
            help,
            "allowed: mutants (all 1), or mutants/ and the beginning of a name; ./tench test mutants --list"
        );
    }

    /// The list of mutants follows the kernel: each still applies, whether or not somebody runs them.
    #[test]
    fn each_mutant_applies_and_has_a_name_of_its_own() {
        let workspace = Workspace::find().expect("the tree");
        let mutants = Mutant::all(&workspace).expect("the lists are right");
        let mut names = BTreeSet::new();
        for mutant in &mutants {
            let text = read_text(&workspace.root.join(SOURCE).join(&mutant.file)).expect("its file");
            mutant.apply(&text).unwrap_or_else(|error| panic!("{error}"));
            mutant.test().unwrap_or_else(|error| panic!("{error}"));
            assert!(names.insert(&mutant.name), "two mutants are called {}", mutant.name);
        }
        assert!(names.len() >= 60, "{} mutants", names.len());
    }
}
