//! The experiment on costs of a call by hand, by a generated stub and by the message builder, in instructions and in
//! bytes of machine code, beside R2's tables.

use miette::Result;

use crate::build::Build;
use crate::elf;
use crate::lab::reference;
use crate::lab::support::plot::{BLUE, GREY, ORANGE, Panel, Plot};
use crate::lab::support::{Experiment, Measured, Table, USUAL, format_number};
use crate::system::System;

/// Kinds of data that are sent, by key and in words.
const CASES: [(&str, &str); 6] = [
    ("0", "0 words"),
    ("1", "1 word"),
    ("4", "4 words"),
    ("8", "8 words"),
    ("text", "16 B of text"),
    ("cap", "a capability"),
];

/// The experiment.
pub const STUBS: Experiment = Experiment {
    name: "stubs",
    title: "A call by hand, by a generated stub, and by the message builder; task_info by a stub and by ports",
    unit: "instructions, bytes",
    from_build: sizes,
    targets: reference::STUBS_TARGETS,
    tables,
    plots,
    ..USUAL
};

/// Returns the machine-code sizes of the functions that `stubs` measures.
fn sizes(system: &System, build: &Build) -> Result<Measured> {
    let mut measured = Measured::default();
    for program in system.programs.iter().filter(|program| program.name == "bench") {
        let functions = elf::functions(build.program(&program.origin)?, "lab_stubs_")?;
        functions.into_iter().for_each(|(name, size)| measured.figure(format!("{name}_bytes"), size as f64));
    }
    Ok(measured)
}

/// Draws the instructions by kind of data and of call.
fn plots(_: &Measured) -> Vec<Plot> {
    let panel = |title: &str, kinds: [(&str, &str, plotters::style::RGBColor); 3]| {
        let empty = Panel::of_categories(CASES.map(|(_, words)| words), title);
        let bars = kinds.into_iter().enumerate();
        bars.fold(empty, |panel, (place, (series, label, colour))| panel.bars(series, label, colour, false, (place, 3)))
    };
    let names = ["by hand", "generated stub", "message builder"];
    let client = panel(
        "instructions, client alone",
        [("bare", names[0], GREY), ("stub", names[1], BLUE), ("message", names[2], ORANGE)],
    );
    let both = panel(
        "instructions, both sides",
        [("bare", names[0], GREY), ("served_stub", names[1], BLUE), ("served_message", names[2], ORANGE)],
    );
    vec![Plot::new("plot", "Calls by hand, by stub and by builder").with(client).with(both)]
}

/// Returns R2's two tables with ours beside them.
fn tables(measured: &Measured) -> Vec<Table> {
    let figures = &measured.figures;
    let cell = |key: &str| figures.get(key).map_or("–".to_owned(), |value| format_number(*value));
    let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let mut sizes = vec![row(&[
        "what is sent",
        "by hand",
        "stub",
        "builder",
        "by hand, bytes",
        "stub, bytes",
        "builder, bytes",
        "",
    ])];
    for (case, words) in CASES {
        let mut cells = vec![words.to_owned()];
        cells.extend(["bare", "stub", "message"].map(|kind| cell(&format!("{kind}_{case}"))));
        cells.extend(["bare", "stub", "message"].map(|kind| cell(&format!("{kind}_{case}_bytes"))));
        cells.push(String::new());
        sizes.push(cells);
    }
    for (name, lines, cycles) in reference::R2_STUBS {
        let text = format!("R2, {name}: {lines} lines of assembler, {cycles} cycles");
        sizes.push(row(&[&text, "", "", "", "", "", "", ""]));
    }
    let mut task = vec![row(&["task_info", "generic", "stub", "of it", ""])];
    let [(_, generic), (_, stub)] = reference::R2_TASK_INFO;
    let share = |stub: f64, generic: f64| format!("{:.0} %", 100.0 * stub / generic);
    task.push(row(&["R2, cycles", &format_number(generic), &format_number(stub), &share(stub, generic), ""]));
    if let (Some(generic), Some(stub)) = (figures.get("task_info_port"), figures.get("task_info_stub")) {
        let (ours, theirs) = (format_number(*stub), format_number(*generic));
        task.push(row(&["Tench, instructions", &theirs, &ours, &share(*stub, *generic), ""]));
    }
    vec![
        Table {
            file: "stubs".into(),
            title: "Client functions: instructions of a round trip, bytes of code".into(),
            rows: sizes,
        },
        Table { file: "task-info".into(), title: "task_info, both sides, beside R2's section 7.1".into(), rows: task },
    ]
}
