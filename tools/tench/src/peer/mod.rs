//! Linux itself beside Tench: Debian's kernel for this processor runs a program in the same emulated machine.
//!
//! ```text
//! Debian's archive ─ apt ─┬ debian ─ kernel ─┐
//! tests/linux/peer/init.c │ ──┬──────────────┴─ this module ─ lines, status
//! a program, its arguments ───┼ initramfs                     │
//! tests/linux/scripts ────┴ scripts (packages, suites)        │
//! tests/linux/golden.toml ─────────────────────────── golden ─┼─ tests/linux/golden/NAME.txt
//! tests/linux/costs.c, lab/linux ───────── compared, figures ─┴─ lab/linux/NAME.json
//! ```
//! The machine counts instructions as all measured ones do, so that figures can be compared, and the same program
//! prints the same in each run.

mod apt;
mod command;
pub mod compared;
mod debian;
pub mod figures;
pub mod golden;
mod initramfs;
mod listing;
mod packages;
mod scripts;
mod suites;

use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::{IntoDiagnostic, Result, miette};
use tench_linux_packed::Attributes;

use crate::compile_c::{self, ForLinux};
use crate::linux::{Content, Tree};
use crate::prepare::{self, BootFiles};
use crate::qemu::{Machine, Serial};
use crate::script::{self, Outcome, Patience};
use crate::workspace::{self, Workspace};
pub use apt::Missing;
pub use command::run;
use compared::{Compared, Programs};
use golden::{Script, Subject};

/// The first process, which runs the program.
const INIT: &str = "tests/linux/peer/init.c";
/// Parameters of the kernel: its console, without its messages, and an end of the emulator after a crash.
const PARAMETERS: &str = "console=ttyAMA0 quiet loglevel=1 panic=-1 rdinit=/init";
/// Beginning of what `init` says.
const BEGINS: &str = "linux-peer: begins";
const EXITED: &str = "linux-peer: exited with: ";
const CANNOT: &str = "linux-peer: cannot ";
/// Size of the file with the arguments that `init` reads, and how many there may be.
const ARGUMENT_BYTES: usize = 1 << 16;
const ARGUMENTS: usize = 1024;
/// The pace of most programs.
const USUAL: Pace =
    Pace { shift: 0, patience: Patience { silence: Duration::from_secs(300), total: Duration::from_secs(3600) } };

/// How fast a machine is, and how long to wait for it.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Each instruction takes two to the power of this many nanoseconds.
    shift: u8,
    patience: Patience,
}

/// Linux, ready to run programs.
pub struct Peer {
    kernel: PathBuf,
    /// Package of the kernel, and its version.
    pub version: String,
    init: Vec<u8>,
    directory: PathBuf,
    /// Further parameters for the kernel.
    pub parameters: String,
}

/// Result of a program that ran on Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Lines that it printed.
    pub lines: Vec<String>,
    /// Status with which it ended; 128 and the signal's number if a signal ended it.
    pub status: u8,
}

impl Peer {
    /// Gets the kernel, from Debian's archive if no earlier run has kept it, and compiles `init`.
    ///
    /// # Errors
    /// The archive or a tool that reads it cannot be had.
    pub fn new(workspace: &Workspace) -> Result<Peer> {
        let directory = directory(workspace);
        let kernel = debian::kernel(&directory)?;
        let init = compile_c::compile_for_linux(workspace, Path::new(INIT), &directory, ForLinux::STATIC)?;
        Ok(Peer {
            kernel: kernel.image,
            version: kernel.version,
            init: workspace::read_file(&init)?,
            directory,
            parameters: String::new(),
        })
    }

    /// Runs a program, which is put at `path` below the root of its files, with arguments after its name.
    pub fn run(&self, program: &Path, path: &str, arguments: &[String]) -> Result<Ran> {
        let mut tree = Tree::default();
        put(&mut tree, path, workspace::read_file(program)?)?;
        self.boot(tree, path, arguments, USUAL)
    }

    /// Compiles a program of `tests/linux` and runs it where Tench has it.
    pub fn run_test(&self, workspace: &Workspace, name: &str, arguments: &[String]) -> Result<Ran> {
        let source = Path::new("tests").join(prepare::LINUX).join(name).with_extension("c");
        let program = compile_c::compile_for_linux(workspace, &source, &self.directory, ForLinux::STATIC)?;
        self.run(&program, &format!("{}/{name}", prepare::LINUX), arguments)
    }

    /// Runs what `tests/linux/golden.toml` lists.
    pub fn run_subject(&self, workspace: &Workspace, subject: &Subject) -> Result<Ran> {
        match subject {
            Subject::Program(program) => self.run_test(workspace, &program.name, &program.arguments),
            Subject::Script(script) => {
                let (program, arguments) = script.command.split_first().ok_or_else(|| miette!("no command"))?;
                let pace = Pace { shift: script.shift, patience: subject.patience().unwrap_or(USUAL.patience) };
                self.boot(script_files(workspace, script)?, program, arguments, pace)
            }
        }
    }

    /// Runs what an experiment measures.
    pub fn run_compared(&self, workspace: &Workspace, compared: &Compared) -> Result<Ran> {
        let mut words = compared.command.iter().map(|word| (*word).to_owned());
        let program = words.next().unwrap_or_default();
        let arguments: Vec<String> = words.collect();
        match (&compared.programs, compared.tree(workspace)?) {
            (Programs::Static(name), _) => self.run_test(workspace, name, &arguments),
            (_, tree) => self.boot(tree.unwrap_or_default(), &program, &arguments, USUAL),
        }
    }

    /// Boots with files, and runs the program at a path of theirs.
    fn boot(&self, mut tree: Tree, path: &str, arguments: &[String], pace: Pace) -> Result<Ran> {
        put(&mut tree, "init", self.init.clone())?;
        put(&mut tree, "arguments", joined(path, arguments)?)?;
        let files =
            BootFiles { image: self.kernel.clone(), ram_disk: self.directory.join("initramfs"), from_host: Vec::new() };
        workspace::write_file(&files.ram_disk, &initramfs::pack(&tree.entries())?)?;
        let machine = Machine { icount: true, shift: pace.shift, semihosting: false, ..Machine::default() };
        let mut command = machine.command(&files, Serial::Pipe);
        command.arg("-append").arg(format!("{PARAMETERS} {}", self.parameters));
        ran(&script::run(&mut command, &[], pace.patience, |_| Vec::new())?)
    }
}

/// Returns the files of a script, with those of the packages that it names, which are fetched if they are not kept.
///
/// # Errors
/// [`Missing`], if a package cannot be had; and mistakes in the lists.
pub fn script_files(workspace: &Workspace, script: &Script) -> Result<Tree> {
    scripts::tree(workspace, &directory(workspace), script)
}

/// Returns where everything is kept that comes from Debian's archive.
fn directory(workspace: &Workspace) -> PathBuf {
    workspace.target.join("linux-peer")
}

/// Puts a file that can be executed at a path.
fn put(tree: &mut Tree, path: &str, content: Vec<u8>) -> Result<()> {
    let attributes = Attributes { permissions: 0o755, ..Attributes::default() };
    tree.add(path.as_bytes(), attributes, Content::Regular(content)).into_diagnostic()
}

/// Returns the file that tells `init` what to run.
fn joined(path: &str, arguments: &[String]) -> Result<Vec<u8>> {
    let words = || std::iter::once(path).chain(arguments.iter().map(String::as_str));
    let bytes: Vec<u8> = words().flat_map(|word| word.bytes().chain([0])).collect();
    if bytes.len() > ARGUMENT_BYTES || words().count() > ARGUMENTS {
        return Err(miette!(
            help = "put what is long into a file that is compiled into the program",
            "the arguments have {} bytes and are {}; at most {ARGUMENT_BYTES} and {ARGUMENTS} are allowed",
            bytes.len(),
            words().count(),
        ));
    }
    Ok(bytes)
}

/// Finds the program's own lines and its status in what the terminal showed.
fn ran(outcome: &Outcome) -> Result<Ran> {
    let lines = &outcome.lines;
    let begin = lines.iter().position(|line| line == BEGINS);
    let end = lines.iter().rposition(|line| line.contains(EXITED));
    if let (Some(begin), Some(end)) = (begin, end)
        && begin < end
        && let Some((unfinished, status)) = lines[end].rsplit_once(EXITED)
        && let Ok(status) = status.parse()
    {
        let mut lines = lines[begin + 1..end].to_vec();
        lines.extend((!unfinished.is_empty()).then(|| unfinished.to_owned()));
        return Ok(Ran { lines, status });
    }
    let what = match lines.iter().find_map(|line| line.strip_prefix(CANNOT)) {
        Some(what) => format!("Linux cannot {what} (the number of an error)"),
        None if begin.is_none() => "Linux did not start the program".to_owned(),
        None => "the program did not end".to_owned(),
    };
    Err(miette!("{what}: {:?}; what was last on the terminal:\n{}", outcome.end, outcome.last_screen()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::End;

    fn outcome(text: &str) -> Outcome {
        Outcome { end: End::Exited(0), lines: text.lines().map(str::to_owned).collect(), powered_off_at: None }
    }

    #[test]
    fn the_programs_own_lines_are_between_those_of_init() {
        let found = ran(&outcome("noise\nlinux-peer: begins\na\n\nb\nlinux-peer: exited with: 139\nnoise")).unwrap();
        assert_eq!(found, Ran { lines: ["a", "", "b"].map(str::to_owned).to_vec(), status: 139 });
        let found = ran(&outcome("linux-peer: begins\nunfinishedlinux-peer: exited with: 0")).unwrap();
        assert_eq!(found, Ran { lines: vec!["unfinished".into()], status: 0 });
    }

    #[test]
    fn a_crash_is_an_error_that_shows_the_terminal() {
        let message = |text| format!("{}", ran(&outcome(text)).unwrap_err());
        let crash = message("Kernel panic");
        assert!(crash.contains("did not start the program") && crash.contains("| Kernel panic"), "{crash}");
        assert!(message("linux-peer: begins\na\n").contains("the program did not end"));
        let refused = message("linux-peer: begins\nlinux-peer: cannot execute the program: -8\n");
        assert!(refused.starts_with("Linux cannot execute the program: -8 "), "{refused}");
        assert!(message("linux-peer: exited with: 0\nlinux-peer: begins\n").contains("did not end"));
    }

    #[test]
    fn arguments_end_with_zeros_and_have_a_limit() {
        assert_eq!(joined("a/b", &["x y".into(), String::new()]).unwrap(), b"a/b\0x y\0\0");
        assert!(joined("a", &vec![String::new(); ARGUMENTS - 1]).is_ok());
        assert!(joined("a", &vec![String::new(); ARGUMENTS]).is_err());
        assert!(joined("a", &["x".repeat(ARGUMENT_BYTES)]).is_err());
    }
}
