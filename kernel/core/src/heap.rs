//! Leftist heaps: queues ordered by a key, with nodes that lie inside kernel objects.
//!
//! Inserting a node, removing any node and finding the first take O(log n) steps or fewer, and no memory. A node's
//! *rank* is the distance to the nearest missing child; the right child's rank is at most the left child's, so a right
//! spine has at most log2(n + 1) nodes.
//!
//! A heap is named by the number of its root. Users are [`timers`](crate::timers), with deadlines and refills as keys,
//! and [`endpoint`](crate::endpoint), where senders wait in the order of their priorities.

use crate::object::Ref;
use crate::{Arch, Kernel};

/// Log2 of the alignment of nodes in bytes. With [numbers](Arch::number) of 31 bits it bounds the memory that can hold
/// nodes: 64 GiB.
const NODE_SHIFT: u32 = 5;

/// An empty heap.
pub const EMPTY: u32 = 0;

/// The type of object that contains a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Holder {
    /// A thread, which waits until a time.
    #[default]
    Thread,
    /// A scheduling context, which waits for its next refill.
    Context,
}

/// A node of a heap. All zero outside a heap.
///
/// Nodes are named by the [numbers](Arch::number) of their addresses in units of 32 bytes; 0 is no node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Node {
    /// Key: the node with the lowest comes first.
    pub key: u64,
    /// Order among equal keys.
    pub order: u32,
    /// Parent; [`EMPTY`] for the root.
    pub parent: u32,
    /// Child of the higher rank, or [`EMPTY`].
    pub left: u32,
    /// The other child.
    pub right: u32,
    /// Distance to the nearest missing child, plus 1; 0 outside of a heap. Fewer than 2^32 nodes have ranks below 33.
    pub rank: u8,
    /// Type of the object that contains the node.
    pub holder: Holder,
    /// Number of the heap that contains the node, for a user with several heaps.
    pub class: u8,
}

const _: () = assert!(size_of::<Node>() == 1 << NODE_SHIFT);

impl Node {
    /// Returns whether the node is in a heap.
    #[inline(always)]
    pub const fn is_queued(&self) -> bool {
        self.rank != 0
    }

    /// Returns what the order compares.
    #[inline(always)]
    pub const fn sort_key(&self) -> (u64, u32) {
        (self.key, self.order)
    }
}

/// Returns the node with a number; `None` for 0.
#[inline(always)]
pub fn node<A: Arch>(k: &mut Kernel<A>, number: u32) -> Option<Ref<Node>> {
    if number == EMPTY {
        return None;
    }
    let address = k.arch().locate(number, NODE_SHIFT);
    // SAFETY: numbers in a heap are those of nodes in live objects (an object leaves its queues before it is deleted).
    unsafe { Ref::at(address) }
}

/// Returns a node's number.
#[inline(always)]
pub fn number<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>) -> u32 {
    k.arch().number(node.address(), NODE_SHIFT)
}

/// Returns the rank of a node, 0 for a missing one.
#[inline(always)]
pub fn rank<A: Arch>(k: &mut Kernel<A>, at: u32) -> u8 {
    node(k, at).map_or(0, |node| k.get(node).rank)
}

/// Sets a node's parent, if the node exists.
#[inline(always)]
fn set_parent<A: Arch>(k: &mut Kernel<A>, at: u32, parent: u32) {
    if let Some(node) = node(k, at) {
        k.get(node).parent = parent;
    }
}

/// Restores the order of a node's children and its rank. Returns the parent, and whether anything has changed.
#[inline(always)]
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

/// Balances a node, a child of which has changed, and the nodes above it as far as anything changes.
fn repair<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>) {
    let mut at = node;
    while let (above, true) = balance(k, at)
        && let Some(next) = self::node(k, above)
    {
        at = next;
    }
}

/// Joins two heaps. Returns the root.
fn merge<A: Arch>(k: &mut Kernel<A>, a: Ref<Node>, b: Ref<Node>) -> u32 {
    let (root, mut other) = if precedes(k, b, a) { (b, a) } else { (a, b) };
    k.get(root).parent = EMPTY;
    // Goes down the right spine: `other` has its place somewhere below `above`.
    let mut above = root;
    while let right = k.get(above).right
        && let Some(next) = node(k, right)
    {
        if precedes(k, other, next) {
            attach_right(k, above, other);
            (above, other) = (other, next);
        } else {
            above = next;
        }
    }
    attach_right(k, above, other);
    // Ranks change only along the path just walked.
    let mut at = Some(above);
    while let Some(node) = at {
        let (above, _) = balance(k, node);
        at = self::node(k, above);
    }
    number(k, root)
}

/// Returns whether a node comes before another.
#[inline(always)]
fn precedes<A: Arch>(k: &mut Kernel<A>, a: Ref<Node>, b: Ref<Node>) -> bool {
    let key = k.get(a).sort_key();
    key < k.get(b).sort_key()
}

/// Makes a node the right child of another.
#[inline(always)]
fn attach_right<A: Arch>(k: &mut Kernel<A>, above: Ref<Node>, node: Ref<Node>) {
    k.get(above).right = number(k, node);
    k.get(node).parent = number(k, above);
}

/// Inserts a node, whose key is set and which is in no heap. Returns the root.
///
/// The node's place is on the right spine, before the first node that it precedes, which becomes its only child.
pub fn insert<A: Arch>(k: &mut Kernel<A>, root: u32, entering: Ref<Node>) -> u32 {
    let entered = number(k, entering);
    let n = k.get(entering);
    debug_assert!(!n.is_queued(), "a node is in one heap");
    let key = n.sort_key();
    let (mut above, mut below) = (EMPTY, root);
    while let Some(node) = node(k, below) {
        let n = k.get(node);
        if key < n.sort_key() {
            break;
        }
        (above, below) = (below, n.right);
    }
    set_parent(k, below, entered);
    let n = k.get(entering);
    (n.parent, n.left, n.right, n.rank) = (above, below, EMPTY, 1);
    let Some(above) = node(k, above) else { return entered };
    k.get(above).right = entered;
    repair(k, above);
    root
}

/// Takes a node out of its heap. Returns the root.
#[inline(always)]
pub fn remove<A: Arch>(k: &mut Kernel<A>, root: u32, leaving: Ref<Node>) -> u32 {
    if number(k, leaving) == root {
        return remove_first(k, leaving);
    }
    remove_child(k, leaving);
    root
}

/// Takes a node that is not the root out of its heap.
#[inline(never)]
fn remove_child<A: Arch>(k: &mut Kernel<A>, leaving: Ref<Node>) {
    let (at, parent) = (number(k, leaving), k.get(leaving).parent);
    let rest = remove_first(k, leaving);
    set_parent(k, rest, parent);
    let Some(above) = node(k, parent) else { return };
    let n = k.get(above);
    if n.left == at {
        n.left = rest;
    } else {
        n.right = rest;
    }
    repair(k, above);
}

/// Takes the root of a heap, or of a subtree, out of it. Returns the root of what is left.
#[inline(always)]
pub fn remove_first<A: Arch>(k: &mut Kernel<A>, leaving: Ref<Node>) -> u32 {
    let n = k.get(leaving);
    let Node { left, right, .. } = *n;
    (n.parent, n.left, n.right, n.rank) = (EMPTY, EMPTY, EMPTY, 0);
    match node(k, left) {
        Some(left) => join(k, left, right),
        // A node without a left child has no right one.
        None => EMPTY,
    }
}

/// Joins the two children of a removed node. Returns their root.
#[inline(never)]
fn join<A: Arch>(k: &mut Kernel<A>, left: Ref<Node>, right: u32) -> u32 {
    match node(k, right) {
        Some(right) => merge(k, left, right),
        None => {
            k.get(left).parent = EMPTY;
            number(k, left)
        }
    }
}
