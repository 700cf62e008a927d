//! A balanced tree over nodes that lie in an array of its user and are named by their indices.
//!
//! The tree allocates nothing and owns nothing: the user keeps the nodes, with [`Links`] in each, and provides access
//! to them through [`View`] and [`Nodes`]. A node can be in several trees at once, with links for each. A node may
//! carry a summary of its subtree (the largest gap, for instance); the tree recomputes it wherever the subtree has
//! changed, and stops on the path to the root where nothing changes any more.
//!
//! The heights of two siblings differ by at most one (Adelson-Velsky and Landis), so that with `n` nodes no path to the
//! root is longer than 1.45 log₂ n. Insertion, removal and every search take O(log n) steps; there is no recursion.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod search;

use core::num::NonZeroU32;

use search::{leftmost, rightmost};

/// Name of a node: its index in the array, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(NonZeroU32);

impl Id {
    /// Returns the node at `index`, which must be less than 2³² − 1.
    #[inline(always)]
    pub const fn new(index: u32) -> Id {
        // The index 2³² − 1 cannot be named; an array of so many nodes would not fit into memory.
        match NonZeroU32::new(index.wrapping_add(1)) {
            Some(number) => Id(number),
            None => Id(NonZeroU32::MAX),
        }
    }

    /// Returns the node's index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// Position of a node in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    left: Option<Id>,
    right: Option<Id>,
    parent: Option<Id>,
    balance: Balance,
}

/// The higher subtree of a node, by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Balance {
    /// The node is in no tree.
    #[default]
    Unlinked,
    Left,
    Even,
    Right,
}

impl Links {
    /// Links of a node that is in no tree.
    pub const NONE: Links = Links { left: None, right: None, parent: None, balance: Balance::Unlinked };

    /// Returns the child whose subtree comes before the node.
    #[inline(always)]
    pub const fn left(&self) -> Option<Id> {
        self.left
    }

    /// Returns the child whose subtree comes after the node.
    #[inline(always)]
    pub const fn right(&self) -> Option<Id> {
        self.right
    }

    /// Returns whether the node is in a tree.
    #[inline(always)]
    pub const fn is_linked(&self) -> bool {
        !matches!(self.balance, Balance::Unlinked)
    }
}

/// Shared access to the nodes of a tree: enough for searches.
pub trait View {
    /// Returns a node's links.
    fn links(&self, id: Id) -> &Links;
}

/// Exclusive access to the nodes of a tree, for changing it.
pub trait Nodes: View {
    /// Returns a node's links, mutably.
    fn links_mut(&mut self, id: Id) -> &mut Links;

    /// Recomputes a node's summary of its subtree from the node itself and the summaries of its children. Returns
    /// whether it has changed. Trees without summaries need not implement this.
    #[inline(always)]
    fn summarise(&mut self, id: Id, left: Option<Id>, right: Option<Id>) -> bool {
        let _ = (id, left, right);
        false
    }

    /// As [`summarise`](Self::summarise), for a summary of many parts, of which only those in `which` can have changed,
    /// because only those of one child did: a bit for each, and all bits if anything may have changed. Returns which
    /// have changed.
    #[inline(always)]
    fn summarise_parts(&mut self, id: Id, left: Option<Id>, right: Option<Id>, which: u32) -> u32 {
        let _ = which;
        if self.summarise(id, left, right) { u32::MAX } else { 0 }
    }

    /// Recomputes the parts in `which` of a node's summary after a leaf was added somewhere below it, or after the
    /// summary of such a node has become larger. Returns which have changed.
    #[inline(always)]
    fn summarise_added(&mut self, id: Id, leaf: Id, which: u32) -> u32 {
        let _ = leaf;
        let Links { left, right, .. } = *self.links(id);
        self.summarise_parts(id, left, right, which)
    }

    /// Copies the summary of `from` to `to`, which now stands at the top of a subtree with the same nodes, and returns
    /// true; or returns false, and the summary is recomputed. The summary of `from` is certain to be right only if each
    /// change of a node is followed by [`Tree::changed`] before the next insertion or removal.
    #[inline(always)]
    fn inherit_summary(&mut self, to: Id, from: Id) -> bool {
        let _ = (to, from);
        false
    }

    /// Computes the summary of a node that is inserted as a leaf, whatever summary it had before. Returns which parts
    /// of the summaries above can change because of it.
    #[inline(always)]
    fn summarise_leaf(&mut self, id: Id) -> u32 {
        self.summarise(id, None, None);
        u32::MAX
    }
}

/// A tree. All its operations must get the same nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tree {
    root: Option<Id>,
}

/// The two children of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Tree {
    /// Returns an empty tree.
    pub const fn new() -> Tree {
        Tree { root: None }
    }

    /// Returns the root, for searches by summaries.
    #[inline(always)]
    pub const fn root(&self) -> Option<Id> {
        self.root
    }

    /// Inserts a node that is not in the tree after all nodes for which `is_before` holds. These must be the first ones
    /// in order.
    pub fn insert<N: Nodes>(&mut self, nodes: &mut N, id: Id, mut is_before: impl FnMut(&N, Id) -> bool) {
        let mut found = None;
        let mut next = self.root;
        while let Some(at) = next {
            let links = nodes.links(at);
            let side = if is_before(nodes, at) { Side::Right } else { Side::Left };
            next = if side == Side::Right { links.right } else { links.left };
            found = Some((at, side));
        }
        match found {
            None => self.root = Some(id),
            Some((parent, Side::Left)) => nodes.links_mut(parent).left = Some(id),
            Some((parent, Side::Right)) => nodes.links_mut(parent).right = Some(id),
        }
        self.attach(nodes, id, found.map(|(parent, _)| parent));
    }

    /// Inserts a node that is not in the tree right before one that is.
    pub fn insert_before<N: Nodes>(&mut self, nodes: &mut N, id: Id, next: Id) {
        let parent = match nodes.links(next).left {
            None => {
                nodes.links_mut(next).left = Some(id);
                next
            }
            Some(left) => {
                let last = rightmost(nodes, left);
                nodes.links_mut(last).right = Some(id);
                last
            }
        };
        self.attach(nodes, id, Some(parent));
    }

    /// Inserts a node that is not in the tree right after one that is.
    pub fn insert_after<N: Nodes>(&mut self, nodes: &mut N, id: Id, previous: Id) {
        let parent = match nodes.links(previous).right {
            None => {
                nodes.links_mut(previous).right = Some(id);
                previous
            }
            Some(right) => {
                let first = leftmost(nodes, right);
                nodes.links_mut(first).left = Some(id);
                first
            }
        };
        self.attach(nodes, id, Some(parent));
    }

    /// Makes a node a leaf below `parent`, which already links to it.
    fn attach<N: Nodes>(&mut self, nodes: &mut N, id: Id, parent: Option<Id>) {
        *nodes.links_mut(id) = Links { left: None, right: None, parent, balance: Balance::Even };
        let mut which = nodes.summarise_leaf(id);
        let mut next = parent;
        while let Some(at) = next
            && which != 0
        {
            which = nodes.summarise_added(at, id, which);
            next = nodes.links(at).parent;
        }
        self.has_grown(nodes, id);
    }

    /// Removes a node from the tree.
    pub fn remove<N: Nodes>(&mut self, nodes: &mut N, id: Id) {
        let Links { left, right, parent, balance } = core::mem::take(nodes.links_mut(id));
        let (from, side) = match (left, right) {
            (None, only) | (only, None) => {
                let side = self.replace(nodes, parent, id, only);
                renew_upwards(nodes, parent, None, ALL);
                (parent, side)
            }
            (Some(left), Some(right)) => {
                let successor = leftmost(nodes, right);
                let (from, side) = if successor == right {
                    (successor, Side::Right)
                } else {
                    let Links { parent, right: orphan, .. } = *nodes.links(successor);
                    // The replacement is a left child, of a node below `right` or of `right` itself.
                    let parent = parent.unwrap_or(right);
                    nodes.links_mut(parent).left = orphan;
                    if let Some(orphan) = orphan {
                        nodes.links_mut(orphan).parent = Some(parent);
                    }
                    nodes.links_mut(successor).right = Some(right);
                    nodes.links_mut(right).parent = Some(successor);
                    (parent, Side::Left)
                };
                let taken = nodes.links_mut(successor);
                (taken.left, taken.balance) = (Some(left), balance);
                nodes.links_mut(left).parent = Some(successor);
                self.replace(nodes, parent, id, Some(successor));
                renew_upwards(nodes, Some(from), Some(successor), ALL);
                // The summaries above do not yet include the replacement at its new position.
                renew(nodes, successor);
                renew_upwards(nodes, parent, None, ALL);
                (Some(from), side)
            }
        };
        self.has_shrunk(nodes, from, side);
    }

    /// Recomputes summaries after a node has changed in a way that leaves the order unchanged.
    #[inline]
    pub fn changed<N: Nodes>(&mut self, nodes: &mut N, id: Id) {
        renew_upwards(nodes, Some(id), None, ALL);
    }

    /// As [`changed`](Self::changed), after a node's contribution to summaries has become larger: only the node's own
    /// summary is recomputed from its children, and those above it by [`Nodes::summarise_added`].
    #[inline]
    pub fn enlarged<N: Nodes>(&mut self, nodes: &mut N, id: Id) {
        let Links { left, right, mut parent, .. } = *nodes.links(id);
        let mut which = nodes.summarise_parts(id, left, right, ALL);
        while let Some(at) = parent
            && which != 0
        {
            which = nodes.summarise_added(at, id, which);
            parent = nodes.links(at).parent;
        }
    }

    /// Inserts a node that is not in the tree between two neighbours, as [`around`](Self::around) returns them.
    pub fn insert_between<N: Nodes>(&mut self, nodes: &mut N, id: Id, before: Option<Id>, after: Option<Id>) {
        match (before, after) {
            // Of two neighbours one has no child on the side of the other.
            (Some(before), _) if nodes.links(before).right.is_none() => self.insert_after(nodes, id, before),
            (_, Some(after)) => self.insert_before(nodes, id, after),
            (Some(before), None) => self.insert_after(nodes, id, before),
            (None, None) => self.insert(nodes, id, |_, _| true),
        }
    }

    /// Replaces `old` by `new` below `parent`. Returns on which side that is.
    #[inline]
    fn replace<N: Nodes>(&mut self, nodes: &mut N, parent: Option<Id>, old: Id, new: Option<Id>) -> Side {
        let mut side = Side::Left;
        match parent {
            None => self.root = new,
            Some(parent) => {
                let links = nodes.links_mut(parent);
                if links.left == Some(old) {
                    links.left = new;
                } else {
                    links.right = new;
                    side = Side::Right;
                }
            }
        }
        if let Some(new) = new {
            nodes.links_mut(new).parent = parent;
        }
        side
    }

    /// Restores the balance above a subtree that has become higher by one.
    #[inline]
    fn has_grown<N: Nodes>(&mut self, nodes: &mut N, mut at: Id) {
        while let Some(parent) = nodes.links(at).parent {
            let links = nodes.links_mut(parent);
            let higher = if links.left == Some(at) { Balance::Left } else { Balance::Right };
            if links.balance == Balance::Even {
                links.balance = higher;
                at = parent;
            } else if links.balance == higher {
                // The child is uneven, so the rotation restores the subtree's former height.
                self.rotate(nodes, parent, at, higher);
                return;
            } else {
                links.balance = Balance::Even;
                return;
            }
        }
    }

    /// Restores the balance from a node whose subtree on one side has become lower by one.
    #[inline]
    fn has_shrunk<N: Nodes>(&mut self, nodes: &mut N, from: Option<Id>, mut side: Side) {
        let mut next = from;
        while let Some(at) = next {
            let links = nodes.links_mut(at);
            let (lower, higher, child) = match side {
                Side::Left => (Balance::Left, Balance::Right, links.right),
                Side::Right => (Balance::Right, Balance::Left, links.left),
            };
            let mut top = at;
            if links.balance == lower {
                links.balance = Balance::Even;
            } else if links.balance == Balance::Even {
                links.balance = higher;
                return;
            } else if let Some(child) = child {
                let was_even = nodes.links(child).balance == Balance::Even;
                top = self.rotate(nodes, at, child, higher);
                if was_even {
                    return;
                }
            }
            next = nodes.links(top).parent;
            if let Some(parent) = next {
                side = if nodes.links(parent).left == Some(top) { Side::Left } else { Side::Right };
            }
        }
    }

    /// Raises `child` or its inner child to the position of `at`, whose subtree on the side of `child`, `higher`, is
    /// higher by two. Returns the node that is there now.
    fn rotate<N: Nodes>(&mut self, nodes: &mut N, at: Id, child: Id, higher: Balance) -> Id {
        let is_left = higher == Balance::Left;
        let lower = if is_left { Balance::Right } else { Balance::Left };
        let links = nodes.links(child);
        let inner = if is_left { links.right } else { links.left };
        let child_balance = links.balance;
        let top = match inner {
            Some(inner) if child_balance == lower => {
                let inner_balance = nodes.links(inner).balance;
                if is_left {
                    self.raise_right_child(nodes, child, inner);
                    self.raise_left_child(nodes, at, inner);
                } else {
                    self.raise_left_child(nodes, child, inner);
                    self.raise_right_child(nodes, at, inner);
                }
                // The inner child's subtrees, one of which may be lower, are now one below each.
                let of = |uneven: Balance, then: Balance| if inner_balance == uneven { then } else { Balance::Even };
                nodes.links_mut(at).balance = of(higher, lower);
                nodes.links_mut(child).balance = of(lower, higher);
                nodes.links_mut(inner).balance = Balance::Even;
                renew(nodes, child);
                inner
            }
            _ => {
                if is_left {
                    self.raise_left_child(nodes, at, child);
                } else {
                    self.raise_right_child(nodes, at, child);
                }
                let was_even = child_balance == Balance::Even;
                nodes.links_mut(at).balance = if was_even { higher } else { Balance::Even };
                nodes.links_mut(child).balance = if was_even { lower } else { Balance::Even };
                child
            }
        };
        let has_summary = nodes.inherit_summary(top, at);
        renew(nodes, at);
        if !has_summary {
            // Also above, for users that change a node and tell the tree only after the next insertion or removal.
            renew(nodes, top);
            renew_upwards(nodes, nodes.links(top).parent, None, ALL);
        }
        top
    }

    /// Moves the left child to the position of its parent, which becomes its right child.
    fn raise_left_child<N: Nodes>(&mut self, nodes: &mut N, at: Id, child: Id) {
        let parent = nodes.links(at).parent;
        let inner = nodes.links_mut(child).right.replace(at);
        nodes.links_mut(at).left = inner;
        if let Some(inner) = inner {
            nodes.links_mut(inner).parent = Some(at);
        }
        self.replace(nodes, parent, at, Some(child));
        nodes.links_mut(at).parent = Some(child);
    }

    /// Moves the right child to the position of its parent, which becomes its left child.
    fn raise_right_child<N: Nodes>(&mut self, nodes: &mut N, at: Id, child: Id) {
        let parent = nodes.links(at).parent;
        let inner = nodes.links_mut(child).left.replace(at);
        nodes.links_mut(at).right = inner;
        if let Some(inner) = inner {
            nodes.links_mut(inner).parent = Some(at);
        }
        self.replace(nodes, parent, at, Some(child));
        nodes.links_mut(at).parent = Some(child);
    }

    /// Panics unless every node is linked both ways and balanced; `check` is called for each node in order, with the
    /// one before it, and panics if the order or a summary is wrong. Returns the number of nodes.
    pub fn check_invariants<N: View>(&self, nodes: &N, mut check: impl FnMut(&N, Option<Id>, Id)) -> usize {
        let mut count = 0;
        let mut previous = None;
        let mut next = self.first(nodes);
        assert_eq!(self.root.and_then(|root| nodes.links(root).parent), None, "nothing is above the root");
        while let Some(at) = next {
            let links = nodes.links(at);
            for child in [links.left, links.right].into_iter().flatten() {
                assert_eq!(nodes.links(child).parent, Some(at), "a child knows its parent");
            }
            check(nodes, previous, at);
            count += 1;
            previous = Some(at);
            next = self.next(nodes, at);
        }
        assert_eq!(previous, self.last(nodes), "the way through all nodes ends at the last");
        check_height(nodes, self.root);
        count
    }
}

/// Panics unless each node of a subtree records correctly which of its subtrees is higher, by one at most. Returns the
/// subtree's height.
fn check_height<N: View>(nodes: &N, top: Option<Id>) -> u32 {
    let Some(top) = top else { return 0 };
    let links = nodes.links(top);
    let (left, right) = (check_height(nodes, links.left), check_height(nodes, links.right));
    let expected = match links.balance {
        Balance::Left => right + 1,
        Balance::Even => right,
        Balance::Right => right.wrapping_sub(1),
        Balance::Unlinked => panic!("a node of the tree is linked"),
    };
    assert_eq!(left, expected, "the balance is that of the heights");
    left.max(right) + 1
}

/// All parts of a summary.
const ALL: u32 = u32::MAX;

/// Recomputes summaries from a node up to the root or to below `end`, or to where nothing changes any more. `which` of
/// the first one's parts can have changed.
#[inline]
fn renew_upwards<N: Nodes>(nodes: &mut N, from: Option<Id>, end: Option<Id>, mut which: u32) {
    let mut next = from;
    while let Some(at) = next
        && which != 0
        && next != end
    {
        let Links { left, right, parent, .. } = *nodes.links(at);
        which = nodes.summarise_parts(at, left, right, which);
        next = parent;
    }
}

/// Recomputes a node's summary.
#[inline]
fn renew<N: Nodes>(nodes: &mut N, id: Id) {
    let Links { left, right, .. } = *nodes.links(id);
    nodes.summarise_parts(id, left, right, ALL);
}
