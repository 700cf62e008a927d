//! The end of nodes and threads, which contain slots.
//!
//! Their slots can hold the last capabilities to further nodes and threads, and so on in any shape. Deletion does not
//! descend into them. When a container's slot turns out to hold the last capability to another container, that
//! capability moves *into the object that it names*, into its first slot, and the former content of that slot comes out
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
//! N and A no longer depend on each other: N is linked into a ring with A and emptied in its turn. So nesting costs no
//! stack, and cycles are not a special case. The capability with which the deletion began leaves the ring last, so it
//! can be named until all that belongs to it is deleted.
//!
//! The payload of a container's zombie is the deletion's progress (all slots below it are empty) and the ring
//! ([`Ending`]).
//!
//! An exported capability stays where it is, and with it the container around it: when all else in the container is
//! deleted, its zombie leaves the ring, so that it keeps no other, and the thread that began the deletion is told.

use core::mem::offset_of;

use tench_abi::Kind;

use super::{END_USE_COST, FINALISE_COST, REMOVE_COST, Step, affords, is_zombie, remove_simple, unbind};
use crate::slot::payload::Ending;
use crate::slot::{Cap, SlotRef, flag};
use crate::thread::{BINDINGS, THREAD_OFFSET, Thread};
use crate::{Arch, Kernel, cspace, derivation, mapping, thread, tree};

/// Cost of examining a slot, in instructions.
const SLOT_COST: isize = 10;

/// Cost of stopping a thread: the highest of all, since the thread may wait with a deadline among many others. It is
/// followed by a preemption point.
pub(super) const STOP_COST: isize = 1150;

/// Budget with which a thread that deletes itself empties its bindings.
const OWN_END: isize = 1500;

/// Progress of a thread that has not been stopped yet.
const NOT_STOPPED: u64 = u64::MAX;

/// Bit of the progress of a container in which a capability stays.
const KEEPS: u64 = 1 << 32;

/// The work until the next preemption point.
struct Work {
    /// Approximate number of instructions left.
    budget: isize,
    /// The slot to be emptied. It follows its content when the end of a container moves that.
    root: SlotRef,
}

/// Returns whether a slot holds the last capability to a node or thread.
pub(super) fn is_last<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let cap = &k.slot(slot).cap;
    matches!(cap.kind, Kind::CapNode | Kind::Thread) && (is_zombie(cap) || derivation::is_last(k, slot))
}

/// Does one bounded step of emptying a slot that holds the last capability to a container, which is deleted with all
/// that it holds.
pub(super) fn empty<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, budget: &mut isize) -> Step {
    let mut work = Work { budget: *budget, root: slot };
    let done = empty_ring(k, &mut work);
    *budget = work.budget;
    done
}

/// Returns the budget needed to begin the end of the container in this slot.
fn zombie_cost<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> isize {
    let cap = &k.slot(slot).cap;
    if matches!(cap.kind, Kind::Thread) && !is_zombie(cap) { STOP_COST } else { FINALISE_COST }
}

/// Charges the budget for having begun the end of the container in this slot. The running thread ceases to exist at the
/// next preemption point; it waits for nothing, so stopping it costs little, and it gets the budget to empty its
/// bindings.
fn charge_for_zombie<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, work: &mut Work) {
    let Cap { kind, object, .. } = k.slot(slot).cap;
    if !matches!(kind, Kind::Thread) {
        work.budget -= FINALISE_COST;
    } else if k.current().address() == object + THREAD_OFFSET {
        work.budget = OWN_END;
    } else {
        work.budget -= work.budget.max(STOP_COST);
    }
}

/// Stops the thread whose last capability is in a slot, unless it is the running one. Moving the capability as well
/// would take too long, so the thread's zombie waits in the slot, alone in its ring, until after the next preemption
/// point. Returns whether the thread was stopped.
fn stop<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, work: &mut Work) -> bool {
    let Cap { kind, object, .. } = k.slot(slot).cap;
    let is_current = k.current().address() == object + THREAD_OFFSET;
    if !matches!(kind, Kind::Thread) || is_zombie(&k.slot(slot).cap) || is_current {
        return false;
    }
    make_zombie(k, slot);
    charge_for_zombie(k, slot, work);
    true
}

/// Returns the first slot inside a container, and the number of slots.
fn contents<A: Arch>(k: &mut Kernel<A>, cap: &Cap) -> Option<(SlotRef, u64)> {
    let (address, count) = match cap.kind {
        Kind::Thread => (cap.object + THREAD_OFFSET + offset_of!(Thread, bindings), BINDINGS as u64),
        _ => (cap.object, cap.slots() as u64),
    };
    Some((k.slot_at(address)?, count))
}

/// Makes the last capability to a container a zombie, alone in its ring. A thread is stopped.
fn make_zombie<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    unbind(k, slot);
    let stopped = k.slot(slot).cap.named::<Thread>().is_none_or(|thread| thread::finalise(k, thread));
    let cap = &mut k.slot(slot).cap;
    cap.flags |= flag::ZOMBIE;
    cap.update_flags();
    Ending::set_progress(cap, if stopped { 0 } else { NOT_STOPPED });
    set_ring(k, slot, slot, slot);
}

/// Empties containers of the ring of `work.root`, that of the root last, until a preemption point is due.
fn empty_ring<A: Arch>(k: &mut Kernel<A>, work: &mut Work) -> Step {
    if !is_zombie(&k.slot(work.root).cap) {
        if !affords(&mut work.budget, zombie_cost(k, work.root)) {
            return Step::Pending;
        }
        make_zombie(k, work.root);
        charge_for_zombie(k, work.root, work);
    }
    while work.budget > 0 {
        let (member, _) = ring(k, work.root);
        let Some(member) = empty_container(k, member, work) else { return Step::Pending };
        let is_root = member == work.root;
        if is_root && ring(k, member).0 != member {
            // The contents have joined the ring, and the root goes last.
            continue;
        }
        if Ending::of(&k.slot(member).cap).progress & KEEPS != 0 {
            keep(k, member);
            if is_root {
                return Step::Stays;
            }
            continue;
        }
        // Examining the slots may have used up the budget.
        if !affords(&mut work.budget, REMOVE_COST) {
            return Step::Pending;
        }
        leave_ring(k, member);
        derivation::remove(k, member);
        work.budget -= REMOVE_COST;
        if is_root {
            return Step::DoneWithContents;
        }
    }
    Step::Pending
}

/// Keeps the zombie of a container in which a capability stays, alone in its ring. A further deletion begins anew.
#[cold]
fn keep<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef) {
    leave_ring(k, zombie);
    set_ring(k, zombie, zombie, zombie);
    Ending::set_progress(&mut k.slot(zombie).cap, 0);
}

/// Empties a container's slots, except those with its own zombie and with capabilities that stay, until a preemption
/// point is due. Returns the zombie's slot once all others are empty; its progress has [`KEEPS`] if a capability stays.
fn empty_container<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, work: &mut Work) -> Option<SlotRef> {
    let cap = k.slot(zombie).cap;
    let mut zombie = zombie;
    let mut progress = Ending::of(&cap).progress;
    if progress == NOT_STOPPED {
        if !affords(&mut work.budget, END_USE_COST) {
            return None;
        }
        work.budget -= END_USE_COST;
        if !cap.named::<Thread>().is_none_or(|thread| thread::finalise(k, thread)) {
            return None;
        }
        progress = 0;
    }
    let (first, count) = contents(k, &cap)?;
    let mut keeps = progress & KEEPS;
    progress &= !KEEPS;
    loop {
        progress = skip_empty(k, first, progress, count, &mut work.budget);
        if progress >= count || work.budget <= 0 {
            break;
        }
        let slot = cspace::neighbour(first, progress as usize)?;
        if slot == zombie {
            progress += 1;
        } else if is_last(k, slot) {
            if !affords(&mut work.budget, END_USE_COST.max(zombie_cost(k, slot))) {
                break;
            }
            if stop(k, slot, work) {
                break;
            }
            zombie = move_inside(k, slot, zombie, work)?;
        } else {
            match remove_simple(k, slot, &mut work.budget) {
                Step::Stays => (keeps, progress) = (KEEPS, progress + 1),
                Step::Pending => break,
                Step::Done | Step::DoneWithContents => {}
            }
        }
    }
    Ending::set_progress(&mut k.slot(zombie).cap, progress | keeps);
    if progress < count { None } else { Some(zombie) }
}

/// Returns the index of the first slot, from `from` on, of `count` slots from `first` on, that is not empty, or at
/// which a preemption point is due.
fn skip_empty<A: Arch>(k: &mut Kernel<A>, first: SlotRef, from: u64, count: u64, budget: &mut isize) -> u64 {
    let limit = count.min(from + (*budget / SLOT_COST).max(0) as u64);
    let mut i = from;
    while i < limit {
        match cspace::neighbour(first, i as usize) {
            Some(slot) if k.slot(slot).cap.kind as u8 == Kind::Null as u8 => i += 1,
            _ => break,
        }
    }
    *budget -= (i - from) as isize * SLOT_COST;
    if i == limit && i < count {
        *budget = 0;
    }
    i
}

/// Moves the last capability to another container from `slot`, which is to be emptied, into that container's first
/// slot, whose former content comes to `slot`. The container joins the ring of `zombie`. Returns the slot in which that
/// zombie is now.
fn move_inside<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, zombie: SlotRef, work: &mut Work) -> Option<SlotRef> {
    work.budget -= END_USE_COST;
    if !is_zombie(&k.slot(slot).cap) {
        make_zombie(k, slot);
        charge_for_zombie(k, slot, work);
    }
    let cap = k.slot(slot).cap;
    let (host, _) = contents(k, &cap)?;
    let mut zombie = zombie;
    let is_root = work.root == slot;
    if k.slot(host).cap.kind as u8 == Kind::Null as u8 {
        relocate(k, slot, host);
    } else {
        exchange(k, slot, host);
        // In a cycle, the former content can be the capability with which the deletion began, or the zombie of the node
        // being emptied.
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

/// Exchanges the zombie of a container, in `slot`, with the content of the container's first slot, `host`.
fn exchange<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, host: SlotRef) {
    let stays = !unbind(k, host);
    derivation::leave_run(k, host);
    let inner = k.slot(host).cap;
    let has_ring = is_zombie(&inner) && matches!(inner.kind, Kind::CapNode | Kind::Thread);
    let mut neighbour = None;
    if has_ring {
        let (_, before) = ring(k, host);
        neighbour = Some(before).filter(|before| *before != host);
        leave_ring(k, host);
    }
    let now_at = |at: SlotRef| if at == slot { host } else { at };
    let swap = |k: &mut Kernel<A>| {
        k.slot(host).cap = Cap::NULL;
        relocate(k, slot, host);
        k.slot(slot).cap = inner;
    };
    tree::reinsert(k, host, slot, swap, now_at);
    if stays {
        derivation::lead(k, slot, |_| false);
    }
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

/// Returns the next and previous in a container zombie's ring. A zombie alone is its own neighbour.
fn ring<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef) -> (SlotRef, SlotRef) {
    let [next, previous] = Ending::of(&k.slot(zombie).cap).ring;
    (next.unwrap_or(zombie), previous.unwrap_or(zombie))
}

/// Sets a zombie's neighbours.
fn set_ring<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, next: SlotRef, previous: SlotRef) {
    Ending::set_ring(&mut k.slot(zombie).cap, next, previous);
}

/// Sets the zombie after another in the ring.
fn set_next<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, next: SlotRef) {
    let (_, previous) = ring(k, zombie);
    set_ring(k, zombie, next, previous);
}

/// Sets the zombie before another in the ring.
fn set_previous<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef, previous: SlotRef) {
    let (next, _) = ring(k, zombie);
    set_ring(k, zombie, next, previous);
}

/// Takes a zombie out of its ring. Does not write the zombie's own links, unless it is alone.
fn leave_ring<A: Arch>(k: &mut Kernel<A>, zombie: SlotRef) {
    let (next, previous) = ring(k, zombie);
    set_previous(k, next, previous);
    set_next(k, previous, next);
}

/// Joins two rings into one. (If both are the same ring, it falls into two; then neither is lost, since both can be
/// found in the derivation structure.)
fn join_rings<A: Arch>(k: &mut Kernel<A>, a: SlotRef, b: SlotRef) {
    let ((after_a, _), (after_b, _)) = (ring(k, a), ring(k, b));
    set_next(k, a, after_b);
    set_previous(k, after_b, a);
    set_next(k, b, after_a);
    set_previous(k, after_a, b);
}
