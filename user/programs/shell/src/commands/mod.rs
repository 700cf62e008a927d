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
use crate::system::Refusal;

pub use process::words_of;
pub(crate) use process::{Place, is_option, program_of};

/// What a command is called with.
pub struct Call<'a> {
    /// The words after its name.
    pub arguments: &'a [String],
}

/// Why a command did not do what it was asked, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its arguments are wrong. How it is used is said in addition.
    Usage(String),
    /// It could not be done.
    Refused(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal.0)
    }
}

/// How a command went.
pub type Outcome = Result<(), Failure>;

/// A command.
pub struct Command {
    /// What is typed.
    pub name: &'static str,
    /// Its arguments, in capitals what stands for something else.
    pub usage: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// What else is to be known.
    pub help: &'static str,
    /// What its arguments are, for completion.
    pub arguments: Candidates,
    /// How it is carried out.
    pub action: Action,
}

/// How a command is carried out.
#[derive(Clone, Copy)]
pub enum Action {
    /// By this function, also between programs.
    Anywhere(fn(&mut Shell<'_>, &Call<'_>) -> Outcome),
    /// By this function, which waits for something itself: not between programs.
    Alone(fn(&mut Shell<'_>, &Call<'_>) -> Outcome),
    /// The words after its name are a program to run.
    Program,
    /// By this function, with everything behind its name up to `;` or `&`.
    Pipeline(fn(&mut Shell<'_>, &Pipeline)),
}

impl Command {
    /// Name and arguments.
    pub fn usage_line(&self) -> String {
        if self.usage.is_empty() { String::from(self.name) } else { format!("{} {}", self.name, self.usage) }
    }
}

/// All commands in the order in which `help` shows them.
pub fn all() -> impl Iterator<Item = &'static Command> {
    let processes = [process::COMMANDS, jobs::COMMANDS, processes::COMMANDS, top::COMMANDS];
    let others = [inspect::COMMANDS, files::COMMANDS, timing::COMMANDS, reservations::COMMANDS];
    [general::COMMANDS].into_iter().chain(processes).chain(others).flatten()
}

/// The command of this name.
pub fn find(name: &str) -> Option<&'static Command> {
    all().find(|command| command.name == name)
}

impl Call<'_> {
    /// Refuses arguments.
    fn none(&self) -> Outcome {
        match self.arguments {
            [] => Ok(()),
            [first, ..] => Err(Failure::Usage(format!("it takes no argument, but {first} was given"))),
        }
    }

    /// The only argument.
    fn one(&self, what: &str) -> Result<&str, Failure> {
        match self.arguments {
            [only] => Ok(only),
            [] => Err(Failure::Usage(format!("{what} is missing"))),
            [_, second, ..] => Err(Failure::Usage(format!("one argument is enough, but {second} follows"))),
        }
    }

    /// The only argument, if there is any.
    fn at_most_one(&self) -> Result<Option<&str>, Failure> {
        if self.arguments.is_empty() { Ok(None) } else { self.one("").map(Some) }
    }

    /// Divides the arguments into options and others. Options begin with `-`.
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
