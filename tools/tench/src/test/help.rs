//! A test that every program of the system that people boot explains itself: `NAME --help` prints a usage and exits
//! with 0. Servers are left out, which only `init` starts.

use std::time::Duration;

use miette::Result;

use super::Target;
use super::report::Report;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, PROMPT, Patience, Step};

/// System description that is booted.
pub const SYSTEM: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(300) };
/// Beginning of what the shell prints about a program that did not exit with 0.
const ENDED: &str = "[";

pub fn run(target: &Target, report: &Report) -> Result<()> {
    let (system, build) = target.get(SYSTEM)?;
    let files = target.prepare(build, &system, &[])?;
    let names: Vec<&str> =
        system.programs.iter().filter(|program| !program.server).map(|program| program.name.as_str()).collect();
    let steps: Vec<Step> = names.iter().map(|name| Step::Line(typed(name))).collect();
    let machine = Machine { icount: true, ..Machine::default() };
    let outcome = script::run(&mut machine.command(&files, Serial::Pipe), &steps, PATIENCE, |_| Vec::new())?;
    for name in names {
        let full = format!("help/{name}");
        match judge(name, &outcome.lines) {
            None => report.passed(&full),
            Some(problem) => report.failed(&full, &problem),
        }
    }
    if outcome.end != End::Exited(0) {
        let screen = outcome.last_screen();
        report.failed("help", &format!("{:?}; what was last on the terminal:\n{screen}", outcome.end));
    }
    Ok(())
}

/// Returns the command that asks a program for help.
fn typed(name: &str) -> String {
    format!("run {name} --help")
}

/// Returns what is wrong with how a program explained itself.
fn judge(name: &str, lines: &[String]) -> Option<String> {
    let echo = format!("{PROMPT}{}", typed(name));
    let Some(start) = lines.iter().position(|line| *line == echo) else {
        return Some(format!("`{echo}` was never typed"));
    };
    let printed: Vec<&str> =
        lines[start + 1..].iter().map(String::as_str).take_while(|line| !line.starts_with(PROMPT)).collect();
    let is_usage = ["usage:", name].iter().all(|text| printed.iter().any(|line| line.contains(text)));
    let has_failed = printed.iter().any(|line| line.starts_with(ENDED));
    (!is_usage || has_failed).then(|| format!("it should print its usage and exit with 0, but: {printed:#?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_and_the_status_are_looked_at() {
        let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        let good = lines("tench> run a --help\nusage: a [WORD]\ntench> run b --help\n");
        assert_eq!(judge("a", &good), None);
        assert!(judge("b", &good).is_some() && judge("c", &good).is_some());
        assert!(judge("a", &lines("tench> run a --help\nusage: a [WORD]\n[exited with 1]\ntench> ")).is_some());
    }
}
