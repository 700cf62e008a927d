//! Runs a workload and collects what is reported about it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::backend::Model;
use crate::bundle::{Descriptor, Lifetime, Piece};
use crate::policy::Policy;
use crate::slabs::{Error, Figures, Slabs};
use crate::trace::{Request, Trace};

/// Where requests come from.
pub trait Source {
    /// The next request; of an `alloc`, `bundle` is what it asks for. The ranges in the request mean nothing here.
    fn next(&mut self, bundle: &mut Vec<Descriptor>) -> Option<Request>;

    /// Whether the last `alloc` was granted.
    fn answered(&mut self, granted: bool);

    /// Requests before all that is left is freed at the end.
    fn active(&self) -> usize;
}

/// Which account of the losses a replay keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// Everything that is lost.
    #[default]
    Complete,
    /// R1's as printed in its tables 4.5 and the figures there.
    Printed,
}

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The slabs; they must be empty. Their policy is replaced.
    pub slabs: Slabs,
    /// The policy.
    pub policy: Policy,
    /// Whether the watermark rule is lifted.
    pub lifted: bool,
    /// Which account is kept.
    pub accounting: Accounting,
}

impl Options {
    /// R1's slabs under a policy.
    pub fn new(policy: Policy) -> Options {
        Options { slabs: Slabs::standard(), policy, lifted: false, accounting: Accounting::Complete }
    }
}

/// The largest values seen, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Lost to the watermark rule.
    pub watermark: u64,
    /// Lost to alignment.
    pub alignment: u64,
    /// Lost to both together.
    pub total: u64,
    /// Free below the highest objects; the same as `total` unless the rule is lifted.
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
    /// All figures; `requested` is what profiles have as their horizontal axis.
    pub figures: Figures,
    /// Free bytes below the highest objects.
    pub gaps: u64,
    /// This request found no room.
    pub out_of_memory: bool,
}

/// One slab in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// Bytes of the slab.
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
    /// Per cent of the requests that were made: 25, 50, 75 or 100. What is freed at the end does not count.
    pub percent: u32,
    /// The slabs, the largest first.
    pub bars: Vec<Bar>,
}

/// What a meter has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests.
    pub requests: u64,
    /// The largest values.
    pub peaks: Peaks,
    /// Mean values.
    pub means: Means,
    /// At the end.
    pub figures: Figures,
}

impl Outcome {
    /// As JSON, on one line: bytes, mean values with two digits.
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

/// Collects figures after each request; on the target, what the memory server answers.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    requests: u64,
    peaks: Peaks,
    sums: Means,
    last: Figures,
}

impl Meter {
    /// Notes the figures after a request.
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

    /// What was seen so far.
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

/// All that is known about a run.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The figures that are reported.
    pub outcome: Outcome,
    /// The state after each request.
    pub profile: Vec<Point>,
    /// The slabs at 25, 50, 75 and 100 % of the requests.
    pub snapshots: Vec<Snapshot>,
    /// What was asked for: a trace that asks for the same.
    pub trace: Trace,
    /// Retypes that the kernel was asked for and did.
    pub retypes: u64,
}

/// Runs a workload on a model of the kernel. Errors: `InUse` if the slabs are not empty. Every other answer is part of
/// the result.
pub fn replay(source: &mut dyn Source, options: &Options) -> Result<Replay, Error> {
    let mut run = Run::new(options)?;
    let active = source.active();
    let mut bundle = Vec::new();
    while let Some(request) = source.next(&mut bundle) {
        let before = run.slabs.figures().out_of_memory;
        match request {
            Request::Alloc { lifetime, .. } => source.answered(run.alloc(&bundle, lifetime)?),
            Request::Free(number) => run.free(number)?,
            Request::Failed { lifetime, .. } => run.trace.push_failed(&bundle, lifetime),
        }
        run.note(before, active);
    }
    let Run { meter, profile, snapshots, trace, kernel, .. } = run;
    Ok(Replay { outcome: meter.outcome(), profile, snapshots, trace, retypes: kernel.retypes().0 })
}

/// A run under way.
struct Run {
    slabs: Slabs,
    kernel: Model,
    /// What lives, by the number of its request.
    live: BTreeMap<u32, Vec<Piece>>,
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
            meter: Meter::default(),
            profile: Vec::new(),
            snapshots: Vec::new(),
            trace: Trace::new(),
        })
    }

    /// Whether the bundle was granted. Errors: those that say that the workload or the books are bad.
    fn alloc(&mut self, bundle: &[Descriptor], lifetime: Lifetime) -> Result<bool, Error> {
        match self.slabs.grant(bundle, lifetime, &mut self.kernel) {
            Ok(pieces) => {
                self.live.insert(self.trace.push_alloc(bundle, lifetime), pieces);
                Ok(true)
            }
            Err(Error::OutOfMemory) => {
                self.trace.push_failed(bundle, lifetime);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Frees what a request was granted, object by object. If it was granted nothing, there is nothing to do.
    fn free(&mut self, number: u32) -> Result<(), Error> {
        let Some(pieces) = self.live.remove(&number) else {
            // A line that does nothing, so that numbers stay the same.
            self.trace.push_failed(&[], Lifetime::Dynamic);
            return Ok(());
        };
        self.trace.push_free(number);
        for piece in pieces {
            for (address, size) in piece.objects(&self.slabs) {
                if !self.kernel.delete(address, size) {
                    return Err(Error::NoSuchObject);
                }
                self.slabs.freed(address, size)?;
            }
        }
        Ok(())
    }

    /// Notes the state after a request.
    fn note(&mut self, out_of_memory_before: u64, active: usize) {
        let figures = self.slabs.figures();
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
