//! Commands that start, end and list processes.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_procs_client::protocol::{State, pid};

use super::{Call, Command, Failure, Outcome};
use crate::completion::Candidates;
use crate::format::{Bytes, Side, Table, Time};
use crate::shell::Shell;
use crate::suggest;
use crate::system::{OnInterrupt, Process, Waited};

/// Processes of one name that a message lists.
const LISTED: usize = 8;

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "run",
        usage: "[--quota BYTES] PROGRAM [ARGUMENT...] [&]",
        summary: "run a program of the boot archive",
        help: "The word run can be left out unless a command has the program's name. PROGRAM is a name in bin or a whole \
               path. The shell waits until the program ends, and Ctrl-C kills it. With & at the end the shell prints \
               the process's number at once, and its end before a later prompt. --quota limits its memory: BYTES is a \
               number, with K, M or G if it is of KiB, MiB or GiB.",
        arguments: Candidates::Programs,
        takes_background: true,
        run,
    },
    Command {
        name: "ps",
        usage: "[-a] [--short]",
        summary: "list the processes",
        help: "With -a also those that have ended. TIME is processor time of the main thread, MEMORY all that the process \
               costs. --short shows names and states alone.",
        arguments: Candidates::Nothing,
        takes_background: false,
        run: list,
    },
    Command {
        name: "kill",
        usage: "PID|NAME...",
        summary: "end processes",
        help: "A name must belong to one process; if several have it, give the number that ps shows.",
        arguments: Candidates::Processes,
        takes_background: false,
        run: kill,
    },
    Command {
        name: "wait",
        usage: "PID|NAME",
        summary: "wait until a process ends, and say how",
        help: "Ctrl-C ends the waiting and leaves the process alone.",
        arguments: Candidates::Processes,
        takes_background: false,
        run: wait,
    },
    Command {
        name: "suspend",
        usage: "PID|NAME",
        summary: "stop a process's main thread",
        help: "resume lets it run again.",
        arguments: Candidates::Processes,
        takes_background: false,
        run: suspend,
    },
    Command {
        name: "resume",
        usage: "PID|NAME",
        summary: "let a suspended process run",
        help: "The opposite of suspend.",
        arguments: Candidates::Processes,
        takes_background: false,
        run: resume,
    },
];

/// The process that a number or a name means. Names are those of processes that have not ended.
pub fn find(shell: &mut Shell<'_>, argument: &str) -> Result<Process, Failure> {
    if let Ok(pid) = argument.parse() {
        let missing = |_| Failure::Refused(format!("no process {pid}; ps lists them"));
        return shell.system.process(pid).map_err(missing);
    }
    let living: Vec<Process> = shell.processes().into_iter().filter(|process| process.end().is_none()).collect();
    let is_meant = |process: &&Process| process.name == argument || process.base_name() == argument;
    let found: Vec<&Process> = living.iter().filter(is_meant).collect();
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let near = suggest::nearest(argument, living.iter().map(Process::base_name));
            let hint = near.map_or("ps lists them".into(), |near| format!("did you mean {near}?"));
            Err(Failure::Refused(format!("no process {argument}; {hint}")))
        }
        _ => {
            let pids: Vec<String> = found.iter().take(LISTED).map(|process| process.pid.to_string()).collect();
            let more = if found.len() > LISTED { ", ... (ps lists them)" } else { "" };
            let pids = pids.join(", ");
            Err(Failure::Refused(format!("several processes are called {argument}; give one of {pids}{more}")))
        }
    }
}

fn run(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let (quota, words) = match call.arguments {
        [option, rest @ ..] if option == "--quota" => {
            let (bytes, words) = rest.split_first().ok_or_else(|| Failure::Usage("the bytes are missing".into()))?;
            (Some(parse_bytes(bytes)?), words)
        }
        words => (None, words),
    };
    if words.is_empty() {
        return Err(Failure::Usage("the program is missing".into()));
    }
    shell.run_program(words, quota, call.background)
}

/// `4096`, `64K`, `2M`, `1G`.
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

fn list(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let ([all, is_short], rest) = call.options(["-a", "--short"])?;
    rest.none()?;
    let processes = shell.processes().into_iter().filter(|process| all || process.end().is_none());
    let mut table = if is_short {
        Table::new(&[("STATE", Side::Left), ("NAME", Side::Left)])
    } else {
        let numbers = ["PID", "PARENT", "PRIORITY", "TIME", "MEMORY"].map(|heading| (heading, Side::Right));
        Table::new(&[&numbers[..], &[("STATE", Side::Left), ("NAME", Side::Left)]].concat())
    };
    let accounts = accounts(shell);
    let per_second = shell.system.ticks_per_second();
    for process in processes {
        let state = state(&process);
        if is_short {
            table.row([state, process.base_name().into()]);
            continue;
        }
        table.row([
            process.pid.to_string(),
            process.parent.to_string(),
            process.priority.to_string(),
            Time { ticks: process.ticks, per_second }.to_string(),
            accounts.get(&process.pid).map_or("-".into(), |&used| Bytes(used).to_string()),
            state,
            process.base_name().into(),
        ]);
    }
    shell.print(format_args!("{table}"));
    Ok(())
}

/// Memory in use by each process.
fn accounts(shell: &mut Shell<'_>) -> BTreeMap<u64, u64> {
    let mut accounts = BTreeMap::new();
    let mut after = 0;
    while let Some(account) = shell.system.next_account(after) {
        after = account.process;
        accounts.insert(account.process, account.used);
    }
    accounts
}

fn state(process: &Process) -> String {
    match (process.end(), process.state) {
        (Some(end), _) => end.to_string(),
        (None, State::Preparing) => "preparing".into(),
        (None, State::Suspended) => "suspended".into(),
        (None, _) => "running".into(),
    }
}

fn kill(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    if call.arguments.is_empty() {
        return Err(Failure::Usage("the process is missing".into()));
    }
    for argument in call.arguments {
        let process = running(shell, argument)?;
        if process.pid == shell.system.own_pid() {
            // The same without losing what is still to be written.
            shell.leave()?;
        } else {
            shell.system.kill(process.pid)?;
        }
    }
    Ok(())
}

/// Refuses the console that the system began with: while it stands still nobody sees what the shell says, or is heard by it.
/// (One that is killed is started again.)
fn spare_console(process: &Process) -> Outcome {
    if process.parent == pid::INIT && process.base_name() == "console" {
        return Err(Failure::Refused("the shell could not be seen or heard without the console".into()));
    }
    Ok(())
}

/// A process that has not ended.
fn running(shell: &mut Shell<'_>, argument: &str) -> Result<Process, Failure> {
    let process = find(shell, argument)?;
    match process.end() {
        None => Ok(process),
        Some(end) => Err(Failure::Refused(format!("process {} has {}", process.pid, past(&end.to_string())))),
    }
}

/// "exited with 3" and "crashed: ..." follow "has", "killed" does not.
fn past(end: &str) -> String {
    if end == "killed" { "been killed".into() } else { end.into() }
}

fn wait(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let process = find(shell, call.one("the process")?)?;
    if process.pid == shell.system.own_pid() {
        return Err(Failure::Refused("the shell cannot wait for itself".into()));
    }
    match shell.system.wait(process.pid, OnInterrupt::StopWaiting)? {
        Waited::Interrupted => {}
        Waited::Ended(end) => {
            shell.forget_job(process.pid);
            shell.say(format_args!("[{}] {} {end}", process.pid, process.base_name()));
        }
    }
    Ok(())
}

fn suspend(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let process = running(shell, call.one("the process")?)?;
    if process.pid == shell.system.own_pid() {
        return Err(Failure::Refused("nobody could resume the shell".into()));
    }
    spare_console(&process)?;
    if process.state == State::Suspended {
        return Err(Failure::Refused(format!("process {} is suspended already", process.pid)));
    }
    Ok(shell.system.suspend(process.pid)?)
}

fn resume(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let process = running(shell, call.one("the process")?)?;
    if process.state != State::Suspended {
        return Err(Failure::Refused(format!("process {} is not suspended", process.pid)));
    }
    Ok(shell.system.resume(process.pid)?)
}
