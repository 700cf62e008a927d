//! Tests of programs for Linux: what each prints on Tench is what it printed on Linux (`tests/linux/golden`). With
//! `--long` each runs on Linux again, if its kernel can be had.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use miette::Result;

use super::Target;
use super::report::Report;
use super::scenario;
use crate::peer::{Missing, Peer, golden};
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, PROMPT, Patience, Step};
use crate::transcript;

/// System description that is booted.
pub const SYSTEM: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(300) };

/// Held by the worker that runs Linux, so that its kernel is fetched once.
static LINUX: Mutex<()> = Mutex::new(());

/// Runs a program on Tench.
pub fn run(target: &Target, program: &golden::Program, report: &Report) -> Result<()> {
    let name = format!("linux/{}", program.name);
    let expected = golden::Golden::load(target.workspace)?.expected(target.workspace, &program.name)?;
    let (system, build) = target.get(SYSTEM)?;
    let files = target.prepare(build, &system, &target.linux_programs()?)?;
    let words: Vec<String> = [format!("linux {}/{}", crate::prepare::LINUX, program.name)]
        .into_iter()
        .chain(program.arguments.iter().cloned())
        .collect();
    let machine = Machine { icount: true, ..Machine::default() };
    let typed = words.join(" ");
    let steps = [Step::Line(typed.clone())];
    let outcome = script::run(&mut machine.command(&files, Serial::Pipe), &steps, PATIENCE, |_| Vec::new())?;
    let echo = format!("{PROMPT}{typed}");
    let expected: Vec<&str> = std::iter::once(echo.as_str()).chain(expected.iter().map(String::as_str)).collect();
    let problem = transcript::compare(&expected, &scenario::transcript(&outcome));
    match (problem, &outcome.end) {
        (None, End::Exited(0)) => report.passed(&name),
        (Some(difference), End::Exited(0)) => {
            report.failed(&name, &format!("it prints something else than on Linux:\n{difference}"));
        }
        (_, end) => {
            let screen = outcome.last_screen();
            report.failed(&name, &format!("{end:?}; what was last on the terminal:\n{screen}"));
        }
    }
    Ok(())
}

/// Runs a program on Linux again.
pub fn run_on_linux(target: &Target, program: &golden::Program, report: &Report) -> Result<()> {
    let name = format!("linux-peer/{}", program.name);
    let _one_at_a_time = LINUX.lock().unwrap_or_else(PoisonError::into_inner);
    let peer = match Peer::new(target.workspace) {
        Ok(peer) => peer,
        Err(error) if Missing::is_reason_of(&error) => {
            report.ignored(&name, &error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let ran = peer.run_test(target.workspace, &program.name, &program.arguments)?;
    match golden::compare(target.workspace, program, &golden::printed(ran.lines, ran.status))? {
        None => report.passed(&name),
        Some(difference) => report.failed(&name, &format!("it prints something else than recorded:\n{difference}")),
    }
    Ok(())
}
