//! Start of programs whose options determine what they do, and at which priorities.

use alloc::string::String;

use tench::abi::layout::slot;
use tench::println;
use tench::process::Strings;
use tench::runtime::text;
use tench::sys::{Cap, SchedulingContext};

/// Action that a command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<T> {
    /// Print this help.
    Help(String),
    /// Perform this action.
    Do(T),
}

/// Prints the help, or performs the action that the command line requests.
///
/// `parse` gets the words after the program's name and the program's ceiling, the highest priority of its threads. An
/// error is a line for the user: `parse`'s, `act`'s, or the kernel's about the ceiling.
pub fn start<T>(
    parse: impl FnOnce(core::iter::Skip<Strings>, u8) -> Result<Command<T>, String>,
    act: impl FnOnce(&T) -> Result<(), String>,
) -> Result<(), String> {
    let ceiling = Cap::<SchedulingContext>::new(slot::SCHEDULING).query().map_err(text)?.ceiling;
    match parse(tench::args().skip(1), ceiling.min(u64::from(u8::MAX)) as u8)? {
        Command::Help(help) => {
            println!("{help}");
            Ok(())
        }
        Command::Do(what) => act(&what),
    }
}
