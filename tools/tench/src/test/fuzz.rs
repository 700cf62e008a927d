//! The fuzz targets of `fuzz/`, a minute each. Part of the long tests.
//!
//! The fuzzer is libFuzzer, which is built in. What it needs of the compiler is the coverage of what it runs, and a
//! stable compiler has that, so neither `cargo fuzz` nor a nightly compiler is required; a C++ compiler is. What the
//! fuzzer learns stays in `target/fuzz/corpus`, so later runs begin where earlier ones ended.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use super::Target;
use super::report::Report;
use crate::process;
use crate::workspace::{self, Workspace};

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Fuzz {
    /// Name of the target and of its program.
    pub name: &'static str,
}

/// Duration of a target's run in seconds.
pub const SECONDS: u32 = 60;
/// Longest time for one input, in seconds; a longer one fails the test.
const LONGEST: u32 = 20;
/// Flags with which the compiler adds what the fuzzer needs to see which code an input reaches.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";
/// Target whose input is a program's file, behind a byte that chooses addresses.
const PROGRAMS: &str = "programs";
/// Last lines of the fuzzer that a report shows.
const SHOWN: usize = 40;

impl Fuzz {
    /// All targets.
    pub const ALL: [Fuzz; 13] = [
        Fuzz { name: "system_calls" },
        Fuzz { name: PROGRAMS },
        Fuzz { name: "clock_messages" },
        Fuzz { name: "reserve_messages" },
        Fuzz { name: "console_messages" },
        Fuzz { name: "monitor_messages" },
        Fuzz { name: "names_messages" },
        Fuzz { name: "pager_messages" },
        Fuzz { name: "procs_messages" },
        Fuzz { name: "mem_messages" },
        Fuzz { name: "slabs_messages" },
        Fuzz { name: "files_messages" },
        Fuzz { name: "stream_messages" },
    ];

    /// Returns the name of the test.
    pub fn full_name(self) -> String {
        format!("host/long/fuzz/{}", self.name)
    }
}

/// Runs a target for [`SECONDS`]. An input that makes it panic, hang or use too much memory fails the test, and is
/// kept.
pub fn run(target: &Target, fuzz: Fuzz, report: &Report) -> Result<()> {
    let program = build(target.workspace, fuzz)?;
    let folder = |of: &str| target.workspace.target.join("fuzz").join(of);
    let (corpus, kept) = (folder("corpus").join(fuzz.name), folder("artifacts"));
    for directory in [&corpus, &kept] {
        std::fs::create_dir_all(directory).into_diagnostic().wrap_err("a folder for inputs")?;
    }
    let mut command = Command::new(program);
    command.arg(format!("-max_total_time={SECONDS}")).arg(format!("-timeout={LONGEST}"));
    command.arg(format!("-artifact_prefix={}/{}-", kept.display(), fuzz.name)).arg(corpus);
    if fuzz.name == PROGRAMS {
        command.arg(seeds(target.workspace)?);
    }
    process::show(&command);
    let output = command.stdin(Stdio::null()).output().into_diagnostic().wrap_err("the fuzzer does not start")?;
    let text = String::from_utf8_lossy(&output.stderr);
    match executions(&text) {
        Some(number) if output.status.success() && number > 0 => {
            report.say(&format!("{}: {number} executions", fuzz.full_name()));
            report.passed(&fuzz.full_name());
        }
        _ => report.failed(&fuzz.full_name(), &format!("the fuzzer ended with {}:\n{}", output.status, end(&text))),
    }
    Ok(())
}

/// Builds a target for this machine. Returns its program.
fn build(workspace: &Workspace, fuzz: Fuzz) -> Result<PathBuf> {
    let host = host()?;
    let target = workspace.target.join("fuzz");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace.root.join("fuzz")).env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", COVERAGE);
    // With a target, the flags are not those of build scripts.
    command.args(["build", "--quiet", "--release", "--locked", "--target", &host, "--bin", fuzz.name]);
    process::run(&mut command).wrap_err("if fuzz/Cargo.lock is out of date, run `cargo update --workspace` in fuzz")?;
    Ok(target.join(host).join("release").join(fuzz.name))
}

/// Returns the compiler's name for this machine.
fn host() -> Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = process::output(Command::new(compiler).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| miette!("the compiler does not say for which machine it compiles"))
}

/// Writes the programs with which the search begins: valid ones, and one for each mistake. Returns their folder.
fn seeds(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("fuzz/seeds").join(PROGRAMS);
    let mistakes = tench_corpus::mistakes().map(|mistake| (mistake.name, mistake.file()));
    for (name, file) in mistakes.chain(tench_corpus::good()) {
        workspace::write_file(&folder.join(name), &[&[0], file.as_slice()].concat())?;
    }
    Ok(folder)
}

/// Returns the number of executions, if the fuzzer has ended as it should.
fn executions(text: &str) -> Option<u64> {
    let rest = text.lines().rev().find_map(|line| line.strip_prefix("Done "))?;
    rest.split_once(" runs in ")?.0.parse().ok()
}

/// Returns the last lines of a text.
fn end(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_of_the_manifest_is_a_test() {
        let manifest = include_str!("../../../../fuzz/Cargo.toml");
        let names = manifest.lines().skip_while(|line| *line != "[[bin]]");
        let names: Vec<&str> = names.filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
        assert_eq!(names, Fuzz::ALL.map(|fuzz| fuzz.name));
    }

    #[test]
    fn an_end_without_executions_is_no_success() {
        assert_eq!(executions("#2 INITED\nDone 9818 runs in 9 second(s)\n"), Some(9818));
        assert_eq!(executions("==7== ERROR: libFuzzer: deadly signal\n"), None);
        assert_eq!(end(&"x\n".repeat(100)).lines().count(), SHOWN);
    }
}
