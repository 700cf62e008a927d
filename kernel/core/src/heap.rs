//! Leftist heaps of nodes that lie inside kernel objects: the queues that are ordered by a key.
//!
//! Entering, leaving from anywhere and finding the first take O(log n) steps or fewer, and no memory. A node's *rank* is the
//! distance to the nearest missing child; the right child's rank is at most the left child's, so a right spine has at most
//! log2(n + 1) nodes.
//!
//! A heap is the number of its root. Its neighbours: [`timers`](crate::timers), where deadlines and refills are the keys, and
//! [`endpoint`](crate::endpoint), where senders wait in the order of their priorities.

use crate::object::Ref;
use crate::{Arch, Kernel};

/// Log2 of the alignment of nodes. With numbers of 32 bits it bounds the memory in which they can lie: 128 GiB.
const NODE_SHIFT: u32 = 5;

/// An empty heap.
pub const EMPTY: u32 = 0;

/// What contains a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Holder {
    /// A thread, which waits until a time.
    #[default]
    Thread,
    /// A scheduling context, which waits for its next refill.
    Context,
}

/// A place in a heap. All zero outside.
///
/// Nodes are named by their addresses relative to the base, divided by 32; 0 is no node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Node {
    /// What the heap is ordered by: the lowest comes first.
    pub key: u64,
    /// The order among equal keys.
    pub order: u32,
    parent: u32,
    left: u32,
    right: u32,
    /// 0 outside of a heap. Fewer than 2^32 nodes have ranks below 33.
    rank: u8,
    /// What contains the node.
    pub holder: Holder,
    /// Which of several heaps contains it, for whoever has several.
    pub class: u8,
}

const _: () = assert!(size_of::<Node>() == 1 << NODE_SHIFT);

impl Node {
    /// Whether the node is in a heap.
    #[inline(always)]
    pub const fn is_queued(&self) -> bool {
        self.rank != 0
    }

    /// What the order compares.
    #[inline]
    const fn place(&self) -> (u64, u32) {
        (self.key, self.order)
    }

    /// Whether the node comes before another.
    #[inline]
    fn precedes(&self, other: &Node) -> bool {
        self.place() < other.place()
    }
}

/// The node with a number; `None` for 0.
#[inline]
pub fn node<A: Arch>(k: &mut Kernel<A>, number: u32) -> Option<Ref<Node>> {
    if number == EMPTY {
        return None;
    }
    let address = k.arch().base() + ((number as usize) << NODE_SHIFT);
    // SAFETY: numbers in a heap are those of nodes in live objects (an object leaves its queues before it goes).
    unsafe { Ref::at(address) }
}

/// A node's number.
#[inline]
pub fn number<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>) -> u32 {
    ((node.address() - k.arch().base()) >> NODE_SHIFT) as u32
}

/// Rank of a node that may be missing.
#[inline]
fn rank<A: Arch>(k: &mut Kernel<A>, at: u32) -> u8 {
    node(k, at).map_or(0, |node| k.get(node).rank)
}

/// Sets a node's parent, if the node exists.
fn set_parent<A: Arch>(k: &mut Kernel<A>, at: u32, parent: u32) {
    if let Some(node) = node(k, at) {
        k.get(node).parent = parent;
    }
}

/// Restores the order of a node's children and its rank. Returns the parent, and whether anything has changed.
fn balance<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>) -> (u32, bool) {
    let Node { parent, left, right, rank: before, .. } = *k.get(node);
    let (of_left, of_right) = (rank(k, left), rank(k, right));
    let n = k.get(node);
    if of_left < of_right {
        (n.left, n.right) = (right, left);
    }
    n.rank = of_left.min(of_right) + 1;
    (parent, n.rank != before || of_left < of_right)
}

/// Joins two heaps. Returns the root.
fn merge<A: Arch>(k: &mut Kernel<A>, mut a: u32, mut b: u32) -> u32 {
    let (mut root, mut above) = (EMPTY, EMPTY);
    loop {
        let (Some(first), Some(second)) = (node(k, a), node(k, b)) else {
            attach_right(k, above, a | b, &mut root);
            break;
        };
        let other = *k.get(second);
        if other.precedes(k.get(first)) {
            core::mem::swap(&mut a, &mut b);
        }
        attach_right(k, above, a, &mut root);
        above = a;
        a = node(k, above).map_or(EMPTY, |node| k.get(node).right);
    }
    // Ranks change along the path just walked only; above it nothing is there.
    while let Some(node) = node(k, above) {
        (above, _) = balance(k, node);
    }
    root
}

/// Makes a node the right child of another, or the root if there is none above.
fn attach_right<A: Arch>(k: &mut Kernel<A>, above: u32, at: u32, root: &mut u32) {
    set_parent(k, at, above);
    match node(k, above) {
        Some(node) => k.get(node).right = at,
        None => *root = at,
    }
}

/// Enters a node, whose key is set and which is in no heap. Returns the root.
pub fn insert<A: Arch>(k: &mut Kernel<A>, root: u32, node: Ref<Node>) -> u32 {
    let n = k.get(node);
    debug_assert!(!n.is_queued(), "a node is in one heap");
    (n.parent, n.left, n.right, n.rank) = (EMPTY, EMPTY, EMPTY, 1);
    let entered = number(k, node);
    if root == EMPTY { entered } else { merge(k, root, entered) }
}

/// Takes a node out of its heap. Returns the root.
pub fn remove<A: Arch>(k: &mut Kernel<A>, root: u32, leaving: Ref<Node>) -> u32 {
    let at = number(k, leaving);
    let n = k.get(leaving);
    let Node { parent, left, right, .. } = *n;
    (n.parent, n.left, n.right, n.rank) = (EMPTY, EMPTY, EMPTY, 0);
    let rest = if right == EMPTY {
        left
    } else {
        set_parent(k, left, EMPTY);
        set_parent(k, right, EMPTY);
        merge(k, left, right)
    };
    set_parent(k, rest, parent);
    let Some(above) = node(k, parent) else { return rest };
    let n = k.get(above);
    if n.left == at {
        n.left = rest;
    } else {
        n.right = rest;
    }
    let (mut next, mut changed) = balance(k, above);
    while changed && let Some(node) = node(k, next) {
        (next, changed) = balance(k, node);
    }
    root
}

/// Takes the root out of its heap. Returns the new one.
#[inline]
pub fn remove_first<A: Arch>(k: &mut Kernel<A>, leaving: Ref<Node>) -> u32 {
    let n = k.get(leaving);
    let Node { left, right, .. } = *n;
    (n.parent, n.left, n.right, n.rank) = (EMPTY, EMPTY, EMPTY, 0);
    set_parent(k, left, EMPTY);
    if right == EMPTY {
        return left;
    }
    set_parent(k, right, EMPTY);
    merge(k, left, right)
}

/// Calls `visit` with each node of a heap, from the root down. Panics unless the heap is one. For tests.
pub fn check_invariants<A: Arch>(k: &mut Kernel<A>, root: u32, visit: &mut dyn FnMut(Ref<Node>)) {
    check_below(k, root, EMPTY, visit);
}

/// Checks a subtree.
fn check_below<A: Arch>(k: &mut Kernel<A>, at: u32, parent: u32, visit: &mut dyn FnMut(Ref<Node>)) {
    let Some(this) = node(k, at) else { return };
    let n = *k.get(this);
    visit(this);
    assert!(n.parent == parent, "a child names its parent");
    if let Some(above) = node(k, parent) {
        assert!(!n.precedes(k.get(above)), "no child comes before its parent");
    }
    let (left, right) = (rank(k, n.left), rank(k, n.right));
    assert!(left >= right && n.rank == right + 1, "ranks are leftist");
    check_below(k, n.left, at, visit);
    check_below(k, n.right, at, visit);
}
