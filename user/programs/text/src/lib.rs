//! Small programs that read and write text: `cat`, `cp`, `grep`, `head`, `sort`, `tee`, `wc`, `yes`.
//!
//! They are one program under several names, so that there is one to load and to maintain. They are written for any
//! [`World`], and tested on the host in one of vectors; `main.rs` has the real one.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod copy;
mod lines;
mod options;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use tench::io::{Error, Read, Write};

use options::Options;

/// The outside world of the programs.
pub trait World {
    /// Opens a file for reading.
    fn open(&mut self, path: &str) -> Result<Box<dyn Read>, Error>;
    /// Opens a file for writing: creates it, or truncates it, or appends to it.
    fn create(&mut self, path: &str, append: bool) -> Result<Box<dyn Write>, Error>;
    /// Returns true if a path names a directory.
    fn is_directory(&mut self, path: &str) -> bool;
    /// Returns standard input.
    fn input(&mut self) -> Box<dyn Read>;
    /// Returns standard output.
    fn output(&mut self) -> Box<dyn Write>;
}

/// The error of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nobody reads the output; there is no message.
    Broken,
    /// Any other error, as a message.
    Said(String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        if error.is_broken() { Problem::Broken } else { Problem::Said(error.to_string()) }
    }
}

/// Returns a function that turns the error of a file into a problem.
fn at(name: &str) -> impl Fn(Error) -> Problem {
    move |error| if error.is_broken() { Problem::Broken } else { Problem::Said(format!("{name}: {error}")) }
}

/// A function that runs a program.
type Program = fn(&Options<'_>, &mut dyn World) -> Result<bool, Problem>;

/// The programs: name, letters of options, letters of options with a value, minimum number of arguments, usage,
/// function.
const PROGRAMS: &[(&str, &str, &str, usize, &str, Program)] = &[
    ("cat", "", "", 0, "cat [FILE...]", copy::cat),
    ("cp", "", "", 2, "cp FROM TO", copy::cp),
    ("grep", "cinv", "", 1, "grep [-cinv] TEXT [FILE...]", lines::grep),
    ("head", "", "n", 0, "head [-n LINES] [FILE...]", lines::head),
    ("sort", "nru", "", 0, "sort [-nru] [FILE...]", lines::sort),
    ("tee", "a", "", 0, "tee [-a] [FILE...]", copy::tee),
    ("wc", "clw", "", 0, "wc [-clw] [FILE...]", lines::wc),
    ("yes", "", "", 0, "yes [TEXT...]", copy::yes),
];

/// Runs the program of this name. Returns true if it found what it was to look for.
pub fn run(name: &str, arguments: &[&str], world: &mut dyn World) -> Result<bool, Problem> {
    let Some((_, flags, values, least, usage, program)) = PROGRAMS.iter().find(|program| program.0 == name) else {
        return Err(Problem::Said("this program is cat, cp, grep, head, sort, tee, wc or yes, by its name".into()));
    };
    if arguments == ["--help"] {
        world.output().write(format!("usage: {usage}\n").as_bytes())?;
        return Ok(true);
    }
    let options = Options::parse(arguments, flags, values).and_then(|options| {
        let is_enough = options.arguments.len() >= *least;
        if is_enough { Ok(options) } else { Err("there is an argument missing".into()) }
    });
    let options = options.map_err(|problem| Problem::Said(format!("{problem}; usage: {usage}")))?;
    program(&options, world)
}
