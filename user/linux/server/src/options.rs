//! The command line.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::mounts::Mount;

/// How the program is used.
pub const USAGE: &str = "usage: linux [--trace] [--quiet] [--mount DIRECTORY=MOUNTPOINT[,ro]]... PROGRAM [ARGUMENT...]";

/// The program to be run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Each call is shown.
    pub traces: bool,
    /// Calls that are missing are not reported.
    pub is_quiet: bool,
    /// Mounts of directories of Tench's files.
    pub mounts: Vec<Mount>,
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
        let (mut traces, mut is_quiet, mut mounts) = (false, false, Vec::new());
        let mut arguments = arguments.into_iter();
        let program = loop {
            match arguments.next() {
                Some("--trace") => traces = true,
                Some("--quiet") => is_quiet = true,
                Some("--mount") => mounts.push(mount(arguments.next())?),
                Some("--") => break arguments.next(),
                Some(option) if option.starts_with("--") => {
                    return Err(alloc::format!("there is no option {option}; {USAGE}"));
                }
                other => break other,
            }
        };
        let program = program.ok_or_else(|| alloc::format!("no program is named; {USAGE}"))?;
        let all = core::iter::once(program).chain(arguments).map(|argument| argument.as_bytes().to_vec()).collect();
        Ok(Options { traces, is_quiet, mounts, program: program.to_string(), arguments: all })
    }
}

/// Returns the mount that an argument asks for: the path of a directory among Tench's files, the mount point at which
/// Linux programs see it, and whether the mount is read-only.
fn mount(argument: Option<&str>) -> Result<Mount, String> {
    let (directory, mount_point) = argument.and_then(|argument| argument.split_once('=')).ok_or_else(|| {
        alloc::format!("--mount takes a directory of Tench's files and a mount point, such as tmp=/mnt; {USAGE}")
    })?;
    let (mount_point, is_read_only) = match mount_point.strip_suffix(",ro") {
        Some(mount_point) => (mount_point, true),
        None => (mount_point, false),
    };
    let directory = directory.trim_matches('/').to_string();
    Ok(Mount { directory, mount_point: mount_point.to_string(), is_read_only })
}
