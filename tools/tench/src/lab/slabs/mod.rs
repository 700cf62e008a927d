//! The allocator study, on the host: the same code as in the memory server, with a model in place of the kernel.
//!
//! | experiment | module | what |
//! |---|---|---|
//! | `slabs-random` | [`random`] | R1's random workloads: its tables 4.3 and 4.4, figures 4.6–4.11, D.1 and D.2 |
//! | `slabs-apps` | [`apps`] | applications and sequences of them: table 4.5, figures 4.2–4.5 and 4.12–4.14 |
//! | `slabs-policies` | [`policies`] | all policies on all of these, with the watermark rule and without |
//!
//! [`reference`] has what R1 printed, [`pictures`] the kinds of pictures that several experiments draw. Figures and
//! samples are bytes; tables show KiB where R1 does.

pub mod apps;
mod pictures;
pub mod policies;
pub mod random;
pub mod reference;

use miette::{Result, miette};
use tench_slabs::{Options, Outcome, Policy, Random, RandomSettings, Replay, Request, Source, replay};

use super::measure::Measured;

/// Chances to free of R1's random workloads, in per cent.
pub const CHANCES: [u32; 4] = [16, 32, 48, 64];
/// The seed of R1's random workloads.
pub const SEED: u64 = 42;

/// What a policy's figures begin with. R1's next fit is the one that guesses.
pub const fn key(policy: Policy) -> &'static str {
    match policy {
        Policy::NextFitGuessing => "next",
        Policy::NextFit => "next_books",
        Policy::FirstFit => "first",
        Policy::BestFit => "best",
        Policy::WorstFit => "worst",
        Policy::BestFitAlignment => "best_alignment",
        Policy::Segregated => "segregated",
        Policy::Buddy => "buddy",
    }
}

/// Runs a workload.
pub fn run(source: &mut dyn Source, options: &Options) -> Result<Replay> {
    replay(source, options).map_err(|error| miette!("a workload cannot be replayed: {error:?}"))
}

/// R1's random workload with this chance to free, from this seed.
pub fn random_workload(chance: u32, seed: u64) -> Random {
    Random::new(RandomSettings { chance, seed, ..RandomSettings::default() })
}

/// An outcome's figures by name, in bytes where they are bytes. The names are those of `memlab replay --json` too.
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

/// Adds what a run says about one workload: `POLICY_FIGURE_WORKLOAD`.
fn take_figures(measured: &mut Measured, prefix: &str, workload: &str, outcome: &Outcome) {
    for (name, value) in figures(outcome) {
        measured.figure(format!("{prefix}_{name}_{workload}"), value);
    }
}

/// Requests for memory, whether they were granted or not.
fn requests_for_memory(replay: &Replay) -> usize {
    let asks = |request: &&Request| match request {
        Request::Alloc { .. } => true,
        Request::Failed { bundle, .. } => !bundle.is_empty(),
        Request::Free(_) => false,
    };
    replay.trace.requests().iter().filter(asks).count()
}

/// Adds the series of a profile: `PREFIX_live` and so on, over the bytes requested.
fn take_profile(measured: &mut Measured, prefix: &str, replay: &Replay) {
    for point in &replay.profile {
        let (figures, x) = (point.figures, point.figures.requested as f64);
        let mut add = |name: &str, value: u64| measured.sample(format!("{prefix}_{name}"), x, value as f64);
        add("live", figures.live);
        add("watermark", figures.watermark_loss);
        add("align", figures.alignment_loss);
        add("total", figures.loss());
        add("resets", figures.resets);
        if point.out_of_memory {
            add("oom", figures.live);
        }
    }
}

/// Adds the series of the snapshots: `PREFIX_PERCENT_live` is the percentage of each slab in use, `…_align` adds what is
/// lost to alignment, `…_watermark` what is lost to the watermark rule too.
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

/// A number of bytes as R1 prints it.
fn kib(bytes: f64) -> String {
    format!("{:.2}", bytes / 1024.0)
}

/// A row of a table.
fn row<S: Into<String>>(cells: impl IntoIterator<Item = S>) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_a_key_of_its_own() {
        let keys: std::collections::BTreeSet<&str> = Policy::ALL.into_iter().map(key).collect();
        assert_eq!(keys.len(), Policy::ALL.len());
    }
}
