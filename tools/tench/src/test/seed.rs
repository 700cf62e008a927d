//! Whether addresses follow from the seed: a program faults three times in each of three boots, two of them with the same seed.

use std::collections::BTreeSet;
use std::time::Duration;

use miette::Result;

use super::Target;
use super::report::Report;
use crate::prepare;
use crate::qemu::{Machine, Serial};
use crate::script::{self, Patience, Step};

/// The description that is booted.
pub const SYSTEM: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(120) };
/// A fault whose report names an address of code and one of data.
const COMMAND: &str = "fault data";
const TIMES: usize = 3;

pub fn run(target: &Target, report: &mut Report) -> Result<()> {
    report.running("seed");
    let (system, build) = target.get(SYSTEM)?;
    let files = prepare::prepare(target.workspace, build, &system, SYSTEM, &[])?;
    let boot = |seed: u64| -> Result<Vec<String>> {
        let machine = Machine { icount: true, seed, ..Machine::default() };
        let steps = [(); TIMES].map(|()| Step::Line(COMMAND.to_owned()));
        let outcome = script::run(&mut machine.command(&files, Serial::Pipe), &steps, PATIENCE, |_| Vec::new())?;
        Ok(outcome.lines.iter().flat_map(|line| addresses(line)).collect())
    };
    match judge([boot(5)?, boot(5)?, boot(6)?]) {
        None => report.passed("seed"),
        Some(problem) => report.failed("seed", &problem),
    }
    Ok(())
}

/// The addresses in a line of a report: that of the access, and that of the instruction.
fn addresses(line: &str) -> Vec<String> {
    let word_after = |text: &str| Some(line.split_once(text)?.1.split_whitespace().next()?.to_owned());
    [word_after("jump to 0x"), word_after("region segment 0x")].into_iter().flatten().collect()
}

/// What is wrong with what two boots with one seed and one with another have shown.
fn judge([one, same, other]: [Vec<String>; 3]) -> Option<String> {
    let distinct: BTreeSet<&String> = one.iter().chain(&other).collect();
    if one.len() != 2 * TIMES {
        Some(format!("{} addresses instead of {} were reported: {one:?}", one.len(), 2 * TIMES))
    } else if one != same {
        Some(format!("the same seed chose other addresses: {one:?}, then {same:?}"))
    } else if distinct.len() != one.len() + other.len() {
        Some(format!("an address came twice: {one:?} with one seed, {other:?} with another"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_reports() {
        let line = "fault (pid 9): rights violation: jump to 0x158b778 at instruction 0x158b778 (region segment 0x1000..0x2000 rw-)";
        assert_eq!(addresses(line), ["158b778", "1000..0x2000"]);
        assert!(addresses("  at 0x1000 in fault").is_empty());
    }

    #[test]
    fn what_is_not_as_the_seed_says_is_told() {
        let boot = |from: u64| (from..from + 6).map(|address| format!("{address:x}")).collect::<Vec<String>>();
        assert_eq!(judge([boot(1), boot(1), boot(10)]), None);
        assert!(judge([boot(1), boot(2), boot(10)]).is_some_and(|problem| problem.contains("other addresses")));
        assert!(judge([boot(1), boot(1), boot(5)]).is_some_and(|problem| problem.contains("twice")));
        assert!(judge([vec![], vec![], vec![]]).is_some());
    }
}
