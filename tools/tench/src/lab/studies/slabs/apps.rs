//! `slabs-apps`: R1's four applications alone, and its three orders of starting and stopping eight of them.
//!
//! R1's table 4.5 leaves out what `mltest` frees while it runs: that memory lies below watermarks and is lost until its
//! slabs are empty. Both counts are figures here: the complete one (`best_peak_watermark_sequence1`), and the one that
//! R1 printed (`best_printed_peak_watermark_sequence1`).

use miette::Result;
use tench_slabs::{Accounting, Application, Options, Policy, SEQUENCES, Trace, printed_account, sequence};

use super::pictures::profile;
use super::{LOSSES, Run, kib, reference, row, take_figures, take_profile};
use crate::lab::support::plot::Plot;
use crate::lab::support::{Figures, Measured, Table, find};
use crate::workspace::Workspace;

/// Policies that R1 compares.
const COMPARED: [Policy; 2] = [Policy::BestFit, Policy::NextFitGuessing];
/// Names of the sequences.
const SEQUENCE_NAMES: [&str; 3] = ["sequence1", "sequence2", "sequence3"];

/// Applications started and stopped in some order.
pub struct Workload {
    /// Name in figures.
    pub name: &'static str,
    /// Requests of the workload.
    pub trace: Trace,
    /// The workload as R1 counts it.
    printed: Accounting,
}

/// Every workload.
pub fn workloads() -> Vec<Workload> {
    let workload = |name, steps: &[_]| Workload { name, trace: sequence(steps), printed: printed_account(steps) };
    let alone = Application::ALL.into_iter().map(|one| workload(one.name(), &[(one, 1), (one, 1)]));
    let together = SEQUENCE_NAMES.into_iter().zip(&SEQUENCES).map(|(name, steps)| workload(name, steps));
    alone.chain(together).collect()
}

fn account(trace: &Trace, policy: Policy, accounting: Accounting) -> Result<Run> {
    Run::of_trace(trace, &Options { accounting, ..Options::new(policy) })
}

/// Runs all workloads.
pub fn measure(_: &Workspace) -> Result<Measured> {
    let mut measured = Measured::default();
    let workloads = workloads();
    for Workload { name, trace, .. } in &workloads {
        let (bytes, objects) = trace.requested();
        measured.figure(format!("requested_bytes_{name}"), bytes as f64);
        measured.figure(format!("requested_objects_{name}"), objects as f64);
    }
    for policy in Policy::ALL {
        let mut failed_retypes = 0;
        for Workload { name, trace, printed } in &workloads {
            let run = account(trace, policy, Accounting::Complete)?;
            failed_retypes += run.replay.outcome.figures.failed_retypes;
            take_figures(&mut measured, policy.key(), name, &run);
            if COMPARED.contains(&policy) {
                take_profile(&mut measured, &format!("{}_{name}", policy.key()), &run);
                let printed = account(trace, policy, printed.clone())?;
                take_figures(&mut measured, &format!("{}_printed", policy.key()), name, &printed);
            }
        }
        measured.figure(format!("failed_retypes_{}", policy.key()), failed_retypes as f64);
    }
    Ok(measured)
}

/// Draws R1's figures, with the complete count.
pub fn plots(_: &Measured) -> Vec<Plot> {
    let numbers = [
        ("4.2", "hello"),
        ("4.3", "timer"),
        ("4.4", "fibonacci"),
        ("4.5", "mltest"),
        ("4.12", "sequence1"),
        ("4.13", "sequence2"),
        ("4.14", "sequence3"),
    ];
    let plot = |(figure, name): (&str, &str)| {
        let [best, next] = COMPARED.map(|policy| format!("{}_{name}", policy.key()));
        let title = format!("Figure {figure}: {name} (complete account)");
        profile(&format!("figure-{figure}"), &title, (&best, "best fit"), (&next, "next fit"))
    };
    numbers.into_iter().map(plot).collect()
}

/// Returns table 4.5 with both counts, and the applications alone.
pub fn tables(measured: &Measured) -> Vec<Table> {
    let mut rows = vec![row(["loss, KiB", "R1", "as R1 counts", "", "complete", ""])];
    for policy in COMPARED {
        for (figure, name) in LOSSES {
            for sequence in SEQUENCE_NAMES {
                let row = both_accounts(&measured.figures, policy, figure, sequence);
                rows.push(std::iter::once(format!("{}, {sequence}, {name}", policy.name())).chain(row).collect());
            }
        }
    }
    let mut alone = vec![row(["loss, bytes", "best: peak", "mean", "next: peak", "mean", ""])];
    for application in Application::ALL {
        let get = |policy: Policy, figure: &str| {
            let value = measured.figures.get(&format!("{}_{figure}_{}", policy.key(), application.name()));
            value.copied().unwrap_or_default().to_string()
        };
        let [best, next] = COMPARED;
        let cells = [
            application.name().to_owned(),
            get(best, "peak_total"),
            get(best, "avg_total"),
            get(next, "peak_total"),
            get(next, "avg_total"),
            String::new(),
        ];
        alone.push(row(cells));
    }
    vec![
        Table { file: "table-4.5".into(), title: "Table 4.5: loss in sequences of applications".into(), rows },
        Table { file: "applications".into(), title: "Applications alone, complete account".into(), rows: alone },
    ]
}

/// Returns R1's printed value, our value counted in the same way, whether they are equal, and the complete count.
fn both_accounts(figures: &Figures, policy: Policy, figure: &str, sequence: &str) -> [String; 5] {
    let get = |key: &str| kib(figures.get(key).copied().unwrap_or_default());
    let printed_key = format!("{}_printed_{figure}_{sequence}", policy.key());
    let theirs = find(reference::APPS, &printed_key).map_or("–".to_owned(), kib);
    let (ours, complete) = (get(&printed_key), get(&format!("{}_{figure}_{sequence}", policy.key())));
    let verdict = if theirs == ours { "equal" } else { "differs" };
    [theirs, ours, verdict.to_owned(), complete, String::new()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from R1's text for each application: bytes and objects. For `fibonacci` it gives the double, in error.
    #[test]
    fn the_applications_ask_for_what_the_reference_says() {
        let expected =
            [("hello", 46_400, 15), ("timer", 104_448, 29), ("fibonacci", 104_448, 29), ("mltest", 1_157_376, 285)];
        for (workload, (name, bytes, objects)) in workloads().iter().zip(expected) {
            assert_eq!((workload.name, workload.trace.requested()), (name, (bytes, objects)));
        }
    }

    /// R1's section 4.2.2: 192 bytes of `hello`, and nothing of the others.
    #[test]
    fn best_fit_loses_nothing_but_in_hello() {
        for Workload { name, trace, .. } in workloads().iter().take(3) {
            let outcome = account(trace, Policy::BestFit, Accounting::Complete).unwrap().replay.outcome;
            let expected = if *name == "hello" { 192 } else { 0 };
            assert_eq!((outcome.peaks.alignment, outcome.peaks.watermark), (expected, 0), "{name}");
        }
    }
}
