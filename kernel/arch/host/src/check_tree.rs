//! Checks of the ordered structure below the derivation structure: list and tree.

use tench_kernel::SlotRef;
use tench_kernel::slot::Links;
use tench_kernel::tree::{BLACK, FOLLOWER, MEMBER, Nodes, RED, first, largest_end};

/// Checks every link, the balance and the largest ends. Returns the number of nodes. Takes O(n log n).
///
/// # Errors
/// The violated invariant.
pub fn check_tree<N: Nodes>(t: &mut N) -> Result<usize, &'static str> {
    let root = *t.root();
    if let Some(root) = SlotRef::new(root)
        && (t.links(root).parent != 0 || t.links(root).colour != BLACK)
    {
        return Err("the root has a parent or is not black");
    }
    let mut blacks = None;
    let mut count = 0;
    let mut before = 0;
    // The number of the member that has to come before the next node of the tree.
    let mut expected = 0;
    let mut in_tree = first(t);
    let mut at = in_tree;
    while let Some(node) = at {
        count += 1;
        let links = *t.links(node);
        if links.previous != before {
            return Err("a node's predecessor is another than the list says");
        }
        if links.colour != FOLLOWER {
            let is_expected = links.colour == MEMBER;
            if is_expected != (expected != 0) || is_expected && expected != node.number() {
                return Err("a run does not go on in the slot behind, or in one that is no member");
            }
            expected = if links.continues != 0 { node.number() + 1 } else { 0 };
        }
        if links.colour >= FOLLOWER {
            if links.colour == FOLLOWER && links.continues != 0 {
                return Err("a run goes on behind a follower");
            }
            if links.parent != 0 || links.left != 0 || links.right != 0 || links.max_end != 0 || t.end(node) != 0 {
                return Err("a follower or member has links of the tree, or an end");
            }
        } else {
            if at != in_tree {
                return Err("list and tree disagree about the order");
            }
            check_children(t, node, links)?;
            if links.left == 0 || links.right == 0 {
                let path = blacks_above(t, node);
                if *blacks.get_or_insert(path) != path {
                    return Err("paths differ in black nodes");
                }
            }
            in_tree = successor(t, node);
        }
        before = node.number();
        at = SlotRef::new(links.next);
    }
    if expected != 0 {
        return Err("a run goes on behind the last node");
    }
    if in_tree.is_some() {
        return Err("the list ends before the tree");
    }
    if *t.tail() != before {
        return Err("the list's last node is another");
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

/// Returns the number of black nodes from a node to the root.
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

/// Returns the node of the tree after another.
fn successor<N: Nodes>(t: &mut N, node: SlotRef) -> Option<SlotRef> {
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
