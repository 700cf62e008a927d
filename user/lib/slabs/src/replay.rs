//! Running a workload and collecting statistics about it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::backend::Model;
use crate::bundle::{Allocation, Descriptor, Lifetime};
use crate::policy::Policy;
use crate::slabs::{Error, Figures, Slabs};
use crate::trace::Trace;

/// Source of requests.
pub trait Source {
    /// Stores the next request in `step`. Returns false if there is none.
    fn next(&mut self, step: &mut Step) -> bool;

    /// Notes whether the last request, an `alloc`, was granted.
    fn note_outcome(&mut self, granted: bool);

    /// Returns the number of requests before the final freeing of all live objects.
    fn active(&self) -> usize;
}

/// The current request. It is reused, so that most requests need no memory.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Kind of the request.
    pub kind: StepKind,
    /// Lifetime of the objects.
    pub lifetime: Lifetime,
    /// Descriptors of the bundle.
    pub bundle: Vec<Descriptor>,
    /// Numbers of the requests whose objects are freed.
    pub numbers: Vec<u32>,
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepKind {
    /// Request for a bundle.
    #[default]
    Alloc,
    /// Request to free the objects of other requests.
    Free,
    /// No request: a bundle that found no room when the trace was recorded.
    Failed,
}

impl Step {
    /// Becomes a request for a bundle.
    pub fn alloc(&mut self, bundle: &[Descriptor], lifetime: Lifetime) {
        self.set(StepKind::Alloc, bundle, lifetime, &[]);
    }

    /// Becomes a failed request.
    pub fn failed(&mut self, bundle: &[Descriptor], lifetime: Lifetime) {
        self.set(StepKind::Failed, bundle, lifetime, &[]);
    }

    /// Becomes a request to free the objects of other requests.
    pub fn free(&mut self, numbers: &[u32]) {
        self.set(StepKind::Free, &[], Lifetime::Dynamic, numbers);
    }

    fn set(&mut self, kind: StepKind, bundle: &[Descriptor], lifetime: Lifetime, numbers: &[u32]) {
        (self.kind, self.lifetime) = (kind, lifetime);
        self.bundle.clear();
        self.bundle.extend_from_slice(bundle);
        self.numbers.clear();
        self.numbers.extend_from_slice(numbers);
    }
}

/// Accounting of losses in a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// All losses count.
    #[default]
    Complete,
    /// R1's accounting as printed in its table 4.5: memory freed by these requests does not count as lost to the
    /// watermark rule.
    Printed {
        /// Numbers of the requests that free while an application runs.
        missed: Vec<u32>,
    },
}

/// Options of a run of a workload.
#[derive(Clone, Debug)]
pub struct Options {
    /// The slabs; they must be empty. Their policy is replaced.
    pub slabs: Slabs,
    /// The policy.
    pub policy: Policy,
    /// Set if the watermark rule is lifted.
    pub lifted: bool,
    /// The accounting of losses.
    pub accounting: Accounting,
}

impl Options {
    /// Returns options with R1's slabs under a policy.
    pub fn new(policy: Policy) -> Options {
        Options { slabs: Slabs::standard(), policy, lifted: false, accounting: Accounting::Complete }
    }
}

/// Maximum values, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Lost to the watermark rule.
    pub watermark: u64,
    /// Lost to alignment.
    pub alignment: u64,
    /// Lost to both together.
    pub total: u64,
    /// Free below the highest objects; equal to `total` unless the rule is lifted.
    pub gaps: u64,
    /// In use.
    pub live: u64,
}

/// Mean values over all requests, in hundredths of a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Means {
    /// Lost to the watermark rule.
    pub watermark: u64,
    /// Lost to alignment.
    pub alignment: u64,
    /// Lost to both together.
    pub total: u64,
    /// Free below the highest objects.
    pub gaps: u64,
    /// In use.
    pub live: u64,
}

/// The state after a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// All figures; `requested` is the horizontal axis of profiles.
    pub figures: Figures,
    /// Free bytes below the highest objects.
    pub gaps: u64,
    /// Set if this request found no room.
    pub out_of_memory: bool,
}

/// One slab in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// Size of the slab in bytes.
    pub size: u64,
    /// Bytes in live objects.
    pub live: u64,
    /// Bytes lost to alignment.
    pub alignment: u64,
    /// Bytes lost to the watermark rule.
    pub watermark: u64,
    /// Free bytes below the highest object.
    pub gaps: u64,
}

/// All slabs at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Percentage of the requests made so far: 25, 50, 75 or 100. The final freeing does not count.
    pub percent: u32,
    /// The slabs, the largest first.
    pub bars: Vec<Bar>,
}

/// Statistics of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of requests.
    pub requests: u64,
    /// The largest values.
    pub peaks: Peaks,
    /// Mean values.
    pub means: Means,
    /// Figures at the end.
    pub figures: Figures,
}

impl Outcome {
    /// Returns the statistics as JSON, on one line: bytes, mean values with two digits.
    pub fn json(&self) -> String {
        let Outcome { peaks, means, figures, .. } = self;
        let mut out = String::new();
        let hundredths = |value: u64| (value / 100, value % 100);
        let ((w, ww), (a, aa)) = (hundredths(means.watermark), hundredths(means.alignment));
        let ((t, tt), (g, gg)) = (hundredths(means.total), hundredths(means.gaps));
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{{\"peak_watermark\": {}, \"peak_align\": {}, \"peak_total\": {}, \"avg_watermark\": {w}.{ww:02}, \
             \"avg_align\": {a}.{aa:02}, \"avg_total\": {t}.{tt:02}, \"peak_gaps\": {}, \"avg_gaps\": {g}.{gg:02}, \
             \"peak_live\": {}, \"resets\": {}, \"oom\": {}, \"failed_retypes\": {}, \"requests\": {}, \"requested\": {}}}",
            peaks.watermark,
            peaks.alignment,
            peaks.total,
            peaks.gaps,
            peaks.live,
            figures.resets,
            figures.out_of_memory,
            figures.failed_retypes,
            self.requests,
            figures.requested,
        );
        out
    }
}

/// Collector of figures after each request; on the target, the figures in the memory server's replies.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    requests: u64,
    peaks: Peaks,
    sums: Means,
    last: Figures,
}

impl Meter {
    /// Records the figures after a request.
    pub fn note(&mut self, figures: Figures, gaps: u64) {
        let Meter { requests, peaks, sums, last } = self;
        *requests += 1;
        *last = figures;
        let Figures { live, watermark_loss, alignment_loss, .. } = figures;
        peaks.watermark = peaks.watermark.max(watermark_loss);
        peaks.alignment = peaks.alignment.max(alignment_loss);
        peaks.total = peaks.total.max(figures.loss());
        peaks.gaps = peaks.gaps.max(gaps);
        peaks.live = peaks.live.max(live);
        sums.watermark += watermark_loss;
        sums.alignment += alignment_loss;
        sums.total += figures.loss();
        sums.gaps += gaps;
        sums.live += live;
    }

    /// Returns the statistics so far.
    pub fn outcome(&self) -> Outcome {
        let mean = |sum: u64| (sum * 100 + self.requests / 2) / self.requests.max(1);
        let Means { watermark, alignment, total, gaps, live } = self.sums;
        let means = Means {
            watermark: mean(watermark),
            alignment: mean(alignment),
            total: mean(total),
            gaps: mean(gaps),
            live: mean(live),
        };
        Outcome { requests: self.requests, peaks: self.peaks, means, figures: self.last }
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The reported statistics.
    pub outcome: Outcome,
    /// The state after each request.
    pub profile: Vec<Point>,
    /// The slabs at 25, 50, 75 and 100 % of the requests.
    pub snapshots: Vec<Snapshot>,
    /// The requests, as a trace that makes the same ones.
    pub trace: Trace,
    /// Number of retypes that the kernel was asked for and performed.
    pub retypes: u64,
}

/// Runs a workload on a model of the kernel. Fails with `InUse` if the slabs are not empty. Failures of requests are
/// part of the result.
pub fn replay(source: &mut dyn Source, options: &Options) -> Result<Replay, Error> {
    let mut run = Run::new(options)?;
    let active = source.active();
    let mut step = Step::default();
    while source.next(&mut step) {
        let before = run.slabs.figures().out_of_memory;
        match step.kind {
            StepKind::Alloc => source.note_outcome(run.alloc(&step.bundle, step.lifetime)?),
            StepKind::Free => run.free(&step.numbers)?,
            StepKind::Failed => run.trace.push_failed(&step.bundle, step.lifetime),
        }
        run.note(before, active);
    }
    let Run { meter, profile, snapshots, trace, kernel, .. } = run;
    Ok(Replay { outcome: meter.outcome(), profile, snapshots, trace, retypes: kernel.retypes().0 })
}

/// A run in progress.
struct Run {
    slabs: Slabs,
    kernel: Model,
    /// Live objects, by the numbers of their requests.
    live: BTreeMap<u32, Vec<Allocation>>,
    accounting: Accounting,
    /// Bytes lost to the watermark rule in each slab that the accounting does not count.
    missed: Vec<u64>,
    meter: Meter,
    profile: Vec<Point>,
    snapshots: Vec<Snapshot>,
    trace: Trace,
}

impl Run {
    fn new(options: &Options) -> Result<Run, Error> {
        let mut slabs = options.slabs.clone();
        slabs.lift(options.lifted)?;
        slabs.set_policy(options.policy);
        slabs.begin_measurement();
        Ok(Run {
            kernel: Model::new(&slabs),
            slabs,
            live: BTreeMap::new(),
            accounting: options.accounting.clone(),
            missed: alloc::vec![0; options.slabs.slabs().len()],
            meter: Meter::default(),
            profile: Vec::new(),
            snapshots: Vec::new(),
            trace: Trace::new(),
        })
    }

    /// Requests a bundle, and returns whether it was granted. Fails if the workload or the metadata is bad.
    fn alloc(&mut self, bundle: &[Descriptor], lifetime: Lifetime) -> Result<bool, Error> {
        match self.slabs.grant(bundle, lifetime, &mut self.kernel) {
            Ok(allocations) => {
                self.live.insert(self.trace.push_alloc(bundle, lifetime), allocations);
                Ok(true)
            }
            Err(Error::OutOfMemory) => {
                self.trace.push_failed(bundle, lifetime);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Frees the objects of requests, one by one. Does nothing for requests that were not granted.
    fn free(&mut self, numbers: &[u32]) -> Result<(), Error> {
        let number = self.profile.len() as u32;
        let misses = matches!(&self.accounting, Accounting::Printed { missed } if missed.contains(&number));
        let mut granted = Vec::new();
        for &number in numbers {
            let Some(allocations) = self.live.remove(&number) else { continue };
            granted.push(number);
            for allocation in allocations {
                self.free_allocation(allocation, misses)?;
            }
        }
        if granted.is_empty() {
            // A line without effect keeps the numbers of the others the same.
            self.trace.push_failed(&[], Lifetime::Dynamic);
        } else {
            self.trace.push_free(&granted);
        }
        Ok(())
    }

    fn free_allocation(&mut self, allocation: Allocation, misses: bool) -> Result<(), Error> {
        for (address, size) in allocation.objects(&self.slabs) {
            if !self.kernel.delete(address, size) {
                return Err(Error::NoSuchObject);
            }
            self.slabs.freed(address, size)?;
            let missed = &mut self.missed[allocation.slab];
            *missed =
                if self.slabs.slabs()[allocation.slab].objects() == 0 { 0 } else { *missed + u64::from(misses) * size };
        }
        Ok(())
    }

    /// Records the state after a request.
    fn note(&mut self, out_of_memory_before: u64, active: usize) {
        let mut figures = self.slabs.figures();
        figures.watermark_loss -= self.missed.iter().sum::<u64>();
        let gaps = self.slabs.gaps();
        self.meter.note(figures, gaps);
        self.profile.push(Point { figures, gaps, out_of_memory: figures.out_of_memory > out_of_memory_before });
        let percent = 25 * (self.snapshots.len() as u32 + 1);
        if percent <= 100 && self.profile.len() == active * percent as usize / 100 {
            let bar = |slab: &crate::Slab| Bar {
                size: slab.size(),
                live: slab.live(),
                alignment: slab.alignment_loss(),
                watermark: slab.watermark_loss(),
                gaps: slab.gaps(),
            };
            self.snapshots.push(Snapshot { percent, bars: self.slabs.slabs().iter().map(bar).collect() });
        }
    }
}
