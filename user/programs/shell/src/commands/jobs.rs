//! Commands about jobs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_procs_interface::pid::Shown;

use super::{Action, Call, Command, Failure, Outcome};
use crate::completion::Candidates;
use crate::format::{Side, Table};
use crate::jobs::{Fate, Job};
use crate::shell::Shell;
use crate::system::{OnKey, Waited};

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "jobs",
        usage: "",
        summary: "list what runs in the background",
        help: "A job is a program, or several with | between them, that was started with & or suspended with Ctrl-Z. Its \
               number, as in %1, can be given to fg, bg, wait, kill, suspend and resume. The end of a job is said before \
               the next prompt.",
        arguments: Candidates::Nothing,
        action: Action::Anywhere(list),
    },
    Command {
        name: "fg",
        usage: "[%JOB]",
        summary: "bring a job into the foreground",
        help: "It gets the terminal, goes on if it was suspended, and the shell waits for it. Without %JOB it is the last \
               one. Ctrl-C kills it, Ctrl-Z suspends it. What run --terminal started is lent the terminal again.",
        arguments: Candidates::Jobs,
        action: Action::Alone(foreground),
    },
    Command {
        name: "bg",
        usage: "[%JOB]",
        summary: "let a suspended job run in the background",
        help: "Without %JOB it is the last one.",
        arguments: Candidates::Jobs,
        action: Action::Anywhere(background),
    },
];

/// Returns the number in `%1`, if an argument names a job.
pub fn number_of(shell: &Shell<'_>, argument: &str) -> Result<Option<u64>, Failure> {
    let Some(digits) = argument.strip_prefix('%') else { return Ok(None) };
    let number = digits.parse().ok().filter(|number| shell.jobs.get(*number).is_some());
    number.map(Some).ok_or_else(|| Failure::Refused(format!("no job {argument}; jobs lists them")))
}

/// Removes and returns the job that is meant: the last one by default.
fn take(shell: &mut Shell<'_>, call: &Call<'_>) -> Result<Job, Failure> {
    // This makes its reported state current.
    for job in shell.refresh_jobs() {
        if job.has_ended() {
            shell.jobs.put_back(job);
        }
    }
    let number = match call.at_most_one()? {
        None => shell.jobs.numbers().last().ok_or_else(|| Failure::Refused("there is no job".into()))?,
        Some(argument) => match number_of(shell, argument)? {
            Some(number) => number,
            None => return Err(Failure::Usage(format!("a job is written %1, not {argument}"))),
        },
    };
    shell.jobs.take(number).ok_or_else(|| Failure::Refused("there is no job".into()))
}

fn list(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    call.none()?;
    let jobs = shell.refresh_jobs();
    let columns = ["JOB", "STATE", "PROCESSES", "COMMAND"].map(|heading| (heading, Side::Left));
    let mut table = Table::new(&columns);
    for job in &jobs {
        let pids: Vec<String> = job.members.iter().map(|member| Shown(member.pid).to_string()).collect();
        table.row([format!("%{}", job.number), job.state(), pids.join(" "), job.text.clone()]);
    }
    if !jobs.is_empty() {
        shell.print(format_args!("{table}"));
    }
    Ok(())
}

/// Resumes the suspended processes of a job.
fn go_on(shell: &mut Shell<'_>, job: &mut Job) -> Outcome {
    for member in job.members.iter_mut().filter(|member| member.fate == Fate::Suspended) {
        shell.system.resume(member.pid)?;
        member.fate = Fate::Running;
    }
    Ok(())
}

fn foreground(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let mut job = take(shell, call)?;
    shell.say(format_args!("{}", job.text));
    shell.flush();
    let live = job.live();
    let reader = job.members.first().map_or(0, |member| member.pid);
    shell.system.set_foreground(&live, reader, OnKey::Handle);
    let lent = if job.borrows { shell.system.lend(reader) } else { Ok(()) };
    let outcome = go_on(shell, &mut job);
    shell.wait_for(job);
    lent?;
    outcome
}

fn background(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let mut job = take(shell, call)?;
    let outcome = if job.members.iter().any(|member| member.fate == Fate::Suspended) {
        go_on(shell, &mut job)
    } else {
        Err(Failure::Refused(format!("job %{} is not suspended", job.number)))
    };
    let text = format!("[{}] {}", job.number, job.text);
    shell.jobs.put_back(job);
    outcome?;
    shell.say(format_args!("{text}"));
    Ok(())
}

/// Waits for a job without giving it the terminal.
pub fn wait(shell: &mut Shell<'_>, number: u64) -> Outcome {
    let Some(job) = shell.jobs.get(number).cloned() else { return Ok(()) };
    let own_pid = shell.system.own_pid();
    shell.system.set_foreground(&job.live(), own_pid, OnKey::StopWaiting);
    match shell.system.wait(&job.live())? {
        Waited::Interrupted | Waited::Suspended => {}
        Waited::Ended(ends) | Waited::EndedEarly(ends) => {
            let Some(mut job) = shell.jobs.take(number) else { return Ok(()) };
            job.set_ends(&ends);
            shell.start_line();
            shell.say(format_args!("[{number}] {}: {}", job.text, job.state()));
        }
    }
    Ok(())
}
