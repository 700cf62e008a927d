//! Policies, which choose the slab of an object.
//!
//! A policy sees *candidates*: ranges of free memory in which the objects fit. With the watermark rule there is one for
//! each slab, from the watermark to the end; when the rule is lifted, each hole between objects is one.
//!
//! ```text
//!     start        offset               end                limit
//!     ├─ alignment ┼─ the objects ──────┼─ left over ──────┤
//! ```

use core::fmt;
use core::str::FromStr;

use crate::bundle::Descriptor;
use crate::slab::{Slab, align_up};

/// Policy for choosing a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Policy {
    /// **Next fit by guessing**, as R1 found it: without metadata, retypes are tried, slab after slab, from the one
    /// where the last bundle ended, until one succeeds. Useful for showing the value of metadata: each wrong guess is a
    /// system call. With the watermark rule lifted it is [`Policy::NextFit`], because a requester that names offsets
    /// knows the free ranges.
    NextFitGuessing = 0,
    /// **Next fit with metadata**: the same choice without failing retypes. Cheapest to choose (1 to 22 slabs examined,
    /// mostly 1), spreads wear evenly, mixes everything: the most memory is lost.
    NextFit = 1,
    /// **First fit**: the first slab with room, the largest first. Keeps the small slabs free; good only if little is
    /// freed before everything is.
    FirstFit = 2,
    /// **Best fit**, R1's: the slab with the least left above the objects, the first of equals. Fills small slabs
    /// first, which become empty, and so are reset, more often.
    #[default]
    BestFit = 3,
    /// **Worst fit**: the slab with the most left. Spreads objects over the large slabs, so that hardly any becomes
    /// empty; good as a bad example, and where the rest is to stay useful for large objects.
    WorstFit = 4,
    /// **Best fit that counts alignment**: memory skipped to align the objects counts as left over too, so a slab with
    /// little room is not chosen because skipping uses it up. R1's closing idea; on its workloads as good as best fit.
    BestFitAlignment = 5,
    /// **Segregated**: objects of a size keep to slabs of their own, and slabs in use fill before empty ones, large
    /// ones first; `docs/manual/policies.md` describes it. Less is lost than with best fit in every workload of R1's
    /// study except for one peak, which is equal. Good wherever memory is short and objects of many sizes come and go.
    Segregated = 6,
    /// **Buddy**: the smallest block of a power of two, aligned to its size, that holds the objects. The rest consists
    /// of blocks again, so large aligned requests fit for long. Good with the watermark rule lifted.
    Buddy = 7,
}

/// A range of free memory in which the objects fit, in bytes from the slab's base.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    slab: usize,
    start: u64,
    offset: u64,
    end: u64,
    limit: u64,
}

impl Candidate {
    /// Returns the candidate for the objects in free memory from `start` to `limit`, if they fit.
    fn within(slab: usize, start: u64, limit: u64, descriptor: Descriptor) -> Option<Candidate> {
        let offset = align_up(start, descriptor.size);
        let end = offset + descriptor.bytes();
        (end <= limit).then_some(Candidate { slab, start, offset, end, limit })
    }

    fn left(&self) -> u64 {
        self.limit - self.end
    }
}

impl Policy {
    /// All policies, in the order of their codes.
    pub const ALL: [Policy; 8] = [
        Policy::NextFitGuessing,
        Policy::NextFit,
        Policy::FirstFit,
        Policy::BestFit,
        Policy::WorstFit,
        Policy::BestFitAlignment,
        Policy::Segregated,
        Policy::Buddy,
    ];

    /// Returns the policy's name in the keys of figures. R1's next fit is the one that guesses.
    pub const fn key(self) -> &'static str {
        match self {
            Policy::NextFitGuessing => "next",
            Policy::NextFit => "next_exact",
            Policy::FirstFit => "first",
            Policy::BestFit => "best",
            Policy::WorstFit => "worst",
            Policy::BestFitAlignment => "best_alignment",
            Policy::Segregated => "segregated",
            Policy::Buddy => "buddy",
        }
    }

    /// Returns the policy's name for users.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::NextFitGuessing => "next-fit-guessing",
            Policy::NextFit => "next-fit",
            Policy::FirstFit => "first-fit",
            Policy::BestFit => "best-fit",
            Policy::WorstFit => "worst-fit",
            Policy::BestFitAlignment => "best-fit-alignment",
            Policy::Segregated => "segregated",
            Policy::Buddy => "buddy",
        }
    }

    /// Returns the policy's number in messages.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// Returns the policy with that number.
    pub fn from_code(code: u64) -> Option<Policy> {
        Policy::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns slab and offset for objects, if there is room for them. `rover` is where next fit continues.
    pub(crate) fn choose(self, slabs: &[Slab], rover: usize, descriptor: Descriptor) -> Option<(usize, u64)> {
        let chosen = match self {
            Policy::NextFit | Policy::NextFitGuessing => {
                let order = (rover..slabs.len()).chain(0..rover.min(slabs.len()));
                first(slabs, order, descriptor)
            }
            Policy::FirstFit => first(slabs, 0..slabs.len(), descriptor),
            Policy::BestFit => least(slabs, descriptor, |candidate| candidate.left()),
            Policy::WorstFit => least(slabs, descriptor, |candidate| u64::MAX - candidate.left()),
            Policy::BestFitAlignment => {
                least(slabs, descriptor, |candidate| candidate.left() + (candidate.offset - candidate.start))
            }
            Policy::Segregated => segregated(slabs, descriptor),
            Policy::Buddy => buddy(slabs, descriptor),
        };
        chosen.map(|candidate| (candidate.slab, candidate.offset))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = ();

    fn from_str(name: &str) -> Result<Policy, ()> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or(())
    }
}

/// Calls `visit` with each candidate, slab by slab, until it returns true.
fn each_candidate(
    slabs: &[Slab],
    numbers: impl Iterator<Item = usize>,
    descriptor: Descriptor,
    mut visit: impl FnMut(&Slab, Candidate) -> bool,
) {
    for number in numbers {
        let slab = &slabs[number];
        if slab.lifted() {
            let mut fitting =
                slab.holes().iter().filter_map(|hole| Candidate::within(number, hole.start, hole.end, descriptor));
            if fitting.any(|candidate| visit(slab, candidate)) {
                return;
            }
        } else if let Some(candidate) = Candidate::within(number, slab.watermark(), slab.size(), descriptor)
            && visit(slab, candidate)
        {
            return;
        }
    }
}

/// Returns the first candidate.
fn first(slabs: &[Slab], numbers: impl Iterator<Item = usize>, descriptor: Descriptor) -> Option<Candidate> {
    let mut found = None;
    each_candidate(slabs, numbers, descriptor, |_, candidate| {
        found = Some(candidate);
        true
    });
    found
}

/// Returns the candidate with the least cost, the first of equals. The search ends at cost 0.
fn least(slabs: &[Slab], descriptor: Descriptor, cost: impl Fn(&Candidate) -> u64) -> Option<Candidate> {
    let mut best: Option<(u64, Candidate)> = None;
    each_candidate(slabs, 0..slabs.len(), descriptor, |_, candidate| {
        let cost = cost(&candidate);
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, candidate));
        }
        cost == 0
    });
    best.map(|(_, candidate)| candidate)
}

/// Returns the candidate for objects of this size in the slab of least cost, in eighths of a byte (for a request of `n`
/// bytes):
///
/// | slab | cost |
/// |---|---|
/// | empty | `left` |
/// | in use, for objects of this size alone | `5 left + 4 live - 6 size` |
/// | in use, otherwise | `left + 4 live - 6 size`, and `5 size` if its largest object has another size, and `240 n` if its last one has |
/// | each | `26 n log2(size)` besides |
///
/// So a slab that already serves this size is chosen first, the largest of them, because a slab that is emptied as a
/// whole is worth as much as it is large; the more of its memory is dead, the better, since dead bytes are lost anyway.
/// An empty slab is opened next, the one in which least is left; this costs small objects more than large ones, which
/// should have slabs that they fill alone. A slab of another size is mixed last, and a large one only for want of
/// others. The last term keeps large requests out of large slabs if small ones suffice.
///
/// The weights were found by a search on R1's workloads and random ones. Around them is a small plateau (232 to 240 for
/// the 240, 24 to 28 for the 26) where results hardly change; beyond it sequence 2 can do worse than best fit. Without
/// the watermark rule there is nothing to segregate, and this is best fit.
fn segregated(slabs: &[Slab], descriptor: Descriptor) -> Option<Candidate> {
    let bytes = descriptor.bytes().cast_signed();
    let bits = descriptor.size.trailing_zeros() as u8;
    let mut best: Option<(i64, Candidate)> = None;
    each_candidate(slabs, 0..slabs.len(), descriptor, |slab, candidate| {
        let left = candidate.left().cast_signed();
        let cost = if slab.lifted() {
            left
        } else {
            26 * bytes * i64::from(slab.size().trailing_zeros()) + kept_apart(slab, bits, bytes, left)
        };
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, candidate));
        }
        false
    });
    best.map(|(_, candidate)| candidate)
}

/// Returns the part of [`segregated`]'s cost that depends on the slab's objects.
fn kept_apart(slab: &Slab, bits: u8, bytes: i64, left: i64) -> i64 {
    if slab.objects() == 0 {
        return left;
    }
    let size = slab.size().cast_signed();
    let used = left + 4 * slab.live().cast_signed() - 6 * size;
    match (slab.largest_bits() == bits, slab.last_bits() == bits) {
        (true, true) => used + 4 * left,
        (true, false) => used + 240 * bytes,
        (false, true) => used + 5 * size,
        (false, false) => used + 5 * size + 240 * bytes,
    }
}

/// Returns the smallest buddy block that holds the objects, or, if there is none, the candidate that skips least.
///
/// With the watermark rule only the block at the aligned watermark of a slab can be used. Without it, a hole is divided
/// into blocks, and each is examined.
fn buddy(slabs: &[Slab], descriptor: Descriptor) -> Option<Candidate> {
    let wanted = descriptor.bytes().next_power_of_two();
    let mut best: Option<(u64, Candidate)> = None;
    each_candidate(slabs, 0..slabs.len(), descriptor, |slab, candidate| {
        let mut offer = |block: u64, candidate: Candidate| {
            // A candidate that is not a whole block comes after all that are.
            let cost = if block >= wanted { block } else { (1 << 48) + candidate.left() };
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, candidate));
            }
        };
        if slab.lifted() {
            for (start, block) in blocks(candidate.start, candidate.limit) {
                if block >= wanted {
                    offer(block, Candidate { offset: start, end: start + descriptor.bytes(), ..candidate });
                }
            }
        }
        offer(block_at(candidate.offset, candidate.limit), candidate);
        false
    });
    best.map(|(_, candidate)| candidate)
}

/// Returns the size of the largest aligned block that begins at `start` and ends by `limit`.
fn block_at(start: u64, limit: u64) -> u64 {
    let room = limit - start;
    let largest = if room == 0 { 0 } else { 1 << room.ilog2() };
    if start == 0 { largest } else { largest.min(1 << start.trailing_zeros()) }
}

/// Returns the blocks into which free memory is divided, each as large as its alignment allows.
fn blocks(start: u64, limit: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = start;
    core::iter::from_fn(move || {
        let block = block_at(at, limit);
        at += block;
        (block > 0).then_some((at - block, block))
    })
}
