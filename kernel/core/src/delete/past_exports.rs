//! Revoking past exports: past exported capabilities, and containers with such in them, which stay.
//!
//! A revocation that meets none of these always takes the next capability. One that does continues here, and remembers
//! how far it came: at a capability that stays or, if that is gone after a preemption point, at a place in derivation
//! order. It deletes the capabilities after that, and each further one that stays becomes the new place. So each is
//! examined once, however many there are.
//!
//! Finding the place costs about as much as a step; so a preemption point is passed before the step is begun.
//!
//! In the end this fails with `RemoteCopies`, even if the capabilities that stayed could be deleted meanwhile: the
//! caller begins anew in any case.

use tench_abi::{Error, Kind, Rights};

use super::{BUDGET, PreemptionPoints, Scope, Step, step};
use crate::preemption_point::Passed;
use crate::slot::{Cap, SlotRef, flag};
use crate::{Arch, Kernel, cspace, derivation, preemption_point, tree};

/// Cost of examining a capability that stays, in instructions.
const LOOK_COST: isize = 30;

/// Returns whether a capability is unchanged, except that it may have been exported or unexported.
#[cold]
pub(super) fn is_same(now: &Cap, then: &Cap) -> bool {
    let plain = |cap: &Cap| {
        let mut plain = *cap;
        if matches!(cap.kind, Kind::Untyped | Kind::Frame) {
            plain.set_exported(false);
        }
        if matches!(cap.kind, Kind::Untyped) {
            plain.rights = then.rights;
        }
        plain
    };
    super::is_same(&plain(now), &plain(then))
}

impl Scope {
    /// Returns whether revoking `cap` concerns `behind`, which comes after it: deletes it, or keeps it because it is
    /// exported.
    fn takes_behind(self, behind: &Cap, cap: &Cap) -> bool {
        match self {
            Scope::Memory(end) => behind.object < end,
            _ => self.takes(behind, cap),
        }
    }
}

/// The next capability.
enum Found {
    /// A capability to delete.
    Victim(SlotRef),
    /// A preemption point is due.
    PreemptionPoint,
    End,
}

/// The state of a revocation across preemption points.
struct Walk {
    scope: Scope,
    /// The last capability that stayed, with its slot. Between the revoked capability and this one, only capabilities
    /// that stay are left.
    passed: Option<(SlotRef, Cap)>,
}

impl Walk {
    /// Returns the next capability to delete when `slot` is revoked and all before `at` is done. Passes capabilities
    /// that stay.
    fn next<A: Arch>(&mut self, k: &mut Kernel<A>, slot: SlotRef, at: &mut SlotRef, budget: &mut isize) -> Found {
        let revoked = k.slot(slot).cap;
        if let Some(before) = tree::previous(k, slot)
            && self.scope.takes(&k.slot(before).cap, &revoked)
        {
            let cap = &mut k.slot(before).cap;
            if !cap.is_exported() {
                return Found::Victim(before);
            }
            // The exported capability comes before its equals, so there is nothing to delete before it.
            cap.request_revoke();
        }
        loop {
            let Some(next) = tree::next(k, *at) else { return Found::End };
            let cap = k.slot(next).cap;
            if next != slot {
                if !self.scope.takes_behind(&cap, &revoked) {
                    return Found::End;
                }
                if !cap.is_exported() {
                    return Found::Victim(next);
                }
                if *budget <= 0 {
                    return Found::PreemptionPoint;
                }
                *budget -= LOOK_COST;
                k.slot(next).cap.request_revoke();
                self.passed = Some((next, cap));
            }
            *at = next;
        }
    }

    /// Returns where to continue after a preemption point: at the capability passed last or, if that is gone, at its
    /// place in the order.
    fn resume_point<A: Arch>(&self, k: &mut Kernel<A>) -> Option<SlotRef> {
        let (slot, passed) = self.passed?;
        if derivation::slot_exists(k, slot) {
            let now = &k.slot(slot).cap;
            let stays = now.is_exported() || now.flags & flag::ZOMBIE != 0;
            if stays && derivation::same_object(now, &passed) {
                return Some(slot);
            }
        }
        derivation::behind(k, &passed)
    }

    /// Deletes until a preemption point is due. The budget is still whole, so even the most expensive step can be
    /// begun, unless exported capabilities are met first; then the step comes after the next preemption point.
    fn work<A: Arch>(&mut self, k: &mut Kernel<A>, slot: SlotRef, at: SlotRef) -> Turn {
        let (mut budget, mut at) = (BUDGET, at);
        let mut turn = Turn { is_over: false, has_deleted: false };
        loop {
            let victim = match self.next(k, slot, &mut at, &mut budget) {
                Found::Victim(victim) => victim,
                Found::PreemptionPoint => return turn,
                Found::End => return Turn { is_over: true, ..turn },
            };
            if budget <= 0 {
                return turn;
            }
            let passed = k.slot(victim).cap;
            let is_whole = budget == BUDGET;
            let step = step(k, victim, &mut budget);
            // The rest of a budget may not be enough to begin the step.
            turn.has_deleted |= match step {
                Step::Done | Step::DoneWithContents => true,
                Step::Pending => is_whole,
                Step::Stays => false,
            };
            match step {
                Step::Done if victim != at => {}
                Step::Stays => {
                    self.passed = Some((victim, passed));
                    return turn;
                }
                Step::Done | Step::DoneWithContents | Step::Pending => return turn,
            }
        }
    }
}

/// The result of the work between two preemption points.
struct Turn {
    /// Nothing is left to be deleted.
    is_over: bool,
    /// A capability was deleted, or its deletion has begun.
    has_deleted: bool,
}

/// Continues the revocation of `cap`, at an address in a CSpace, past capabilities that stay, beginning directly after
/// `cap`. Returns the error with which the revocation ends.
#[cold]
#[inline(never)]
pub(super) fn revoke<A: Arch>(
    k: &mut Kernel<A>,
    cspace: u64,
    address: u64,
    cap: &Cap,
    mut points: PreemptionPoints,
) -> Error {
    let mut walk = Walk { scope: Scope::of(cap), passed: None };
    let mut has_deleted = false;
    loop {
        // A part that only examined capabilities that stay must not end here: begun anew, it would never get further.
        if has_deleted {
            if let Err(error) = points.pass(k) {
                return error;
            }
        } else if preemption_point::pass(k).is_deleted() {
            return Error::Aborted;
        }
        let slot = match cspace::lookup_in(k, cspace, address, Rights::WRITE) {
            Ok(slot) if is_same(&k.slot(slot).cap, cap) => slot,
            _ => return Error::RemoteCopies,
        };
        let mut at = slot;
        if walk.passed.is_some() {
            at = walk.resume_point(k).unwrap_or(slot);
            match preemption_point::pass(k) {
                Passed::Undisturbed => {}
                Passed::Disturbed => continue,
                Passed::Deleted => return Error::Aborted,
            }
        }
        let turn = walk.work(k, slot, at);
        has_deleted = turn.has_deleted;
        if turn.is_over {
            return stays(k, cspace, address, cap);
        }
    }
}

/// Requests revocation of `cap` if it is exported itself. Returns the error for a revocation after which capabilities
/// stay.
#[cold]
pub(super) fn stays<A: Arch>(k: &mut Kernel<A>, cspace: u64, address: u64, cap: &Cap) -> Error {
    if let Ok(slot) = cspace::lookup_in(k, cspace, address, Rights::WRITE) {
        let now = &mut k.slot(slot).cap;
        if now.is_exported() && is_same(now, cap) {
            now.request_revoke();
        }
    }
    Error::RemoteCopies
}
