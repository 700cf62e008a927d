//! The system description `systems/NAME.toml`: contents of the image, and the authority of each program.
//!
//! [`text`] is the syntax; [`check`] turns a description into a [`System`], or into all its mistakes, each with file,
//! line, value and what is allowed. That happens before anything is built. [`mistake`] shows them.

mod check;
mod mistake;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::Result;
use tench_abi::Powers;
use tench_system::{Capabilities, Cores, Program as Record, Shares, Strings};

use crate::process;
use crate::workspace::{self, Workspace};

/// A checked system description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Name of the description: the file's name without `.toml`.
    pub name: String,
    /// Package of the kernel.
    pub kernel: String,
    /// Package of the first process.
    pub init: String,
    /// Share of the memory of each core, from the first on, each parsed by `tench_system::Share::from_text`.
    pub memory: Vec<String>,
    /// Core of each interrupt line that does not belong to the first core.
    pub lines: BTreeMap<u32, u8>,
    /// The programs, in start order.
    pub programs: Vec<Program>,
}

/// One program of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// Source of the program.
    pub origin: Origin,
    /// Path in the boot archive.
    pub path: String,
    /// Priority of the main thread.
    pub priority: u8,
    /// Highest priority that the program may give to others.
    pub ceiling: u8,
    /// Bytes of the main thread's stack; 0 for the usual size.
    pub stack_size: u64,
    /// Maximum bytes of memory; all ones for no limit.
    pub quota: u64,
    /// Set if `init` starts the program.
    pub start: bool,
    /// Cores on which it runs.
    pub cores: Cores,
    /// Set if the program has an endpoint of its own.
    pub server: bool,
    /// Maximum number of restarts within a minute.
    pub restart: u32,
    /// Milliseconds before a restart.
    pub restart_delay: u32,
    /// Bytes of memory that are kept across restarts.
    pub keep: u64,
    /// Slots that are kept across restarts, by 256.
    pub keep_nodes: u32,
    /// Arguments, without the name.
    pub arguments: Vec<String>,
    /// Environment, `NAME=value` each.
    pub environment: Vec<String>,
    /// Powers of its capabilities to servers, beyond every program's.
    pub powers: Powers,
    /// Capabilities, each parsed by `tench_system::Capability::from_text`.
    pub capabilities: Vec<String>,
}

/// Source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A package of the workspace.
    Package(String),
    /// A C file, relative to the root of the source tree.
    Source(PathBuf),
}

impl System {
    /// Reads and checks `systems/NAME.toml`.
    pub fn load(workspace: &Workspace, packages: &Packages, name: &str) -> Result<System> {
        let path = workspace.system(name);
        if !path.is_file() {
            return Err(mistake::no_such_system(workspace, name));
        }
        let shown = workspace.relative(&path).to_string();
        let text = workspace::read_text(&path)?;
        check::check(name, &shown, &text, &Surroundings { root: &workspace.root, packages })
    }

    /// Replaces the arguments of the program called `name`.
    pub fn set_arguments(&mut self, name: &str, arguments: &[String]) {
        for program in self.programs.iter_mut().filter(|program| program.name == name) {
            program.arguments = arguments.to_vec();
        }
    }

    /// Returns the description as `init` reads it.
    pub fn encode(&self) -> Vec<u8> {
        let join =
            |texts: &[String]| texts.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>();
        let lists: Vec<[Vec<u8>; 3]> = self
            .programs
            .iter()
            .map(|program| [join(&program.arguments), join(&program.environment), join(&program.capabilities)])
            .collect();
        let records: Vec<Record> = std::iter::zip(&self.programs, &lists)
            .map(|(program, [arguments, environment, capabilities])| Record {
                name: &program.name,
                path: &program.path,
                priority: program.priority,
                ceiling: program.ceiling,
                stack_size: program.stack_size,
                quota: program.quota,
                start: program.start,
                cores: program.cores,
                server: program.server,
                restart: program.restart,
                restart_delay: program.restart_delay,
                keep: program.keep,
                keep_nodes: program.keep_nodes,
                arguments: Strings::new(arguments),
                environment: Strings::new(environment),
                powers: program.powers.bits(),
                capabilities: Capabilities::new(Strings::new(capabilities)),
            })
            .collect();
        tench_system::System::write(&records, Shares::new(Strings::new(&join(&self.memory))))
    }
}

/// Names that a description may refer to.
pub struct Surroundings<'a> {
    /// Root of the source tree.
    pub root: &'a Path,
    /// Packages of the workspace.
    pub packages: &'a Packages,
}

/// The workspace's packages that make a program, with cargo's identifiers for them.
#[derive(Clone, Debug, Default)]
pub struct Packages {
    entries: Vec<(String, String)>,
}

impl Packages {
    /// Queries cargo for the packages.
    pub fn find(workspace: &Workspace) -> Result<Packages> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = std::process::Command::new(cargo);
        command.current_dir(&workspace.root).args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: text::Metadata = serde_json::from_str(&process::output(&mut command)?)
            .map_err(|error| miette::miette!("cargo metadata returned something unexpected: {error}"))?;
        let has_program = |package: &text::Package| {
            package.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "bin" || kind == "staticlib"))
        };
        let entries = metadata.packages.into_iter().filter(has_program).map(|package| (package.name, package.id));
        Ok(Packages { entries: entries.collect() })
    }

    /// Returns the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the name of the package that cargo calls `id`.
    pub fn name_of(&self, id: &str) -> Option<&str> {
        self.entries.iter().find(|(_, candidate)| candidate == id).map(|(name, _)| name.as_str())
    }

    /// Returns packages with these names, for tests.
    #[cfg(test)]
    pub fn of(names: &[&str]) -> Packages {
        Packages { entries: names.iter().map(|name| (name.to_string(), format!("id#{name}"))).collect() }
    }
}
