//! Commands about files.

use alloc::format;
use alloc::string::ToString;

use super::{Call, Command, Failure, Outcome};
use crate::commands::Action;
use crate::completion::Candidates;
use crate::format::{Grouped, Side, Table};
use crate::shell::Shell;
use crate::suggest;
use crate::system::{Entry, SystemError, base_name};

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "ls",
        usage: "[-l] [DIRECTORY|FILE]",
        summary: "list files",
        help: "Without DIRECTORY the top of all. Directories end with a slash. -l shows sizes in bytes. The files of the \
               boot archive can only be read; all others are kept in memory and gone when the machine is switched off.",
        arguments: Candidates::Files,
        action: Action::Anywhere(list),
    },
    Command {
        name: "mkdir",
        usage: "DIRECTORY...",
        summary: "make directories",
        help: "The directory in which it lies must be there.",
        arguments: Candidates::Directories,
        action: Action::Anywhere(make_directories),
    },
    Command {
        name: "rm",
        usage: "FILE|DIRECTORY...",
        summary: "remove files and empty directories",
        help: "What a program has opened stays for it until it is closed. Files of the boot archive cannot be removed.",
        arguments: Candidates::Files,
        action: Action::Anywhere(remove),
    },
    Command {
        name: "mv",
        usage: "FROM TO",
        summary: "give a file or directory another path",
        help: "If TO is a directory, it goes there under its own name. A file at TO is removed.",
        arguments: Candidates::Files,
        action: Action::Anywhere(rename),
    },
];

/// Returns a path as a directory's: with a slash at its end.
fn in_directory(path: &str) -> &str {
    path.trim_end_matches('/')
}

fn list(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let ([is_long], rest) = call.options(["-l"])?;
    let path = rest.at_most_one()?.unwrap_or("/");
    let entry = shell.system.entry(path).map_err(|refusal| missing(shell, path, &refusal))?;
    let entries = if entry.is_directory {
        shell.system.entries(path).map_err(|refusal| about(path, &refusal))?
    } else {
        [Entry { name: path.into(), ..entry }].into()
    };
    let mut table = Table::new(&[("BYTES", Side::Right), ("NAME", Side::Left)]);
    for entry in entries {
        let name = format!("{}{}", entry.name, if entry.is_directory { "/" } else { "" });
        if is_long {
            table.row([if entry.is_directory { "-".into() } else { Grouped(entry.size).to_string() }, name]);
        } else {
            shell.say(format_args!("{name}"));
        }
    }
    if is_long {
        shell.print(format_args!("{table}"));
    }
    Ok(())
}

/// Returns the failure of a request about a path.
fn about(path: &str, refusal: &SystemError) -> Failure {
    Failure::Refused(format!("{path}: {}", refusal.0))
}

/// Returns the failure of a request about a path, with a suggestion.
fn missing(shell: &mut Shell<'_>, path: &str, refusal: &SystemError) -> Failure {
    let name = base_name(in_directory(path));
    let directory = &in_directory(path)[..in_directory(path).len() - name.len()];
    let siblings = shell.system.entries(if directory.is_empty() { "/" } else { directory }).unwrap_or_default();
    match suggest::nearest(name, siblings.iter().map(|entry| entry.name.as_str())) {
        Some(near) if near != name => {
            Failure::Refused(format!("{path}: {}; did you mean {directory}{near}?", refusal.0))
        }
        _ => about(path, refusal),
    }
}

/// Calls `act` for each of several paths.
fn each(
    shell: &mut Shell<'_>,
    call: &Call<'_>,
    what: &str,
    act: impl Fn(&mut Shell<'_>, &str) -> Result<(), SystemError>,
) -> Outcome {
    if call.arguments.is_empty() {
        return Err(Failure::Usage(format!("the {what} is missing")));
    }
    for path in call.arguments {
        act(shell, path).map_err(|refusal| about(path, &refusal))?;
    }
    Ok(())
}

fn make_directories(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    each(shell, call, "directory", |shell, path| shell.system.make_directory(path))
}

fn remove(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    each(shell, call, "file", |shell, path| shell.system.remove(path))
}

fn rename(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let [from, to] = call.arguments else {
        return Err(Failure::Usage("it takes two paths".into()));
    };
    let goes_into = shell.system.entry(to).is_ok_and(|entry| entry.is_directory);
    let name = base_name(in_directory(from));
    let to = if goes_into { format!("{}/{name}", in_directory(to)) } else { to.clone() };
    shell.system.rename(from, &to).map_err(|refusal| about(&format!("{from} to {to}"), &refusal))
}
