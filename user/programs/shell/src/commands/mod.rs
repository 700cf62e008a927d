//! The commands: one table, and a file for each group of them.

mod files;
mod general;
mod inspect;
mod jobs;
mod process;
mod processes;
mod reservations;
mod timing;
mod top;

use alloc::format;
use alloc::string::String;

use crate::completion::Candidates;
use crate::parse::Pipeline;
use crate::shell::Shell;
use crate::system::SystemError;

pub use process::words_of;
pub(crate) use process::{CoreChoice, TERMINAL, Wanted, is_option, program_of};

/// A call of a command.
pub struct Call<'a> {
    /// The words after its name.
    pub arguments: &'a [String],
}

/// Why a command failed, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command's arguments are wrong. Its usage is shown in addition.
    Usage(String),
    /// The system refused something.
    Refused(String),
}

impl From<SystemError> for Failure {
    fn from(refusal: SystemError) -> Failure {
        Failure::Refused(refusal.0)
    }
}

/// Result of a command.
pub type Outcome = Result<(), Failure>;

/// A command.
pub struct Command {
    /// Name of the command, as typed.
    pub name: &'static str,
    /// Arguments of the command; words in capitals are placeholders.
    pub usage: &'static str,
    /// Summary in a few words.
    pub summary: &'static str,
    /// Further explanation.
    pub help: &'static str,
    /// Kind of its arguments, for completion.
    pub arguments: Candidates,
    /// Function or form by which it is run.
    pub action: Action,
}

/// Form in which a command is run.
#[derive(Clone, Copy)]
pub enum Action {
    /// A function that may also run between programs.
    Anywhere(fn(&mut Shell<'_>, &Call<'_>) -> Outcome),
    /// A function that waits for something itself, so it may not run between programs.
    Alone(fn(&mut Shell<'_>, &Call<'_>) -> Outcome),
    /// A program: the words after its name.
    Program,
    /// A function of everything after its name up to `;` or `&`.
    Pipeline(fn(&mut Shell<'_>, &Pipeline)),
}

impl Command {
    /// Returns name and arguments.
    pub fn usage_line(&self) -> String {
        if self.usage.is_empty() { String::from(self.name) } else { format!("{} {}", self.name, self.usage) }
    }
}

/// Returns all commands in the order in which `help` shows them.
pub fn all() -> impl Iterator<Item = &'static Command> {
    let processes = [process::COMMANDS, jobs::COMMANDS, processes::COMMANDS, top::COMMANDS];
    let others = [inspect::COMMANDS, files::COMMANDS, timing::COMMANDS, reservations::COMMANDS];
    [general::COMMANDS].into_iter().chain(processes).chain(others).flatten()
}

/// Returns the command of this name.
pub fn find(name: &str) -> Option<&'static Command> {
    all().find(|command| command.name == name)
}

impl Call<'_> {
    /// Fails if there are arguments.
    fn none(&self) -> Outcome {
        match self.arguments {
            [] => Ok(()),
            [first, ..] => Err(Failure::Usage(format!("it takes no argument, but {first} was given"))),
        }
    }

    /// Returns the only argument.
    fn one(&self, what: &str) -> Result<&str, Failure> {
        match self.arguments {
            [only] => Ok(only),
            [] => Err(Failure::Usage(format!("{what} is missing"))),
            [_, second, ..] => Err(Failure::Usage(format!("one argument is enough, but {second} follows"))),
        }
    }

    /// Returns the only argument, if there is any.
    fn at_most_one(&self) -> Result<Option<&str>, Failure> {
        if self.arguments.is_empty() { Ok(None) } else { self.one("").map(Some) }
    }

    /// Splits the arguments into options, which begin with `-`, and others.
    fn options<const N: usize>(&self, known: [&str; N]) -> Result<([bool; N], Call<'_>), Failure> {
        let count = self.arguments.iter().take_while(|word| word.starts_with('-')).count();
        let (options, arguments) = self.arguments.split_at(count);
        let mut given = [false; N];
        for option in options {
            match known.iter().position(|known| known == option) {
                Some(index) => given[index] = true,
                None => return Err(Failure::Usage(format!("there is no option {option}"))),
            }
        }
        Ok((given, Call { arguments }))
    }
}
