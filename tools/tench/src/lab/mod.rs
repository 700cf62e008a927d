//! `./tench lab`: experiments that measure in retired instructions on a deterministic machine; see docs/manual/lab.md.
//!
//! An experiment boots `systems/lab.toml` with its own name as the argument of the program `bench`, which prints
//!
//! ```text
//! figure: KEY VALUE            one number
//! sample: SERIES X Y           a point of a curve
//! values: SERIES X Y Y Y …     points of a curve at X, X + 1, X + 2, …
//! text: SERIES X TEXT          words at X, for a table
//! note: TEXT                   shown to the user
//! ```
//! An experiment may also, or only, be computed by this tool, if it counts something other than instructions.
//!
//! Four layers, each of which knows those below it only (a test of the source verifies that):
//!
//! ```text
//! register             every experiment, by name
//! product   studies    experiments: what the system needs, and what repeats the references
//! reference            other systems' figures, and the targets
//! support              what an experiment is; measuring, comparing with recorded figures, tables, plots, files
//! ```
//! `lab/bench/src`, which runs on the target, has the same folders.

mod product;
mod reference;
mod register;
mod studies;
mod support;

use miette::{Result, miette};

use crate::build::Build;
use crate::cli::LabOptions;
use crate::system::{Packages, System};
use crate::workspace::Workspace;
pub use register::EXPERIMENTS;
pub use studies::memlab;
pub use support::{Booted, Experiment, Figures, baseline, measure};
use support::{Length, Measured, result_json, table, write};

/// Runs experiments; the status is 1 if a figure differs from the recorded one.
pub fn run(workspace: &Workspace, options: &LabOptions) -> Result<u8> {
    let list = options.names.iter().any(|name| name == "list");
    if list || (options.names.is_empty() && !options.all) {
        for experiment in EXPERIMENTS {
            let recorded = if experiment.has_baseline(workspace) { "recorded" } else { "" };
            println!("{:15} {:9} {}", experiment.name, recorded, experiment.title);
        }
        return Ok(0);
    }
    let chosen = choose(options)?;
    let length = options.instructions.map(|instructions| Length { instructions, seed: options.seed });
    if length.is_some() && chosen.iter().any(|experiment| !experiment.endless) {
        return Err(miette!(
            help = "ask for soak or spawn-kill alone",
            "--instructions is for an experiment that can go on for ever"
        ));
    }
    let mut names: Vec<&str> = chosen.iter().filter_map(|experiment| experiment.boots()).collect();
    names.sort();
    names.dedup();
    let built = if names.is_empty() { None } else { Some(build(workspace, &names)?) };
    let mut good = true;
    for experiment in chosen {
        let booted = built.as_ref().and_then(|(packages, systems, build)| {
            let system = systems.iter().find(|system| Some(system.name.as_str()) == experiment.boots())?;
            Some(Booted { packages, system, build })
        });
        let compiler = compiler(&booted);
        let measured = measure(workspace, booted, experiment, length)?;
        good &= conclude(workspace, options, experiment, &measured, &compiler)?;
    }
    Ok(u8::from(!good))
}

/// Builds everything that is booted.
fn build(workspace: &Workspace, names: &[&str]) -> Result<(Packages, Vec<System>, Build)> {
    let packages = Packages::find(workspace)?;
    let systems = names.iter().map(|name| System::load(workspace, &packages, name)).collect::<Result<Vec<_>>>()?;
    let build = Build::new(workspace, &packages, &systems.iter().collect::<Vec<_>>())?;
    Ok((packages, systems, build))
}

/// Returns the compiler of the measured code.
pub fn compiler(booted: &Option<Booted>) -> String {
    booted.as_ref().map_or_else(|| baseline::NO_COMPILER.to_owned(), |booted| booted.build.compiler.clone())
}

/// Returns the requested experiments.
fn choose(options: &LabOptions) -> Result<Vec<&'static Experiment>> {
    if options.all {
        return Ok(EXPERIMENTS.iter().collect());
    }
    let find = |name: &String| {
        let names = || EXPERIMENTS.iter().map(|experiment| experiment.name).collect::<Vec<_>>().join(", ");
        let found = EXPERIMENTS.iter().find(|experiment| experiment.name == name);
        found.ok_or_else(|| miette!(help = format!("allowed: list, {}", names()), "there is no experiment {name}"))
    };
    options.names.iter().map(find).collect()
}

/// Writes, shows, and compares or records one experiment. Returns whether the comparison was good.
fn conclude(
    workspace: &Workspace,
    options: &LabOptions,
    experiment: &Experiment,
    measured: &Measured,
    compiler: &str,
) -> Result<bool> {
    let directory = write(workspace, experiment, measured)?;
    if options.json {
        print!("{}", result_json(experiment, &measured.figures));
    } else {
        println!("{}\n{}", experiment.title, table(experiment, &measured.figures));
        for table in (experiment.tables)(measured) {
            println!("{}", table.text());
        }
        println!("written to {}", workspace.relative(&directory));
    }
    if options.record {
        let path = baseline::record(workspace, experiment, &measured.figures, compiler)?;
        eprintln!("recorded in {}", workspace.relative(&path));
    }
    if !options.check {
        return Ok(true);
    }
    Ok(match baseline::check(workspace, experiment, &measured.figures, compiler)? {
        baseline::Verdict::Equal => {
            eprintln!("{}: equal to the recorded figures", experiment.name);
            true
        }
        baseline::Verdict::Close { recorded } => {
            eprintln!("{}: close to the figures of {recorded}; this is {compiler}", experiment.name);
            true
        }
        baseline::Verdict::Different(differences) => {
            differences.iter().for_each(|difference| eprintln!("{}: {difference}", experiment.name));
            false
        }
    })
}
