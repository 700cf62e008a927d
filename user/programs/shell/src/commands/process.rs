//! Commands that start, end and suspend processes.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_abi::Powers;
use tench_procs_interface::pid::{self, Shown};
use tench_procs_interface::protocol::State;

use super::{Action, Call, Command, Failure, Outcome};
use crate::commands::jobs;
use crate::completion::Candidates;
use crate::jobs::Job;
use crate::shell::Shell;
use crate::suggest;
use crate::system::{End, OnKey, Process, Settings, Waited};

/// Maximum number of processes of one name that a message lists.
const LISTED: usize = 8;

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "run",
        usage: "[OPTION...] PROGRAM [ARGUMENT...] [&]",
        summary: "run a program",
        help: "The word run can be left out unless a command has the program's name. PROGRAM is a name in bin or the \
               path of a file. The shell waits until the program ends; Ctrl-C kills it, Ctrl-Z suspends it. With & at the end it is \
               a job of the background, whose end is said before a later prompt. OPTIONS: --quota BYTES limits its \
               memory: a number, with K, M or G if it is of KiB, MiB or GiB. --slots N lets it hold N capabilities, if it \
               needs more than 16,384. --terminal lends it the terminal while it is in the foreground: it may read \
               every key as it comes, and write control characters; Ctrl-] then does what Ctrl-C does otherwise, \
               whatever the program makes of its keys. --core N starts it on that core, --core any on the one where the fewest programs run. --priority N and --ceiling N say how urgent it is, and how \
               urgent it can make what it starts; both are at most this shell's own ceiling. --with POWER,... passes on \
               what this shell may do beyond what every program may; without it, a program gets nothing of that. POWER \
               is one of power, cores, processes, memory, files, names, terminal, reserve, counters; caps shows who has \
               which.",
        arguments: Candidates::Programs,
        action: Action::Program,
    },
    Command {
        name: "kill",
        usage: "PID|NAME|%JOB...",
        summary: "end processes",
        help: "A name must belong to one process; if several have it, give the number that ps shows. Names mean processes of the \
               shell's own core, if there is one; 2:NAME means one of core 2.",
        arguments: Candidates::Processes,
        action: Action::Anywhere(kill),
    },
    Command {
        name: "killall",
        usage: "NAME",
        summary: "end all processes of a name",
        help: "Those of all cores, or of one. The shell itself is spared.",
        arguments: Candidates::Processes,
        action: Action::Anywhere(kill_all),
    },
    Command {
        name: "wait",
        usage: "PID|NAME|%JOB",
        summary: "wait until processes end, and say how",
        help: "Ctrl-C ends the waiting and leaves the processes alone.",
        arguments: Candidates::Processes,
        action: Action::Alone(wait),
    },
    Command {
        name: "suspend",
        usage: "PID|NAME|%JOB",
        summary: "stop a process or job",
        help: "resume lets it run again.",
        arguments: Candidates::Processes,
        action: Action::Anywhere(suspend),
    },
    Command {
        name: "resume",
        usage: "PID|NAME|%JOB",
        summary: "let a suspended process run",
        help: "The opposite of suspend.",
        arguments: Candidates::Processes,
        action: Action::Anywhere(resume),
    },
];

/// Returns the process that a number or a name means. Names are those of processes that have not ended.
pub fn find(shell: &mut Shell<'_>, argument: &str) -> Result<Process, Failure> {
    if let Some(pid) = pid::parse(argument) {
        let missing = |_| Failure::Refused(format!("no process {argument}; ps lists them"));
        return shell.system.process(pid).map_err(missing);
    }
    let (core, name) = core_and_name(argument);
    let own_core = pid::split_pid(shell.system.own_pid()).0;
    let live: Vec<Process> = shell.processes().into_iter().filter(|process| process.end().is_none()).collect();
    let is_meant = |process: &&Process| process.name == name || process.base_name() == name;
    let of_core = |core| move |process: &&Process| pid::split_pid(process.pid).0 == core;
    let mut found: Vec<&Process> = live.iter().filter(is_meant).collect();
    match core {
        Some(core) => found.retain(of_core(core)),
        None if found.iter().any(of_core(own_core)) => found.retain(of_core(own_core)),
        None => {}
    }
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let near = suggest::nearest(argument, live.iter().map(Process::base_name));
            let hint = near.map_or("ps lists them".into(), |near| format!("did you mean {near}?"));
            Err(Failure::Refused(format!("no process {argument}; {hint}")))
        }
        _ => {
            let pids: Vec<String> = found.iter().take(LISTED).map(|process| Shown(process.pid).to_string()).collect();
            let more = if found.len() > LISTED { ", ... (ps lists them)" } else { "" };
            let pids = pids.join(", ");
            Err(Failure::Refused(format!("several processes are called {argument}; give one of {pids}{more}")))
        }
    }
}

/// Splits `2:timer` into the core and the name.
fn core_and_name(argument: &str) -> (Option<u64>, &str) {
    let parts = argument.split_once(':').and_then(|(core, name)| Some((core.parse::<u32>().ok()?, name)));
    parts.map_or((None, argument), |(core, name)| (Some(core.into()), name))
}

/// Core on which a program is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreChoice {
    /// The core of this number.
    Core(u64),
    /// The core on which the fewest processes run.
    Any,
}

/// Arguments of `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Settings of the process.
    pub settings: Settings,
    /// Core on which it runs; by default the shell's own.
    pub core: Option<CoreChoice>,
    /// Set if it is lent the terminal.
    pub borrows: bool,
    /// The program with its arguments.
    pub words: &'a [String],
}

/// Parses the arguments of `run`: options, and the program with its arguments.
pub fn program_of(arguments: &[String]) -> Result<Wanted<'_>, Failure> {
    let mut wanted = Wanted { settings: Settings::default(), core: None, borrows: false, words: arguments };
    let missing = |what: &str| Failure::Usage(format!("{what} missing"));
    loop {
        match wanted.words {
            [] => return Err(missing("the program is")),
            [option, rest @ ..] if option == TERMINAL => {
                wanted.borrows = true;
                wanted.words = rest;
            }
            [option, rest @ ..] => {
                let Some((_, what)) = OPTIONS.iter().find(|(known, _)| known == option) else { return Ok(wanted) };
                let (value, words) = rest.split_first().ok_or_else(|| missing(what))?;
                wanted.words = words;
                wanted.set(option, value)?;
            }
        }
    }
}

/// The option of `run` that has no value: it lends the program the terminal.
pub const TERMINAL: &str = "--terminal";

/// The other options of `run`, each with a value, and the message if that is missing.
const OPTIONS: [(&str, &str); 6] = [
    ("--quota", "the bytes are"),
    ("--slots", "the number is"),
    ("--core", "the core is"),
    ("--with", "the powers are"),
    ("--priority", "the priority is"),
    ("--ceiling", "the ceiling is"),
];

/// Returns whether a word is an option of `run` that a value follows.
pub fn is_option(word: &str) -> bool {
    OPTIONS.iter().any(|(option, _)| *option == word)
}

impl Wanted<'_> {
    /// Applies an option.
    fn set(&mut self, option: &str, value: &str) -> Outcome {
        match option {
            "--quota" => self.settings.quota = Some(parse_bytes(value)?),
            "--slots" => self.settings.slots = Some(parse_slots(value)?),
            "--core" => self.core = Some(parse_core(value)?),
            "--with" => self.settings.powers |= parse_powers(value)?,
            "--priority" => self.settings.priority = Some(parse_priority(value)?),
            _ => self.settings.ceiling = Some(parse_priority(value)?),
        }
        Ok(())
    }
}

/// Parses `power,memory`.
fn parse_powers(text: &str) -> Result<Powers, Failure> {
    let unknown = |word: &str| {
        Failure::Usage(format!("{word} is no power, such as memory; there are {}", words_of(Powers::all())))
    };
    text.split(',').map(|word| Powers::from_word(word).ok_or_else(|| unknown(word))).collect()
}

/// Returns the words for powers.
pub fn words_of(powers: Powers) -> String {
    powers.words().collect::<Vec<_>>().join(", ")
}

/// Parses a number of slots.
fn parse_slots(text: &str) -> Result<u64, Failure> {
    let number = text.parse::<u64>().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
    number.ok_or_else(|| Failure::Usage(format!("{text} is no number of capabilities, such as 1000000")))
}

/// Parses `0` to `255`.
fn parse_priority(text: &str) -> Result<u8, Failure> {
    let number = text.parse::<u8>().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
    number.ok_or_else(|| Failure::Usage(format!("{text} is no priority, such as 100; the highest is 255")))
}

/// Parses `2` or `any`.
fn parse_core(text: &str) -> Result<CoreChoice, Failure> {
    let number = || text.parse::<u32>().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
    match text {
        "any" => Ok(CoreChoice::Any),
        _ => number()
            .map(|core| CoreChoice::Core(core.into()))
            .ok_or_else(|| Failure::Usage(format!("{text} is no core, such as 2, nor any"))),
    }
}

/// Parses `4096`, `64K`, `2M`, `1G`.
fn parse_bytes(text: &str) -> Result<u64, Failure> {
    let (digits, bits) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let bytes = number.and_then(|number| number.checked_mul(1 << bits));
    bytes.ok_or_else(|| Failure::Usage(format!("{text} is not a number of bytes, such as 4096, 64K or 2M")))
}

/// Returns the processes of a job that have not ended, or the one process that a number or a name means.
fn targets(shell: &mut Shell<'_>, argument: &str) -> Result<Vec<Process>, Failure> {
    let Some(number) = jobs::number_of(shell, argument)? else { return Ok(Vec::from([running(shell, argument)?])) };
    let pids = shell.jobs.get(number).map(Job::live).unwrap_or_default();
    let processes = pids.into_iter().filter_map(|pid| shell.system.process(pid).ok());
    let live: Vec<Process> = processes.filter(|process| process.end().is_none()).collect();
    if live.is_empty() { Err(Failure::Refused(format!("job {argument} has ended"))) } else { Ok(live) }
}

fn kill(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    if call.arguments.is_empty() {
        return Err(Failure::Usage("the process is missing".into()));
    }
    for argument in call.arguments {
        for process in targets(shell, argument)? {
            kill_one(shell, &process)?;
        }
    }
    Ok(())
}

fn kill_one(shell: &mut Shell<'_>, process: &Process) -> Outcome {
    // This has the same effect, without losing unwritten output.
    if process.pid == shell.system.own_pid() { shell.leave() } else { Ok(shell.system.kill(process.pid)?) }
}

fn kill_all(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let name = call.one("the name")?;
    let own_pid = shell.system.own_pid();
    let (core, base_name) = core_and_name(name);
    let processes = shell.processes().into_iter();
    let is_meant = |process: &Process| {
        let is_there = core.is_none_or(|core| pid::split_pid(process.pid).0 == core);
        is_there && process.end().is_none() && process.base_name() == base_name && process.pid != own_pid
    };
    let named: Vec<Process> = processes.filter(is_meant).collect();
    if named.is_empty() {
        return Err(Failure::Refused(format!("no process {name}; ps lists them")));
    }
    // One that cannot be killed does not stop the others from being killed.
    let outcomes: Vec<Outcome> = named.iter().map(|process| kill_one(shell, process)).collect();
    outcomes.into_iter().collect()
}

/// Refuses the system's first console: while it is suspended, the shell can neither be seen nor typed to. (A killed one
/// is restarted.)
fn spare_console(process: &Process) -> Outcome {
    if process.parent == pid::INIT && process.base_name() == "console" {
        return Err(Failure::Refused("the shell could not be seen or heard without the console".into()));
    }
    Ok(())
}

/// Returns a process that has not ended.
fn running(shell: &mut Shell<'_>, argument: &str) -> Result<Process, Failure> {
    let process = find(shell, argument)?;
    match process.end() {
        None => Ok(process),
        Some(end) => Err(Failure::Refused(format!("process {} has {}", Shown(process.pid), past(&end.to_string())))),
    }
}

/// Returns an end as it follows "has": "exited with 3", "crashed: ...", "been killed".
fn past(end: &str) -> String {
    if end == "killed" { "been killed".into() } else { end.into() }
}

fn wait(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let argument = call.one("the process")?;
    if let Some(number) = jobs::number_of(shell, argument)? {
        return jobs::wait(shell, number);
    }
    let process = find(shell, argument)?;
    let own_pid = shell.system.own_pid();
    if process.pid == own_pid {
        return Err(Failure::Refused("the shell cannot wait for itself".into()));
    }
    shell.system.set_foreground(&[process.pid], own_pid, OnKey::StopWaiting);
    match shell.system.wait(&[process.pid])? {
        Waited::Interrupted | Waited::Suspended => {}
        Waited::Ended(ends) | Waited::EndedEarly(ends) => {
            shell.jobs.forget_only(process.pid);
            for end in ends.into_iter().flatten() {
                shell.say(format_args!("process {} ({}) {}", Shown(process.pid), process.base_name(), has(end)));
            }
        }
    }
    Ok(())
}

/// Returns an end as a past tense: "exited with 3", "was killed".
fn has(end: End) -> String {
    if end == End::Killed { "was killed".into() } else { end.to_string() }
}

fn suspend(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    for process in targets(shell, call.one("the process")?)? {
        if process.pid == shell.system.own_pid() {
            return Err(Failure::Refused("nobody could resume the shell".into()));
        }
        spare_console(&process)?;
        if process.state == State::Suspended {
            return Err(Failure::Refused(format!("process {} is suspended already", Shown(process.pid))));
        }
        shell.system.suspend(process.pid)?;
    }
    Ok(())
}

fn resume(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    for process in targets(shell, call.one("the process")?)? {
        if process.state != State::Suspended {
            return Err(Failure::Refused(format!("process {} is not suspended", Shown(process.pid))));
        }
        shell.system.resume(process.pid)?;
    }
    Ok(())
}
