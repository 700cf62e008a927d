//! Revoking past what stays: capabilities that stand for copies on other cores, and containers with such in them.
//!
//! A revocation that meets nothing of the kind always takes what comes next. One that does goes on here, where it
//! remembers how far it came: at a capability that stays, or, if that is gone after a window, at a place in the order
//! of derivation. Behind that it takes whatever comes, and what it finds to stay becomes the place. So each is looked
//! at once, however many there are.
//!
//! Finding the place costs about as much as a step; so a window is passed before the step is begun.
//!
//! In the end it answers `ForeignCopies`, also if what stayed could go meanwhile: whoever revokes begins anew in any
//! case.

use tench_abi::{Error, Kind, Rights};

use super::{BUDGET, Scope, Step, Windows, step};
use crate::slot::{Cap, EXPORTED, SlotRef, WANTED, flag};
use crate::{Arch, Kernel, derivation, space, tree, window};

/// What looking at one that stays costs.
const LOOK_COST: isize = 30;

/// Whether a capability is still the one that it was, but that it may have become a stand-in, or be none any more.
#[cold]
pub(super) fn is_same(now: &Cap, then: &Cap) -> bool {
    let plain = |cap: &Cap| {
        let flags = cap.flags & !flag::EMBEDDED;
        match cap.kind {
            Kind::Untyped => Cap { flags, rights: then.rights, aux: cap.aux & !WANTED, ..*cap },
            Kind::Frame | Kind::Endpoint => Cap { flags, extra: cap.extra & !(EXPORTED | u64::from(WANTED)), ..*cap },
            _ => *cap,
        }
    };
    super::is_same(&plain(now), &plain(then))
}

impl Scope {
    /// Whether what comes somewhere behind `cap` goes when that is revoked, or stays because it stands for copies.
    fn takes_behind(self, behind: &Cap, cap: &Cap) -> bool {
        match self {
            Scope::Memory(end) => behind.object < end,
            _ => self.takes(behind, cap),
        }
    }
}

/// What comes next.
enum Found {
    /// To be deleted.
    Victim(SlotRef),
    /// A window is due.
    Window,
    /// Nothing.
    End,
}

/// A revocation, over windows.
struct Walk {
    scope: Scope,
    /// What lies here stays, and between the capability revoked and this nothing else is left.
    passed: Option<(SlotRef, Cap)>,
}

impl Walk {
    /// The next capability to delete, when `slot` is revoked, and behind `at` nothing is yet done. What stays is
    /// passed.
    fn next<A: Arch>(&mut self, k: &mut Kernel<A>, slot: SlotRef, at: &mut SlotRef, budget: &mut isize) -> Found {
        let revoked = k.slot(slot).cap;
        if let Some(before) = tree::previous(k, slot)
            && self.scope.takes(&k.slot(before).cap, &revoked)
        {
            let cap = &mut k.slot(before).cap;
            if !cap.is_exported() {
                return Found::Victim(before);
            }
            // It comes before its equals, so nothing that goes comes before it.
            cap.want();
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
                    return Found::Window;
                }
                *budget -= LOOK_COST;
                k.slot(next).cap.want();
                self.passed = Some((next, cap));
            }
            *at = next;
        }
    }

    /// Where to go on after a window: at what was passed last, or, if that is gone, where it was in the order.
    fn place<A: Arch>(&self, k: &mut Kernel<A>) -> Option<SlotRef> {
        let (slot, place) = self.passed?;
        if derivation::slot_exists(k, slot) {
            let now = &k.slot(slot).cap;
            let stays = now.is_exported() || now.flags & flag::ZOMBIE != 0;
            if stays && derivation::same_object(now, &place) && derivation::badge(now) == derivation::badge(&place) {
                return Some(slot);
            }
        }
        derivation::behind(k, &place)
    }

    /// Deletes until a window is due. Nothing of the budget is spent yet, so that the dearest step can be begun, unless
    /// stand-ins are met first; then it is after the next window.
    fn work<A: Arch>(&mut self, k: &mut Kernel<A>, slot: SlotRef, at: SlotRef) -> Turn {
        let (mut budget, mut at) = (BUDGET, at);
        let mut turn = Turn { is_over: false, has_deleted: false };
        loop {
            let victim = match self.next(k, slot, &mut at, &mut budget) {
                Found::Victim(victim) => victim,
                Found::Window => return turn,
                Found::End => return Turn { is_over: true, ..turn },
            };
            if budget <= 0 {
                return turn;
            }
            let place = k.slot(victim).cap;
            let is_whole = budget == BUDGET;
            let step = step(k, victim, &mut budget);
            // What is left of a budget need not be enough to begin the step.
            turn.has_deleted |= match step {
                Step::Done | Step::DoneWithContents => true,
                Step::Pending => is_whole,
                Step::Stays => false,
            };
            match step {
                Step::Done if victim != at => {}
                Step::Stays => {
                    self.passed = Some((victim, place));
                    return turn;
                }
                Step::Done | Step::DoneWithContents | Step::Pending => return turn,
            }
        }
    }
}

/// What was done between two windows.
struct Turn {
    /// Nothing more is to be deleted.
    is_over: bool,
    /// Something went, or is going.
    has_deleted: bool,
}

/// Goes on with the revocation of `cap`, which lies at an address of a space: from the beginning, where nothing is
/// left. Answers the error with which it ends.
#[cold]
#[inline(never)]
pub(super) fn revoke<A: Arch>(k: &mut Kernel<A>, space: u64, address: u64, cap: &Cap, mut windows: Windows) -> Error {
    let mut walk = Walk { scope: Scope::of(cap), passed: None };
    let mut has_deleted = false;
    loop {
        // A part that only looked at what stays would come no further, however often it is begun anew.
        if has_deleted {
            if let Err(error) = windows.pass(k) {
                return error;
            }
        } else if !window::pass(k) {
            return Error::Aborted;
        }
        let slot = match space::lookup_in(k, space, address, Rights::WRITE) {
            Ok(slot) if is_same(&k.slot(slot).cap, cap) => slot,
            _ => return Error::ForeignCopies,
        };
        let mut at = slot;
        if walk.passed.is_some() {
            at = walk.place(k).unwrap_or(slot);
            let disturbances = window::disturbances(k);
            if !window::pass(k) {
                return Error::Aborted;
            }
            if window::disturbances(k) != disturbances {
                continue;
            }
        }
        let turn = walk.work(k, slot, at);
        has_deleted = turn.has_deleted;
        if turn.is_over {
            return stays(k, space, address, cap);
        }
    }
}

/// What was revoked is a stand-in itself, or such have stayed. Answers the error that says so.
#[cold]
pub(super) fn stays<A: Arch>(k: &mut Kernel<A>, space: u64, address: u64, cap: &Cap) -> Error {
    if let Ok(slot) = space::lookup_in(k, space, address, Rights::WRITE) {
        let now = &mut k.slot(slot).cap;
        if now.is_exported() && is_same(now, cap) {
            now.want();
        }
    }
    Error::ForeignCopies
}
