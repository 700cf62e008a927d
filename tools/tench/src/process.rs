//! Starting and showing (`-v`) other programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

/// Set if commands are shown; written once at the start, from the command line.
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Sets whether commands are printed before they run.
pub fn set_verbose(verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
}

/// Returns the command as a shell would take it, environment included.
pub fn describe(command: &Command) -> String {
    let environment = command
        .get_envs()
        .filter_map(|(name, value)| value.map(|value| format!("{}={}", name.to_string_lossy(), quote(value))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quote);
    environment.chain(words).collect::<Vec<_>>().join(" ")
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Prints the command if the user asked for that.
pub fn show(command: &Command) {
    if VERBOSE.load(Ordering::Relaxed) {
        eprintln!("+ {}", describe(command));
    }
}

/// Runs the command on the terminal; its failure is an error.
pub fn run(command: &mut Command) -> Result<()> {
    show(command);
    let status = command.status().into_diagnostic().wrap_err_with(|| cannot_start(command))?;
    if status.success() { Ok(()) } else { Err(miette!("this command failed ({status}): {}", describe(command))) }
}

/// Runs the command and returns its standard output; its failure is an error.
pub fn output(command: &mut Command) -> Result<String> {
    show(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .into_diagnostic()
        .wrap_err_with(|| cannot_start(command))?;
    if !output.status.success() {
        return Err(miette!("this command failed ({}): {}", output.status, describe(command)));
    }
    String::from_utf8(output.stdout).into_diagnostic()
}

/// Runs the command silently and returns the first line it printed, or nothing if it failed.
pub fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    if output.status.success() { text.lines().next().map(str::to_owned) } else { None }
}

/// Returns the message for a program that cannot be started at all.
pub fn cannot_start(command: &Command) -> String {
    format!("cannot start {}; ./tench doctor says what is missing", command.get_program().to_string_lossy())
}

/// Returns the path of the first of these programs that is in the `PATH`.
pub fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    names
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_described_as_a_shell_takes_it() {
        let mut command = Command::new("qemu");
        command.env("A", "b c").args(["-kernel", "it's", ""]);
        assert_eq!(describe(&command), r"A='b c' qemu -kernel 'it'\''s' ''");
    }
}
