//! The tests that run on the host: all libraries, all integration tests, this tool, and the documentation's examples.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use miette::{IntoDiagnostic, Result, WrapErr};

use super::Target;
use super::report::Report;
use crate::process;

/// Tests of the host that one cargo invocation builds and runs.
#[derive(Clone, Copy)]
pub struct Stage {
    /// Name of the stage.
    pub name: &'static str,
    /// Description of the tests.
    pub what: &'static str,
    /// Approximate time on one processor, in seconds.
    pub seconds: u32,
    /// Arguments for cargo, before the test programs' names.
    arguments: &'static [&'static str],
    /// Names of the test programs, or patterns of names.
    programs: &'static [&'static str],
}

/// Arguments of stages that test the whole workspace: since they select the same packages, cargo builds these once.
const WORKSPACE: &[&str] = &["--workspace", "--no-fail-fast"];

impl Stage {
    /// All stages. Programs for the target have their logic, and so their tests, in libraries. Test programs that take
    /// long are stages of their own, so that two workers share them. The kernel and its model are tested a second time
    /// without preemption points: only these three are rebuilt.
    pub const ALL: [Stage; 5] = [
        Stage {
            name: "host",
            what: "what runs on this machine, by cargo test",
            seconds: 450,
            arguments: &["--workspace", "--no-fail-fast", "--lib", "--bin", env!("CARGO_BIN_NAME")],
            // All but those of the next two stages; a test compares.
            programs: &["[!sw]*", "s[!m]*", "w[!e]*"],
        },
        Stage {
            name: "host/weave",
            what: "system calls of several threads, in every order",
            seconds: 90,
            arguments: WORKSPACE,
            programs: &["weave"],
        },
        Stage {
            name: "host/small-scope",
            what: "every sequence of three system calls in a small universe",
            seconds: 110,
            arguments: WORKSPACE,
            programs: &["small_scope"],
        },
        Stage {
            name: "host/non-preemptible",
            what: "the kernel and its model without preemption points",
            seconds: 200,
            arguments: &[
                "--no-default-features",
                "--no-fail-fast",
                "--lib",
                "-p",
                "tench-kernel",
                "-p",
                "tench-arch-host",
                "-p",
                "tench-model",
            ],
            programs: &["*"],
        },
        Stage {
            name: "host/documentation",
            what: "the examples of the documentation",
            seconds: 20,
            arguments: &["--doc"],
            programs: &[],
        },
    ];
}

/// A long test of the kernel's model.
pub struct Long {
    /// Name behind `host/long/`.
    pub name: &'static str,
    /// File of `model/tests` that contains it.
    file: &'static str,
    function: &'static str,
    /// Description of the test.
    pub what: &'static str,
}

impl Long {
    /// All long tests.
    pub const ALL: [Long; 5] = [
        Long {
            name: "executions",
            file: "executions",
            function: "one_million",
            what: "1,000,000 executions of random system calls, each from a prepared state",
        },
        Long {
            name: "more-executions",
            file: "executions",
            function: "ten_million",
            what: "10,000,000 executions of random system calls",
        },
        Long {
            name: "messages",
            file: "messages",
            function: "kernel_and_model_agree_over_long_sequences",
            what: "300,000 sequences of random calls and other events, beside the model",
        },
        Long {
            name: "waiting-calls",
            file: "small_scope",
            function: "waiting_calls_five_times",
            what: "every sequence of five calls by which threads wait, in the small universe",
        },
        Long {
            name: "all-calls",
            file: "small_scope",
            function: "all_calls_four_times",
            what: "every sequence of four calls of all, in the small universe",
        },
    ];
}

/// Runs a stage.
pub fn run(target: &Target, stage: Stage, report: &Report) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(&target.workspace.root).env("CARGO_TARGET_DIR", &target.workspace.target);
    command.arg("test").args(stage.arguments).args(stage.programs.iter().flat_map(|program| ["--test", program]));
    report.say(&process::describe(&command));
    run_cargo(stage.name, &mut command, report).map(drop)
}

/// Runs a long test, which reports its own progress.
pub fn run_long(target: &Target, test: &Long, report: &Report) -> Result<()> {
    let name = format!("host/long/{}", test.name);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(&target.workspace.root).env("CARGO_TARGET_DIR", &target.workspace.target);
    command.args(["test", "--profile", "long", "-p", "tench-model", "--test", test.file]);
    command.args(["--", "--ignored", "--exact", "--nocapture", test.function]);
    let passed = run_cargo(&name, &mut command, report)?;
    if passed == Some(0) {
        report.failed(&name, &format!("{} has no test {}", test.file, test.function));
    }
    Ok(())
}

/// Runs `cargo test` and shows its output, without the single tests that passed. Returns how many passed, if none
/// failed.
fn run_cargo(name: &str, command: &mut Command, report: &Report) -> Result<Option<usize>> {
    process::show(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().into_diagnostic().wrap_err_with(|| process::cannot_start(command))?;
    let (mut failed, mut all_passed) = (Vec::new(), 0);
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
        let line = line.into_diagnostic()?;
        if let Some((passed, _)) = parse_result(&line) {
            report.count_passed(passed);
            all_passed += passed;
        }
        if let Some(test) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            failed.push(test.to_owned());
        }
        if is_worth_showing(&line) {
            report.say(&line);
        }
    }
    let status = child.wait().into_diagnostic()?;
    for test in &failed {
        report.failed(&format!("{name}/{test}"), "cargo's output above says why");
    }
    if !status.success() && failed.is_empty() {
        report.failed(name, &format!("cargo test ended with {status}; its output above says why"));
    }
    Ok((status.success() && failed.is_empty()).then_some(all_passed))
}

/// Parses `test result: ok. 12 passed; 1 failed; …` as (12, 1).
fn parse_result(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = counts.split("; ").map(|part| part.split(' ').next()?.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn is_worth_showing(line: &str) -> bool {
    let is_noise = line.is_empty() || line.starts_with("running ") || line.ends_with(" ... ok");
    !is_noise && !matches!(parse_result(line), Some((0, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let line = "test result: ok. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(parse_result(line), Some((12, 1)));
        assert_eq!(parse_result("test result: FAILED. 3 passed; 4 failed; 0 ignored"), Some((3, 4)));
        assert_eq!(parse_result("test a::b ... ok"), None);
        assert!(is_worth_showing(line) && !is_worth_showing("test a::b ... ok"));
        assert!(!is_worth_showing("test result: ok. 0 passed; 0 failed; 0 ignored"));
    }

    #[test]
    fn each_test_program_of_the_workspace_has_one_stage() {
        let mut command = Command::new(env!("CARGO"));
        command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let metadata: serde_json::Value =
            serde_json::from_str(&process::output(&mut command).expect("cargo runs")).expect("JSON");
        let packages = metadata["packages"].as_array().expect("packages").iter();
        let targets = packages.flat_map(|package| package["targets"].as_array().expect("targets"));
        let tests = targets.filter(|target| target["kind"][0] == "test").filter_map(|target| target["name"].as_str());
        let patterns = Stage::ALL.iter().filter(|stage| stage.arguments.starts_with(WORKSPACE));
        let patterns: Vec<&str> = patterns.flat_map(|stage| stage.programs).copied().collect();
        for name in tests {
            let matching = patterns.iter().filter(|pattern| matches(pattern.as_bytes(), name.as_bytes()));
            assert_eq!(matching.count(), 1, "patterns of stages that select {name}");
        }
    }

    /// Returns whether a name matches a pattern, as cargo reads it, of letters, `[!…]` and `*`.
    fn matches(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], _) => name.is_empty(),
            ([b'*', rest @ ..], _) => (0..=name.len()).any(|from| matches(rest, &name[from..])),
            ([b'[', b'!', rest @ ..], [letter, name @ ..]) => {
                let end = rest.iter().position(|letter| *letter == b']').expect("it is closed");
                !rest[..end].contains(letter) && matches(&rest[end + 1..], name)
            }
            ([first, rest @ ..], [letter, name @ ..]) => first == letter && matches(rest, name),
            (_, []) => false,
        }
    }

    #[test]
    fn long_tests_exist_and_are_left_out_of_the_others() {
        let model = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../model/tests");
        for test in Long::ALL {
            let text = std::fs::read_to_string(model.join(test.file).with_extension("rs")).expect("its file");
            let before = text.split_once(&format!("fn {}()", test.function)).expect("its function").0;
            assert!(before.trim_end().lines().last().is_some_and(|line| line.starts_with("#[ignore")), "{}", test.name);
        }
    }
}
