//! Commands that look at the boot archive.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use super::{Call, Command, Failure, Outcome};
use crate::completion::Candidates;
use crate::format::{Grouped, Side, Table};
use crate::shell::Shell;
use crate::suggest;
use crate::system::Refusal;

/// The commands of this file.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "ls",
        usage: "[-l] [DIRECTORY]",
        summary: "list files of the boot archive",
        help: "Without DIRECTORY the archive's top. Directories end with a slash. -l shows sizes in bytes.",
        arguments: Candidates::Directories,
        takes_background: false,
        run: list,
    },
    Command {
        name: "cat",
        usage: "FILE...",
        summary: "print files of the boot archive",
        help: "Files that are not text are not printed. ./tench run --with HOSTFILE puts a file into the archive.",
        arguments: Candidates::Files,
        takes_background: false,
        run: print,
    },
];

/// A path without what does not distinguish it from others.
fn normal(path: &str) -> &str {
    let path = path.strip_prefix("./").unwrap_or(path).trim_matches('/');
    if path == "." { "" } else { path }
}

fn list(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let ([is_long], rest) = call.options(["-l"])?;
    let argument = rest.at_most_one()?.unwrap_or("");
    let path = normal(argument);
    let files = shell.files();
    let directory = if path.is_empty() { String::new() } else { format!("{path}/") };
    // What lies in the directory itself: files with their sizes, directories with the sum of theirs.
    let mut entries: BTreeMap<&str, u64> = BTreeMap::new();
    for file in files.iter() {
        if file.path == path {
            entries.insert(&file.path, file.size);
        } else if let Some(rest) = file.path.strip_prefix(&directory) {
            let end = rest.find('/').map_or(rest.len(), |slash| slash + 1);
            *entries.entry(&rest[..end]).or_insert(0) += file.size;
        }
    }
    if entries.is_empty() && !path.is_empty() {
        return Err(missing(argument, files.iter().map(|file| file.path.as_str())));
    }
    if is_long {
        let mut table = Table::new(&[("BYTES", Side::Right), ("NAME", Side::Left)]);
        for (name, size) in entries {
            table.row([Grouped(size).to_string(), name.into()]);
        }
        shell.print(format_args!("{table}"));
    } else {
        for name in entries.keys() {
            shell.say(format_args!("{name}"));
        }
    }
    Ok(())
}

fn missing<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let hint = suggest::nearest(normal(path), known);
    let hint = hint.map_or("ls lists what there is".into(), |near| format!("did you mean {near}?"));
    Failure::Refused(format!("no {path} in the boot archive; {hint}"))
}

fn print(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    if call.arguments.is_empty() {
        return Err(Failure::Usage("the file is missing".into()));
    }
    let files = shell.files();
    for argument in call.arguments {
        let path = normal(argument);
        if !files.iter().any(|file| file.path == path) {
            let directory = format!("{path}/");
            if files.iter().any(|file| file.path.starts_with(&directory)) {
                return Err(Failure::Refused(format!("{argument} is a directory; ls {argument} lists it")));
            }
            return Err(missing(argument, files.iter().map(|file| file.path.as_str())));
        }
        print_file(shell, path)?;
    }
    Ok(())
}

/// Prints a file if it is text.
pub fn print_file(shell: &mut Shell<'_>, path: &str) -> Outcome {
    let mut offset = 0;
    loop {
        let bytes = shell.system.read_file(path, offset)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.contains(&0) {
            return Err(not_text(shell, path));
        }
        // A character can be divided between two answers: only whole ones are printed, the rest is read again.
        let whole = match core::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) if error.valid_up_to() > 0 && error.error_len().is_none() => {
                core::str::from_utf8(&bytes[..error.valid_up_to()]).map_err(Refusal::from)?
            }
            Err(_) => return Err(not_text(shell, path)),
        };
        shell.print(format_args!("{whole}"));
        offset += whole.len() as u64;
    }
}

fn not_text(shell: &mut Shell<'_>, path: &str) -> Failure {
    let size = shell.files().iter().find(|file| file.path == path).map_or(0, |file| file.size);
    Failure::Refused(format!("{path} is not text ({} bytes)", Grouped(size)))
}
