//! Building of everything that system descriptions name: programs in Rust, kernels, then programs in C.
//!
//! Programs keep frame records, and the kernel, in which each would cost a few instructions of every system call, keeps
//! none. So cargo is invoked once for the programs and once for each kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use miette::Result;

use crate::artifacts::Artifacts;
use crate::compile_c;
use crate::prepare::BootFiles;
use crate::process;
use crate::symbols::Symbols;
use crate::system::{Origin, Packages, System};
use crate::toolchain::BareMetal;
use crate::workspace::Workspace;

/// Built executables, with symbols.
#[derive(Clone, Debug)]
pub struct Build {
    /// Compiler that made them, see [`BareMetal::identity`].
    pub compiler: String,
    /// Executables and libraries by package.
    artifacts: Artifacts,
    /// Programs by C file.
    from_c: BTreeMap<PathBuf, PathBuf>,
    /// Kernel to boot instead of the usual one.
    other_kernel: Option<PathBuf>,
}

/// Kernels, which differ only as their names say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kernel {
    /// Long operations let interrupts in, at preemption points.
    #[default]
    Usual,
    /// Long operations never let interrupts in.
    NonPreemptible,
    /// The usual kernel, measuring interrupts-off intervals.
    Measuring,
    /// The kernel without preemption points, measuring.
    MeasuringNonPreemptible,
}

impl Kernel {
    /// Every kernel.
    pub const ALL: [Kernel; 4] =
        [Kernel::Usual, Kernel::NonPreemptible, Kernel::Measuring, Kernel::MeasuringNonPreemptible];

    /// Returns the name as it is typed, and of its directory.
    pub fn name(self) -> &'static str {
        self.settings().0
    }

    /// Returns the kernel of this name.
    pub fn named(name: &str) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.name() == name)
    }

    /// Returns cargo's profile and the kernel's features.
    fn settings(self) -> (&'static str, &'static str) {
        match self {
            Kernel::Usual => ("usual", "preemption"),
            Kernel::NonPreemptible => ("non-preemptible", ""),
            Kernel::Measuring => ("measuring", "preemption,latency-tracer"),
            Kernel::MeasuringNonPreemptible => ("measuring-non-preemptible", "latency-tracer"),
        }
    }
}

/// Extent of optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimisation {
    /// Everything, the usual build.
    All,
    /// All but programs and their libraries, to show the effect of optimising these. Kernel and servers stay optimised:
    /// they are not compared, and their stacks would not suffice.
    AllButPrograms,
}

/// Packages that are always optimised.
const OPTIMISED: [&str; 12] = [
    "tench-abi",
    "tench-arch-aarch64",
    "tench-clock",
    "tench-console",
    "tench-init",
    "tench-kernel",
    "tench-kernel-image",
    "tench-loader",
    "tench-mem",
    "tench-names",
    "tench-procs",
    "tench-reserve",
];

/// Setting for cargo: every function keeps a frame record.
const FRAME_RECORDS: &str = "target.aarch64-unknown-none-softfloat.rustflags=['-Cforce-frame-pointers=yes']";

/// Rust's own libraries, which a compiler without the target's builds from their sources. They are installed
/// optimised, and unoptimised they need more stack than the kernel has while it boots.
const FROM_SOURCE: [&str; 2] = ["core", "alloc"];

impl Optimisation {
    /// Returns the arguments for cargo.
    fn arguments(self, bare_metal: &BareMetal) -> Vec<String> {
        match self {
            Optimisation::All => vec!["--release".to_owned()],
            Optimisation::AllButPrograms => {
                let profile = "profile.unoptimised";
                let mut settings = vec![
                    format!("{profile}.inherits='release'"),
                    format!("{profile}.opt-level=0"),
                    format!("{profile}.lto='fat'"),
                ];
                let libraries: &[&str] = if bare_metal.from_source { &FROM_SOURCE } else { &[] };
                for package in OPTIMISED.iter().chain(libraries) {
                    settings.push(format!("{profile}.package.{package}.opt-level=3"));
                }
                let settings = settings.into_iter().flat_map(|setting| ["--config".to_owned(), setting]);
                settings.chain(["--profile".to_owned(), "unoptimised".to_owned()]).collect()
            }
        }
    }
}

impl Build {
    /// Builds all that these descriptions need.
    pub fn new(workspace: &Workspace, packages: &Packages, systems: &[&System]) -> Result<Build> {
        Self::with(workspace, packages, systems, Optimisation::All)
    }

    /// Builds all that these descriptions need, with this optimisation.
    pub fn with(
        workspace: &Workspace,
        packages: &Packages,
        systems: &[&System],
        optimisation: Optimisation,
    ) -> Result<Build> {
        let bare_metal = BareMetal::require()?;
        let programs = || systems.iter().flat_map(|system| &system.programs);
        let sources: BTreeSet<&PathBuf> = programs().filter_map(|program| source(&program.origin)).collect();
        let kernels: BTreeSet<&str> = systems.iter().map(|system| system.kernel.as_str()).collect();
        let mut wanted: BTreeSet<&str> = systems.iter().map(|system| system.init.as_str()).collect();
        wanted.extend(programs().filter_map(|program| package(&program.origin)));
        if !sources.is_empty() {
            wanted.insert(compile_c::RUNTIME);
        }

        let mut artifacts = Artifacts::default();
        for (wanted, frames) in [(&wanted, true), (&kernels, false)] {
            let mut command = bare_metal.cargo(workspace, "build");
            command.args(optimisation.arguments(&bare_metal)).arg("--message-format=json-render-diagnostics");
            if frames {
                command.arg("--config").arg(FRAME_RECORDS);
            }
            command.args(wanted.iter().flat_map(|package| ["-p", package]));
            artifacts.read(&process::output(&mut command)?, packages)?;
        }

        let mut from_c = BTreeMap::new();
        for source in sources {
            let program = compile_c::compile(workspace, source, artifacts.library(compile_c::RUNTIME)?)?;
            from_c.insert(source.clone(), program);
        }
        Ok(Build { compiler: bare_metal.identity(), artifacts, from_c, other_kernel: None })
    }

    /// Builds all that these descriptions need with another kernel. Each has a profile of its own, so that none is
    /// rebuilt because another was built.
    pub fn with_kernel(
        self,
        workspace: &Workspace,
        packages: &Packages,
        system: &System,
        kernel: Kernel,
    ) -> Result<Build> {
        if kernel == Kernel::Usual {
            return Ok(self);
        }
        let (profile, features) = kernel.settings();
        let mut command = BareMetal::require()?.cargo(workspace, "build");
        command.args(["--config", &format!("profile.{profile}.inherits='release'"), "--profile", profile]);
        command.args(["--message-format=json-render-diagnostics", "--no-default-features", "-p", &system.kernel]);
        command.args(["--features", features]);
        let mut artifacts = Artifacts::default();
        artifacts.read(&process::output(&mut command)?, packages)?;
        Ok(Build { other_kernel: Some(artifacts.executable(&system.kernel)?.to_owned()), ..self })
    }

    /// Returns the kernel's executable.
    pub fn kernel(&self, system: &System) -> Result<&Path> {
        self.other_kernel.as_deref().map_or_else(|| self.artifacts.executable(&system.kernel), Ok)
    }

    /// Returns the first process's executable.
    pub fn init(&self, system: &System) -> Result<&Path> {
        self.artifacts.executable(&system.init)
    }

    /// Returns a program's executable.
    pub fn program(&self, origin: &Origin) -> Result<&Path> {
        match origin {
            Origin::Package(package) => self.artifacts.executable(package),
            Origin::Source(source) => Ok(&self.from_c[source]),
        }
    }

    /// Returns names for the addresses that this system's kernel and programs report, and the host's programs in its
    /// boot files.
    pub fn symbols(&self, workspace: &Workspace, system: &System, files: &BootFiles) -> Result<Symbols> {
        let mut symbols = Symbols::new(&workspace.root, self.kernel(system)?);
        symbols.add("init", self.init(system)?);
        for program in &system.programs {
            symbols.add(&program.name, self.program(&program.origin)?);
        }
        // They replace programs of the same name.
        files.from_host.iter().for_each(|(name, path)| symbols.add(name, path));
        Ok(symbols)
    }
}

fn source(origin: &Origin) -> Option<&PathBuf> {
    if let Origin::Source(source) = origin { Some(source) } else { None }
}

fn package(origin: &Origin) -> Option<&str> {
    if let Origin::Package(package) = origin { Some(package) } else { None }
}
