//! The allocator study, on the host: the same code as in the memory server, with a model in place of the kernel.
//!
//! | experiment | module | what |
//! |---|---|---|
//! | `slabs-random` | [`random`] | R1's random workloads: its tables 4.3 and 4.4, figures 4.6–4.11, D.1 and D.2 |
//! | `slabs-apps` | [`apps`] | applications and sequences of them: table 4.5, figures 4.2–4.5 and 4.12–4.14 |
//! | `slabs-policies` | [`policies`] | all policies on all of these, with the watermark rule and without |
//!
//! [`reference`](mod@reference) has R1's printed values, [`pictures`] the kinds of pictures that several experiments
//! draw. Figures and samples are bytes; tables show KiB where R1 does.

mod apps;
mod pictures;
mod policies;
mod random;
mod reference;

use miette::{Result, miette};
use tench_slabs::{
    Options, Outcome, Policy, Random, RandomSettings, Replay, Request, Source, Trace, TraceSource, replay,
};

use crate::lab::support::plot::Plot;
use crate::lab::support::{Column, Experiment, Measured, USUAL};
use crate::workspace::{self, Workspace};

/// R1's random workloads.
pub const SLABS_RANDOM: Experiment = Experiment {
    name: "slabs-random",
    title: "R1's random workloads under every policy: its tables 4.3 and 4.4",
    unit: "bytes",
    runs: &[],
    on_host: random::measure,
    columns: &[Column { title: "R1", values: reference::RANDOM }],
    plots: random::plots,
    tables: random::tables,
    ..USUAL
};

/// R1's applications.
pub const SLABS_APPS: Experiment = Experiment {
    name: "slabs-apps",
    title: "R1's applications, alone and together, under every policy: its table 4.5",
    unit: "bytes",
    runs: &[],
    on_host: apps::measure,
    columns: &[Column { title: "R1", values: reference::APPS }],
    plots: apps::plots,
    tables: apps::tables,
    ..USUAL
};

/// Every policy.
pub const SLABS_POLICIES: Experiment = Experiment {
    name: "slabs-policies",
    title: "Every policy on every workload, with the watermark rule and without",
    unit: "bytes",
    runs: &[],
    on_host: policies::measure,
    plots: policies::plots,
    tables: policies::tables,
    ..USUAL
};

/// Latencies, on the target.
pub const SLABS_LATENCY: Experiment = Experiment {
    name: "slabs-latency",
    title: "What a bundle of objects and its return cost, by policy and chance to free",
    plots: latency_plots,
    ..USUAL
};

/// Chances to free of R1's random workloads, in per cent.
pub const CHANCES: [u32; 4] = [16, 32, 48, 64];

/// Losses in tables: a figure, and words for it.
const LOSSES: [(&str, &str); 6] = [
    ("peak_watermark", "peak, watermark"),
    ("peak_align", "peak, alignment"),
    ("peak_total", "peak, total"),
    ("avg_watermark", "mean, watermark"),
    ("avg_align", "mean, alignment"),
    ("avg_total", "mean, total"),
];

/// A random workload.
pub enum Workload {
    /// A generated workload, with this chance to free and this seed.
    Generated(u32, u64),
    /// R1's workload, from its logs. The random numbers drawn by its system are not known, but its requests are; after
    /// the first request that found no room these differ from policy to policy, since only granted memory is freed.
    Recorded(Trace),
}

impl Workload {
    /// Returns the workload with that chance to free (one of [`CHANCES`]) that R1 ran under a policy.
    pub fn of_reference(workspace: &Workspace, chance: u32, policy: Policy) -> Result<Workload> {
        let next = matches!(policy, Policy::NextFit | Policy::NextFitGuessing);
        // Without a request that found no room, both policies saw the same requests.
        let policies = match (chance, next) {
            (48 | 64, _) => "best-next",
            (_, true) => "next",
            (_, false) => "best",
        };
        let name = format!("random-{chance}-{policies}");
        let path = workspace.root.join("lab/traces").join(name).with_extension("trace");
        let trace = Trace::parse(&workspace::read_file(&path)?);
        Ok(Workload::Recorded(trace.map_err(|damage| miette!("{}: {damage}", path.display()))?))
    }

    /// Runs the workload.
    pub fn run(&self, options: &Options) -> Result<Run> {
        match self {
            Workload::Generated(chance, seed) => {
                let settings = RandomSettings { chance: *chance, seed: *seed, ..RandomSettings::default() };
                let replay = run(&mut Random::new(settings), options)?;
                let failed = replay.profile.iter().map(|point| point.out_of_memory).collect();
                Ok(Run { requests: requests_for_memory(&replay.trace), failed, replay })
            }
            Workload::Recorded(trace) => Run::of_trace(trace, options),
        }
    }
}

/// A workload that was run.
pub struct Run {
    /// Replay of the workload.
    pub replay: Replay,
    /// For each request, set if it found no room, here or in the system where it was recorded.
    failed: Vec<bool>,
    /// Requests for memory, whether they were granted or not.
    requests: usize,
}

impl Run {
    /// Replays a trace.
    pub fn of_trace(trace: &Trace, options: &Options) -> Result<Run> {
        let replay = run(&mut TraceSource::new(trace), options)?;
        let recorded = trace.requests().iter().map(|request| matches!(request, Request::Failed { .. }));
        let failed = replay.profile.iter().zip(recorded).map(|(point, recorded)| point.out_of_memory || recorded);
        Ok(Run { failed: failed.collect(), requests: requests_for_memory(trace), replay })
    }

    /// Returns the number of requests that found no room.
    fn failures(&self) -> usize {
        self.failed.iter().filter(|failed| **failed).count()
    }
}

/// Runs a workload.
fn run(source: &mut dyn Source, options: &Options) -> Result<Replay> {
    replay(source, options).map_err(|error| miette!("a workload cannot be replayed: {error:?}"))
}

/// Returns an outcome's figures by name, in bytes where they are bytes. The names are also those of `memlab replay
/// --json`.
pub fn figures(outcome: &Outcome) -> [(&'static str, f64); 9] {
    let mean = |hundredths: u64| hundredths as f64 / 100.0;
    [
        ("peak_watermark", outcome.peaks.watermark as f64),
        ("peak_align", outcome.peaks.alignment as f64),
        ("peak_total", outcome.peaks.total as f64),
        ("avg_watermark", mean(outcome.means.watermark)),
        ("avg_align", mean(outcome.means.alignment)),
        ("avg_total", mean(outcome.means.total)),
        ("resets", outcome.figures.resets as f64),
        ("oom", outcome.figures.out_of_memory as f64),
        ("failed_retypes", outcome.figures.failed_retypes as f64),
    ]
}

/// Adds a run's figures of one workload: `POLICY_FIGURE_WORKLOAD`.
fn take_figures(measured: &mut Measured, prefix: &str, workload: &str, run: &Run) {
    for (name, value) in figures(&run.replay.outcome) {
        measured.figure(format!("{prefix}_{name}_{workload}"), value);
    }
    measured.figure(format!("{prefix}_oom_{workload}"), run.failures() as f64);
}

/// Returns the number of requests for memory in a trace. Memory that a workload could not free, because it had not been
/// granted, is in the trace of its run as a request without a bundle; R1's records have no bundle for failed requests.
fn requests_for_memory(trace: &Trace) -> usize {
    trace.requests().iter().filter(|request| !matches!(request, Request::Free { .. })).count()
}

/// Adds the series of a profile: `PREFIX_live` and so on, over the bytes requested.
fn take_profile(measured: &mut Measured, prefix: &str, run: &Run) {
    for (point, failed) in run.replay.profile.iter().zip(&run.failed) {
        let (figures, x) = (point.figures, point.figures.requested as f64);
        let mut add = |name: &str, value: u64| measured.sample(format!("{prefix}_{name}"), x, value as f64);
        add("live", figures.live);
        add("watermark", figures.watermark_loss);
        add("align", figures.alignment_loss);
        add("total", figures.loss());
        add("resets", figures.resets);
        if *failed {
            add("oom", figures.live);
        }
    }
}

/// Adds the series of the snapshots: `PREFIX_PERCENT_live` is the percentage of each slab in use, `…_align` adds what
/// is lost to alignment, `…_watermark` what is lost to the watermark rule too.
fn take_snapshots(measured: &mut Measured, prefix: &str, replay: &Replay) {
    for snapshot in &replay.snapshots {
        for (slab, bar) in snapshot.bars.iter().enumerate() {
            let share = |bytes: u64| bytes as f64 * 100.0 / bar.size as f64;
            let mut add = |name: &str, bytes: u64| {
                let series = format!("{prefix}_{}_{name}", snapshot.percent);
                measured.sample(series, slab as f64, share(bytes));
            };
            add("live", bar.live);
            add("align", bar.live + bar.alignment);
            add("watermark", bar.live + bar.alignment + bar.watermark);
        }
    }
}

/// Draws R1's figures 4.15 and 4.16, of the experiment `slabs-latency`, which runs on the target.
fn latency_plots(_: &Measured) -> Vec<Plot> {
    let runs = (("best", "best fit"), ("next", "next fit, guessing"));
    vec![pictures::latency("4.15", "16", runs.0, runs.1), pictures::latency("4.16", "32", runs.0, runs.1)]
}

/// Formats a number of bytes as R1 prints it.
fn kib(bytes: f64) -> String {
    format!("{:.2}", bytes / 1024.0)
}

/// Returns a row of a table.
fn row<S: Into<String>>(cells: impl IntoIterator<Item = S>) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_a_key_of_its_own() {
        let keys: std::collections::BTreeSet<&str> = Policy::ALL.into_iter().map(Policy::key).collect();
        assert_eq!(keys.len(), Policy::ALL.len());
    }
}
