//! Recorded sessions with the shell: `tests/scenarios/NAME.txt` is the transcript from the first prompt on.
//!
//! The lines that begin with the prompt are typed, or, for keys that a transcript cannot show, the script
//! `NAME.script`. Lines before the first prompt set things up: `# machine: memory=128M cpu=max cores=2 icount=no` and
//! `# status: 3`; without them the machine is the usual one with counted instructions, and the status 0. `# kernel:
//! NAME` boots another kernel than the usual one ([`Kernel`]), `# system: fixtures` another system description, and `#
//! archive: broken` adds files to the boot archive that are not valid programs, `# archive: linux` the programs of
//! `tests/linux`, and `# archive: linux-tree` these in a tree of files for Linux programs. `# also with cores: 2 4`
//! plays the session again on machines with so many cores, as `NAME/2-cores` and `NAME/4-cores`: it must be the same,
//! except for lines that end with `monitor`, which lists of programs have there. `# also in parallel` plays it again,
//! as `NAME/parallel`, in real time and with a thread of the emulator for each core, where what the cores do at the
//! same time comes in another order in each run. `seed=N` among the settings of the machine chooses other addresses in
//! each process, and `idle=real` lets time pass while the machine is idle, for sessions in which a program waits in the
//! background.

use std::path::PathBuf;
use std::time::Duration;

use miette::{IntoDiagnostic, Result, miette};

use super::Target;
use super::report::Report;
use crate::build::Kernel;
use crate::prepare;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Outcome, PROMPT, Patience, Step};
use crate::transcript;
use crate::workspace::{self, Workspace};

/// System description that is usually booted, and another.
const SYSTEMS: [&str; 2] = ["default", "fixtures"];
const DIRECTORY: &str = "tests/scenarios";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(600) };
/// Patience with a session in parallel.
const PATIENCE_IN_PARALLEL: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(180) };

/// A scenario's file.
pub struct Scenario {
    /// Name of the file without `.txt`, followed by the number of cores or by `parallel` for a repetition.
    pub name: String,
    /// System description that is booted.
    pub system: &'static str,
    path: PathBuf,
    /// Number of cores, if it differs from the file's.
    cores: Option<u32>,
    is_parallel: bool,
}

/// Finds all scenarios, by name.
pub fn find(workspace: &Workspace) -> Result<Vec<Scenario>> {
    let mut scenarios = Vec::new();
    let directory = workspace.root.join(DIRECTORY);
    if directory.is_dir() {
        for entry in std::fs::read_dir(directory).into_diagnostic()? {
            let path = entry.into_diagnostic()?.path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let text = workspace::read_text(&path)?;
                let Plan { system, also, also_in_parallel, .. } = Plan::parse(&text)?;
                for cores in also {
                    let name = format!("{name}/{cores}-cores");
                    scenarios.push(Scenario {
                        name,
                        system,
                        path: path.clone(),
                        cores: Some(cores),
                        is_parallel: false,
                    });
                }
                if also_in_parallel {
                    let name = format!("{name}/parallel");
                    scenarios.push(Scenario { name, system, path: path.clone(), cores: None, is_parallel: true });
                }
                scenarios.push(Scenario { name, system, path, cores: None, is_parallel: false });
            }
        }
    }
    scenarios.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(scenarios)
}

/// Ending of lines that lists of programs and servers have on a machine with several cores only.
const MONITOR: &str = "monitor";

/// Files that are added to the boot archive.
#[derive(Clone, Copy)]
enum Further {
    Nothing,
    /// Programs that must be refused, and valid ones beside them.
    Broken,
    /// The programs of `tests/linux`.
    Linux,
    /// The programs of `tests/linux` in a tree of files for Linux programs.
    LinuxTree,
}

/// Content of a scenario's file.
struct Plan<'t> {
    header: Vec<&'t str>,
    system: &'static str,
    /// Numbers of cores of the repetitions.
    also: Vec<u32>,
    also_in_parallel: bool,
    machine: Machine,
    kernel: Kernel,
    archive: Further,
    status: u8,
    expected: Vec<&'t str>,
}

impl<'t> Plan<'t> {
    fn parse(text: &'t str) -> Result<Plan<'t>> {
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.iter().position(|line| line.starts_with(PROMPT)).unwrap_or(lines.len());
        let mut plan = Plan {
            header: lines[..first].to_vec(),
            system: SYSTEMS[0],
            also: Vec::new(),
            also_in_parallel: false,
            machine: Machine { icount: true, ..Machine::default() },
            kernel: Kernel::Usual,
            archive: Further::Nothing,
            status: 0,
            expected: lines[first..].to_vec(),
        };
        for line in &lines[..first] {
            if let Some(words) = line.strip_prefix("# machine:") {
                words.split_whitespace().try_for_each(|word| set(&mut plan.machine, word))?;
            } else if let Some(system) = line.strip_prefix("# system:") {
                let named = SYSTEMS.into_iter().find(|name| *name == system.trim());
                let help = || format!("allowed: {}", SYSTEMS.join(", "));
                plan.system = named.ok_or_else(|| miette!(help = help(), "`{}` is no system", system.trim()))?;
            } else if let Some(cores) = line.strip_prefix("# also with cores:") {
                let number = |word: &str| word.parse().map_err(|_| miette!("`{word}` is no number of cores"));
                plan.also = cores.split_whitespace().map(number).collect::<Result<_>>()?;
            } else if *line == "# also in parallel" {
                plan.also_in_parallel = true;
            } else if let Some(kernel) = line.strip_prefix("# kernel:") {
                let name = kernel.trim();
                let allowed = || Kernel::ALL.map(Kernel::name).join(", ");
                plan.kernel = Kernel::named(name)
                    .ok_or_else(|| miette!(help = format!("allowed: {}", allowed()), "`{name}` is no kernel"))?;
            } else if let Some(files) = line.strip_prefix("# archive:") {
                match files.trim() {
                    tench_corpus::DIRECTORY => plan.archive = Further::Broken,
                    prepare::LINUX => plan.archive = Further::Linux,
                    prepare::LINUX_TREE => plan.archive = Further::LinuxTree,
                    other => {
                        return Err(miette!(
                            help = "allowed: broken, linux, linux-tree",
                            "`{other}` is no set of files"
                        ));
                    }
                }
            } else if let Some(status) = line.strip_prefix("# status:") {
                plan.status = status.trim().parse().map_err(|_| miette!("`{line}` names no status from 0 to 255"))?;
            }
        }
        Ok(plan)
    }

    fn steps(&self) -> Vec<Step> {
        let typed = self.expected.iter().filter_map(|line| line.strip_prefix(PROMPT));
        typed.map(|line| Step::Line(line.to_owned())).collect()
    }
}

/// Applies a word of `# machine:`.
fn set(machine: &mut Machine, word: &str) -> Result<()> {
    match word.split_once('=') {
        Some(("memory", size)) => machine.memory = size.to_owned(),
        Some(("cpu", cpu)) => machine.cpu = cpu.to_owned(),
        Some(("seed", seed)) if seed.parse::<u64>().is_ok() => machine.seed = seed.parse().unwrap_or(0),
        Some(("cores", cores)) if cores.parse::<u32>().is_ok() => machine.cores = cores.parse().unwrap_or(1),
        Some(("icount", "no")) => machine.icount = false,
        Some(("idle", "real")) => machine.idles = true,
        _ => {
            return Err(miette!(
                help = "allowed: memory=SIZE, cpu=NAME, cores=N, icount=no, idle=real, seed=N",
                "`{word}` is no setting"
            ));
        }
    }
    Ok(())
}

impl Scenario {
    /// Returns the plan in a scenario's file, on this repetition's machine.
    fn plan<'t>(&self, text: &'t str) -> Result<Plan<'t>> {
        let mut plan = Plan::parse(text)?;
        plan.machine.cores = self.cores.unwrap_or(plan.machine.cores);
        plan.machine.icount &= !self.is_parallel;
        Ok(plan)
    }

    /// Plays the scenario and compares, or with `bless` writes the result.
    pub fn run(&self, target: &Target, bless: bool, report: &Report) -> Result<()> {
        let name = format!("scenario/{}", self.name);
        let text = workspace::read_text(&self.path)?;
        let plan = self.plan(&text)?;
        let patience = if self.is_parallel { PATIENCE_IN_PARALLEL } else { PATIENCE };
        let script = self.path.with_extension("script");
        let steps = if script.is_file() { script::parse(&workspace::read_text(&script)?)? } else { plan.steps() };
        let (system, build) = target.get(self.system)?;
        let build = &build.clone().with_kernel(target.workspace, target.packages()?, &system, plan.kernel)?;
        let files = match plan.archive {
            Further::Nothing => target.prepare(build, &system, &[])?,
            Further::Broken => target.prepare(build, &system, &target.corpus()?)?,
            Further::Linux => target.prepare(build, &system, &target.linux_programs()?)?,
            Further::LinuxTree => target.prepare_linux_tree(build, &system)?,
        };
        let mut symbols = build.symbols(target.workspace, &system, &files)?;
        // Symbols help a person, but source lines move, so symbols are not compared.
        let mut explained = Vec::new();
        let mut command = plan.machine.command(&files, Serial::Pipe);
        let bless = bless && self.cores.is_none() && !self.is_parallel;
        let outcome = script::run(&mut command, &steps, patience, |line| {
            explained.extend(symbols.explain(line));
            Vec::new()
        })?;
        let mut actual = transcript(&outcome);
        if self.cores.is_some() {
            actual.retain(|line| !line.ends_with(MONITOR));
        }
        if bless {
            let blessed = transcript::bless(&plan.expected, &actual);
            let lines = plan.header.iter().map(|line| line.to_string()).chain(blessed);
            workspace::write_file(&self.path, lines.map(|line| line + "\n").collect::<String>().as_bytes())?;
        }
        let expected = if bless { &actual } else { &plan.expected };
        match judge(&plan, expected, &actual, &outcome) {
            None => report.passed(&name),
            Some(problem) => report.failed(&name, &format!("{problem}\n{}", explained.join("\n"))),
        }
        Ok(())
    }
}

fn judge(plan: &Plan, expected: &[&str], actual: &[&str], outcome: &Outcome) -> Option<String> {
    match &outcome.end {
        End::Stopped(reason) => {
            Some(format!("the guest was stopped: {reason}; what was last on its terminal:\n{}", outcome.last_screen()))
        }
        End::Exited(_) if actual.is_empty() => {
            Some(format!("the shell never prompted; what was last on the terminal:\n{}", outcome.last_screen()))
        }
        End::Exited(status) => {
            let difference = transcript::compare(expected, actual);
            let wrong = || format!("the guest ended with status {status}, not {}", plan.status);
            difference.or_else(|| (*status != plan.status).then(wrong))
        }
    }
}

/// Returns the outcome's lines from the first prompt on, without the power-off that the tool added.
pub fn transcript(outcome: &Outcome) -> Vec<&str> {
    let end = outcome.powered_off_at.unwrap_or(outcome.lines.len());
    let lines = outcome.lines[..end.min(outcome.lines.len())].iter().map(String::as_str);
    lines.skip_while(|line| !line.starts_with(PROMPT)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::BootFiles;

    #[test]
    fn a_file_says_what_is_typed_and_on_which_machine() {
        let plan = Plan::parse(
            "# about\n# machine: memory=128M cpu=max icount=no seed=5\n# archive: broken\n# kernel: non-preemptible\n# status: 3\ntench> a b\nx\ntench> poweroff 3\n",
        )
        .unwrap();
        assert_eq!((plan.machine.memory.as_str(), plan.machine.cpu.as_str()), ("128M", "max"));
        assert_eq!((plan.machine.icount, plan.machine.cores, plan.status), (false, 1, 3));
        assert!(
            plan.kernel == Kernel::NonPreemptible && matches!(plan.archive, Further::Broken) && plan.machine.seed == 5
        );
        assert_eq!(plan.steps(), [Step::Line("a b".into()), Step::Line("poweroff 3".into())]);
        assert_eq!(plan.expected, ["tench> a b", "x", "tench> poweroff 3"]);
        assert!(!plan.machine.idles && Plan::parse("# machine: idle=real\n").unwrap().machine.idles);
        assert!(Plan::parse("# machine: idle=yes\n").is_err());
        assert!(Plan::parse("# machine: memory\n").is_err());
        assert!(Plan::parse("# kernel: with preemption points\n").is_err());
        assert!(Plan::parse("# archive: everything\n").is_err() && Plan::parse("# machine: seed=x\n").is_err());
        assert!(Plan::parse("# status: all\n").is_err() && Plan::parse("# system: mine\n").is_err());
        assert!(!plan.also_in_parallel && Plan::parse("# also in parallel\n").unwrap().also_in_parallel);
        assert!(plan.also.is_empty() && Plan::parse("# also with cores: 2 many\n").is_err());
        assert_eq!(Plan::parse("# also with cores: 2 4\n").unwrap().also, [2, 4]);
        assert_eq!((plan.system, Plan::parse("# system: fixtures\n").unwrap().system), ("default", "fixtures"));
    }

    #[test]
    fn a_parallel_session_has_a_thread_for_each_core() {
        let files = BootFiles { image: PathBuf::new(), ram_disk: PathBuf::new(), from_host: Vec::new() };
        let is_parallel = |is_parallel| {
            let scenario =
                Scenario { name: String::new(), system: SYSTEMS[0], path: PathBuf::new(), cores: None, is_parallel };
            let plan = scenario.plan("# machine: cores=2\n# also in parallel\n").unwrap();
            let command = plan.machine.command(&files, Serial::Pipe);
            let arguments: Vec<_> = command.get_args().collect();
            assert!(arguments.windows(2).any(|pair| pair == ["-smp", "2"]));
            // The emulator refuses several threads with instructions as the clock.
            let counts = arguments.contains(&"-icount".as_ref());
            !counts && arguments.windows(2).any(|pair| pair == ["-accel", "tcg,thread=multi"])
        };
        assert!(is_parallel(true) && !is_parallel(false));
    }

    #[test]
    fn the_added_power_off_is_not_part_of_the_transcript() {
        let lines = ["banner", "tench> ls", "bin", "tench> poweroff 0", "bye"].map(str::to_owned).to_vec();
        let outcome = Outcome { end: End::Exited(0), lines, powered_off_at: Some(3) };
        assert_eq!(transcript(&outcome), ["tench> ls", "bin"]);
    }
}
