//! Costs of the kernel: its paths, deletion among siblings, booting.

use std::collections::BTreeMap;

use miette::Result;

use crate::build::Build;
use crate::elf;
use crate::lab::reference;
use crate::lab::support::plot::{BLUE, GREEN, GREY, ORANGE, PURPLE, Panel, Plot, Shape};
use crate::lab::support::{Column, Experiment, Figures, Measured, USUAL};
use crate::system::System;
use crate::workspace;

/// The kernel's paths.
pub const IPC: Experiment = Experiment {
    name: "ipc",
    title: "What the kernel's paths cost, beside seL4's",
    columns: &[Column { title: "seL4", values: reference::SEL4 }],
    targets: reference::IPC_TARGETS,
    sums: reference::IPC_SUMS,
    ..USUAL
};

/// One of many.
pub const DELETE_SIBLINGS: Experiment = Experiment {
    name: "delete-siblings",
    title: "Deleting one of many objects made of one untyped, and one of many copies, beside Barrelfish",
    columns: &[Column { title: "Barrelfish", values: reference::BARRELFISH_SIBLINGS }],
    plots: siblings,
    ..USUAL
};

/// From the first instruction to the prompt.
pub const BOOT: Experiment = Experiment {
    name: "boot",
    title: "Instructions until the system is up, and the sizes of what is booted in bytes",
    unit: "instructions, bytes",
    from_build: sizes,
    columns: &[Column { title: "seL4", values: reference::SEL4_BOOT }],
    targets: reference::BOOT_TARGETS,
    enforced: &["kernel_to_prompt", "hello_bytes"],
    ..USUAL
};

/// Draws the mean and the most expensive deletion over the number of siblings.
fn siblings(_: &Measured) -> Vec<Plot> {
    let panel = |title: &str, prefix: &str| {
        let kinds = [
            ("delete_first", "notifications, oldest first", BLUE),
            ("delete_last", "notifications, newest first", ORANGE),
            ("delete_untyped_first", "untyped, oldest first", GREEN),
            ("delete_untyped_last", "untyped, newest first", PURPLE),
            ("delete_copy", "copies, newest first", GREY),
        ];
        let empty = Panel::new("siblings", title).log_x();
        kinds.into_iter().fold(empty, |panel, (series, label, colour)| {
            let series = format!("{prefix}{series}");
            panel.line(&series, label, colour).marks(&series, "", colour, Shape::Dot)
        })
    };
    let plot = Plot::new("plot", "Deleting one of many siblings");
    vec![plot.with(panel("instructions, mean", "")).with(panel("instructions, dearest", "worst_"))]
}

/// Returns the size of the kernel's machine code, and whole sizes of init and the programs as they lie in the boot
/// archive.
fn sizes(system: &System, build: &Build) -> Result<Figures> {
    let laid_out = |path| -> Result<f64> { Ok(elf::lay_out(&workspace::read_file(path)?)?.len() as f64) };
    let mut figures = BTreeMap::new();
    figures.insert("kernel_text_bytes".to_owned(), elf::text_size(build.kernel(system)?)? as f64);
    figures.insert("init_bytes".to_owned(), laid_out(build.init(system)?)?);
    for program in &system.programs {
        figures.insert(format!("{}_bytes", program.name), laid_out(build.program(&program.origin)?)?);
    }
    Ok(figures)
}
