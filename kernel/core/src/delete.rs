//! Deleting and revoking: how capabilities go, and objects with their last one.
//!
//! A deletion is a sequence of bounded steps with windows between them. What is under way is not remembered by the
//! thread that does it but written in the capability itself, which is flagged as a *zombie*: it cannot be used any more,
//! only deleted further, by anybody. So a thread that is deleted in a window leaves nothing to undo.
//!
//! Nodes and threads contain slots, which can hold the last capabilities to further nodes and threads, and so on in any
//! shape. They are not descended into. When a container's slot turns out to hold the last capability to another
//! container, that capability moves *into the object that it names*, into its first slot, and what was there comes out
//! into the slot that is being emptied:
//!
//! ```text
//!            ┌─ slot being emptied                      ┌─ now holds B, which is dealt with next
//!    node A  ▼                                  node A  ▼
//!   ┌───┬────────┬───┐      node N             ┌───┬────────┬───┐      node N
//!   │   │ last N │   │     ┌───┬───┬───┐       │   │ last B │   │     ┌──────────┬───┬───┐
//!   └───┴────────┴───┘     │ B │ C │ D │  ──►  └───┴────────┴───┘     │ zombie N │ C │ D │
//!                          └───┴───┴───┘                              └──────────┴───┴───┘
//! ```
//! N now waits for nobody and nobody waits for N: it is linked into a ring with A and emptied in its turn, independent of
//! the others. Nesting costs no stack, and cycles are no case of their own. The capability that the deletion began with
//! is the ring's last to go, so it can be named until all that belongs to it is gone.
//!
//! A container's zombie uses `badge` for its progress (slots below are empty) and `extra` for the ring. Invariants:
//! docs/invariants.md, "Zombies". Operations are documented in `tench_abi::Operation`.

use core::mem::offset_of;

use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument};
use crate::object::Ref;
use crate::slot::{Cap, Slot, SlotRef, flag};
use crate::thread::{BINDINGS, THREAD_OFFSET, Thread};
use crate::tree;
use crate::{
    Arch, Kernel, derivation, endpoint, interrupt, mapping, notification, reply, scheduling, space, table, thread,
    window,
};

/// What a deletion did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deleted {
    /// Other capabilities to the object remain, or an untyped's children do.
    NotLast,
    /// The object is gone.
    Freed {
        /// Physical address of its memory.
        address: u64,
        /// Log2 of its size; 0 if it had no memory.
        size_bits: u8,
    },
}

/// Instructions, roughly, between two windows.
const BUDGET: isize = 1200;
/// What taking a capability out costs.
const REMOVE_COST: isize = 150;
/// What looking at a slot costs.
const SLOT_COST: isize = 8;
/// What a step of an object's end costs.
const FINALISE_COST: isize = 400;

/// Progress of a thread that has not been stopped yet.
const NOT_STOPPED: u64 = u64::MAX;

/// How far a step came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The slot is empty, and no other slot was touched.
    Done,
    /// The slot is empty. Any other slot may have been emptied or its node be gone.
    DoneWithContents,
    /// A window has to be passed; the slot holds a zombie.
    Pending,
}

/// Work until the next window, and what it is for.
struct Work {
    /// What is left of [`BUDGET`].
    budget: isize,
    /// The slot whose content is to go. It follows that content when a container's end moves it.
    root: SlotRef,
}

/// `Delete`.
pub fn delete_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (space, address) = (argument(k, thread, 0), argument(k, thread, 1));
    let slot = space::slot_in(k, space, address, Rights::WRITE)?;
    if k.slot(slot).cap.kind as u8 == Kind::Null as u8 {
        return Err(Error::InvalidCapability);
    }
    let deleted = match delete_first(k, slot) {
        Some(deleted) => deleted,
        None => {
            let mut find = |k: &mut Kernel<A>| space::slot_in(k, space, address, Rights::WRITE).ok();
            delete_in_steps(k, slot, &mut find)?
        }
    };
    Ok(match deleted {
        Deleted::NotLast => Outcome::Done,
        Deleted::Freed { address, size_bits } => Outcome::results(k, thread, &[1, address, size_bits.into()]),
    })
}

/// Deletes what a slot holds that no address names: a thread's binding. Passes windows; the slot is looked for in the
/// derivation structure after each.
///
/// # Errors
/// `Aborted` if the running thread has deleted itself: it must stop at once.
pub fn delete<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Result<Deleted, Error> {
    if let Some(deleted) = delete_first(k, slot) {
        return Ok(deleted);
    }
    delete_in_steps(k, slot, &mut |k| if derivation::slot_exists(k, slot) { Some(slot) } else { None })
}

/// Deletes a capability that takes no window: one of several, or the last to something small.
#[inline]
fn delete_first<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Option<Deleted> {
    let cap = &k.slot(slot).cap;
    let (kind, flags, object, size_bits) = (cap.kind, cap.flags, cap.object, cap.size_bits);
    if flags & (flag::EMBEDDED | flag::ZOMBIE) != 0 {
        return None;
    }
    let (others, small) = if kind as u8 == Kind::Untyped as u8 {
        (derivation::first_child(k, slot).is_some(), true)
    } else {
        let found = derivation::neighbours(k, slot);
        let others = found.sibling && kind as u8 != Kind::Mapping as u8;
        (others, others || kind as u8 == Kind::Frame as u8 && !found.mapping)
    };
    if !small {
        return None;
    }
    derivation::remove(k, slot);
    if others {
        return Some(Deleted::NotLast);
    }
    Some(Deleted::Freed { address: k.physical(object), size_bits })
}

/// Deletes with windows. `find` looks the slot up again after each.
#[inline(never)]
fn delete_in_steps<A: Arch>(
    k: &mut Kernel<A>,
    slot: SlotRef,
    find: &mut dyn FnMut(&mut Kernel<A>) -> Option<SlotRef>,
) -> Result<Deleted, Error> {
    let cap = k.slot(slot).cap;
    let last = is_zombie(&cap) || derivation::is_last(k, slot);
    let mut slot = slot;
    let mut budget = BUDGET;
    while step(k, slot, &mut budget) == Step::Pending {
        if !window::pass(k) {
            return Err(Error::Aborted);
        }
        budget = BUDGET;
        // If it is gone, somebody else has finished it, and was told so.
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

/// What has become free with the last capability to an object.
fn freed<A: Arch>(k: &mut Kernel<A>, cap: &Cap) -> Deleted {
    let without_memory = matches!(cap.kind, Kind::Mapping | Kind::Interrupt | Kind::InterruptControl | Kind::Kernel);
    if without_memory || derivation::is_reservation(cap) {
        return Deleted::Freed { address: 0, size_bits: 0 };
    }
    Deleted::Freed { address: k.physical(cap.object), size_bits: cap.size_bits }
}

/// What revoking a capability deletes.
#[derive(Clone, Copy)]
enum Scope {
    /// All that was made of an untyped: what comes behind it and begins before this address.
    Memory(usize),
    /// All other capabilities to the object, and its mappings.
    Object,
    /// All other capabilities to the object with the same badge.
    Badge,
    /// A copy: nothing was derived from it.
    Nothing,
}

impl Scope {
    /// That of a capability.
    #[inline]
    fn of(cap: &Cap) -> Scope {
        if matches!(cap.kind, Kind::Untyped) {
            Scope::Memory(derivation::end(cap))
        } else if cap.flags & flag::ORIGINAL != 0 {
            Scope::Object
        } else if cap.flags & flag::BADGE_ORIGIN != 0 {
            Scope::Badge
        } else {
            Scope::Nothing
        }
    }

    /// The next capability to delete.
    #[inline(always)]
    fn victim<A: Arch>(self, k: &mut Kernel<A>, slot: SlotRef) -> Option<SlotRef> {
        if let Scope::Memory(end) = self {
            let next = tree::next(k, slot)?;
            return if k.slot(next).cap.object < end { Some(next) } else { None };
        }
        let cap = k.slot(slot).cap;
        let goes = |other: &Cap| {
            other.object == cap.object
                && match self {
                    Scope::Object => other.kind == cap.kind || other.kind == Kind::Mapping,
                    Scope::Badge => other.kind == cap.kind && other.badge == cap.badge,
                    Scope::Memory(_) | Scope::Nothing => false,
                }
        };
        [tree::next(k, slot), tree::previous(k, slot)].into_iter().flatten().find(|other| goes(&k.slot(*other).cap))
    }
}

/// `Revoke`.
///
/// If the capability itself is deleted meanwhile (by somebody else, or because it lies in what it revokes), the call
/// ends there.
pub fn revoke_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (space, address) = (argument(k, thread, 0), argument(k, thread, 1));
    let mut slot = space::lookup_in(k, space, address, Rights::WRITE)?;
    let cap = k.slot(slot).cap;
    let scope = Scope::of(&cap);
    let mut count = 0;
    let mut since = k.state().removed;
    let mut budget = BUDGET;
    while let Some(victim) = scope.victim(k, slot) {
        let step = step(k, victim, &mut budget);
        if step == Step::Done && budget > 0 {
            continue;
        }
        if step == Step::Pending || budget <= 0 {
            count += k.state().removed - since;
            if !window::pass(k) {
                return Err(Error::Aborted);
            }
            since = k.state().removed;
            budget = BUDGET;
        }
        match space::lookup_in(k, space, address, Rights::WRITE) {
            Ok(found) if is_same(&k.slot(found).cap, &cap) => slot = found,
            _ => break,
        }
    }
    count += k.state().removed - since;
    Ok(Outcome::results(k, thread, &[count]))
}

/// Whether a capability is still the one that it was; an untyped's marks may have changed.
fn is_same(now: &Cap, then: &Cap) -> bool {
    let now =
        if matches!(then.kind, Kind::Untyped) { Cap { badge: then.badge, extra: then.extra, ..*now } } else { *now };
    now == *then
}

/// Whether a capability's object is being deleted.
#[inline(always)]
fn is_zombie(cap: &Cap) -> bool {
    cap.flags & flag::ZOMBIE != 0
}

/// One bounded step of emptying a slot that is not empty.
#[inline]
fn step<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, budget: &mut isize) -> Step {
    let cap = &k.slot(slot).cap;
    let (kind, flags) = (cap.kind, cap.flags);
    if kind as u8 == Kind::Frame as u8 && flags & flag::EMBEDDED == 0 && first_mapping(k, slot).is_none() {
        // The commonest case by far.
        derivation::remove(k, slot);
        *budget -= REMOVE_COST;
        return Step::Done;
    }
    if is_last_container(k, slot) {
        let mut work = Work { budget: *budget, root: slot };
        let done = empty_ring(k, &mut work);
        *budget = work.budget;
        return if done { Step::DoneWithContents } else { Step::Pending };
    }
    if remove_simple(k, slot, budget) { Step::Done } else { Step::Pending }
}

/// Whether a slot holds the last capability to a node or thread.
#[inline(always)]
fn is_last_container<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let cap = &k.slot(slot).cap;
    matches!(cap.kind, Kind::CapNode | Kind::Thread) && (is_zombie(cap) || derivation::is_last(k, slot))
}

/// The first mapping of a frame whose last capability is in `slot`, if `slot` holds that; otherwise what comes next is
/// another capability to it.
#[inline(always)]
fn first_mapping<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Option<SlotRef> {
    let Slot { cap, links } = k.slot(slot);
    let (object, next) = (cap.object, SlotRef::new(links.next)?);
    let cap = &k.slot(next).cap;
    if cap.kind as u8 == Kind::Mapping as u8 && cap.object == object { Some(next) } else { None }
}

/// A thread's binding is about to go: the thread forgets it, and the slot is one like any other.
#[inline]
fn unbind<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    if k.slot(slot).cap.flags & flag::EMBEDDED != 0 {
        thread::unbind(k, slot);
        k.slot(slot).cap.flags &= !flag::EMBEDDED;
    }
}

/// One step of emptying a slot that does not hold the last capability to a container. Answers whether it is empty.
fn remove_simple<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, budget: &mut isize) -> bool {
    unbind(k, slot);
    let last = is_zombie(&k.slot(slot).cap) || derivation::is_last(k, slot);
    if last && !finalise(k, slot, budget) {
        k.slot(slot).cap.flags |= flag::ZOMBIE;
        k.slot(slot).cap.settle();
        return false;
    }
    derivation::remove(k, slot);
    *budget -= REMOVE_COST;
    true
}

/// One step of the end of an object that is no container. Answers whether nothing refers to it any more.
fn finalise<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, budget: &mut isize) -> bool {
    let Cap { kind, object, .. } = k.slot(slot).cap;
    *budget -= FINALISE_COST;
    match kind {
        Kind::Frame => unmap_one(k, slot, budget),
        Kind::Mapping => mapping::finalise(k, slot),
        Kind::PageTable => end_of(object, |object| table::finalise(k, object)),
        Kind::Endpoint => end_of(object, |object| endpoint::finalise(k, object)),
        Kind::Reply => end_of(object, |object| reply::finalise(k, object)),
        Kind::Notification => end_of(object, |object| notification::finalise(k, object)),
        Kind::SchedulingContext => end_of(object, |object| scheduling::finalise(k, object)),
        Kind::Interrupt => interrupt::finalise(k, object as u32),
        Kind::Untyped | Kind::InterruptControl | Kind::Kernel => {
            *budget += FINALISE_COST;
            true
        }
        Kind::CapNode | Kind::Thread | Kind::Null => true,
    }
}

/// Applies a step to the object at an address.
#[inline(always)]
fn end_of<T>(object: usize, step: impl FnOnce(Ref<T>) -> bool) -> bool {
    // SAFETY: callers have the address from a capability of the kind that goes with `T`, which is still there.
    unsafe { Ref::at(object) }.is_none_or(step)
}

/// One step towards a frame without mappings. Answers whether it has none.
fn unmap_one<A: Arch>(k: &mut Kernel<A>, frame: SlotRef, budget: &mut isize) -> bool {
    let Some(slot) = first_mapping(k, frame) else { return true };
    if mapping::finalise(k, slot) {
        derivation::remove(k, slot);
        *budget -= REMOVE_COST;
    }
    *budget > 0 && first_mapping(k, frame).is_none()
}

/// The slots inside a container: the first, and how many.
fn contents<A: Arch>(k: &mut Kernel<A>, cap: &Cap) -> Option<(SlotRef, u64)> {
    let (address, count) = match cap.kind {
        Kind::Thread => (cap.object + THREAD_OFFSET + offset_of!(Thread, bindings), BINDINGS as u64),
        _ => (cap.object, 1 << (cap.aux & 31)),
    };
    Some((k.slot_at(address)?, count))
}

/// Makes the last capability to a container a zombie, alone in its ring. A thread stops.
fn begin<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    unbind(k, slot);
    let Cap { kind, object, .. } = k.slot(slot).cap;
    let stopped = !matches!(kind, Kind::Thread) || thread::finalise(k, object);
    let cap = &mut k.slot(slot).cap;
    cap.flags |= flag::ZOMBIE;
    cap.badge = if stopped { 0 } else { NOT_STOPPED };
    set_ring(k, slot, slot, slot);
}

/// Empties containers of the ring that `work.root` is in, the root's own last, until a window is due. Answers whether
/// the root is gone.
fn empty_ring<A: Arch>(k: &mut Kernel<A>, work: &mut Work) -> bool {
    if !is_zombie(&k.slot(work.root).cap) {
        begin(k, work.root);
        work.budget -= FINALISE_COST;
    }
    while work.budget > 0 {
        let (member, _) = ring(k, work.root);
        let Some(member) = empty_container(k, member, work) else { return false };
        let is_root = member == work.root;
        if is_root && ring(k, member).0 != member {
            // Its contents have joined the ring; it goes last.
            continue;
        }
        leave_ring(k, member);
        derivation::remove(k, member);
        work.budget -= REMOVE_COST;
        if is_root {
            return true;
        }
    }
    false
}

/// Empties a container's slots, except that which holds its own zombie, until a window is due. Answers where the zombie
/// is, once all others are empty.
fn empty_container<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, work: &mut Work) -> Option<SlotRef> {
    let cap = k.slot(zombie).cap;
    let mut zombie = zombie;
    let mut progress = cap.badge;
    if progress == NOT_STOPPED {
        work.budget -= FINALISE_COST;
        if !thread::finalise(k, cap.object) {
            return None;
        }
        progress = 0;
    }
    let (first, count) = contents(k, &cap)?;
    while progress < count && work.budget > 0 {
        work.budget -= SLOT_COST;
        let slot = space::neighbour(first, progress as usize)?;
        if slot == zombie || k.slot(slot).cap.kind as u8 == Kind::Null as u8 {
            progress += 1;
        } else if is_last_container(k, slot) {
            zombie = move_inside(k, slot, zombie, work)?;
        } else if !remove_simple(k, slot, &mut work.budget) {
            break;
        }
    }
    k.slot(zombie).cap.badge = progress;
    if progress < count { None } else { Some(zombie) }
}

/// `slot`, which is to be emptied, holds the last capability to another container. It moves into that container's first
/// slot, what was there comes to `slot`, and the container joins the ring of `zombie`. Answers where that zombie is now.
fn move_inside<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, zombie: SlotRef, work: &mut Work) -> Option<SlotRef> {
    work.budget -= FINALISE_COST;
    if !is_zombie(&k.slot(slot).cap) {
        begin(k, slot);
    }
    let cap = k.slot(slot).cap;
    let (host, _) = contents(k, &cap)?;
    let mut zombie = zombie;
    let is_root = work.root == slot;
    if k.slot(host).cap.kind as u8 == Kind::Null as u8 {
        relocate(k, slot, host);
    } else {
        exchange(k, slot, host);
        // In a cycle, what came out can be what the deletion began with, or the zombie of the node being emptied.
        if zombie == host {
            zombie = slot;
        }
        if work.root == host {
            work.root = slot;
        }
    }
    if is_root {
        work.root = host;
    } else {
        join_rings(k, zombie, host);
    }
    Some(zombie)
}

/// Exchanges the zombie of a container, in `slot`, with what is in the container's first slot, `host`.
fn exchange<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, host: SlotRef) {
    unbind(k, host);
    let inner = k.slot(host).cap;
    let has_ring = is_zombie(&inner) && matches!(inner.kind, Kind::CapNode | Kind::Thread);
    let mut neighbour = None;
    if has_ring {
        let (_, before) = ring(k, host);
        neighbour = Some(before).filter(|before| *before != host);
        leave_ring(k, host);
    }
    let now_at = |place: SlotRef| if place == slot { host } else { place };
    let swap = |k: &mut Kernel<A>| {
        k.slot(host).cap = Cap::NULL;
        relocate(k, slot, host);
        k.slot(slot).cap = inner;
    };
    tree::reinsert(k, host, slot, swap, now_at);
    if has_ring {
        set_ring(k, slot, slot, slot);
        if let Some(neighbour) = neighbour {
            join_rings(k, now_at(neighbour), slot);
        }
    }
    if inner.kind as u8 == Kind::Mapping as u8 {
        mapping::moved(k, slot);
    }
}

/// Moves a zombie to an empty slot.
pub(crate) fn relocate<A: Arch>(k: &mut Kernel<A>, from: SlotRef, to: SlotRef) {
    derivation::replace(k, from, to);
    if !matches!(k.slot(to).cap.kind, Kind::CapNode | Kind::Thread) {
        return;
    }
    let (next, previous) = ring(k, to);
    if next == from {
        set_ring(k, to, to, to);
    } else {
        set_previous(k, next, to);
        set_next(k, previous, to);
    }
}

/// Next and previous in a container zombie's ring. A zombie alone is its own neighbour.
#[inline]
fn ring<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef) -> (SlotRef, SlotRef) {
    let extra = k.slot(zombie).cap.extra;
    let named = |number: u64| SlotRef::new(number as u32).unwrap_or(zombie);
    (named(extra), named(extra >> 32))
}

/// Sets a zombie's neighbours.
#[inline]
fn set_ring<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, next: SlotRef, previous: SlotRef) {
    k.slot(zombie).cap.extra = u64::from(next.number()) | u64::from(previous.number()) << 32;
}

/// Sets the zombie behind another.
fn set_next<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, next: SlotRef) {
    let (_, previous) = ring(k, zombie);
    set_ring(k, zombie, next, previous);
}

/// Sets the zombie before another.
fn set_previous<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, previous: SlotRef) {
    let (next, _) = ring(k, zombie);
    set_ring(k, zombie, next, previous);
}

/// Takes a zombie out of its ring. Its own links are not written, unless it is alone.
fn leave_ring<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef) {
    let (next, previous) = ring(k, zombie);
    set_previous(k, next, previous);
    set_next(k, previous, next);
}

/// Makes one ring of two. (Of one, it would make two; then neither is lost, since what is in the derivation structure
/// can be found there.)
fn join_rings<A: Arch>(k: &mut Kernel<A>, a: SlotRef, b: SlotRef) {
    let ((after_a, _), (after_b, _)) = (ring(k, a), ring(k, b));
    set_next(k, a, after_b);
    set_previous(k, after_b, a);
    set_next(k, b, after_a);
    set_previous(k, after_a, b);
}
