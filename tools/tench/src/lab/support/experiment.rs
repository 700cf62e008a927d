//! An experiment: what it boots, what it computes, and what it is compared with.

use std::path::PathBuf;

use miette::Result;

use super::measure::Measured;
use super::plot::Plot;
use super::table::Table;
use crate::build::{Build, Kernel};
use crate::system::System;
use crate::workspace::Workspace;

/// An experiment: what it boots, and what it is compared with.
pub struct Experiment {
    /// Name of the experiment, and the argument of the measuring program.
    pub name: &'static str,
    /// Title: one sentence.
    pub title: &'static str,
    /// Unit of the figures.
    pub unit: &'static str,
    /// System description that is booted, if there are runs.
    pub system: &'static str,
    /// Runs on the target, each with figures of its own; none if this tool computes everything.
    pub runs: &'static [Run],
    /// Function that makes further files for the boot archive, under a label; it returns them as arguments of
    /// `--with`.
    pub files: fn(&Workspace, &str) -> Result<Vec<String>>,
    /// Function that packs the files that Linux programs have, if there are some.
    pub packed: fn(&Workspace) -> Result<Option<Vec<u8>>>,
    /// Function that computes results without a target.
    pub on_host: fn(&Workspace) -> Result<Measured>,
    /// Function that computes figures and words from what was built.
    pub from_build: fn(&System, &Build) -> Result<Measured>,
    /// Function that derives figures and curves from the measurements, when all runs are over.
    pub derive: fn(&mut Measured),
    /// Figures of other systems.
    pub columns: &'static [Column],
    /// Targets: the figure's key and the largest acceptable value.
    pub targets: &'static [(&'static str, f64)],
    /// Figures whose targets, if missed, fail the tests, whatever is recorded.
    pub enforced: &'static [&'static str],
    /// Rows of the table that add figures up.
    pub sums: &'static [Sum],
    /// Set if the experiment can go on for ever, and is told for how long.
    pub endless: bool,
    /// Function that makes the pictures. By default there is `plot.svg`: a curve for each series, or a bar for each
    /// figure.
    pub plots: fn(&Measured) -> Vec<Plot>,
    /// Function that makes the tables, besides that of all figures.
    pub tables: fn(&Measured) -> Vec<Table>,
}

/// One boot of an experiment.
pub struct Run {
    /// Prefix of the keys of its figures.
    pub prefix: &'static str,
    /// Further arguments for the measuring program.
    pub arguments: &'static [&'static str],
    /// Optimisation of the programs.
    pub optimised: bool,
    /// Kernel that is booted.
    pub kernel: Kernel,
    /// Memory of the machine.
    pub memory: &'static str,
    /// Number of cores.
    pub cores: u32,
    /// Set if the cache lines are counted that the kernel touches while interrupts are off.
    pub counts_lines: bool,
}

/// The usual boot.
pub const PLAIN: Run = Run {
    prefix: "",
    arguments: &[],
    optimised: true,
    kernel: Kernel::Usual,
    memory: "1G",
    cores: 1,
    counts_lines: false,
};

/// Defaults of an experiment: one boot of the lab's system, and nothing to compare with.
pub const USUAL: Experiment = Experiment {
    name: "",
    title: "",
    unit: "instructions",
    system: "lab",
    runs: &[PLAIN],
    files: |_, _| Ok(Vec::new()),
    packed: |_| Ok(None),
    on_host: |_| Ok(Measured::default()),
    from_build: |_, _| Ok(Measured::default()),
    derive: |_| (),
    columns: &[],
    targets: &[],
    enforced: &[],
    sums: &[],
    endless: false,
    plots: |_| Vec::new(),
    tables: |_| Vec::new(),
};

impl Experiment {
    /// Returns the system description that it boots.
    pub fn boots(&self) -> Option<&'static str> {
        (!self.runs.is_empty()).then_some(self.system)
    }

    /// Returns the path of the figures that are recorded with an installed compiler; those are what the pages quote.
    pub fn baseline(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join("lab/baseline").join(self.name).with_extension("json")
    }

    /// Returns whether figures have been recorded.
    pub fn has_baseline(&self, workspace: &Workspace) -> bool {
        self.baseline(workspace).is_file()
    }
}

/// A column of a table.
pub struct Column {
    /// Heading of the column.
    pub title: &'static str,
    /// Values by key.
    pub values: &'static [(&'static str, f64)],
}

impl Column {
    /// Returns the value for a key.
    pub fn get(&self, key: &str) -> Option<f64> {
        find(self.values, key)
    }
}

/// Returns the value that a list has for a key.
pub fn find(values: &[(&str, f64)], key: &str) -> Option<f64> {
    values.iter().find(|(candidate, _)| *candidate == key).map(|(_, value)| *value)
}

/// A row that adds figures up.
pub struct Sum {
    /// Title of the row.
    pub title: &'static str,
    /// Keys of the figures that it adds.
    pub keys: &'static [&'static str],
    /// seL4's sum.
    pub reference: Option<f64>,
    /// Largest acceptable value.
    pub target: f64,
}
