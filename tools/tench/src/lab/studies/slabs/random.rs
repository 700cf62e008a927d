//! `slabs-random`: R1's four random workloads. All policies run them as R1 recorded them; best fit and next fit are
//! drawn. One seed is one sample, so all policies also run generated workloads of the same kind from a hundred seeds.

use miette::Result;
use tench_slabs::{Options, Policy};

use super::pictures::{distributions, profile, snapshots};
use super::{CHANCES, LOSSES, Run, Workload, figures, kib, reference, row, take_figures, take_profile, take_snapshots};
use crate::lab::support::plot::Plot;
use crate::lab::support::{Figures, Measured, Table, find, format_number};
use crate::workspace::Workspace;

/// Number of seeds of the distributions, from 0 on.
const SEEDS: u64 = 100;
/// Figures kept for each seed.
const KEPT: [&str; 3] = ["peak_total", "avg_total", "resets"];
/// Policies that R1 compares.
const COMPARED: [Policy; 2] = [Policy::BestFit, Policy::NextFitGuessing];
/// Maximum size of a small slab, to see which slabs are filled first.
const SMALL: u64 = 64 << 10;

/// Runs all workloads.
pub fn measure(workspace: &Workspace) -> Result<Measured> {
    let mut measured = Measured::default();
    for policy in Policy::ALL {
        let mut failed_retypes = 0;
        for chance in CHANCES {
            let run = Workload::of_reference(workspace, chance, policy)?.run(&Options::new(policy))?;
            failed_retypes += run.replay.outcome.figures.failed_retypes;
            take(&mut measured, policy, chance, &run);
        }
        measured.figure(format!("failed_retypes_{}", policy.key()), failed_retypes as f64);
    }
    for chance in CHANCES {
        seeds(&mut measured, chance)?;
    }
    Ok(measured)
}

/// Adds the results of one run.
fn take(measured: &mut Measured, policy: Policy, chance: u32, run: &Run) {
    let (key, workload) = (policy.key(), chance.to_string());
    take_figures(measured, key, &workload, run);
    let per_100 = run.replay.outcome.figures.resets as f64 * 100.0 / run.requests as f64;
    measured.figure(format!("{key}_resets_per_100_{chance}"), (per_100 * 100.0).round() / 100.0);
    if COMPARED.contains(&policy) {
        take_profile(measured, &format!("{key}_{chance}"), run);
        take_snapshots(measured, &format!("{key}_{chance}"), &run.replay);
        if let Some(snapshot) = run.replay.snapshots.first() {
            let small = snapshot.bars.iter().filter(|bar| bar.size <= SMALL);
            let (used, size) = small.fold((0, 0), |(used, size), bar| (used + bar.live, size + bar.size));
            let share = used as f64 * 100.0 / size as f64;
            measured.figure(format!("{key}_small_slabs_percent_{chance}"), (share * 100.0).round() / 100.0);
        }
    }
}

/// Runs the same kind of workload from many seeds, under each policy.
fn seeds(measured: &mut Measured, chance: u32) -> Result<()> {
    let mut by_policy: Vec<Vec<[f64; 3]>> = Vec::new();
    for policy in Policy::ALL {
        let mut outcomes = Vec::new();
        for seed in 0..SEEDS {
            let outcome = Workload::Generated(chance, seed).run(&Options::new(policy))?.replay.outcome;
            let all = figures(&outcome);
            let kept = KEPT.map(|name| find(&all, name).unwrap_or_default());
            for (name, value) in KEPT.iter().zip(kept) {
                measured.sample(format!("{}_seeds_{name}_{chance}", policy.key()), seed as f64, value);
            }
            outcomes.push(kept);
        }
        for (index, name) in KEPT.iter().enumerate() {
            let median = median(outcomes.iter().map(|kept| kept[index]).collect());
            measured.figure(format!("{}_median_{name}_{chance}", policy.key()), median);
        }
        by_policy.push(outcomes);
    }
    let pairs = |one: Policy, other: Policy| -> Vec<([f64; 3], [f64; 3])> {
        let of = |policy: Policy| by_policy[policy as usize].iter().copied();
        of(one).zip(of(other)).collect()
    };
    let against_next = pairs(Policy::BestFit, Policy::NextFitGuessing);
    let against_best = pairs(Policy::Segregated, Policy::BestFit);
    let mut count = |name: &str, pairs: &[([f64; 3], [f64; 3])], holds: &dyn Fn(&[f64; 3], &[f64; 3]) -> bool| {
        let seeds = pairs.iter().filter(|(one, other)| holds(one, other)).count();
        measured.figure(format!("seeds_{name}_{chance}"), seeds as f64);
    };
    for (name, pairs) in [("best_below_next", &against_next), ("segregated_below_best", &against_best)] {
        count(&format!("{name}_peak"), pairs, &|one, other| one[0] < other[0]);
        count(&format!("{name}_avg"), pairs, &|one, other| one[1] < other[1]);
    }
    count("best_above_next_resets", &against_next, &|best, next| best[2] > next[2]);
    // The policy with more resets loses less.
    count("more_resets_less_loss", &against_next, &|best, next| {
        best[2] != next[2] && (best[2] > next[2]) == (best[1] < next[1])
    });
    Ok(())
}

/// Returns the median.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
}

/// Draws R1's figures, and the distributions.
pub fn plots(_: &Measured) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (figure, snapshot, chance) in [("4.6", "4.10", 16), ("4.7", "D.1", 32), ("4.8", "4.11", 48), ("4.9", "D.2", 64)]
    {
        let prefixes = COMPARED.map(|policy| format!("{}_{chance}", policy.key()));
        let (best, next) = ((prefixes[0].as_str(), "best fit"), (prefixes[1].as_str(), "next fit"));
        let what = format!("random workload, 1000 requests, {chance} % chance to free, as R1 recorded it");
        plots.push(profile(&format!("figure-{figure}"), &format!("Figure {figure}: {what}"), best, next));
        plots.push(snapshots(&format!("figure-{snapshot}"), &format!("Figure {snapshot}: slabs, {what}"), best, next));
    }
    let runs = Policy::ALL.map(|policy| (policy.key(), policy.name()));
    for (figure, title, unit) in [
        ("peak_total", "Largest loss over 100 seeds", ("KiB", 1024.0)),
        ("avg_total", "Mean loss over 100 seeds", ("KiB", 1024.0)),
        ("resets", "Slab resets over 100 seeds", ("resets", 1.0)),
    ] {
        let file = format!("seeds-{}", figure.replace('_', "-"));
        plots.push(distributions(&file, title, figure, unit, &CHANCES, &runs));
    }
    plots
}

/// Returns tables 4.3 and 4.4 with R1's values beside ours, and the results of a hundred seeds.
pub fn tables(measured: &Measured) -> Vec<Table> {
    let get = |key: &str| measured.figures.get(key).copied().unwrap_or_default();
    let mut losses = vec![row(["loss, KiB", "best: R1", "Tench", "next: R1", "Tench", ""])];
    for (figure, name) in LOSSES {
        for chance in CHANCES {
            losses.push(beside(&format!("{name}, {chance} %"), figure, chance, &get, &kib));
        }
    }
    let mut resets = vec![row(["slab resets", "best: R1", "Tench", "next: R1", "Tench", ""])];
    for (figure, name) in [("resets", "in all"), ("resets_per_100", "per 100 requests for memory")] {
        for chance in CHANCES {
            resets.push(beside(&format!("{name}, {chance} %"), figure, chance, &get, &format_number));
        }
    }
    vec![
        Table { file: "table-4.3".into(), title: "Table 4.3: loss in random workloads".into(), rows: losses },
        Table { file: "table-4.4".into(), title: "Table 4.4: slab resets".into(), rows: resets },
        Table {
            file: "seeds".into(),
            title: "Medians over 100 seeds, in KiB".into(),
            rows: medians(&measured.figures),
        },
    ]
}

/// Returns R1's value and ours for best fit and next fit.
fn beside(
    name: &str,
    figure: &str,
    chance: u32,
    get: &dyn Fn(&str) -> f64,
    show: &dyn Fn(f64) -> String,
) -> Vec<String> {
    let mut cells = vec![name.to_owned()];
    let mut equal = true;
    for policy in COMPARED {
        let key = format!("{}_{figure}_{chance}", policy.key());
        let (theirs, ours) = (find(reference::RANDOM, &key).map(show), show(get(&key)));
        equal &= theirs.as_ref() == Some(&ours);
        cells.extend([theirs.unwrap_or_else(|| "–".to_owned()), ours]);
    }
    let verdict = if equal { "equal" } else { "differs" };
    cells.push(verdict.to_owned());
    cells
}

/// Returns a row for each policy: median peak and mean loss; and R1's single sample.
fn medians(figures: &Figures) -> Vec<Vec<String>> {
    let columns: Vec<(&str, u32)> =
        CHANCES.into_iter().flat_map(|chance| ["peak", "avg"].map(|figure| (figure, chance))).collect();
    let heading = columns.iter().map(|(figure, chance)| format!("{figure} {chance} %"));
    let mut rows = vec![row(std::iter::once("policy".to_owned()).chain(heading).chain([String::new()]))];
    for policy in Policy::ALL {
        let median = |(figure, chance): &(&str, u32)| {
            figures.get(&format!("{}_median_{figure}_total_{chance}", policy.key())).copied()
        };
        let printed = |(figure, chance): &(&str, u32)| {
            find(reference::RANDOM, &format!("{}_{figure}_total_{chance}", policy.key()))
        };
        let show = |name: String, values: Vec<Option<f64>>| {
            let values = values.into_iter().map(|value| value.map_or("–".to_owned(), kib));
            row(std::iter::once(name).chain(values).chain([String::new()]))
        };
        rows.push(show(policy.name().to_owned(), columns.iter().map(median).collect()));
        if COMPARED.contains(&policy) {
            rows.push(show(format!("{}, R1's", policy.name()), columns.iter().map(printed).collect()));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    /// R1's tables 4.3 and 4.4, to the last digit that it prints.
    #[test]
    fn the_random_workloads_are_those_of_the_reference() {
        let workspace = Workspace::find().unwrap();
        for policy in COMPARED {
            for chance in CHANCES {
                let mut measured = Measured::default();
                let workload = Workload::of_reference(&workspace, chance, policy).unwrap();
                take(&mut measured, policy, chance, &workload.run(&Options::new(policy)).unwrap());
                let printed = |name: &str| format!("{}_{name}_{chance}", policy.key());
                for (figure, _) in LOSSES {
                    let theirs = find(reference::RANDOM, &printed(figure)).unwrap();
                    assert_eq!(kib(measured.figures[&printed(figure)]), kib(theirs), "{}", printed(figure));
                }
                for figure in ["resets", "resets_per_100"] {
                    let theirs = find(reference::RANDOM, &printed(figure)).unwrap();
                    assert_eq!(measured.figures[&printed(figure)], theirs, "{}", printed(figure));
                }
            }
        }
    }
}
