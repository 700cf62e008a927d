//! The balanced tree below the derivation structure.
//!
//! A red-black tree whose nodes are linked into a list as well, so that neighbours are found at once:
//!
//! ```text
//!              ┌───┐            tree: parent, left, right, colour
//!         ┌────┤ d ├────┐       list: previous ◄─► next, in order
//!       ┌─┴─┐  └───┘  ┌─┴─┐
//!     ┌─┤ b ├─┐       │ e │     a ◄─► b ◄─► c ◄─► d ◄─► e
//!   ┌─┴─┐   ┌─┴─┐     └───┘
//!   │ a │   │ c │               max_end: the largest end in the node's subtree
//!   └───┘   └───┘
//! ```
//! The tree knows no keys: whoever inserts says after which node, and whoever searches brings the comparison. Inserting
//! and removing change the shape in amortised constant time and at worst O(log n); neighbours are O(1).
//!
//! Each node has an *end* (where the object that it stands for ends), and each subtree knows its largest, so "the next
//! node that reaches beyond this address" is found in O(log n) as well.
//!
//! Nodes are named by number, 0 is nobody. An unlinked node's [`Links`] are all zero.

use crate::slot::{Links, SlotRef};

/// Colour of a node whose parent is black.
const RED: u32 = 1;
/// Colour that every path from the root to a missing child meets equally often.
const BLACK: u32 = 0;

/// Where nodes are, and the tree's root.
pub trait Nodes {
    /// Number of the root; 0 while the tree is empty.
    fn root(&mut self) -> &mut u32;
    /// A node's links.
    fn links(&mut self, node: SlotRef) -> &mut Links;
    /// A node's own end.
    fn end(&mut self, node: SlotRef) -> usize;
}

/// The child on side `RIGHT`.
#[inline(always)]
fn near<const RIGHT: bool>(links: &mut Links) -> &mut u32 {
    if RIGHT { &mut links.right } else { &mut links.left }
}

/// The child on the other side.
#[inline(always)]
fn far<const RIGHT: bool>(links: &mut Links) -> &mut u32 {
    if RIGHT { &mut links.left } else { &mut links.right }
}

/// Whether a possibly missing node is red.
#[inline(always)]
fn is_red<N: Nodes>(t: &mut N, number: u32) -> bool {
    SlotRef::new(number).is_some_and(|node| t.links(node).colour != BLACK)
}

/// The node before this one.
#[inline(always)]
pub fn previous<N: Nodes>(t: &mut N, node: SlotRef) -> Option<SlotRef> {
    SlotRef::new(t.links(node).previous)
}

/// The node after this one.
#[inline(always)]
pub fn next<N: Nodes>(t: &mut N, node: SlotRef) -> Option<SlotRef> {
    SlotRef::new(t.links(node).next)
}

/// The first node.
pub fn first<N: Nodes>(t: &mut N) -> Option<SlotRef> {
    let mut node = SlotRef::new(*t.root())?;
    while let Some(left) = SlotRef::new(t.links(node).left) {
        node = left;
    }
    Some(node)
}

/// The last node.
pub fn last<N: Nodes>(t: &mut N) -> Option<SlotRef> {
    let mut node = SlotRef::new(*t.root())?;
    while let Some(right) = SlotRef::new(t.links(node).right) {
        node = right;
    }
    Some(node)
}

/// The last node for which `before` is true. `before` must be true for some nodes from the first on, and for none of
/// the others.
#[inline]
pub fn last_where<N: Nodes>(t: &mut N, mut before: impl FnMut(&mut N, SlotRef) -> bool) -> Option<SlotRef> {
    let mut found = None;
    let mut at = *t.root();
    while let Some(node) = SlotRef::new(at) {
        at = if before(t, node) {
            found = Some(node);
            t.links(node).right
        } else {
            t.links(node).left
        };
    }
    found
}

/// The first node after `node` whose end lies beyond `address`.
#[inline]
pub fn next_reaching<N: Nodes>(t: &mut N, node: SlotRef, address: usize) -> Option<SlotRef> {
    let mut at = node;
    let mut right = t.links(at).right;
    loop {
        if let Some(subtree) = SlotRef::new(right)
            && t.links(subtree).max_end > address
        {
            return first_reaching(t, subtree, address);
        }
        // Nothing below: up to the first ancestor that comes later.
        loop {
            let parent = SlotRef::new(t.links(at).parent)?;
            let links = t.links(parent);
            let came_from_left = links.left == at.number();
            right = links.right;
            at = parent;
            if came_from_left {
                break;
            }
        }
        if t.end(at) > address {
            return Some(at);
        }
    }
}

/// The first node of a subtree whose end lies beyond `address`. There is one.
#[inline]
fn first_reaching<N: Nodes>(t: &mut N, subtree: SlotRef, address: usize) -> Option<SlotRef> {
    let mut node = subtree;
    loop {
        let links = *t.links(node);
        match SlotRef::new(links.left) {
            Some(left) if t.links(left).max_end > address => node = left,
            _ if t.end(node) > address => return Some(node),
            _ => node = SlotRef::new(links.right)?,
        }
    }
}

/// Links a node in after `predecessor`, or as the first.
#[inline]
pub fn insert_after<N: Nodes>(t: &mut N, node: SlotRef, predecessor: Option<SlotRef>) {
    let end = t.end(node);
    let mut links = Links { max_end: end, parent: 0, left: 0, right: 0, previous: 0, next: 0, colour: RED };
    // The node after this one has no left child, if its predecessor has a right one.
    let successor = match predecessor {
        Some(predecessor) => {
            let l = t.links(predecessor);
            links.previous = predecessor.number();
            links.next = core::mem::replace(&mut l.next, node.number());
            if l.right == 0 {
                l.right = node.number();
                links.parent = predecessor.number();
            }
            SlotRef::new(links.next)
        }
        None => first(t),
    };
    if let Some(successor) = successor {
        let l = t.links(successor);
        l.previous = node.number();
        links.next = successor.number();
        if links.parent == 0 {
            l.left = node.number();
            links.parent = successor.number();
        }
    }
    *t.links(node) = links;
    match SlotRef::new(links.parent) {
        None => {
            *t.root() = node.number();
            t.links(node).colour = BLACK;
        }
        Some(parent) => {
            raise(t, parent, end);
            if t.links(parent).colour == RED {
                balance_inserted(t, node, parent);
            }
        }
    }
}

/// A subtree at or below `node` now reaches to `end`.
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

/// The largest end in a subtree, from the node itself and its children.
#[inline(always)]
fn largest_end<N: Nodes>(t: &mut N, node: SlotRef) -> usize {
    let end = t.end(node);
    let (left, right) = (t.links(node).left, t.links(node).right);
    let left_end = SlotRef::new(left).map_or(0, |left| t.links(left).max_end);
    let right_end = SlotRef::new(right).map_or(0, |right| t.links(right).max_end);
    end.max(left_end).max(right_end)
}

/// The subtrees at `number` and above may reach less far than before.
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

/// Puts `new` (0 for nobody) where `old` hangs below `parent`, or at the root. The new node's parent is not written.
#[inline(always)]
fn change_child<N: Nodes>(t: &mut N, parent: u32, old: u32, new: u32) {
    match SlotRef::new(parent) {
        None => *t.root() = new,
        Some(parent) => {
            let links = t.links(parent);
            if links.left == old {
                links.left = new;
            } else {
                links.right = new;
            }
        }
    }
}

/// Sets the parent of a possibly missing node.
#[inline(always)]
fn set_parent<N: Nodes>(t: &mut N, number: u32, parent: u32) {
    if let Some(node) = SlotRef::new(number) {
        t.links(node).parent = parent;
    }
}

/// Turns an edge: `node` goes down on side `RIGHT`, and its other child takes its place.
fn rotate<N: Nodes, const RIGHT: bool>(t: &mut N, node: SlotRef) {
    let number = node.number();
    let links = *t.links(node);
    let Some(riser) = SlotRef::new(*far::<RIGHT>(&mut { links })) else { return };
    let r = t.links(riser);
    let middle = core::mem::replace(near::<RIGHT>(r), number);
    r.parent = links.parent;
    r.max_end = links.max_end;
    set_parent(t, middle, number);
    change_child(t, links.parent, number, riser.number());
    let l = t.links(node);
    l.parent = riser.number();
    *far::<RIGHT>(l) = middle;
    let end = largest_end(t, node);
    t.links(node).max_end = end;
}

/// Restores the colours above `node`, which is red, as is its parent.
fn balance_inserted<N: Nodes>(t: &mut N, node: SlotRef, parent: SlotRef) {
    let (mut node, mut parent) = (node, parent);
    loop {
        // A red node has a parent, since the root is black.
        let Some(grandparent) = SlotRef::new(t.links(parent).parent) else { return };
        let g = t.links(grandparent);
        let parent_is_left = g.left == parent.number();
        let uncle = if parent_is_left { g.right } else { g.left };
        match SlotRef::new(uncle) {
            Some(uncle) if t.links(uncle).colour == RED => {
                t.links(uncle).colour = BLACK;
                t.links(parent).colour = BLACK;
                node = grandparent;
            }
            _ => {
                if parent_is_left {
                    straighten::<N, false>(t, node, parent, grandparent);
                } else {
                    straighten::<N, true>(t, node, parent, grandparent);
                }
                return;
            }
        }
        match SlotRef::new(t.links(node).parent) {
            None => return,
            Some(above) => {
                t.links(node).colour = RED;
                if t.links(above).colour == BLACK {
                    return;
                }
                parent = above;
            }
        }
    }
}

/// Two red nodes in a row, whose parent is the child on side `RIGHT` and has a black sibling: the parent (or the node,
/// if it lies between) takes the grandparent's place.
#[inline(always)]
fn straighten<N: Nodes, const RIGHT: bool>(t: &mut N, node: SlotRef, parent: SlotRef, grandparent: SlotRef) {
    let mut top = parent;
    if *far::<RIGHT>(t.links(parent)) == node.number() {
        rotate::<N, RIGHT>(t, parent);
        top = node;
    }
    t.links(top).colour = BLACK;
    t.links(grandparent).colour = RED;
    // The grandparent goes down on the side where the parent was not.
    if RIGHT {
        rotate::<N, false>(t, grandparent);
    } else {
        rotate::<N, true>(t, grandparent);
    }
}

/// Unlinks a node; its links are zero afterwards.
pub fn remove<N: Nodes>(t: &mut N, node: SlotRef) {
    let number = node.number();
    let links = core::mem::take(t.links(node));
    if let Some(previous) = SlotRef::new(links.previous) {
        t.links(previous).next = links.next;
    }
    if let Some(next) = SlotRef::new(links.next) {
        t.links(next).previous = links.previous;
    }
    // `child` moves up to below `parent`, where a node of `colour` has gone.
    let (parent, child, colour);
    if links.left == 0 || links.right == 0 {
        parent = links.parent;
        child = links.left | links.right;
        colour = links.colour;
        change_child(t, parent, number, child);
        set_parent(t, child, parent);
        lower(t, parent);
    } else {
        // The next node, which has no left child, takes the place.
        let Some(next) = SlotRef::new(links.next) else { return };
        let n = t.links(next);
        child = n.right;
        colour = n.colour;
        let above = n.parent;
        n.left = links.left;
        n.parent = links.parent;
        n.colour = links.colour;
        n.max_end = links.max_end;
        if above == number {
            parent = next.number();
        } else {
            parent = above;
            n.right = links.right;
            set_parent(t, links.right, next.number());
            change_child(t, above, next.number(), child);
            set_parent(t, child, above);
        }
        set_parent(t, links.left, next.number());
        change_child(t, links.parent, number, next.number());
        lower(t, parent);
        lower(t, next.number());
    }
    if colour == BLACK {
        balance_removed(t, child, parent);
    }
}

/// Restores the colours: the paths through `child` (possibly nobody) below `parent` lack a black node.
#[inline(always)]
fn balance_removed<N: Nodes>(t: &mut N, child: u32, parent: u32) {
    if let Some(child) = SlotRef::new(child) {
        // An only child is red, and so can be what is lacking.
        t.links(child).colour = BLACK;
        return;
    }
    lift(t, parent);
}

/// Restores the colours where a black leaf below `parent` has gone.
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

/// One step: the child of `parent` on side `RIGHT` is short of a black node. Answers whether that is settled; if not,
/// the whole subtree is short of one.
#[inline(always)]
fn lift_side<N: Nodes, const RIGHT: bool>(t: &mut N, parent: SlotRef) -> bool {
    // The other side has more black nodes than the short one, so the sibling exists.
    let Some(mut sibling) = SlotRef::new(*far::<RIGHT>(t.links(parent))) else { return true };
    if t.links(sibling).colour == RED {
        t.links(sibling).colour = BLACK;
        t.links(parent).colour = RED;
        rotate::<N, RIGHT>(t, parent);
        match SlotRef::new(*far::<RIGHT>(t.links(parent))) {
            Some(nephew) => sibling = nephew,
            None => return true,
        }
    }
    let (inner, outer) = (*near::<RIGHT>(t.links(sibling)), *far::<RIGHT>(t.links(sibling)));
    if !is_red(t, outer) {
        if !is_red(t, inner) {
            t.links(sibling).colour = RED;
            return core::mem::replace(&mut t.links(parent).colour, BLACK) == RED;
        }
        let Some(inner) = SlotRef::new(inner) else { return true };
        t.links(inner).colour = BLACK;
        t.links(sibling).colour = RED;
        if RIGHT {
            rotate::<N, false>(t, sibling);
        } else {
            rotate::<N, true>(t, sibling);
        }
        sibling = inner;
    }
    let colour = core::mem::replace(&mut t.links(parent).colour, BLACK);
    t.links(sibling).colour = colour;
    if let Some(outer) = SlotRef::new(*far::<RIGHT>(t.links(sibling))) {
        t.links(outer).colour = BLACK;
    }
    rotate::<N, RIGHT>(t, parent);
    true
}

/// Puts `new`, which is not linked, into the place of `old`, which is not linked afterwards. Both have the same end.
#[inline]
pub fn replace<N: Nodes>(t: &mut N, old: SlotRef, new: SlotRef) {
    let links = core::mem::take(t.links(old));
    *t.links(new) = links;
    change_child(t, links.parent, old.number(), new.number());
    set_parent(t, links.left, new.number());
    set_parent(t, links.right, new.number());
    if let Some(previous) = SlotRef::new(links.previous) {
        t.links(previous).next = new.number();
    }
    if let Some(next) = SlotRef::new(links.next) {
        t.links(next).previous = new.number();
    }
}

/// Checks every link, the balance and the largest ends. Answers the number of nodes. Takes O(n log n).
///
/// # Errors
/// What is wrong.
pub fn check_invariants<N: Nodes>(t: &mut N) -> Result<usize, &'static str> {
    let root = *t.root();
    if let Some(root) = SlotRef::new(root)
        && (t.links(root).parent != 0 || t.links(root).colour != BLACK)
    {
        return Err("the root has a parent or is red");
    }
    let mut blacks = None;
    let mut count = 0;
    let mut before = 0;
    let mut at = first(t);
    while let Some(node) = at {
        count += 1;
        let links = *t.links(node);
        if links.previous != before {
            return Err("a node's predecessor is another than the list says");
        }
        check_children(t, node, links)?;
        if links.left == 0 || links.right == 0 {
            let path = blacks_above(t, node);
            if *blacks.get_or_insert(path) != path {
                return Err("paths differ in black nodes");
            }
        }
        let following = successor_by_shape(t, node);
        if links.next != following.map_or(0, SlotRef::number) {
            return Err("list and tree disagree about the next node");
        }
        before = node.number();
        at = following;
    }
    Ok(count)
}

/// Checks a node against its children.
fn check_children<N: Nodes>(t: &mut N, node: SlotRef, links: Links) -> Result<(), &'static str> {
    for child in [links.left, links.right] {
        let Some(child) = SlotRef::new(child) else { continue };
        if t.links(child).parent != node.number() {
            return Err("a child names another parent");
        }
        if links.colour == RED && t.links(child).colour == RED {
            return Err("a red node has a red child");
        }
    }
    if links.left != 0 && links.left == links.right {
        return Err("a node is both children");
    }
    if links.max_end != largest_end(t, node) {
        return Err("a subtree's largest end is wrong");
    }
    Ok(())
}

/// Black nodes from a node to the root.
fn blacks_above<N: Nodes>(t: &mut N, node: SlotRef) -> usize {
    let mut count = 0;
    let mut at = Some(node);
    while let Some(node) = at {
        let links = t.links(node);
        count += usize::from(links.colour == BLACK);
        at = SlotRef::new(links.parent);
    }
    count
}

/// The next node in order, found without the list.
fn successor_by_shape<N: Nodes>(t: &mut N, node: SlotRef) -> Option<SlotRef> {
    let mut at = node;
    if let Some(mut below) = SlotRef::new(t.links(node).right) {
        while let Some(left) = SlotRef::new(t.links(below).left) {
            below = left;
        }
        return Some(below);
    }
    loop {
        let parent = SlotRef::new(t.links(at).parent)?;
        if t.links(parent).left == at.number() {
            return Some(parent);
        }
        at = parent;
    }
}
