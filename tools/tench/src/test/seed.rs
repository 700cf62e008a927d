//! A test that addresses follow from the seed: a program faults three times in each of three boots, two of them with
//! the same seed. It also tests that processes with the same number on two cores have different addresses: the program
//! faults on both, often enough that some numbers coincide, in each of two boots.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use miette::Result;

use super::Target;
use super::report::Report;
use crate::qemu::{Machine, Serial};
use crate::script::{self, Patience, Step};

/// System description that is booted.
pub const SYSTEM: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(120) };
/// Command for a fault whose report names an address of code and one of data.
const COMMAND: &str = "fault data";
const TIMES: usize = 3;
/// Command for the same fault on the second core; repeated until the process numbers reach those that the first core
/// gives after its servers.
const COMMAND_THERE: &str = "cores run 1 fault data";
const TIMES_THERE: usize = 12;

pub fn run(target: &Target, report: &Report) -> Result<()> {
    let (system, build) = target.get(SYSTEM)?;
    let files = target.prepare(build, &system, &[])?;
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
    let boot = || -> Result<Faults> {
        let machine = Machine { icount: true, seed: 5, cores: 2, ..Machine::default() };
        let here = [COMMAND; TIMES].into_iter();
        let steps: Vec<Step> =
            here.chain([COMMAND_THERE; TIMES_THERE]).map(|line| Step::Line(line.to_owned())).collect();
        let outcome = script::run(&mut machine.command(&files, Serial::Pipe), &steps, PATIENCE, |_| Vec::new())?;
        Ok(outcome.lines.iter().filter_map(|line| Some((process(line)?, addresses(line)))).collect())
    };
    match judge_cores(&boot()?, &boot()?) {
        None => report.passed("seed/cores"),
        Some(problem) => report.failed("seed/cores", &problem),
    }
    Ok(())
}

/// Addresses in the report of each process, by its core and its number there.
type Faults = BTreeMap<(u64, u64), Vec<String>>;

/// Returns the core and number of the process that a report is about.
fn process(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("fault (pid ")?;
    let (shown, _) = rest.split_once(')')?;
    let (core, number) = shown.split_once(':').unwrap_or(("0", shown));
    Some((core.parse().ok()?, number.parse().ok()?))
}

/// Returns what is wrong with the results of two boots of two cores with one seed.
fn judge_cores(one: &Faults, same: &Faults) -> Option<String> {
    if one != same {
        return Some(format!("the same seed chose other addresses: {one:?}, then {same:?}"));
    }
    let on_both = one.iter().filter_map(|((core, number), here)| {
        let there = one.get(&(1, *number)).filter(|_| *core == 0)?;
        Some((number, here, there))
    });
    let pairs: Vec<(&u64, &Vec<String>, &Vec<String>)> = on_both.collect();
    if pairs.len() != TIMES || pairs.iter().any(|(_, here, there)| here.len() != 2 || there.len() != 2) {
        return Some(format!("there are not {TIMES} numbers of processes that faulted on both cores: {one:?}"));
    }
    let same = pairs.iter().find(|(_, here, there)| here.iter().any(|address| there.contains(address)));
    same.map(|(number, here, there)| format!("the processes {number} of both cores lie at {here:?} and {there:?}"))
}

/// Returns the addresses in a line of a report: that of the access, and that of the instruction.
fn addresses(line: &str) -> Vec<String> {
    let word_after = |text: &str| Some(line.split_once(text)?.1.split_whitespace().next()?.to_owned());
    [word_after("jump to 0x"), word_after("region segment 0x")].into_iter().flatten().collect()
}

/// Returns what is wrong with the results of two boots with one seed and one with another.
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
    fn processes_are_found_in_reports() {
        assert_eq!(process("fault (pid 9): rights violation: jump"), Some((0, 9)));
        assert_eq!(process("fault (pid 1:12): rights violation: jump"), Some((1, 12)));
        assert_eq!(process("process 1:12 crashed: rights violation"), None);
    }

    #[test]
    fn processes_at_the_same_addresses_on_two_cores_are_reported() {
        let at = |core: u64, from: u64| {
            (7..7 + TIMES as u64).map(move |number| {
                let place = from + 10 * number;
                ((core, number), vec![format!("{place:x}"), format!("{:x}", place + 1)])
            })
        };
        let faults = |there| -> Faults { at(0, 1000).chain(at(1, there)).collect() };
        assert_eq!(judge_cores(&faults(2000), &faults(2000)), None);
        assert!(judge_cores(&faults(1000), &faults(1000)).is_some_and(|problem| problem.contains("of both cores")));
        assert!(judge_cores(&faults(2000), &faults(3000)).is_some_and(|problem| problem.contains("other addresses")));
        let one: Faults = at(0, 1000).collect();
        assert!(judge_cores(&one, &one).is_some_and(|problem| problem.contains("on both cores")));
    }

    #[test]
    fn differences_from_the_seed_are_reported() {
        let boot = |from: u64| (from..from + 6).map(|address| format!("{address:x}")).collect::<Vec<String>>();
        assert_eq!(judge([boot(1), boot(1), boot(10)]), None);
        assert!(judge([boot(1), boot(2), boot(10)]).is_some_and(|problem| problem.contains("other addresses")));
        assert!(judge([boot(1), boot(1), boot(5)]).is_some_and(|problem| problem.contains("twice")));
        assert!(judge([vec![], vec![], vec![]]).is_some());
    }
}
