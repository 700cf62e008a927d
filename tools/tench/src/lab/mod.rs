//! `./tench lab`: experiments that measure in retired instructions on a deterministic machine; see docs/manual/lab.md.
//!
//! An experiment boots `systems/lab.toml` with its own name as the argument of the program `bench`, which prints
//!
//! ```text
//! figure: KEY VALUE            one number
//! sample: SERIES X Y           a point of a curve
//! note: TEXT                   shown to whoever runs the experiment
//! ```
//! [`experiments`] is the register, [`reference`] holds what others reached and what is to be reached, [`measure`]
//! gets the numbers, [`write`](mod@write) turns them into files, [`baseline`] compares them with the recorded ones.

pub mod baseline;
mod experiments;
mod measure;
mod plot;
mod reference;
mod table;
mod write;

use miette::{Result, miette};

use crate::build::Build;
use crate::cli::LabOptions;
use crate::system::{Packages, System};
use crate::workspace::Workspace;
pub use experiments::{EXPERIMENTS, Experiment};
pub use measure::{Measured, measure};

/// Runs experiments; the status is 1 if a figure differs from the recorded one.
pub fn run(workspace: &Workspace, options: &LabOptions) -> Result<u8> {
    let list = options.names.iter().any(|name| name == "list");
    if list || (options.names.is_empty() && !options.all) {
        for experiment in EXPERIMENTS {
            let recorded = if experiment.has_baseline(workspace) { "recorded" } else { "" };
            println!("{:8} {:9} {}", experiment.name, recorded, experiment.title);
        }
        return Ok(0);
    }
    let chosen = choose(options)?;
    let packages = Packages::find(workspace)?;
    let mut names: Vec<&str> = chosen.iter().map(|experiment| experiment.system).collect();
    names.dedup();
    let systems = names.iter().map(|name| System::load(workspace, &packages, name)).collect::<Result<Vec<_>>>()?;
    let build = Build::new(workspace, &packages, &systems.iter().collect::<Vec<_>>())?;
    let mut good = true;
    for experiment in chosen {
        let system = systems.iter().find(|system| system.name == experiment.system);
        let system = system.ok_or_else(|| miette!("{} boots no system", experiment.name))?;
        let measured = measure(workspace, &packages, system, &build, experiment)?;
        good &= conclude(workspace, options, experiment, &measured, &build.compiler)?;
    }
    Ok(u8::from(!good))
}

/// The experiments that were asked for.
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

/// Writes, shows, and compares or records one experiment. Answers whether the comparison was good.
fn conclude(
    workspace: &Workspace,
    options: &LabOptions,
    experiment: &Experiment,
    measured: &Measured,
    compiler: &str,
) -> Result<bool> {
    let directory = write::write(workspace, experiment, measured)?;
    if options.json {
        print!("{}", write::result_json(experiment, &measured.figures));
    } else {
        println!("{}\n{}", experiment.title, table::table(experiment, &measured.figures));
        println!("written to {}", workspace.relative(&directory));
    }
    if options.record {
        baseline::record(workspace, experiment, &measured.figures, compiler)?;
        eprintln!("recorded in {}", workspace.relative(&experiment.baseline(workspace)));
    }
    if !options.check {
        return Ok(true);
    }
    Ok(match baseline::check(workspace, experiment, &measured.figures, compiler)? {
        baseline::Verdict::Equal => {
            eprintln!("{}: equal to the recorded figures", experiment.name);
            true
        }
        baseline::Verdict::OtherCompiler { recorded } => {
            eprintln!("{}: not compared: recorded with {recorded}, this is {compiler}", experiment.name);
            true
        }
        baseline::Verdict::Different(differences) => {
            differences.iter().for_each(|difference| eprintln!("{}: {difference}", experiment.name));
            false
        }
    })
}
