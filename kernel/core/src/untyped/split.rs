//! Splitting an untyped in the middle, while its children stay in use.
//!
//! ```text
//!   untyped of 2ⁿ bytes   ┌──a──┬──b──┬─────┬─────┬──────────c─┬────────┐
//!                         └─────┴─────┴─────┴─────┴────────────┴────────┘
//!                                              marks ───────────┘
//!   two of 2ⁿ⁻¹           ┌──a──┬──b──┬─────┬─────┐┌───────c───┬────────┐
//!                         └─────┴─────┴─────┴─────┘└───────────┴────────┘
//!                                          marks ──┘   marks ───┘
//! ```
//! Objects are powers of two in size and aligned to it, so the middle of an untyped lies inside an object only if that
//! is as large as the untyped; then it is the first child. A reservation, too, can lie across the middle, since its
//! length is that of several objects; nothing lies in one, so it is the last capability before the middle. Finding
//! either takes at most one search.
//!
//! In derivation order the lower half keeps the untyped's place (capabilities that begin there are to smaller objects,
//! or were derived from it); the upper half comes before all that begin in the middle. The holder of the untyped's
//! parent sees two children in place of one.

use tench_abi::Error;
use tench_abi::object::UNTYPED_MIN_BITS;

use crate::object::Ref;
use crate::slot::payload::Marks;
use crate::slot::{Cap, SlotRef};
use crate::syscall::{Outcome, argument};
use crate::thread::Thread;
use crate::tree::Gap;
use crate::{Arch, Kernel, cspace, derivation, tree};

/// Performs `UntypedSplit`.
pub fn split<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = super::own_untyped(k, thread)?;
    let cap = k.slot(slot).cap;
    if u32::from(cap.size_bits) <= UNTYPED_MIN_BITS {
        return Err(Error::InvalidArgument);
    }
    let half = 1 << (cap.size_bits - 1);
    let gap = middle(k, slot, cap.object + half).ok_or(Error::Overlap)?;
    let (cspace, address) = (argument(k, thread, 1), argument(k, thread, 2));
    let destination = cspace::destination(k, cspace, address)?;
    // ── Point of no return ──
    let (lower, upper) = halves(k, slot, &cap, gap);
    k.slot(slot).cap = lower;
    derivation::insert(k, gap, destination, &upper);
    tree::lowered(k, slot);
    Ok(Outcome::Done)
}

/// Returns the gap in derivation order for the upper half of an untyped, which begins at `middle`; `None` if an object
/// lies across the middle.
fn middle<A: Arch>(k: &mut Kernel<A>, untyped: SlotRef, middle: usize) -> Option<Gap> {
    let crosses = |cap: &Cap| cap.object < middle && derivation::end_address(cap) > middle;
    if let Some(first) = tree::next(k, untyped)
        && crosses(&k.slot(first).cap)
    {
        return None;
    }
    let gap = derivation::divide(k, middle);
    let last = gap.0.filter(|last| *last != untyped);
    if last.is_some_and(|last| derivation::is_reservation(&k.slot(last).cap) && crosses(&k.slot(last).cap)) {
        return None;
    }
    Some(gap)
}

/// Returns the capabilities to both halves. A half without children has no marks; in the other half the marks stay,
/// limited to its end.
fn halves<A: Arch>(k: &mut Kernel<A>, untyped: SlotRef, cap: &Cap, (_, after): Gap) -> (Cap, Cap) {
    let size_bits = cap.size_bits - 1;
    let half = 1u64 << size_bits;
    let middle = cap.object + half as usize;
    let first = tree::next(k, untyped);
    let lower_used = first.is_some_and(|first| k.slot(first).cap.object < middle);
    let upper_used = after.is_some_and(|after| k.slot(after).cap.object < derivation::end_address(cap));
    let below = |mark: u64| if lower_used { mark.min(half) } else { 0 };
    let above = |mark: u64| if upper_used { mark.saturating_sub(half) } else { 0 };
    let Marks { watermark, placed } = Marks::of(cap);
    let (mut lower, mut upper) = (*cap, cap.at(middle));
    (lower.size_bits, upper.size_bits) = (size_bits, size_bits);
    Marks { watermark: below(watermark), placed: below(placed) }.write(&mut lower);
    Marks { watermark: above(watermark), placed: above(placed) }.write(&mut upper);
    (lower, upper)
}
