//! Counting the children of an untyped, so that a memory manager can compare its table with the kernel's.
//!
//! There is no list of children; they are the consecutive capabilities after the untyped in derivation order, mixed
//! with their own descendants and with copies. From one child to the next it is one step along the list or, if
//! something lies between, one search for the first capability that begins at the child's end or later. So the count
//! takes at most O(log n) for each child, whatever is nested in the children.
//!
//! Programs choose the length of this walk, so it contains preemption points. Across one it keeps the address that it
//! has reached, and the sums; the untyped and the next child are looked up again.

use tench_abi::{Error, Kind, Rights};

use crate::object::Ref;
use crate::preemption_point::Passed;
use crate::slot::{Cap, SlotRef};
use crate::syscall::{Outcome, argument, capability_slot};
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace, delete, derivation, preemption_point, tree};

/// Approximate number of instructions between two preemption points.
const BUDGET: isize = 1200;
/// Cost of a step to the next capability, in instructions.
const STEP_COST: isize = 25;
/// Cost of a search, in instructions.
const SEARCH_COST: isize = 500;

/// The sums counted so far.
#[derive(Default)]
struct Account {
    objects: u64,
    /// Total size of the objects in bytes.
    bytes: u64,
}

/// Performs `UntypedChildren`.
pub fn children<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let mut untyped = capability_slot(k, thread, Kind::Untyped, Rights::READ)?;
    let cap = k.slot(untyped).cap;
    let mut account = Account::default();
    let mut counted = cap.object;
    while let Some(reached) = count_some(k, untyped, counted, &mut account) {
        counted = reached;
        match preemption_point::pass(k) {
            Passed::Undisturbed => {}
            Passed::Disturbed => untyped = again(k, thread, &cap)?,
            Passed::Deleted => return Ok(Outcome::Written),
        }
    }
    Ok(Outcome::results(k, thread, &[account.objects, account.bytes]))
}

/// Looks up the untyped again after a preemption point.
fn again<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, then: &Cap) -> Result<SlotRef, Error> {
    let address = argument(k, thread, 0);
    let slot = cspace::lookup(k, address).map_err(|_| Error::Aborted)?;
    if delete::is_same(&k.slot(slot).cap, then) { Ok(slot) } else { Err(Error::Aborted) }
}

/// Counts children that begin at `from` or later, until a preemption point is due. Returns the address up to which it
/// has counted, or `None` if there are no more.
fn count_some<A: Arch>(k: &mut Kernel<A>, untyped: SlotRef, from: usize, account: &mut Account) -> Option<usize> {
    let end = derivation::end_address(&k.slot(untyped).cap);
    let mut counted = from;
    let mut budget = BUDGET;
    let mut at = if from == k.slot(untyped).cap.object { tree::next(k, untyped) } else { search(k, from, &mut budget) };
    while let Some(child) = at {
        let cap = &k.slot(child).cap;
        if cap.object >= end {
            return None;
        }
        if cap.object < counted {
            // A copy, a mapping, or a descendant of the previous child.
            if budget <= SEARCH_COST {
                return Some(counted);
            }
            at = search(k, counted, &mut budget);
            continue;
        }
        if budget <= 0 {
            return Some(counted);
        }
        let child_end = derivation::end_address(cap);
        account.objects += 1;
        account.bytes += (child_end - cap.object) as u64;
        counted = child_end;
        budget -= STEP_COST;
        at = tree::next(k, child);
    }
    None
}

/// Returns the first capability that begins at an address or later.
fn search<A: Arch>(k: &mut Kernel<A>, address: usize, budget: &mut isize) -> Option<SlotRef> {
    *budget -= SEARCH_COST;
    derivation::first_from(k, address)
}
