//! The named cases on the target: boots `systems/tests.toml` once for each kernel and number of cores, and reads the
//! output of the program `cases`. The program runs on the first core; on others, their kernels, servers and monitors
//! run meanwhile. It also runs the attacks, each in a process of its own (`tests/cases/src/hostile/attacks`).
//!
//! ```text
//! case: IPC0007 a reply to a dead caller is dropped ... ok
//! case: IPC0008 ... FAILED expected NoCaller, got success
//! cases: 140 passed, 1 failed
//! ```

use std::time::Duration;

use miette::Result;

use super::Target;
use super::report::Report;
use crate::build::Kernel;
use crate::meter;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Outcome, Patience};

/// System description that is booted.
pub const SYSTEM: &str = "tests";
/// Program in it that runs the cases.
const PROGRAM: &str = "cases";
/// Patience with the program: silence means that a case hangs.
const PATIENCE: Patience = Patience { silence: Duration::from_secs(180), total: Duration::from_secs(900) };

/// Prefix of the line of the attack that prints escape sequences, to which nothing may be added; and that line as it
/// must reach the terminal, without control characters.
const ESCAPES: &str = "note: escapes: ";
const SHOWN: &str = "note: escapes: ^[[2J^[]0;hostile^G";
/// Prefix of the line that says how that attack went.
const ATTACK_WITH_ESCAPES: &str = "case: escape ";

/// Content of a line.
#[derive(Debug, PartialEq, Eq)]
enum Line<'l> {
    Passed(&'l str),
    Failed(&'l str, &'l str),
    End { passed: usize, failed: usize },
    Other,
}

fn parse(line: &str) -> Line<'_> {
    if let Some(case) = line.strip_prefix("case: ") {
        return match case.rsplit_once(" ... ") {
            Some((name, "ok")) => Line::Passed(name),
            Some((name, verdict)) if verdict.starts_with("FAILED") => Line::Failed(name, verdict[6..].trim()),
            _ => Line::Other,
        };
    }
    let counts = line.strip_prefix("cases: ").and_then(|rest| {
        let (passed, failed) = rest.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some((passed.parse().ok()?, failed.parse().ok()?))
    });
    counts.map_or(Line::Other, |(passed, failed)| Line::End { passed, failed })
}

/// Part of the program that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Cases,
    /// Those about Linux programs.
    Linux,
    Attacks,
    /// Every second attack, from the first or from the second on.
    EvenAttacks,
    OddAttacks,
}

/// A boot: the part that is run, the kernel, and the number of cores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    part: Part,
    kernel: Kernel,
    cores: u32,
}

impl Boot {
    /// All boots, the usual one first.
    pub const ALL: [Boot; 9] = [
        Boot { part: Part::Cases, kernel: Kernel::Usual, cores: 1 },
        Boot { part: Part::Cases, kernel: Kernel::Usual, cores: 2 },
        Boot { part: Part::Cases, kernel: Kernel::Usual, cores: 4 },
        Boot { part: Part::Cases, kernel: Kernel::NonPreemptible, cores: 1 },
        Boot { part: Part::Cases, kernel: Kernel::Measuring, cores: 1 },
        Boot { part: Part::Linux, kernel: Kernel::Usual, cores: 1 },
        Boot { part: Part::Attacks, kernel: Kernel::Usual, cores: 1 },
        Boot { part: Part::EvenAttacks, kernel: Kernel::Usual, cores: 2 },
        Boot { part: Part::OddAttacks, kernel: Kernel::Usual, cores: 2 },
    ];

    /// Returns the name of the stage.
    pub fn name(self) -> String {
        let mut name = self.part.name().to_owned();
        if self.kernel != Kernel::Usual {
            name += &format!("/{}", self.kernel.name());
        }
        if self.cores > 1 {
            name += &format!("/{}-cores", self.cores);
        }
        match self.part {
            Part::EvenAttacks => name + "/even",
            Part::OddAttacks => name + "/odd",
            Part::Cases | Part::Linux | Part::Attacks => name,
        }
    }

    /// Returns about how many seconds the boot takes on one processor.
    pub const fn seconds(self) -> u32 {
        match (self.part, self.kernel, self.cores) {
            (_, Kernel::Measuring | Kernel::MeasuringNonPreemptible, _) => 10,
            (Part::Cases, ..) => 160,
            (Part::Linux, ..) => 40,
            (Part::Attacks, ..) => 230,
            (Part::EvenAttacks | Part::OddAttacks, ..) => 300,
        }
    }

    /// Returns what it does.
    pub const fn what(self) -> &'static str {
        match self.part {
            Part::Cases => "the named cases",
            Part::Linux => "the named cases about Linux programs",
            Part::Attacks => "attacks by programs without powers",
            Part::EvenAttacks | Part::OddAttacks => "half of the attacks by programs without powers",
        }
    }
}

impl Part {
    /// Returns whether the part consists of attacks.
    const fn has_attacks(self) -> bool {
        matches!(self, Part::Attacks | Part::EvenAttacks | Part::OddAttacks)
    }

    /// Returns the name of the part's stage.
    const fn name(self) -> &'static str {
        match self {
            Part::Cases => "cases",
            Part::Linux => "cases/linux",
            Part::Attacks | Part::EvenAttacks | Part::OddAttacks => "hostile",
        }
    }
}

/// Returns the arguments for `cases`: on a measuring kernel, the cases about that; its measuring takes time, which
/// other cases would notice.
fn arguments(boot: Boot) -> &'static [&'static str] {
    match (boot.part, boot.kernel) {
        (Part::Attacks, _) => &["attacks"],
        (Part::EvenAttacks, _) => &["attacks", "even"],
        (Part::OddAttacks, _) => &["attacks", "odd"],
        (Part::Linux, _) => &["linux"],
        (Part::Cases, Kernel::Usual | Kernel::NonPreemptible) => &[],
        (Part::Cases, Kernel::Measuring | Kernel::MeasuringNonPreemptible) => &["only", "LAT"],
    }
}

/// Runs a boot.
pub fn run(target: &Target, boot: Boot, report: &Report) -> Result<()> {
    let (stage, Boot { part, kernel, cores }) = (boot.name(), boot);
    // Each case is named after the stage.
    let prefix = stage.replacen("cases", "case", 1);
    let (mut system, build) = target.get(SYSTEM)?;
    system.set_arguments(PROGRAM, &arguments(boot).iter().map(|word| word.to_string()).collect::<Vec<String>>());
    let build = &build.clone().with_kernel(target.workspace, target.packages()?, &system, kernel)?;
    let mut further = target.corpus()?;
    if part != Part::Cases {
        further.extend(target.linux_programs()?);
    }
    let files = target.prepare(build, &system, &further)?;
    let mut symbols = build.symbols(target.workspace, &system, &files)?;
    // Cores share memory evenly, so the first has as much as if it were alone.
    let mut machine = Machine { icount: true, cores, memory: format!("{cores}G"), ..Machine::default() };
    if part.has_attacks() && cores > 1 {
        // The attacks are about lateness.
        machine.plugin = Some(meter::turns(target.workspace)?);
    }
    let mut command = machine.command(&files, Serial::Pipe);
    let mut tally = (0, 0);
    let mut end = None;
    let outcome = script::run(&mut command, &[], PATIENCE, |line| {
        match parse(line) {
            Line::Passed(case) => {
                tally.0 += 1;
                report.passed(&format!("{prefix}/{case}"));
            }
            Line::Failed(case, why) => {
                tally.1 += 1;
                report.failed(&format!("{prefix}/{case}"), why);
            }
            Line::End { passed, failed } => end = Some((passed, failed)),
            Line::Other => {}
        }
        symbols.explain(line)
    })?;
    if let Some(problem) = judge(tally, end, &outcome).or_else(|| unfiltered(part, &outcome.lines)) {
        report.failed(&stage, &format!("{problem}; what was last on the terminal:\n{}", outcome.last_screen()));
    }
    Ok(())
}

/// Returns what is wrong with how the attacks' control characters reached the terminal.
fn unfiltered(part: Part, lines: &[String]) -> Option<String> {
    let shown: Vec<&String> = lines.iter().filter(|line| line.contains(ESCAPES)).collect();
    // Of two halves, one has the attack.
    let has_attack = part == Part::Attacks || lines.iter().any(|line| line.contains(ATTACK_WITH_ESCAPES));
    let has_line = !shown.is_empty() || !has_attack;
    let is_good = !part.has_attacks() || has_line && shown.iter().all(|line| line.contains(SHOWN));
    (!is_good).then(|| format!("control characters should be shown as `{SHOWN}`, not so: {shown:?}"))
}

/// Returns what is wrong with the run as a whole.
fn judge(tally: (usize, usize), end: Option<(usize, usize)>, outcome: &Outcome) -> Option<String> {
    match (&outcome.end, end) {
        (End::Stopped(reason), _) => Some(format!("the guest was stopped: {reason}")),
        (End::Exited(status), None) => Some(format!("the guest ended with status {status} before all cases had run")),
        (_, Some(end)) if end != tally => Some(format!("the guest counted {end:?} cases, but printed {tally:?}")),
        (_, Some((0, 0))) => Some("no case ran".to_owned()),
        (End::Exited(status), Some((_, failed))) if (*status == 0) != (failed == 0) => {
            Some(format!("the guest ended with status {status} although {failed} cases failed"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        assert_eq!(
            parse("case: IPC0007 a reply ... is dropped ... ok"),
            Line::Passed("IPC0007 a reply ... is dropped")
        );
        assert_eq!(parse("case: X1 name ... FAILED got 3"), Line::Failed("X1 name", "got 3"));
        assert_eq!(parse("case: X1 name ... FAILED"), Line::Failed("X1 name", ""));
        assert_eq!(parse("cases: 12 passed, 3 failed"), Line::End { passed: 12, failed: 3 });
        for line in ["case: X1", "cases: all passed", "a case: X ... ok", ""] {
            assert_eq!(parse(line), Line::Other, "{line}");
        }
    }

    #[test]
    fn boots_have_names_of_their_own() {
        let names = Boot::ALL.map(Boot::name);
        assert_eq!(names[..3], ["cases", "cases/2-cores", "cases/4-cores"]);
        assert_eq!(names[3..6], ["cases/non-preemptible", "cases/measuring", "cases/linux"]);
        assert_eq!(names[6..], ["hostile", "hostile/2-cores/even", "hostile/2-cores/odd"]);
    }

    #[test]
    fn control_characters_have_to_be_shown() {
        let line = |text: &str| vec!["case: x y ... ok".to_owned(), text.to_owned()];
        assert_eq!(unfiltered(Part::Attacks, &line("~note: escapes: ^[[2J^[]0;hostile^G\u{fffd}2J")), None);
        assert_eq!(unfiltered(Part::Cases, &[]), None);
        assert_eq!(unfiltered(Part::EvenAttacks, &["case: bomb x ... ok".to_owned()]), None);
        assert!(unfiltered(Part::OddAttacks, &["case: escape x ... ok".to_owned()]).is_some());
        assert!(unfiltered(Part::Attacks, &line("note: escapes: 2J")).is_some());
        assert!(unfiltered(Part::Attacks, &line("nothing")).is_some());
    }

    #[test]
    fn a_run_is_good_only_if_it_ended_and_agrees() {
        let outcome = |end| Outcome { end, lines: Vec::new(), powered_off_at: None };
        let exited = |status| outcome(End::Exited(status));
        assert_eq!(judge((2, 0), Some((2, 0)), &exited(0)), None);
        assert_eq!(judge((2, 1), Some((2, 1)), &exited(1)), None);
        assert!(judge((2, 0), Some((3, 0)), &exited(0)).is_some());
        assert!(judge((2, 0), None, &exited(0)).is_some());
        assert!(judge((0, 0), Some((0, 0)), &exited(0)).is_some());
        assert!(judge((2, 0), Some((2, 0)), &exited(1)).is_some());
        assert!(judge((2, 1), Some((2, 1)), &exited(0)).is_some());
        assert!(judge((2, 0), Some((2, 0)), &outcome(End::Stopped("it".into()))).is_some());
    }
}
