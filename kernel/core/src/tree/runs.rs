//! Runs: nodes with consecutive numbers, in order, of which only the first is in the tree.
//!
//! ```text
//!              ┌───┐                 tree
//!           ┌──┤ 7 ├──┐
//!         ┌─┴─┐└───┘┌─┴─┐
//!         │ 3 │     │20 │            3, 4, 5 are a run, and so are 20, 21, 22; 5 has a follower
//!         └───┘     └───┘
//!  list:    3 ► 4 ► 5 ► f ► 7 ► 20 ► 21 ► 22
//! ```
//! So a run is linked and unlinked at the cost of its list, whatever the size of the tree. Each node of a run says
//! whether the run goes on ([`Links::continues`]); the others than the first are its *members*. No other node of the
//! tree lies between two nodes of a run. A search ends at the run's first node, and the caller finds the member by its
//! number.
//!
//! A node is taken out of the middle of a run by entering it, and the one after it, into the tree
//! ([`stand_alone`]); what is left are two shorter runs.

use super::{BLACK, FOLLOWER, Gap, MEMBER, Nodes, change_child, enter, is_follower, set_parent, take_out};
use crate::slot::{Links, SlotRef};

/// Returns the node with the number after another's.
#[inline(always)]
pub fn after(node: SlotRef) -> Option<SlotRef> {
    SlotRef::new(node.number().wrapping_add(1))
}

/// Returns whether a node is part of a run of at least two.
#[inline(always)]
pub fn is_in_run<N: Nodes>(t: &mut N, node: SlotRef) -> bool {
    let links = t.links(node);
    links.continues != 0 || links.colour == MEMBER
}

/// Returns whether a node is in a run and not the first of it.
#[inline(always)]
pub fn is_member<N: Nodes>(t: &mut N, node: SlotRef) -> bool {
    t.links(node).colour == MEMBER
}

/// Returns the links of a member.
#[inline(always)]
fn member(previous: SlotRef, next: u32, continues: u16) -> Links {
    let previous = previous.number();
    Links { max_end: 0, parent: 0, left: 0, right: 0, previous, next, colour: MEMBER, continues }
}

/// Links `count` nodes with the numbers after `first`'s, which has no followers, as members of its run. Members that it
/// has already come after them.
pub fn extend<N: Nodes>(t: &mut N, first: SlotRef, count: usize) {
    let links = t.links(first);
    let (behind, continues) = (links.next, links.continues);
    let mut last = first;
    for _ in 0..count {
        let Some(node) = after(last) else { return };
        let l = t.links(last);
        (l.next, l.continues) = (node.number(), 1);
        *t.links(node) = member(last, behind, continues);
        last = node;
    }
    match SlotRef::new(behind) {
        Some(behind) => t.links(behind).previous = last.number(),
        None => *t.tail() = last.number(),
    }
}

/// Gives the place in the tree of `old`, which had `links`, to `new`.
#[inline(always)]
pub fn take_place<N: Nodes>(t: &mut N, old: SlotRef, links: &Links, new: SlotRef) {
    let n = t.links(new);
    n.max_end = links.max_end;
    n.parent = links.parent;
    n.left = links.left;
    n.right = links.right;
    n.colour = links.colour;
    change_child(t, links.parent, old.number(), new.number());
    set_parent(t, links.left, new.number());
    set_parent(t, links.right, new.number());
}

/// Makes a node of a run a node of the tree, alone with its followers. `(before, after)` are the nodes of the tree
/// between which the node lies; `before` is the node itself if it is the first of its run.
pub fn stand_alone<N: Nodes>(t: &mut N, node: SlotRef, (before, behind): Gap) {
    if t.links(node).colour == MEMBER {
        shorten(t, node);
        enter(t, node, (before, behind));
    }
    if core::mem::take(&mut t.links(node).continues) != 0
        && let Some(next) = after(node)
    {
        enter(t, next, (Some(node), behind));
    }
}

/// Returns whether [`remove`](super::remove) can unlink a node of a run: the first, if nothing follows it, and the
/// last, likewise. Any other has to [`stand_alone`] before.
pub fn is_removable<N: Nodes>(t: &mut N, node: SlotRef) -> bool {
    let links = *t.links(node);
    if links.colour == MEMBER {
        let has_followers = SlotRef::new(links.next).is_some_and(|next| is_follower(t, next));
        links.continues == 0 && !has_followers
    } else {
        links.continues == 0 || after(node).is_some_and(|next| next.number() == links.next)
    }
}

/// Ends a run before a member of it.
pub fn shorten<N: Nodes>(t: &mut N, node: SlotRef) {
    if let Some(previous) = SlotRef::new(node.number().wrapping_sub(1)) {
        t.links(previous).continues = 0;
    }
}

/// Prepares a node of a run that is not [removable](is_removable) for [`remove`](super::remove). Returns `false` if
/// that unlinked the node already. `gap` is as in [`stand_alone`].
pub fn prepare_removal<N: Nodes>(t: &mut N, node: SlotRef, gap: Gap) -> bool {
    let is_member = is_member(t, node);
    if is_member {
        remove_member(t, node, gap);
    } else {
        stand_alone(t, node, gap);
    }
    !is_member
}

/// Unlinks a member of a run which is not the last node of the run or has followers. What comes next takes its place:
/// its first follower, or else the rest of the run.
fn remove_member<N: Nodes>(t: &mut N, node: SlotRef, (before, behind): Gap) {
    let links = core::mem::take(t.links(node));
    shorten(t, node);
    if let Some(previous) = SlotRef::new(links.previous) {
        t.links(previous).next = links.next;
    }
    let Some(next) = SlotRef::new(links.next) else { return };
    t.links(next).previous = links.previous;
    enter(t, next, (before, behind));
    if let Some(rest) = after(node)
        && links.continues != 0
        && rest != next
    {
        enter(t, rest, (Some(next), behind));
    }
}

/// Unlinks the first of a run, which is [removable](is_removable), and up to `most - 1` members after it, until one has
/// followers or `stays`. Returns how many were unlinked. None of the nodes has an end.
pub fn remove_first<N: Nodes>(
    t: &mut N,
    first: SlotRef,
    most: usize,
    mut stays: impl FnMut(&mut N, SlotRef) -> bool,
) -> usize {
    let links = core::mem::take(t.links(first));
    let (mut last, mut rest, mut continues) = (first, links.next, links.continues);
    let mut count = 1;
    while continues != 0 && count < most {
        let Some(node) = after(last).filter(|node| node.number() == rest) else { break };
        let l = *t.links(node);
        let has_followers = SlotRef::new(l.next).is_some_and(|next| is_follower(t, next));
        if has_followers || stays(t, node) {
            break;
        }
        *t.links(node) = Links::default();
        (last, rest, continues) = (node, l.next, l.continues);
        count += 1;
    }
    if let Some(previous) = SlotRef::new(links.previous) {
        t.links(previous).next = rest;
    }
    match SlotRef::new(rest) {
        Some(rest) => t.links(rest).previous = links.previous,
        None => *t.tail() = links.previous,
    }
    match SlotRef::new(rest).filter(|rest| t.links(*rest).colour >= FOLLOWER) {
        Some(new) => take_place(t, first, &links, new),
        None => take_out(t, first, &Links { next: rest, ..links }, 0),
    }
    count
}

const _: () = assert!(BLACK == 0 && FOLLOWER != MEMBER, "empty links are those of no member and no follower");
