//! The register of experiments.

use std::collections::BTreeMap;
use std::path::PathBuf;

use miette::Result;

use super::measure::Figures;
use super::reference::{self, Column, Sum};
use crate::build::Build;
use crate::elf;
use crate::system::System;
use crate::workspace::{self, Workspace};

/// An experiment: what is booted, what it is set beside.
pub struct Experiment {
    /// What people call it, and the argument of the measuring program.
    pub name: &'static str,
    /// One sentence.
    pub title: &'static str,
    /// Unit of its figures.
    pub unit: &'static str,
    /// The system description that is booted.
    pub system: &'static str,
    /// Runs on the target, each with figures of its own.
    pub runs: &'static [Run],
    /// Figures that this tool takes from what was built.
    pub from_build: fn(&System, &Build) -> Result<Figures>,
    /// What others reached.
    pub columns: &'static [Column],
    /// What is to be reached: the figure's key and the largest good value.
    pub targets: &'static [(&'static str, f64)],
    /// Rows of the table that add figures up.
    pub sums: &'static [Sum],
}

/// One boot of an experiment.
pub struct Run {
    /// Goes before the keys of its figures.
    pub prefix: &'static str,
    /// Further arguments for the measuring program.
    pub arguments: &'static [&'static str],
    /// How the programs are compiled.
    pub optimised: bool,
}

const PLAIN: Run = Run { prefix: "", arguments: &[], optimised: true };

/// Every experiment.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "ipc",
        title: "What the kernel's paths cost, beside seL4's",
        unit: "instructions",
        system: "lab",
        runs: &[PLAIN],
        from_build: nothing,
        columns: &[Column { title: "seL4", values: reference::SEL4 }],
        targets: reference::IPC_TARGETS,
        sums: reference::IPC_SUMS,
    },
    Experiment {
        name: "srr",
        title: "Send-Receive-Reply by message size (r: the receiver waits first, s: the sender does), beside choochoos",
        unit: "instructions",
        system: "lab",
        runs: &[PLAIN, Run { prefix: "unoptimised_", arguments: &[], optimised: false }],
        from_build: nothing,
        columns: &[
            Column { title: "choochoos", values: reference::CHOOCHOOS },
            Column { title: "its µs", values: reference::CHOOCHOOS_MICROSECONDS },
        ],
        targets: &[],
        sums: &[],
    },
    Experiment {
        name: "delete-siblings",
        title: "Deleting one of many objects made of one untyped, and one of many copies, beside Barrelfish",
        unit: "instructions",
        system: "lab",
        runs: &[PLAIN],
        from_build: nothing,
        columns: &[Column { title: "Barrelfish", values: reference::BARRELFISH_SIBLINGS }],
        targets: &[],
        sums: &[],
    },
    Experiment {
        name: "fault",
        title: "Pages that come when they are touched: from an external pager, and copied on write",
        unit: "instructions",
        system: "lab",
        runs: &[PLAIN],
        from_build: nothing,
        columns: &[],
        targets: &[],
        sums: &[],
    },
    Experiment {
        name: "mm",
        title: "Physical memory: blocks allocated and freed, by the number of free extents",
        unit: "instructions",
        system: "lab",
        runs: &[PLAIN],
        from_build: nothing,
        columns: &[],
        targets: reference::MM_TARGETS,
        sums: &[],
    },
    Experiment {
        name: "boot",
        title: "Instructions until the system is up, and the sizes of what is booted in bytes",
        unit: "instructions, bytes",
        system: "lab",
        runs: &[PLAIN],
        from_build: sizes,
        columns: &[Column { title: "seL4", values: reference::SEL4_BOOT }],
        targets: reference::BOOT_TARGETS,
        sums: &[],
    },
];

impl Experiment {
    /// Where its recorded figures are.
    pub fn baseline(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join("lab/baseline").join(self.name).with_extension("json")
    }

    /// Whether figures have been recorded.
    pub fn has_baseline(&self, workspace: &Workspace) -> bool {
        self.baseline(workspace).is_file()
    }
}

fn nothing(_: &System, _: &Build) -> Result<Figures> {
    Ok(BTreeMap::new())
}

/// Machine code of the kernel, and whole sizes of init and the programs as they lie in the boot archive.
fn sizes(system: &System, build: &Build) -> Result<Figures> {
    let stripped = |path| -> Result<f64> { Ok(elf::strip(&workspace::read_file(path)?)?.len() as f64) };
    let mut figures = BTreeMap::new();
    figures.insert("kernel_text_bytes".to_owned(), elf::text_size(build.kernel(system)?)? as f64);
    figures.insert("init_bytes".to_owned(), stripped(build.init(system)?)?);
    for program in &system.programs {
        figures.insert(format!("{}_bytes", program.name), stripped(build.program(&program.origin)?)?);
    }
    Ok(figures)
}
