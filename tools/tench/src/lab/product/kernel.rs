//! Costs of the kernel: its paths, deletion among siblings, booting.

use miette::Result;

use crate::build::Build;
use crate::elf;
use crate::kernel_text;
use crate::lab::reference;
use crate::lab::support::plot::{BLUE, GREEN, GREY, ORANGE, PURPLE, Panel, Plot, Shape};
use crate::lab::support::{Column, Experiment, Measured, Table, USUAL, format_number};
use crate::stack;
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
    tables,
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

/// Series of words with the names, the numbers of functions and the bytes of the parts of the kernel's code.
const PARTS: [&str; 3] = ["part", "part_functions", "part_bytes"];
/// Series of words with the ways to use a stack, the bounds for their depths and the sizes of the stacks in bytes.
const STACKS: [&str; 3] = ["stack", "stack_bound", "stack_space"];

/// Returns the sizes of the kernel's machine code and constants, the bounds for its stacks, and whole sizes of init and
/// the programs as they lie in the boot archive.
fn sizes(system: &System, build: &Build) -> Result<Measured> {
    let laid_out = |path| -> Result<f64> { Ok(elf::lay_out(&workspace::read_file(path)?)?.len() as f64) };
    let mut measured = Measured::default();
    let kernel = kernel_text::Sizes::read(build.kernel(system)?)?;
    measured.figure("kernel_text_bytes", kernel.text as f64);
    measured.figure("kernel_bootstrap_bytes", kernel.bootstrap as f64);
    measured.figure("kernel_rodata_bytes", kernel.constants as f64);
    for (index, part) in (0..).zip(kernel.parts) {
        let words = [part.name, part.functions.to_string(), format_number(part.bytes as f64)];
        measured.texts.extend(PARTS.iter().zip(words).map(|(series, word)| (((*series).to_owned(), index), word)));
    }
    let (bounds, _) = stack::bounds(build.kernel(system)?)?;
    measured.figure("stack_bound_bytes", stack::of_threads(&bounds) as f64);
    for (index, bound) in (0..).zip(bounds) {
        let words = [bound.name.to_owned(), format_number(bound.bytes as f64), format_number(bound.space as f64)];
        measured.texts.extend(STACKS.iter().zip(words).map(|(series, word)| (((*series).to_owned(), index), word)));
    }
    measured.figure("init_bytes", laid_out(build.init(system)?)?);
    for program in &system.programs {
        measured.figure(format!("{}_bytes", program.name), laid_out(build.program(&program.origin)?)?);
    }
    Ok(measured)
}

/// Returns the tables of the parts of the kernel's code, and of the bounds for its stacks.
fn tables(measured: &Measured) -> Vec<Table> {
    let of = |file: &str, title: &str, series: [&str; 3], heading: [&str; 3]| {
        let word = |series: &str, index| measured.texts.get(&(series.to_owned(), index)).cloned();
        let row = |index| series.iter().map(|series| word(series, index)).collect::<Option<Vec<String>>>();
        let rows = std::iter::once(heading.map(str::to_owned).to_vec()).chain((0..).map_while(row));
        let rows = rows.map(|row| row.into_iter().chain([String::new()]).collect()).collect();
        Table { file: file.into(), title: title.into(), rows }
    };
    vec![
        of("kernel-text", "Machine code of the kernel by part", PARTS, ["part", "functions", "bytes"]),
        of("kernel-stacks", "Bounds for the kernel's stacks", STACKS, ["entry", "bound", "space"]),
    ]
}
