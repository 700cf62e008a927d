//! Counting what was made of an untyped: the account with which a memory manager's books are compared.
//!
//! Children are not listed anywhere; they are the run behind the untyped in the derivation structure, with everything
//! in between that was made of them, and copies. From one child to the next it is one step along the list, or, where
//! something lies between, one search for the first capability that begins at the child's end or later. So the whole
//! takes at most O(log n) for each child, whatever is nested in them.
//!
//! It is a walk of a length that programs choose, so it passes windows. Over one it keeps how far it came, as an
//! address, and the sums; the untyped and the next child are looked up again.

use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability_slot};
use crate::object::Ref;
use crate::slot::{Cap, SlotRef};
use crate::thread::Thread;
use crate::{Arch, Kernel, delete, derivation, space, tree, window};

/// Instructions, roughly, between two windows.
const BUDGET: isize = 1200;
/// What a step to the next capability costs.
const STEP_COST: isize = 25;
/// What a search costs.
const SEARCH_COST: isize = 500;

/// What has been counted.
#[derive(Default)]
struct Account {
    /// Objects.
    objects: u64,
    /// Their bytes.
    bytes: u64,
}

/// `UntypedChildren`.
pub fn children<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let mut untyped = capability_slot(k, thread, Kind::Untyped, Rights::READ)?;
    let cap = k.slot(untyped).cap;
    let mut account = Account::default();
    let mut counted = cap.object;
    while let Some(reached) = count_some(k, untyped, counted, &mut account) {
        counted = reached;
        if !window::pass(k) {
            return Ok(Outcome::Written);
        }
        untyped = again(k, thread, &cap)?;
    }
    Ok(Outcome::results(k, thread, &[account.objects, account.bytes]))
}

/// The untyped, after a window.
fn again<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, then: &Cap) -> Result<SlotRef, Error> {
    let address = argument(k, thread, 0);
    let slot = space::lookup(k, address).map_err(|_| Error::Aborted)?;
    if delete::is_same(&k.slot(slot).cap, then) { Ok(slot) } else { Err(Error::Aborted) }
}

/// Counts children that begin at `from` or later, until a window is due. Answers up to where it has counted, or `None`
/// if there are no more.
fn count_some<A: Arch>(k: &mut Kernel<A>, untyped: SlotRef, from: usize, account: &mut Account) -> Option<usize> {
    let end = derivation::end(&k.slot(untyped).cap);
    let mut counted = from;
    let mut budget = BUDGET;
    let mut at = if from == k.slot(untyped).cap.object { tree::next(k, untyped) } else { search(k, from, &mut budget) };
    while let Some(child) = at {
        let cap = &k.slot(child).cap;
        if cap.object >= end {
            return None;
        }
        if cap.object < counted {
            // A copy, a mapping, or made of the child before.
            if budget <= SEARCH_COST {
                return Some(counted);
            }
            at = search(k, counted, &mut budget);
            continue;
        }
        if budget <= 0 {
            return Some(counted);
        }
        let child_end = derivation::end(cap);
        account.objects += 1;
        account.bytes += (child_end - cap.object) as u64;
        counted = child_end;
        budget -= STEP_COST;
        at = tree::next(k, child);
    }
    None
}

/// The first capability that begins at an address or later.
fn search<A: Arch>(k: &mut Kernel<A>, address: usize, budget: &mut isize) -> Option<SlotRef> {
    *budget -= SEARCH_COST;
    tree::gap(k, |k, node| k.slot(node).cap.object < address).1
}
