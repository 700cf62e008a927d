//! What the programs have in common whose options say what they do, and at which priorities.

use alloc::string::String;

use tench::abi::layout::slot;
use tench::println;
use tench::process::Strings;
use tench::runtime::text;
use tench::sys::{Cap, SchedulingContext};

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<T> {
    /// To print this.
    Help(String),
    /// To do this.
    Do(T),
}

/// Prints the help, or does what the command line asks for.
///
/// `parse` gets the words behind the program's name and the program's ceiling, the highest priority that its threads
/// can have. An error is a line for the user: `parse`'s, `act`'s, or the kernel's about the ceiling.
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
