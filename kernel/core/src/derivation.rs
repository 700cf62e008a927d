//! The derivation structure: all capabilities of a kernel in one order, in which ancestors, copies and overlaps are
//! neighbours.
//!
//! ```text
//!   Untyped 0x0..0x4000
//!     Untyped 0x0..0x2000           a child that begins where its parent does is smaller: it comes after the parent
//!       Frame 0x0                   capabilities to one object are adjacent; one of them is in the tree,
//!       Frame 0x0                   the others follow it
//!       Mapping of frame 0x0        after all capabilities to its frame
//!       Mapping of frame 0x0
//!     Endpoint 0x2000
//!     Endpoint 0x2000, badge 5      each badge by itself
//!     Endpoint 0x2000, badge 5
//! ```
//! The order is by address, larger objects first, then kind and badge. Capabilities without memory (interrupts,
//! interrupt control, the kernel) hold small numbers in place of addresses, so they come first and need no rule of
//! their own. The children of an untyped are the consecutive capabilities after it that lie in its range.
//!
//! Nothing else in the kernel records derivation. Invariants: docs/invariants.md, "Derivation".

use tench_abi::Kind;

use crate::slot::payload::{Marks, Reservation};
use crate::slot::{Cap, Links, SLOT_SHIFT, Slot, SlotRef, flag};
use crate::tree::{self, Gap, Nodes, runs};
use crate::{Arch, Kernel};

impl<A: Arch> Nodes for Kernel<A> {
    #[inline(always)]
    fn root(&mut self) -> &mut u32 {
        &mut self.state().derivation
    }

    #[inline(always)]
    fn tail(&mut self) -> &mut u32 {
        &mut self.state().derivation_tail
    }

    #[inline(always)]
    fn links(&mut self, node: SlotRef) -> &mut Links {
        &mut self.slot(node).links
    }

    #[inline(always)]
    fn end(&mut self, node: SlotRef) -> usize {
        let cap = &self.slot(node).cap;
        if cap.kind as u8 == Kind::Untyped as u8 && cap.flags & flag::ZOMBIE == 0 { cap.object + cap.size() } else { 0 }
    }
}

/// Returns whether a capability reserves memory that is being prepared ([`Reservation`]).
#[inline(always)]
pub const fn is_reservation(cap: &Cap) -> bool {
    Reservation::of(cap).is_some()
}

/// Returns the address at which a capability's memory ends.
#[inline(always)]
pub const fn end_address(cap: &Cap) -> usize {
    match Reservation::of(cap) {
        Some(reservation) => cap.object.wrapping_add(reservation.length),
        None => cap.object.wrapping_add(cap.size()),
    }
}

/// Returns the part of the order that distinguishes most capabilities to one address.
#[inline(always)]
const fn size_and_kind(cap: &Cap) -> u32 {
    (u8::MAX - cap.size_bits) as u32 * 256 + cap.kind as u32
}

/// Returns whether `a` comes before `b`, or they are equal in order.
pub fn in_order(a: &Cap, b: &Cap) -> bool {
    if a.object != b.object {
        return a.object < b.object;
    }
    let (kind_a, kind_b) = (size_and_kind(a), size_and_kind(b));
    if kind_a != kind_b {
        return kind_a < kind_b;
    }
    a.badge_if_any() <= b.badge_if_any()
}

/// Returns whether two capabilities name the same object.
#[inline(always)]
pub fn same_object(a: &Cap, b: &Cap) -> bool {
    a.object == b.object && a.kind as u8 == b.kind as u8
}

/// Returns whether two capabilities are equal in order and share one node of the tree. Capabilities to untyped memory
/// never do: one can be the other's child, of the same size.
#[inline(always)]
pub fn equal(a: &Cap, b: &Cap) -> bool {
    same_object(a, b) && a.badge_if_any() == b.badge_if_any() && !matches!(a.kind, Kind::Untyped)
}

/// Fills an empty slot with a capability to a new object, in a gap that the caller has found.
#[inline(never)]
pub fn insert<A: Arch>(k: &mut Kernel<A>, gap: Gap, destination: SlotRef, cap: &Cap) {
    k.slot(destination).cap = *cap;
    tree::insert(k, destination, gap);
}

/// Fills `count` slots from `first` on, which are empty and adjacent, with capabilities to new frames that are
/// adjacent:
/// `cap` and those after it. They become one run, with the frame that comes directly after them if that is in the slot
/// behind. The caller has found the gap.
pub fn insert_run<A: Arch>(k: &mut Kernel<A>, gap: Gap, (first, count): (SlotRef, usize), cap: &Cap) {
    let mut slot = first;
    for i in 0..count {
        k.slot(slot).cap = cap.at(cap.object + (i << cap.size_bits));
        let Some(next) = runs::after(slot) else { return };
        slot = next;
    }
    let behind = cap.at(cap.object + (count << cap.size_bits));
    match gap.1.filter(|next| *next == slot) {
        Some(next) if goes_on(&behind, &k.slot(next).cap) => {
            tree::replace(k, next, first);
            runs::extend(k, first, count);
        }
        _ => {
            tree::insert(k, first, gap);
            runs::extend(k, first, count - 1);
        }
    }
}

/// Returns whether a capability is to the frame that continues a run.
fn goes_on(expected: &Cap, cap: &Cap) -> bool {
    matches!(cap.kind, Kind::Frame) && cap.object == expected.object && cap.size_bits == expected.size_bits
}

/// Turns the reservation in a slot into the capability to a frame, the first of the run that begins in the slot behind,
/// if one does.
pub fn turn_into_run<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, cap: &Cap) {
    let behind = tree::next(k, slot).filter(|behind| runs::after(slot) == Some(*behind));
    match behind {
        Some(behind) if goes_on(&cap.at(end_address(cap)), &k.slot(behind).cap) => {
            tree::remove(k, slot);
            tree::replace(k, behind, slot);
            runs::extend(k, slot, 1);
        }
        _ => {}
    }
    k.slot(slot).cap = *cap;
}

/// Fills an empty slot with a capability, at the place in the order that this function finds.
pub fn insert_child<A: Arch>(k: &mut Kernel<A>, destination: SlotRef, cap: Cap) {
    let gap = tree::gap(k, |k, node| in_order(&k.slot(node).cap, &cap));
    if let (Some(leader), _) = gap
        && equal(&k.slot(leader).cap, &cap)
    {
        return insert_equal(k, leader, destination, &cap);
    }
    insert(k, gap, destination, &cap);
}

/// Fills an empty slot with a copy of `source`: to the same object, with the same badge.
#[inline(always)]
pub fn insert_equal<A: Arch>(k: &mut Kernel<A>, source: SlotRef, destination: SlotRef, cap: &Cap) {
    k.slot(destination).cap = *cap;
    tree::follow(k, destination, source);
}

/// Fills an empty slot with the capability to a mapping of the frame in slot `frame`. Its place is behind all
/// capabilities to the frame, in most cases directly behind this one.
#[inline(always)]
pub fn insert_mapping<A: Arch>(k: &mut Kernel<A>, frame: SlotRef, destination: SlotRef, cap: &Cap) {
    let last = match tree::next(k, frame) {
        Some(next) if is_copy(k, next, cap.object) => last_of_frame(k, frame),
        _ => frame,
    };
    insert_equal(k, last, destination, cap);
}

/// Returns whether the capability in a slot is to the frame at `object`.
#[inline(always)]
fn is_copy<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, object: usize) -> bool {
    let cap = &k.slot(slot).cap;
    cap.object == object && cap.kind as u8 == Kind::Frame as u8
}

/// Returns the first of the capabilities that equal the one in a slot, which is not to untyped memory, and the node of
/// the tree after it.
fn first_equal<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> (SlotRef, Option<SlotRef>) {
    let cap = k.slot(slot).cap;
    let (before, behind) = tree::gap(k, |k, node| in_order(&k.slot(node).cap, &cap));
    let first = before.unwrap_or(slot);
    (member_at(k, first, cap.object), behind)
}

/// Returns the capability for the object at `object` in the run of the frame in slot `first`, which reaches so far; in
/// other cases `first`.
fn member_at<A: Arch>(k: &mut Kernel<A>, first: SlotRef, object: usize) -> SlotRef {
    let Cap { object: start, size_bits, .. } = k.slot(first).cap;
    if object <= start || k.slot(first).links.continues == 0 {
        return first;
    }
    SlotRef::new(first.number() + ((object - start) >> size_bits) as u32).unwrap_or(first)
}

/// Returns the last capability in the order before a gap that [`tree::gap`] has found.
fn last_before<A: Arch>(k: &mut Kernel<A>, (_, behind): Gap) -> Option<SlotRef> {
    match behind {
        Some(behind) => tree::previous(k, behind),
        None => tree::last(k),
    }
}

/// Returns the last capability to the frame in a slot, or its last mapping.
#[cold]
#[inline(never)]
fn last_of_frame<A: Arch>(k: &mut Kernel<A>, frame: SlotRef) -> SlotRef {
    let (first, behind) = first_equal(k, frame);
    let behind = if k.slot(first).links.continues != 0 { runs::after(first) } else { behind };
    last_before(k, (Some(first), behind)).unwrap_or(frame)
}

/// Returns whether the capability in a slot is in a run of several.
#[inline(always)]
pub fn is_in_run<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    runs::is_in_run(k, slot)
}

/// Takes the capability in a slot out of its run. Returns whether it was in one.
#[inline(always)]
pub fn leave_run<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let was_in_run = is_in_run(k, slot);
    if was_in_run {
        stand_alone(k, slot);
    }
    was_in_run
}

/// Takes the capability in a slot out of its run.
#[cold]
#[inline(never)]
fn stand_alone<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    let gap = gap_around_run(k, slot);
    runs::stand_alone(k, slot, gap);
}

/// Returns the first capability of the run that the capability in a slot is in, and the first capability of the tree
/// behind the run.
fn gap_around_run<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Gap {
    let object = k.slot(slot).cap.object;
    tree::gap(k, |k, node| k.slot(node).cap.object <= object)
}

/// Prepares a capability of a run for being unlinked. Returns `false` if it is unlinked already.
#[cold]
#[inline(never)]
fn prepare_removal<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let gap = gap_around_run(k, slot);
    runs::prepare_removal(k, slot, gap)
}

/// Returns whether removing the capability in a slot divides a run.
pub fn divides_run<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    runs::is_in_run(k, slot) && !runs::is_removable(k, slot)
}

/// Moves a capability to an empty slot. Its place in the order does not change.
#[inline(never)]
pub fn replace<A: Arch>(k: &mut Kernel<A>, from: SlotRef, to: SlotRef) {
    replace_fast(k, from, to);
}

/// As [`replace`], without a call.
#[inline(always)]
pub fn replace_fast<A: Arch>(k: &mut Kernel<A>, from: SlotRef, to: SlotRef) {
    leave_run(k, from);
    let cap = core::mem::replace(&mut k.slot(from).cap, Cap::NULL);
    k.slot(to).cap = cap;
    tree::replace(k, from, to);
}

/// Empties a slot. If it held the last child of an untyped, resets the untyped's watermark to 0.
#[inline(never)]
pub fn remove<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    remove_fast(k, slot);
}

/// As [`remove`], without a call.
#[inline(always)]
pub fn remove_fast<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    let is_linked = !divides_run(k, slot) || prepare_removal(k, slot);
    let Slot { cap: Cap { object, .. }, links: Links { previous, next, .. } } = *k.slot(slot);
    if is_linked {
        tree::remove(k, slot);
    }
    k.slot(slot).cap = Cap::NULL;
    k.state().removed += 1;
    reset_watermark(k, object, previous, next);
}

/// Empties a slot that is not the only one for its object, nor first in the tree.
#[inline(always)]
pub fn remove_follower<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    tree::unfollow(k, slot);
    k.slot(slot).cap = Cap::NULL;
    k.state().removed += 1;
}

/// Resets the watermark of the untyped `previous` if the object at `object`, which was deleted, was its last child.
#[inline(always)]
fn reset_watermark<A: Arch>(k: &mut Kernel<A>, object: usize, previous: u32, next: u32) {
    let Some(parent) = SlotRef::new(previous) else { return };
    let cap = &k.slot(parent).cap;
    if cap.kind as u8 != Kind::Untyped as u8 || is_reservation(cap) {
        return;
    }
    let end = cap.object + cap.size();
    if object < end && SlotRef::new(next).is_none_or(|next| k.slot(next).cap.object >= end) {
        Marks::default().write(&mut k.slot(parent).cap);
    }
}

/// The kinds of neighbours that a capability has.
#[derive(Clone, Copy)]
pub struct Neighbours {
    /// Set if an adjacent capability names the same object and is of the same kind.
    pub sibling: bool,
    /// Set if the capability directly behind is a mapping of the frame.
    pub mapping: bool,
}

/// Returns the neighbours of a capability that is not to untyped memory.
#[inline(always)]
pub fn neighbours<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Neighbours {
    let Slot { cap, links } = k.slot(slot);
    let (object, kind) = (cap.object, cap.kind as u8);
    let (previous, next) = (links.previous, links.next);
    let mut found = Neighbours { sibling: false, mapping: false };
    if let Some(next) = SlotRef::new(next) {
        let cap = &k.slot(next).cap;
        if cap.object == object {
            found.sibling = cap.kind as u8 == kind;
            found.mapping = cap.kind as u8 == Kind::Mapping as u8;
        }
    }
    if let Some(previous) = SlotRef::new(previous) {
        let cap = &k.slot(previous).cap;
        found.sibling |= cap.object == object && cap.kind as u8 == kind;
    }
    found
}

/// Returns whether another capability is to the same object and has the same badge.
pub fn has_equal<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let Slot { cap, links } = *k.slot(slot);
    let around = [SlotRef::new(links.previous), SlotRef::new(links.next)];
    around.into_iter().flatten().any(|other| equal(&k.slot(other).cap, &cap))
}

/// Returns whether no other capability names the object.
pub fn is_last<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    // Capabilities of these kinds are unique: a neighbour of equal address and kind is a parent, a child, or another
    // mapping.
    matches!(k.slot(slot).cap.kind, Kind::Untyped | Kind::Mapping) || !neighbours(k, slot).sibling
}

/// Returns the capability after an untyped's, if it is one of its children.
pub fn first_child<A: Arch>(k: &mut Kernel<A>, untyped: SlotRef) -> Option<SlotRef> {
    let end = end_address(&k.slot(untyped).cap);
    let next = tree::next(k, untyped)?;
    if k.slot(next).cap.object < end { Some(next) } else { None }
}

/// Returns the gap in the order for an object in `start..range_end`, inside an untyped; `None` if a capability derived
/// from the untyped lies in that range.
pub fn find_gap<A: Arch>(k: &mut Kernel<A>, untyped: SlotRef, start: usize, range_end: usize) -> Option<Gap> {
    let cap = &k.slot(untyped).cap;
    let (object, marks) = (cap.object, Marks::of(cap).end());
    if marks == 0 {
        return Some((Some(untyped), tree::next(k, untyped)));
    }
    let gap = tree::gap(k, |k, node| k.slot(node).cap.object < range_end);
    let before = last_before(k, gap).unwrap_or(untyped);
    if before == untyped || start >= object + marks as usize {
        return Some(gap);
    }
    if end_address(&k.slot(before).cap) > start {
        return None;
    }
    // All others between the untyped and the range end before the range, except untypeds that contain the last of them.
    match tree::next_reaching(k, untyped, start) {
        Some(around) if k.slot(around).cap.object < range_end => None,
        _ => Some(gap),
    }
}

/// Makes a capability the first of its equals, unless `refused` holds for the present first. Returns whether it is the
/// first now.
pub fn lead<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, refused: impl FnOnce(&Cap) -> bool) -> bool {
    let leader = if tree::is_follower(k, slot) { first_equal(k, slot).0 } else { slot };
    if refused(&k.slot(leader).cap) {
        return false;
    }
    if leader != slot {
        leave_run(k, leader);
        tree::remove(k, slot);
        tree::replace(k, leader, slot);
        tree::follow(k, leader, slot);
    }
    true
}

/// Returns the gap in the order for `cap`, which is derived from no capability here, and the untyped that directly
/// contains it, if there is one, for which `lent` must hold. Returns `None` if `cap` overlaps anything else.
pub fn find_gap_outside<A: Arch>(
    k: &mut Kernel<A>,
    cap: &Cap,
    lent: impl Fn(&Cap) -> bool,
) -> Option<(Gap, Option<SlotRef>)> {
    let (start, range_end) = (cap.object, end_address(cap));
    let gap = tree::gap(k, |k, node| in_order(&k.slot(node).cap, cap));
    if gap.1.is_some_and(|after| k.slot(after).cap.object < range_end) {
        return None;
    }
    let (Some(before), Some(last)) = (gap.0, last_before(k, gap)) else { return Some((gap, None)) };
    // An object that reaches into the range from before it is an untyped, or comes last before the range.
    let around =
        if end_address(&k.slot(last).cap) > start { Some(last) } else { tree::last_reaching(k, before, start) };
    let fits = around.is_none_or(|around| {
        let around = &k.slot(around).cap;
        matches!(around.kind, Kind::Untyped) && lent(around) && end_address(around) >= range_end
    });
    fits.then_some((gap, around))
}

/// Returns the capability after which to continue when the capability that lay at this position was deleted. Untyped
/// memory of the same extent, which may have come before or after it, comes after the result.
pub fn behind<A: Arch>(k: &mut Kernel<A>, position: &Cap) -> Option<SlotRef> {
    let is_untyped = matches!(position.kind, Kind::Untyped);
    let before = |cap: &Cap| if is_untyped { !in_order(position, cap) } else { in_order(cap, position) };
    let gap = tree::gap(k, |k, node| before(&k.slot(node).cap));
    let (first, last) = (gap.0?, last_before(k, gap)?);
    let reach = k.slot(last).cap.object;
    let at = member_at(k, first, position.object.min(reach));
    if before(&k.slot(at).cap) { Some(at) } else { SlotRef::new(at.number() - 1) }
}

/// Returns the first capability that begins at an address or later.
pub fn first_from<A: Arch>(k: &mut Kernel<A>, address: usize) -> Option<SlotRef> {
    let gap = tree::gap(k, |k, node| k.slot(node).cap.object < address);
    let Some(last) = last_before(k, gap) else { return gap.1 };
    if k.slot(last).cap.object < address {
        return gap.1;
    }
    // The address is in the middle of a run.
    let at = member_at(k, gap.0?, address);
    if k.slot(at).cap.object < address { runs::after(at) } else { Some(at) }
}

/// Divides a run of frames in two at an address, if one reaches beyond it. Returns the gap there.
pub fn divide<A: Arch>(k: &mut Kernel<A>, address: usize) -> Gap {
    if let Some(slot) = first_from(k, address)
        && runs::is_member(k, slot)
    {
        stand_alone(k, slot);
    }
    tree::gap(k, |k, node| k.slot(node).cap.object < address)
}

/// Returns whether a slot reference is still valid: the slot lies in a node or thread to which a capability exists.
pub fn slot_exists<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let address = k.arch().locate(slot.number(), SLOT_SHIFT);
    let (Some(nearest), _) = tree::gap(k, |k, node| k.slot(node).cap.object <= address) else { return false };
    let cap = &k.slot(nearest).cap;
    matches!(cap.kind, Kind::CapNode | Kind::Thread) && address < end_address(cap)
}
