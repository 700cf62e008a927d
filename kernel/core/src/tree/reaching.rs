//! Searches for nodes that reach beyond an address, by the largest ends of subtrees.

use super::Nodes;
use crate::slot::SlotRef;

/// Returns the first node of the tree after `node`, which is in it, whose end lies beyond `address`.
pub fn next_reaching<N: Nodes>(t: &mut N, node: SlotRef, address: usize) -> Option<SlotRef> {
    let mut at = node;
    let mut right = t.links(at).right;
    loop {
        if let Some(subtree) = SlotRef::new(right)
            && t.links(subtree).max_end > address
        {
            return first_reaching(t, subtree, address);
        }
        // None below: go up to the first ancestor that comes later.
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

/// Returns the first node of a subtree whose end lies beyond `address`. Such a node exists.
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

/// Returns the last node of the tree, up to and including `node`, which is in it, whose end lies beyond `address`.
pub fn last_reaching<N: Nodes>(t: &mut N, node: SlotRef, address: usize) -> Option<SlotRef> {
    let mut at = node;
    loop {
        if t.end(at) > address {
            return Some(at);
        }
        if let Some(left) = SlotRef::new(t.links(at).left)
            && t.links(left).max_end > address
        {
            return last_below(t, left, address);
        }
        // None below: go up to the first ancestor that comes earlier.
        loop {
            let parent = SlotRef::new(t.links(at).parent)?;
            let came_from_right = t.links(parent).right == at.number();
            at = parent;
            if came_from_right {
                break;
            }
        }
    }
}

/// Returns the last node of a subtree whose end lies beyond `address`. Such a node exists.
fn last_below<N: Nodes>(t: &mut N, subtree: SlotRef, address: usize) -> Option<SlotRef> {
    let mut node = subtree;
    loop {
        let links = *t.links(node);
        match SlotRef::new(links.right) {
            Some(right) if t.links(right).max_end > address => node = right,
            _ if t.end(node) > address => return Some(node),
            _ => node = SlotRef::new(links.left)?,
        }
    }
}
