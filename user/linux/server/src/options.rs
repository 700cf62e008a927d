//! The command line.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// How the program is used.
pub const USAGE: &str = "usage: linux [--trace] [--quiet] PROGRAM [ARGUMENT...]";

/// The program to be run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Each call is shown.
    pub traces: bool,
    /// Calls that are missing are not reported.
    pub is_quiet: bool,
    /// The program's file.
    pub program: String,
    /// The program's name and arguments.
    pub arguments: Vec<Vec<u8>>,
}

impl Options {
    /// Returns what the arguments behind the own name ask for.
    ///
    /// # Errors
    /// Says what is wrong and how the program is used.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Options, String> {
        let (mut traces, mut is_quiet) = (false, false);
        let mut arguments = arguments.into_iter();
        let program = loop {
            match arguments.next() {
                Some("--trace") => traces = true,
                Some("--quiet") => is_quiet = true,
                Some("--") => break arguments.next(),
                Some(option) if option.starts_with("--") => {
                    return Err(alloc::format!("there is no option {option}; {USAGE}"));
                }
                other => break other,
            }
        };
        let program = program.ok_or_else(|| alloc::format!("no program is named; {USAGE}"))?;
        let all = core::iter::once(program).chain(arguments).map(|argument| argument.as_bytes().to_vec()).collect();
        Ok(Options { traces, is_quiet, program: program.to_string(), arguments: all })
    }
}
