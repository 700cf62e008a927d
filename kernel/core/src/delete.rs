//! Deleting and revoking: how capabilities are deleted, and objects with their last capability.
//!
//! A deletion is a sequence of bounded steps with preemption points in between. Its progress is stored in the
//! capability itself and not in the thread: the capability is flagged as a *zombie*, which cannot be used any more, but
//! deleted further by any thread. So if the thread is deleted at a preemption point, there is nothing to undo.
//!
//! [`containers`] deals with objects that contain slots. Exported capabilities stay, and so do containers with exported
//! capabilities in them ([`past_exports`] continues after them). Invariants: docs/invariants.md, "Zombies". Operations
//! are documented in `tench_abi::Operation`.

pub(crate) mod containers;
mod past_exports;

use tench_abi::{Error, Kind, Rights};

use crate::address_space::tables;
use crate::endpoint::Endpoint;
use crate::mapping::{Mapping, scattered};
use crate::notification::Notification;
use crate::object::Ref;
use crate::preemption_point::Passed;
use crate::reply::Reply;
use crate::scheduling_context::SchedulingContext;
use crate::slot::payload::Marks;
use crate::slot::{Cap, Named, Slot, SlotRef, flag};
use crate::syscall::{Outcome, argument};
use crate::thread::Thread;
use crate::{
    Arch, Kernel, cspace, derivation, endpoint, interrupt, mapping, notification, preemption_point, reply,
    scheduling_context, syscall, thread,
    tree::{self, runs},
};

/// The result of a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deleted {
    /// Other capabilities to the object remain, or children of an untyped.
    NotLast,
    /// The object was deleted.
    Freed {
        /// Physical address of its memory.
        address: u64,
        /// Log2 of its size in bytes; 0 if it had no memory.
        size_bits: u8,
    },
}

/// Approximate number of instructions between two preemption points.
const BUDGET: isize = 1200;
/// Cost of removing a capability, in instructions.
const REMOVE_COST: isize = 300;
/// Cost of removing a page together with its run.
const REMOVE_PAGE_COST: isize = 22;
/// Cost of removing untyped memory in a large tree, where each subtree stores how far it reaches.
const REMOVE_UNTYPED_COST: isize = 600;
/// Cost of removing a page that divides its run in a large tree: one or two nodes are entered into the tree.
const DIVIDE_RUN_COST: isize = 1000;
/// Cost of a step of an object's end while the object is not in use.
const FINALISE_COST: isize = 100;
/// Cost of a step where a thread waits, an interrupt is bound or memory is mapped.
const END_USE_COST: isize = 900;

/// Returns whether the rest of the budget pays for a step. If not, the step is not begun, and a preemption point is
/// due.
fn affords(budget: &mut isize, cost: isize) -> bool {
    let is_paid = cost <= *budget;
    if !is_paid {
        *budget = 0;
    }
    is_paid
}

// After a preemption point each step can be begun.
const _: () = assert!(REMOVE_COST <= REMOVE_UNTYPED_COST && REMOVE_UNTYPED_COST <= DIVIDE_RUN_COST);
const _: () = assert!(DIVIDE_RUN_COST <= BUDGET);
const _: () = assert!(FINALISE_COST <= END_USE_COST && END_USE_COST <= BUDGET && containers::STOP_COST <= BUDGET);

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The slot is empty, and no other slot was changed.
    Done,
    /// The slot is empty. Any other slot may have been emptied, or its node deleted.
    DoneWithContents,
    /// A preemption point is due; the slot holds a zombie.
    Pending,
    /// The slot holds an exported capability, or the zombie of a container with one in it; all else in the container
    /// was deleted. Any other slot may have been emptied, or its node deleted.
    Stays,
}

/// Number of preemption points that an operation may still pass before it ends, completed or not.
#[derive(Clone, Copy, Debug)]
struct PreemptionPoints(u64);

impl PreemptionPoints {
    const ALL: PreemptionPoints = PreemptionPoints(u64::MAX);

    /// Passes a preemption point. Returns whether other threads have run there.
    ///
    /// # Errors
    /// `Unfinished` if the operation may pass no more. `Aborted` if the running thread has deleted itself: it must stop
    /// at once.
    fn pass<A: Arch>(&mut self, k: &mut Kernel<A>) -> Result<bool, Error> {
        if self.0 == 0 {
            return Err(Error::Unfinished);
        }
        self.0 -= 1;
        match preemption_point::pass(k) {
            Passed::Undisturbed => Ok(false),
            Passed::Disturbed => Ok(true),
            Passed::Deleted => Err(Error::Aborted),
        }
    }
}

/// Performs `Delete`.
pub fn delete_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let sees_addresses = syscall::may_see_addresses(k, thread, 2)?;
    let (cspace, address) = (argument(k, thread, 0), argument(k, thread, 1));
    let slot = full_slot(k, cspace, address)?;
    let deleted = match at_once::<_, false>(k, slot) {
        Some(deleted) => deleted,
        None => delete_named(k, slot, (cspace, address), PreemptionPoints::ALL)?,
    };
    Ok(report(k, thread, deleted, sees_addresses))
}

/// Deletes a capability that needs no preemption point: to a mapping of few pages, to untyped memory, one of several to
/// any object, or the only one to a frame that is not mapped. Returns `None` if it is another one or the slot is empty,
/// and then nothing was written. `FAST` says that the slot is emptied without a call.
#[inline(always)]
pub fn at_once<A: Arch, const FAST: bool>(k: &mut Kernel<A>, slot: SlotRef) -> Option<Deleted> {
    let cap = &k.slot(slot).cap;
    let Cap { kind, flags, size_bits, object, .. } = *cap;
    if flags & (flag::EMBEDDED | flag::ZOMBIE) != 0 {
        return None;
    }
    if kind == Kind::Mapping {
        let count = Mapping::of(cap).count;
        if scattered::is_scattered(cap) || count > mapping::STEP {
            return None;
        }
        // ── Point of no return ──
        if count == 1 {
            mapping::finalise_page(k, slot);
        } else {
            mapping::finalise_row(k, slot);
        }
        derivation::remove_follower(k, slot);
        return Some(Deleted::Freed { address: 0, size_bits: 0 });
    }
    let others = if kind == Kind::Untyped {
        derivation::first_child(k, slot).is_some()
    } else {
        let found = derivation::neighbours(k, slot);
        if !found.sibling && (kind != Kind::Frame || found.mapping) {
            return None;
        }
        found.sibling
    };
    // ── Point of no return ──
    if FAST {
        derivation::remove_fast(k, slot)
    } else {
        derivation::remove(k, slot)
    }
    if others { Some(Deleted::NotLast) } else { Some(Deleted::Freed { address: k.physical(object), size_bits }) }
}

/// Performs `DeletePart`.
pub fn delete_part_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let points = PreemptionPoints(argument(k, thread, 2));
    let (cspace, address) = (argument(k, thread, 0), argument(k, thread, 1));
    let slot = full_slot(k, cspace, address)?;
    let deleted = delete_named(k, slot, (cspace, address), points)?;
    Ok(report(k, thread, deleted, false))
}

/// Returns the slot at an address, which has to hold a capability.
fn full_slot<A: Arch>(k: &mut Kernel<A>, cspace: u64, address: u64) -> Result<SlotRef, Error> {
    let slot = cspace::slot_in(k, cspace, address, Rights::WRITE)?;
    if k.slot(slot).cap.kind as u8 == Kind::Null as u8 { Err(Error::InvalidCapability) } else { Ok(slot) }
}

/// Writes the results of a deletion: the address of the memory that became free, if the running thread may learn it.
fn report<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, deleted: Deleted, sees_addresses: bool) -> Outcome {
    match deleted {
        Deleted::NotLast => Outcome::Done,
        Deleted::Freed { address, size_bits } => {
            let address = if sees_addresses { address } else { 0 };
            Outcome::results(k, thread, &[1, address, size_bits.into()])
        }
    }
}

/// Deletes the capability at an address, with preemption points.
#[cold]
#[inline(never)]
fn delete_named<A: Arch>(
    k: &mut Kernel<A>,
    slot: SlotRef,
    (cspace, address): (u64, u64),
    points: PreemptionPoints,
) -> Result<Deleted, Error> {
    delete_in_steps(k, slot, points, &mut |k| cspace::slot_in(k, cspace, address, Rights::WRITE).ok())
}

/// Deletes the capability in a slot without an address: a thread's binding. Contains preemption points; after each, the
/// slot is looked up in the derivation structure.
///
/// # Errors
/// `Aborted` if the running thread has deleted itself: it must stop at once. `RemoteCopies` if the slot still holds a
/// container with exported capabilities in it.
pub fn delete<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Result<Deleted, Error> {
    delete_in_steps(k, slot, PreemptionPoints::ALL, &mut |k| {
        if derivation::slot_exists(k, slot) { Some(slot) } else { None }
    })
}

/// Deletes with preemption points. `find` looks the slot up again after each.
#[inline(never)]
fn delete_in_steps<A: Arch>(
    k: &mut Kernel<A>,
    slot: SlotRef,
    mut points: PreemptionPoints,
    find: &mut dyn FnMut(&mut Kernel<A>) -> Option<SlotRef>,
) -> Result<Deleted, Error> {
    let cap = k.slot(slot).cap;
    let has_children = cap.kind == Kind::Untyped && derivation::first_child(k, slot).is_some();
    let last = is_zombie(&cap) || derivation::is_last(k, slot) && !has_children;
    let mut slot = slot;
    let mut budget = BUDGET;
    loop {
        match step(k, slot, &mut budget) {
            Step::Pending => {}
            Step::Stays => return Err(Error::RemoteCopies),
            Step::Done | Step::DoneWithContents => break,
        }
        budget = BUDGET;
        if !points.pass(k)? {
            continue;
        }
        // If the slot is gone, another thread has completed the deletion, and got its result.
        let Some(found) = find(k) else { return Ok(Deleted::NotLast) };
        let now = &k.slot(found).cap;
        if !is_zombie(now) || !derivation::same_object(now, &cap) {
            return Ok(Deleted::NotLast);
        }
        slot = found;
    }
    if !last {
        return Ok(Deleted::NotLast);
    }
    Ok(freed(k, &cap))
}

/// Returns the memory that became free with the last capability to an object.
fn freed<A: Arch>(k: &mut Kernel<A>, cap: &Cap) -> Deleted {
    let without_memory =
        matches!(cap.kind, Kind::Mapping | Kind::Interrupt | Kind::InterruptControl | Kind::Kernel | Kind::Doorbell);
    if without_memory || derivation::is_reservation(cap) {
        return Deleted::Freed { address: 0, size_bits: 0 };
    }
    Deleted::Freed { address: k.physical(cap.object), size_bits: cap.size_bits }
}

/// The capabilities that revoking a capability deletes.
#[derive(Clone, Copy)]
enum Scope {
    /// The descendants of an untyped: the capabilities after it that begin below this address.
    Memory(usize),
    /// All other capabilities to the object, and its mappings.
    Object,
    /// All other capabilities to the object with the same badge.
    Badge,
    /// None: nothing was derived from a copy.
    Nothing,
}

impl Scope {
    /// Returns the scope of revoking a capability.
    fn of(cap: &Cap) -> Scope {
        if matches!(cap.kind, Kind::Untyped) {
            Scope::Memory(derivation::end_address(cap))
        } else if cap.flags & flag::ORIGINAL != 0 {
            Scope::Object
        } else if cap.flags & flag::BADGE_ORIGIN != 0 {
            Scope::Badge
        } else {
            Scope::Nothing
        }
    }

    /// Returns whether revoking `cap` deletes `other`, a sibling or its mapping.
    fn takes(self, other: &Cap, cap: &Cap) -> bool {
        other.object == cap.object
            && match self {
                Scope::Object => other.kind == cap.kind || other.kind == Kind::Mapping,
                Scope::Badge => other.kind == cap.kind && other.badge() == cap.badge(),
                Scope::Memory(_) | Scope::Nothing => false,
            }
    }

    /// Returns the next capability to delete, if it is a sibling.
    fn victim<A: Arch>(self, k: &mut Kernel<A>, slot: SlotRef) -> Option<SlotRef> {
        let cap = k.slot(slot).cap;
        let both = [tree::next(k, slot), tree::previous(k, slot)];
        both.into_iter().flatten().find(|other| self.takes(&k.slot(*other).cap, &cap))
    }
}

/// Performs `Revoke`.
///
/// If the capability itself is deleted or split meanwhile (by another thread, or because it lies in what it revokes),
/// the call ends there.
pub fn revoke_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let count = revoke_within(k, thread, &mut { PreemptionPoints::ALL })?;
    Ok(Outcome::results(k, thread, &[count]))
}

/// Performs `RevokePart`.
pub fn revoke_part_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let most = argument(k, thread, 2);
    let mut points = PreemptionPoints(most);
    let count = revoke_within(k, thread, &mut points)?;
    Ok(Outcome::results(k, thread, &[count, most - points.0]))
}

/// Revokes a capability, completely or in part. Returns the number of capabilities deleted.
#[inline(never)]
fn revoke_within<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, points: &mut PreemptionPoints) -> Result<u64, Error> {
    let (cspace, address) = (argument(k, thread, 0), argument(k, thread, 1));
    let mut slot = cspace::lookup_in(k, cspace, address, Rights::WRITE)?;
    let cap = k.slot(slot).cap;
    let scope = Scope::of(&cap);
    let mut count = 0;
    let mut since = k.state().removed;
    let mut budget = BUDGET;
    loop {
        let victim = match scope {
            Scope::Memory(end) => remove_pages(k, slot, end, &mut budget),
            _ => scope.victim(k, slot),
        };
        let Some(victim) = victim else { break };
        let is_due = budget <= 0;
        let step = if is_due { Step::Pending } else { step(k, victim, &mut budget) };
        if step == Step::Done {
            continue;
        }
        if step == Step::Stays {
            return Err(past_exports::revoke(k, cspace, address, &cap, *points));
        }
        if step == Step::Pending {
            count += k.state().removed - since;
            let disturbed = points.pass(k)?;
            since = k.state().removed;
            budget = BUDGET;
            if is_due && !disturbed {
                continue;
            }
        }
        match cspace::lookup_in(k, cspace, address, Rights::WRITE) {
            Ok(found) if is_same(&k.slot(found).cap, &cap) => slot = found,
            Ok(found) if past_exports::is_same(&k.slot(found).cap, &cap) => {
                return Err(past_exports::revoke(k, cspace, address, &cap, *points));
            }
            _ => break,
        }
    }
    if cap.is_exported() {
        return Err(past_exports::stays(k, cspace, address, &cap));
    }
    Ok(count + k.state().removed - since)
}

/// Removes children of an untyped, which ends at `end`, from the first on, as long as they are frame capabilities
/// without mappings, and until a preemption point is due. This is the bulk of most revocations. Returns the next child.
fn remove_pages<A: Arch>(k: &mut Kernel<A>, untyped: SlotRef, end: usize, budget: &mut isize) -> Option<SlotRef> {
    let mut at = tree::next(k, untyped);
    let mut removed = 0;
    let found = loop {
        let Some(victim) = at else { break None };
        let Slot { cap, links } = *k.slot(victim);
        if cap.object >= end {
            break None;
        }
        if cap.kind as u8 != Kind::Frame as u8 || cap.flags & flag::EMBEDDED != 0 || *budget <= 0 {
            break Some(victim);
        }
        let next = SlotRef::new(links.next);
        if !runs::is_removable(k, victim) || next.is_some_and(|next| k.slot(next).cap.kind as u8 == Kind::Mapping as u8)
        {
            break Some(victim);
        }
        let pages = ((*budget - REMOVE_COST) / REMOVE_PAGE_COST).max(1) as usize;
        let most = if links.continues != 0 { pages } else { 1 };
        let count = runs::remove_first(k, victim, most, |k, node| {
            let cap = &mut k.slot(node).cap;
            let stays = cap.flags & flag::EMBEDDED != 0 || cap.object >= end;
            if !stays {
                *cap = Cap::NULL;
            }
            stays
        });
        k.slot(victim).cap = Cap::NULL;
        removed += count as u64;
        *budget -= REMOVE_COST - REMOVE_PAGE_COST + count as isize * REMOVE_PAGE_COST;
        at = tree::next(k, untyped);
    };
    k.state().removed += removed;
    if found.is_none() {
        // No child is left, so the marks return to 0.
        Marks::default().write(&mut k.slot(untyped).cap);
    }
    found
}

/// Returns whether a capability is unchanged, except that an untyped's marks may have changed.
pub(crate) fn is_same(now: &Cap, then: &Cap) -> bool {
    let mut now = *now;
    if matches!(then.kind, Kind::Untyped) {
        Marks::of(then).write(&mut now);
    }
    now == *then
}

/// Returns whether a capability's object is being deleted.
#[inline(always)]
fn is_zombie(cap: &Cap) -> bool {
    cap.flags & flag::ZOMBIE != 0
}

/// Does one bounded step of emptying a slot that is not empty.
fn step<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, budget: &mut isize) -> Step {
    if containers::is_last(k, slot) { containers::empty(k, slot, budget) } else { remove_simple(k, slot, budget) }
}

/// Returns the first mapping of the frame in `slot`, if `slot` holds the frame's last capability; otherwise another
/// capability to the frame comes next.
fn first_mapping<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Option<SlotRef> {
    let Slot { cap, links } = k.slot(slot);
    let (object, next) = (cap.object, SlotRef::new(links.next)?);
    let cap = &k.slot(next).cap;
    if cap.kind as u8 == Kind::Mapping as u8 && cap.object == object { Some(next) } else { None }
}

/// Prepares a slot for being emptied. Returns `false` if its capability is exported and has to stay.
fn unbind<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    k.slot(slot).cap.flags & flag::EMBEDDED == 0 || unbind_embedded(k, slot)
}

/// Clears a thread's binding, after which the slot is like any other. A function of its own, because most slots are no
/// bindings.
#[inline(never)]
fn unbind_embedded<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let cap = &mut k.slot(slot).cap;
    if cap.is_exported() {
        cap.request_revoke();
        return false;
    }
    thread::binding::unbind(k, slot);
    k.slot(slot).cap.flags &= !flag::EMBEDDED;
    true
}

/// Does one step of emptying a slot that does not hold the last capability to a container.
fn remove_simple<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, budget: &mut isize) -> Step {
    let cap = &k.slot(slot).cap;
    let (kind, stays) = (cap.kind, cap.is_exported());
    let cost = match kind {
        Kind::Untyped => REMOVE_UNTYPED_COST,
        _ if !stays && derivation::divides_run(k, slot) => DIVIDE_RUN_COST,
        _ => REMOVE_COST,
    };
    if !affords(budget, cost) {
        return Step::Pending;
    }
    if !unbind(k, slot) {
        *budget -= FINALISE_COST;
        return Step::Stays;
    }
    let last = is_zombie(&k.slot(slot).cap) || derivation::is_last(k, slot);
    if last && !finalise(k, slot, budget) {
        k.slot(slot).cap.flags |= flag::ZOMBIE;
        k.slot(slot).cap.update_flags();
        return Step::Pending;
    }
    derivation::remove(k, slot);
    *budget -= cost;
    Step::Done
}

/// Returns the approximate maximum cost of the next step of an object's end.
fn finalise_cost<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> isize {
    let cap = k.slot(slot).cap;
    let in_use = match cap.kind {
        Kind::Untyped | Kind::InterruptControl | Kind::Kernel | Kind::CapNode | Kind::Thread | Kind::Null => return 0,
        Kind::Frame => first_mapping(k, slot).is_some(),
        Kind::Mapping | Kind::PageTable => true,
        Kind::Endpoint => !end_of(&cap, |object: Ref<Endpoint>| k.get(object).head == 0),
        Kind::Reply => !end_of(&cap, |object: Ref<Reply>| {
            let r = k.get(object);
            r.claimed.is_none() && r.caller.is_none()
        }),
        Kind::Notification => !end_of(&cap, |object: Ref<Notification>| {
            let n = k.get(object);
            n.head.is_none() && n.first_interrupt == 0
        }),
        Kind::SchedulingContext => !end_of(&cap, |object: Ref<SchedulingContext>| k.get(object).owner.is_none()),
        Kind::Interrupt | Kind::Doorbell => false,
    };
    if in_use { END_USE_COST } else { FINALISE_COST }
}

/// Does one step of the end of an object that is not a container. Returns whether nothing refers to it any more.
fn finalise<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, budget: &mut isize) -> bool {
    let cap = k.slot(slot).cap;
    let cost = finalise_cost(k, slot);
    if !affords(budget, cost) {
        return false;
    }
    *budget -= cost;
    match cap.kind {
        Kind::Frame => unmap_one(k, slot, budget),
        Kind::Mapping => mapping::finalise(k, slot),
        Kind::PageTable => end_of(&cap, |object| tables::finalise(k, object)),
        Kind::Endpoint => end_of(&cap, |object| endpoint::finalise(k, object)),
        Kind::Reply => end_of(&cap, |object| reply::finalise(k, object)),
        Kind::Notification => end_of(&cap, |object| notification::finalise(k, object)),
        Kind::SchedulingContext => end_of(&cap, |object| scheduling_context::finalise(k, object)),
        Kind::Interrupt => interrupt::finalise(k, cap.object as u32),
        Kind::Untyped
        | Kind::InterruptControl
        | Kind::Kernel
        | Kind::Doorbell
        | Kind::CapNode
        | Kind::Thread
        | Kind::Null => true,
    }
}

/// Does a step of the end of a capability's object. Returns whether that was the last step.
fn end_of<T: Named>(cap: &Cap, step: impl FnOnce(Ref<T>) -> bool) -> bool {
    cap.named().is_none_or(step)
}

/// Removes one mapping of a frame. Returns whether the frame has none left.
fn unmap_one<A: Arch>(k: &mut Kernel<A>, frame: SlotRef, budget: &mut isize) -> bool {
    let Some(slot) = first_mapping(k, frame) else { return true };
    if mapping::finalise(k, slot) {
        derivation::remove(k, slot);
        *budget -= REMOVE_COST;
    }
    *budget > 0 && first_mapping(k, frame).is_none()
}
