//! Tests of programs for Linux: what each prints on Tench is what it printed on Linux (`tests/linux/golden`). With
//! `--long` each runs on Linux again, if its kernel can be had. Scripts need packages of Debian's archive on either
//! side.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use miette::Result;

use super::Target;
use super::report::Report;
use super::scenario;
use crate::linux;
use crate::peer::golden::Subject;
use crate::peer::{Missing, Peer, golden, script_files};
use crate::prepare::{self, BootFiles};
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, PROMPT, Patience, Step};
use crate::transcript;
use crate::workspace;

/// System description that is booted.
pub const SYSTEM: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(300) };

/// Held by the worker that runs Linux, so that its kernel is fetched once.
static LINUX: Mutex<()> = Mutex::new(());

/// Runs a program or script on Tench.
pub fn run(target: &Target, subject: &Subject, report: &Report) -> Result<()> {
    let name = format!("linux/{}", subject.name());
    let Some((files, command)) = judge(prepare(target, subject), &name, report)? else { return Ok(()) };
    let expected = golden::Golden::load(target.workspace)?.expected(target.workspace, subject.name())?;
    let typed = format!("{} {command}", subject.runner());
    let machine = Machine { icount: true, shift: subject.shift(), ..Machine::default() };
    let patience = subject.patience().unwrap_or(PATIENCE);
    let steps = [Step::Line(typed.clone())];
    let outcome = script::run(&mut machine.command(&files, Serial::Pipe), &steps, patience, |_| Vec::new())?;
    let echo = format!("{PROMPT}{typed}");
    let expected: Vec<&str> = std::iter::once(echo.as_str()).chain(expected.iter().map(String::as_str)).collect();
    let printed = scenario::transcript(&outcome);
    let problem = transcript::compare(&expected, &printed);
    // Only the first difference is reported.
    let kept = files.image.with_file_name(format!("{}.txt", subject.name()));
    if problem.is_some() {
        workspace::write_file(&kept, printed.join("\n").as_bytes())?;
    }
    match (problem, &outcome.end) {
        (None, End::Exited(0)) => report.passed(&name),
        (Some(difference), End::Exited(0)) => {
            let kept = kept.display();
            report.failed(&name, &format!("it prints something else than on Linux, all in {kept}:\n{difference}"));
        }
        (_, end) => {
            let screen = outcome.last_screen();
            report.failed(&name, &format!("{end:?}; what was last on the terminal:\n{screen}"));
        }
    }
    Ok(())
}

/// Writes the boot files, and returns them with the command that `linux` is to run.
fn prepare(target: &Target, subject: &Subject) -> Result<(BootFiles, String)> {
    match subject {
        Subject::Program(program) => {
            let (system, build) = target.get(SYSTEM)?;
            let path = format!("{}/{}", prepare::LINUX, program.name);
            let words: Vec<String> = std::iter::once(path).chain(program.arguments.iter().cloned()).collect();
            Ok((target.prepare(build, &system, &target.linux_programs()?)?, words.join(" ")))
        }
        Subject::Script(script) => {
            // What cannot be had is known before anything is built.
            let packed = linux::pack_tree(&script_files(target.workspace, script)?)?;
            let (system, build) = target.get(SYSTEM)?;
            Ok((target.prepare_packed(build, &system, &packed)?, script.command.join(" ")))
        }
    }
}

/// Runs a program or script on Linux again.
pub fn run_on_linux(target: &Target, subject: &Subject, report: &Report) -> Result<()> {
    let name = format!("linux-peer/{}", subject.name());
    let _one_at_a_time = LINUX.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = Peer::new(target.workspace).and_then(|peer| peer.run_subject(target.workspace, subject));
    let Some(ran) = judge(ran, &name, report)? else { return Ok(()) };
    match golden::compare(target.workspace, subject.name(), &golden::printed(ran.lines, ran.status))? {
        None => report.passed(&name),
        Some(difference) => report.failed(&name, &format!("it prints something else than recorded:\n{difference}")),
    }
    Ok(())
}

/// Reports that a test is ignored if what it needs cannot be had, which is nobody's mistake.
pub(super) fn judge<T>(result: Result<T>, name: &str, report: &Report) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if Missing::is_reason_of(&error) => {
            report.ignored(name, &error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
