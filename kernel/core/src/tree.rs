//! The ordered structure below the derivation structure: a list, and a balanced tree for searching in it.
//!
//! ```text
//!              ┌───┐               tree: parent, left, right, colour
//!         ┌────┤ d ├────┐          list: previous ◄─► next, in order
//!       ┌─┴─┐  └───┘  ┌─┴─┐
//!     ┌─┤ b ├─┐       │ e │        a ◄─► b ◄─► b' ◄─► b" ◄─► c ◄─► d ◄─► e
//!   ┌─┴─┐   ┌─┴─┐     └───┘              followers of b
//!   │ a │   │ c │                  max_end: the largest end in the node's subtree
//!   └───┘   └───┘
//! ```
//! The tree is red-black. It has no keys: the caller of an insertion says between which nodes, and the caller of a
//! search brings the comparison. Of nodes that are equal in order, only one is in the tree; the others are its
//! *followers*, after it in the list alone, so that they are inserted and removed in constant time. If the node in the
//! tree is removed, its first follower takes its place. Nodes with consecutive numbers can be a *run*, of which only
//! the first is in the tree ([`runs`]). Inserting and removing other nodes change the shape in amortised constant time
//! and at worst O(log n); neighbours are found in O(1).
//!
//! Some nodes have an *end*: the end address of memory in which other nodes' objects can lie. Each subtree stores its
//! largest end, so "the next node that reaches beyond this address" is found in O(log n) as well. Most nodes cannot
//! contain others; they have end 0 and cost nothing. So do followers.
//!
//! Nodes are named by number; 0 means none. The [`Links`] of an unlinked node are all zero.

mod reaching;
pub mod runs;

use crate::slot::{Links, SlotRef};

pub use reaching::{last_reaching, next_reaching};

/// Colour of which every path from the root to a missing child has equally many.
pub const BLACK: u16 = 0;
/// Colour of a node whose parent is black.
pub const RED: u16 = 1;
/// Colour of a node that is in the list only, equal in order to the one before.
pub const FOLLOWER: u16 = 2;
/// Colour of a node of a run that is in the list only.
pub const MEMBER: u16 = 3;

/// Access to the nodes and to the ends of the structure.
pub trait Nodes {
    /// Number of the tree's root; 0 while it is empty.
    fn root(&mut self) -> &mut u32;
    /// Number of the last node in the list.
    fn tail(&mut self) -> &mut u32;
    /// Returns a node's links.
    fn links(&mut self, node: SlotRef) -> &mut Links;
    /// Returns a node's own end, or 0.
    fn end(&mut self, node: SlotRef) -> usize;
}

/// A gap in the tree, as the nodes before and after it. Between them lie at most followers of the first.
pub type Gap = (Option<SlotRef>, Option<SlotRef>);

/// Returns the child on side `RIGHT`.
#[inline(always)]
fn near<const RIGHT: bool>(links: &mut Links) -> &mut u32 {
    if RIGHT { &mut links.right } else { &mut links.left }
}

/// Returns the child on the other side.
#[inline(always)]
fn far<const RIGHT: bool>(links: &mut Links) -> &mut u32 {
    if RIGHT { &mut links.left } else { &mut links.right }
}

/// Returns whether a node is red; a missing node is not.
#[inline(always)]
fn is_red<N: Nodes>(t: &mut N, number: u32) -> bool {
    SlotRef::new(number).is_some_and(|node| t.links(node).colour == RED)
}

/// Returns the node before this one.
#[inline(always)]
pub fn previous<N: Nodes>(t: &mut N, node: SlotRef) -> Option<SlotRef> {
    SlotRef::new(t.links(node).previous)
}

/// Returns the node after this one.
#[inline(always)]
pub fn next<N: Nodes>(t: &mut N, node: SlotRef) -> Option<SlotRef> {
    SlotRef::new(t.links(node).next)
}

/// Returns the first node.
pub fn first<N: Nodes>(t: &mut N) -> Option<SlotRef> {
    let mut node = SlotRef::new(*t.root())?;
    while let Some(left) = SlotRef::new(t.links(node).left) {
        node = left;
    }
    Some(node)
}

/// Returns the last node.
pub fn last<N: Nodes>(t: &mut N) -> Option<SlotRef> {
    SlotRef::new(*t.tail())
}

/// Returns the gap between the last node of the tree for which `before` is true and the first for which it is not. All
/// nodes for which it is true must come before all others.
pub fn gap<N: Nodes>(t: &mut N, mut before: impl FnMut(&mut N, SlotRef) -> bool) -> Gap {
    let (mut last, mut first) = (0, 0);
    let mut at = *t.root();
    while let Some(node) = SlotRef::new(at) {
        if before(t, node) {
            last = at;
            at = t.links(node).right;
        } else {
            first = at;
            at = t.links(node).left;
        }
    }
    (SlotRef::new(last), SlotRef::new(first))
}

/// Links a node into list and tree, in a gap as returned by [`gap`].
#[inline(always)]
pub fn insert<N: Nodes>(t: &mut N, node: SlotRef, (before, after): Gap) {
    let number = node.number();
    let previous = match after {
        Some(after) => core::mem::replace(&mut t.links(after).previous, number),
        None => core::mem::replace(t.tail(), number),
    };
    if let Some(previous) = SlotRef::new(previous) {
        t.links(previous).next = number;
    }
    let next = after.map_or(0, SlotRef::number);
    *t.links(node) = Links { previous, next, ..Links::default() };
    enter(t, node, (before, after));
}

/// Links a node, which is in the list, into the tree.
fn enter<N: Nodes>(t: &mut N, node: SlotRef, (before, after): Gap) {
    let number = node.number();
    let end = t.end(node);
    let mut parent = before;
    if let Some(after) = after {
        let links = t.links(after);
        if links.left == 0 {
            links.left = number;
            parent = Some(after);
        }
    }
    let links = t.links(node);
    (links.max_end, links.colour) = (end, RED);
    links.parent = parent.map_or(0, SlotRef::number);
    let Some(parent) = parent else {
        *t.root() = number;
        t.links(node).colour = BLACK;
        return;
    };
    let links = t.links(parent);
    if links.left != number {
        // The node after has a left child, so the node before is the last below that child and has no right one.
        links.right = number;
    }
    let is_red = links.colour == RED;
    if end != 0 {
        raise(t, parent, end);
    }
    if is_red {
        balance_inserted(t, node, parent);
    }
}

/// Links a node into the list alone, directly after `leader`, to which it is equal.
#[inline(always)]
pub fn follow<N: Nodes>(t: &mut N, node: SlotRef, leader: SlotRef) {
    let number = node.number();
    let next = core::mem::replace(&mut t.links(leader).next, number);
    let previous = leader.number();
    *t.links(node) =
        Links { max_end: 0, parent: 0, left: 0, right: 0, previous, next, colour: FOLLOWER, ..Links::default() };
    match SlotRef::new(next) {
        Some(next) => t.links(next).previous = number,
        None => *t.tail() = number,
    }
}

/// Unlinks a follower, and zeroes its links.
#[inline(always)]
pub fn unfollow<N: Nodes>(t: &mut N, node: SlotRef) {
    let Links { previous, next, .. } = core::mem::take(t.links(node));
    if let Some(previous) = SlotRef::new(previous) {
        t.links(previous).next = next;
    }
    match SlotRef::new(next) {
        Some(next) => t.links(next).previous = previous,
        None => *t.tail() = previous,
    }
}

/// Returns whether a node is in the list only.
pub fn is_follower<N: Nodes>(t: &mut N, node: SlotRef) -> bool {
    t.links(node).colour == FOLLOWER
}

/// Updates the subtrees after a node's end has grown.
pub fn raised<N: Nodes>(t: &mut N, node: SlotRef) {
    let end = t.end(node);
    raise(t, node, end);
}

/// Updates the subtrees after a node's end has shrunk.
pub fn lowered<N: Nodes>(t: &mut N, node: SlotRef) {
    lower(t, node.number());
}

/// Updates `node` and the nodes above it, a subtree of which now reaches to `end`.
#[inline(always)]
fn raise<N: Nodes>(t: &mut N, node: SlotRef, end: usize) {
    let mut at = Some(node);
    while let Some(node) = at {
        let links = t.links(node);
        if links.max_end >= end {
            return;
        }
        links.max_end = end;
        at = SlotRef::new(links.parent);
    }
}

/// Returns the largest end in a subtree, from the node itself and its children.
#[inline(always)]
pub fn largest_end<N: Nodes>(t: &mut N, node: SlotRef) -> usize {
    let end = t.end(node);
    let (left, right) = (t.links(node).left, t.links(node).right);
    let left_end = SlotRef::new(left).map_or(0, |left| t.links(left).max_end);
    let right_end = SlotRef::new(right).map_or(0, |right| t.links(right).max_end);
    end.max(left_end).max(right_end)
}

/// Recomputes the largest end in a node's subtree.
#[inline(always)]
fn refresh<N: Nodes>(t: &mut N, node: SlotRef) {
    let end = largest_end(t, node);
    t.links(node).max_end = end;
}

/// Recomputes the largest ends at `number` and above, which may have shrunk.
#[inline(always)]
fn lower<N: Nodes>(t: &mut N, number: u32) {
    let mut at = number;
    while let Some(node) = SlotRef::new(at) {
        let end = largest_end(t, node);
        let links = t.links(node);
        if links.max_end == end {
            return;
        }
        links.max_end = end;
        at = links.parent;
    }
}

/// Replaces the child `old` of `parent`, or the root, by `new` (0 for none). Does not write the new node's parent.
#[inline(always)]
fn change_child<N: Nodes>(t: &mut N, parent: u32, old: u32, new: u32) {
    match SlotRef::new(parent) {
        None => *t.root() = new,
        Some(parent) => {
            let links = t.links(parent);
            let place = if links.left == old { &mut links.left } else { &mut links.right };
            *place = new;
        }
    }
}

/// Sets the parent of a node, unless the node is missing.
#[inline(always)]
fn set_parent<N: Nodes>(t: &mut N, number: u32, parent: u32) {
    if let Some(node) = SlotRef::new(number) {
        t.links(node).parent = parent;
    }
}

/// Rotates: `node` goes down on side `RIGHT`, and `riser`, its other child, takes its place.
fn rotate<N: Nodes, const RIGHT: bool>(t: &mut N, node: SlotRef, riser: SlotRef) {
    let r = t.links(riser);
    let middle = core::mem::replace(near::<RIGHT>(r), node.number());
    let l = t.links(node);
    let parent = core::mem::replace(&mut l.parent, riser.number());
    *far::<RIGHT>(l) = middle;
    let max_end = l.max_end;
    let r = t.links(riser);
    r.parent = parent;
    r.max_end = max_end;
    set_parent(t, middle, node.number());
    change_child(t, parent, node.number(), riser.number());
    if max_end != 0 {
        refresh(t, node);
    }
}

/// Restores the colours above `node`, which is red like its parent.
#[inline(always)]
fn balance_inserted<N: Nodes>(t: &mut N, node: SlotRef, parent: SlotRef) {
    let (mut node, mut parent) = (node, parent);
    loop {
        // A red node has a parent, since the root is black.
        let Some(grandparent) = SlotRef::new(t.links(parent).parent) else { return };
        let g = t.links(grandparent);
        let parent_is_left = g.left == parent.number();
        let uncle = if parent_is_left { g.right } else { g.left };
        if !is_red(t, uncle) {
            if parent_is_left {
                straighten::<N, false>(t, node, parent, grandparent);
            } else {
                straighten::<N, true>(t, node, parent, grandparent);
            }
            return;
        }
        if let Some(uncle) = SlotRef::new(uncle) {
            t.links(uncle).colour = BLACK;
        }
        t.links(parent).colour = BLACK;
        node = grandparent;
        let Some(above) = SlotRef::new(t.links(node).parent) else { return };
        t.links(node).colour = RED;
        if t.links(above).colour == BLACK {
            return;
        }
        parent = above;
    }
}

/// Resolves two red nodes in a row, whose parent is the child on side `RIGHT` and has a black sibling: the parent (or
/// the node, if it lies between) takes the grandparent's place.
#[inline(always)]
fn straighten<N: Nodes, const RIGHT: bool>(t: &mut N, node: SlotRef, parent: SlotRef, grandparent: SlotRef) {
    let mut top = parent;
    if *far::<RIGHT>(t.links(parent)) == node.number() {
        rotate::<N, RIGHT>(t, parent, node);
        top = node;
    }
    t.links(top).colour = BLACK;
    t.links(grandparent).colour = RED;
    // The grandparent goes down on the side away from the parent.
    if RIGHT {
        rotate::<N, false>(t, grandparent, top);
    } else {
        rotate::<N, true>(t, grandparent, top);
    }
}

/// Unlinks a node and zeroes its links. A node of a run must be [removable](runs::is_removable).
pub fn remove<N: Nodes>(t: &mut N, node: SlotRef) {
    let end = t.end(node);
    let links = core::mem::take(t.links(node));
    if let Some(previous) = SlotRef::new(links.previous) {
        t.links(previous).next = links.next;
    }
    let mut promoted = None;
    match SlotRef::new(links.next) {
        Some(next) => {
            let n = t.links(next);
            n.previous = links.previous;
            if n.colour >= FOLLOWER {
                promoted = Some(next);
            }
        }
        None => *t.tail() = links.previous,
    }
    if links.colour >= FOLLOWER {
        if links.colour == MEMBER {
            runs::shorten(t, node);
        }
        return;
    }
    match promoted {
        Some(follower) => runs::take_place(t, node, &links, follower),
        None => take_out(t, node, &links, end),
    }
}

/// Takes a node that nothing follows any more, which had `links` and this end, out of the tree.
fn take_out<N: Nodes>(t: &mut N, node: SlotRef, links: &Links, end: usize) {
    let number = node.number();
    // `child` moves up to below `parent`, where a node of `colour` is missing.
    let (parent, child, colour);
    if links.left == 0 || links.right == 0 {
        parent = links.parent;
        child = links.left | links.right;
        colour = links.colour;
        change_child(t, parent, number, child);
        set_parent(t, child, parent);
        if end != 0 {
            lower(t, parent);
        }
    } else {
        // The next node, which has no left child, takes the place of the removed node.
        let Some(next) = SlotRef::new(links.next) else { return };
        let n = t.links(next);
        child = n.right;
        colour = core::mem::replace(&mut n.colour, links.colour);
        let above = core::mem::replace(&mut n.parent, links.parent);
        n.left = links.left;
        n.max_end = links.max_end;
        if above == number {
            parent = next.number();
        } else {
            parent = above;
            n.right = links.right;
            set_parent(t, links.right, next.number());
            if let Some(above) = SlotRef::new(above) {
                t.links(above).left = child;
            }
            set_parent(t, child, above);
        }
        set_parent(t, links.left, next.number());
        change_child(t, links.parent, number, next.number());
        if links.max_end != 0 && (end != 0 || t.end(next) != 0) {
            lower(t, parent);
            lower(t, next.number());
        }
    }
    if colour == BLACK {
        // An only child is red, and can supply the missing black.
        match SlotRef::new(child) {
            Some(child) => t.links(child).colour = BLACK,
            None => lift(t, parent),
        }
    }
}

/// Restores the colours after a black leaf below `parent` was removed.
fn lift<N: Nodes>(t: &mut N, parent: u32) {
    let mut short = 0;
    let mut at = parent;
    while let Some(parent) = SlotRef::new(at) {
        let links = t.links(parent);
        at = links.parent;
        let ended =
            if links.left == short { lift_side::<N, false>(t, parent) } else { lift_side::<N, true>(t, parent) };
        if ended {
            return;
        }
        short = parent.number();
    }
}

/// Does one step: the subtree of `parent` on side `RIGHT` lacks a black node. Returns whether that is repaired; if not,
/// the whole subtree of `parent` lacks one.
#[inline(always)]
fn lift_side<N: Nodes, const RIGHT: bool>(t: &mut N, parent: SlotRef) -> bool {
    // The other side has more black nodes than this one, so the sibling exists.
    let Some(mut sibling) = SlotRef::new(*far::<RIGHT>(t.links(parent))) else { return true };
    if t.links(sibling).colour == RED {
        t.links(sibling).colour = BLACK;
        t.links(parent).colour = RED;
        let Some(nephew) = SlotRef::new(*near::<RIGHT>(t.links(sibling))) else { return true };
        rotate::<N, RIGHT>(t, parent, sibling);
        sibling = nephew;
    }
    let (inner, outer) = (*near::<RIGHT>(t.links(sibling)), *far::<RIGHT>(t.links(sibling)));
    if !is_red(t, outer) {
        if !is_red(t, inner) {
            t.links(sibling).colour = RED;
            return core::mem::replace(&mut t.links(parent).colour, BLACK) == RED;
        }
        let Some(inner) = SlotRef::new(inner) else { return true };
        if RIGHT {
            rotate::<N, false>(t, sibling, inner);
        } else {
            rotate::<N, true>(t, sibling, inner);
        }
        sibling = inner;
    } else if let Some(outer) = SlotRef::new(outer) {
        t.links(outer).colour = BLACK;
    }
    let colour = core::mem::replace(&mut t.links(parent).colour, BLACK);
    t.links(sibling).colour = colour;
    rotate::<N, RIGHT>(t, parent, sibling);
    true
}

/// Puts `new`, which is not linked, in the place of `old`, which is in no run, and unlinks `old`. Both have the same
/// end.
#[inline(always)]
pub fn replace<N: Nodes>(t: &mut N, old: SlotRef, new: SlotRef) {
    let links = core::mem::take(t.links(old));
    *t.links(new) = links;
    if let Some(previous) = SlotRef::new(links.previous) {
        t.links(previous).next = new.number();
    }
    match SlotRef::new(links.next) {
        Some(next) => t.links(next).previous = new.number(),
        None => *t.tail() = new.number(),
    }
    if links.colour != FOLLOWER {
        change_child(t, links.parent, old.number(), new.number());
        set_parent(t, links.left, new.number());
        set_parent(t, links.right, new.number());
    }
}

/// Puts `new`, which is not linked, in the place of `old` in the order, and unlinks `old`. Unlike [`replace`], it calls
/// `between` when neither is linked. `between` can [`replace`] one further node, and returns the number that a
/// neighbour has afterwards.
pub fn reinsert<N: Nodes>(
    t: &mut N,
    old: SlotRef,
    new: SlotRef,
    between: impl FnOnce(&mut N),
    renamed: impl Fn(SlotRef) -> SlotRef,
) {
    let links = *t.links(old);
    let (previous, next) = (SlotRef::new(links.previous), SlotRef::new(links.next));
    let leads = next.is_some_and(|next| is_follower(t, next));
    let before = if links.colour == FOLLOWER || leads { None } else { predecessor(t, old) };
    remove(t, old);
    between(t);
    if links.colour == FOLLOWER {
        if let Some(previous) = previous {
            follow(t, new, renamed(previous));
        }
    } else if let Some(next) = next.filter(|_| leads) {
        follow(t, new, renamed(next));
    } else {
        insert(t, new, (before.map(&renamed), next.map(&renamed)));
    }
}

/// Returns the node of the tree before another.
fn predecessor<N: Nodes>(t: &mut N, node: SlotRef) -> Option<SlotRef> {
    if let Some(mut below) = SlotRef::new(t.links(node).left) {
        while let Some(right) = SlotRef::new(t.links(below).right) {
            below = right;
        }
        return Some(below);
    }
    let mut at = node;
    loop {
        let parent = SlotRef::new(t.links(at).parent)?;
        if t.links(parent).right == at.number() {
            return Some(parent);
        }
        at = parent;
    }
}
