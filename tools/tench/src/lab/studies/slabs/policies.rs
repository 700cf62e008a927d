//! `slabs-policies`: every policy on every workload, with seL4's watermark rule and with the rule lifted.
//!
//! Without the rule, loss is counted differently, because nothing is lost for good: free memory below the highest
//! object of a slab is a *gap*, which the next object may fill. With the rule, gaps are exactly the two losses.

use miette::Result;
use tench_slabs::{Options, Outcome, Policy};

use super::pictures::profile;
use super::{CHANCES, Run, Workload, apps, kib, row, take_profile};
use crate::lab::support::plot::{BLUE, COLOURS, Panel, Plot};
use crate::lab::support::{Figures, Measured, Table};
use crate::workspace::Workspace;

/// The rule kept, and lifted.
const RULES: [(&str, bool); 2] = [("kept", false), ("lifted", true)];
/// The workloads of R1's tables 4.3 and 4.5.
const TABULATED: [&str; 7] = ["random16", "random32", "random48", "random64", "sequence1", "sequence2", "sequence3"];
/// Workloads whose profile is drawn: best fit against segregated.
const DRAWN: [&str; 5] = ["random16", "random32", "random48", "sequence2", "sequence3"];

/// Runs all workloads.
pub fn measure(workspace: &Workspace) -> Result<Measured> {
    let mut measured = Measured::default();
    let applications = apps::workloads();
    for policy in Policy::ALL {
        for (rule, lifted) in RULES {
            let options = Options { lifted, ..Options::new(policy) };
            for chance in CHANCES {
                // The same requests for all policies, so that they can be compared: R1's under best fit.
                let run = Workload::of_reference(workspace, chance, Policy::BestFit)?.run(&options)?;
                take(&mut measured, policy, rule, &format!("random{chance}"), &run);
            }
            for apps::Workload { name, trace, .. } in &applications {
                let run = Run::of_trace(trace, &options)?;
                take(&mut measured, policy, rule, name, &run);
            }
        }
    }
    judge(&mut measured);
    Ok(measured)
}

/// Adds the results of one run.
fn take(measured: &mut Measured, policy: Policy, rule: &str, workload: &str, run: &Run) {
    let Outcome { peaks, means, figures, .. } = run.replay.outcome;
    let mut figure =
        |name: &str, value: f64| measured.figure(format!("{}_{rule}_{name}_{workload}", policy.key()), value);
    figure("peak", peaks.gaps as f64);
    figure("avg", means.gaps as f64 / 100.0);
    figure("oom", figures.out_of_memory as f64);
    figure("failed_retypes", figures.failed_retypes as f64);
    let place = TABULATED.iter().position(|name| *name == workload);
    if let Some(place) = place {
        for (name, value) in [("peak", peaks.gaps as f64), ("avg", means.gaps as f64 / 100.0)] {
            measured.sample(format!("{}_{rule}_{name}", policy.key()), place as f64, value);
        }
    }
    let drawn = matches!(policy, Policy::BestFit | Policy::Segregated) && rule == "kept" && DRAWN.contains(&workload);
    if drawn {
        take_profile(measured, &format!("{}_{workload}", policy.key()), run);
    }
}

/// Counts the tabulated workloads on which each policy loses less than best fit, at its peak and on average.
fn judge(measured: &mut Measured) {
    let mut counts = Figures::new();
    for policy in Policy::ALL {
        let figure = |policy: Policy, name: &str, workload: &str| {
            let key = format!("{}_kept_{name}_{workload}", policy.key());
            measured.figures.get(&key).copied().unwrap_or(f64::NAN)
        };
        for name in ["peak", "avg"] {
            let less = |workload: &&&str| figure(policy, name, workload) < figure(Policy::BestFit, name, workload);
            let count = TABULATED.iter().filter(less).count();
            counts.insert(format!("{}_beats_best_{name}", policy.key()), count as f64);
        }
    }
    measured.figures.extend(counts);
}

/// Draws bars of all policies, and profiles of best fit against the policy that separates objects.
pub fn plots(_: &Measured) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (rule, _) in RULES {
        let mut plot = Plot::new(format!("policies-{rule}"), format!("All policies, watermark rule {rule}"));
        for (name, title) in [("peak", "largest loss, KiB"), ("avg", "mean loss, KiB")] {
            let mut panel = Panel::of_categories(TABULATED, title).units(1.0, 1024.0).height(320);
            for (place, (policy, colour)) in Policy::ALL.into_iter().zip(COLOURS.into_iter().cycle()).enumerate() {
                let series = format!("{}_{rule}_{name}", policy.key());
                panel = panel.bars(series, policy.name(), colour, colour == BLUE, (place, Policy::ALL.len()));
            }
            plot = plot.with(panel);
        }
        plots.push(plot);
    }
    for workload in DRAWN {
        let [best, segregated] = [Policy::BestFit, Policy::Segregated].map(|one| format!("{}_{workload}", one.key()));
        let title = format!("{workload}: best fit and segregated");
        plots.push(profile(&format!("profile-{workload}"), &title, (&segregated, "segregated"), (&best, "best fit")));
    }
    plots
}

/// Returns a table for each rule: policies down, workloads across.
pub fn tables(measured: &Measured) -> Vec<Table> {
    let mut tables = Vec::new();
    for (rule, _) in RULES {
        for (name, title) in [("peak", "Largest loss"), ("avg", "Mean loss")] {
            let mut rows = vec![row(["policy"].into_iter().chain(TABULATED).chain([""]))];
            for policy in Policy::ALL {
                let cell = |workload: &&str| {
                    let figure = |name: &str| {
                        measured.figures.get(&format!("{}_{rule}_{name}_{workload}", policy.key())).copied()
                    };
                    let full = if figure("oom").unwrap_or_default() > 0.0 { "*" } else { "" };
                    format!("{}{full}", kib(figure(name).unwrap_or_default()))
                };
                let cells = std::iter::once(policy.name().to_owned()).chain(TABULATED.iter().map(cell));
                rows.push(cells.chain([String::new()]).collect());
            }
            let title = format!("{title} in KiB, watermark rule {rule} (*: out of memory on the way)");
            tables.push(Table { file: format!("{rule}-{name}"), title, rows });
        }
    }
    tables
}
