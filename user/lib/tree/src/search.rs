//! Searches: ends, neighbours, and insertion points.

use crate::{Id, Tree, View};

impl Tree {
    /// Returns the first node in order.
    pub fn first<N: View>(&self, nodes: &N) -> Option<Id> {
        self.root.map(|root| leftmost(nodes, root))
    }

    /// Returns the last node in order.
    pub fn last<N: View>(&self, nodes: &N) -> Option<Id> {
        self.root.map(|root| rightmost(nodes, root))
    }

    /// Returns the node after another one.
    #[inline]
    pub fn next<N: View>(&self, nodes: &N, id: Id) -> Option<Id> {
        match nodes.links(id).right {
            Some(right) => Some(leftmost(nodes, right)),
            None => self.next_above(nodes, id),
        }
    }

    /// Returns the node after all of another one's subtree.
    #[inline]
    pub fn next_above<N: View>(&self, nodes: &N, id: Id) -> Option<Id> {
        let mut child = id;
        let mut parent = nodes.links(id).parent;
        while let Some(at) = parent {
            let links = nodes.links(at);
            if links.left == Some(child) {
                break;
            }
            child = at;
            parent = links.parent;
        }
        parent
    }

    /// Returns the node before another one.
    #[inline]
    pub fn previous<N: View>(&self, nodes: &N, id: Id) -> Option<Id> {
        if let Some(left) = nodes.links(id).left {
            return Some(rightmost(nodes, left));
        }
        let mut child = id;
        let mut parent = nodes.links(id).parent;
        while let Some(at) = parent {
            let links = nodes.links(at);
            if links.right == Some(child) {
                break;
            }
            child = at;
            parent = links.parent;
        }
        parent
    }

    /// Returns the first node for which `is_before` does not hold; those for which it holds must be the first ones in
    /// order.
    #[inline]
    pub fn lower_bound<N: View>(&self, nodes: &N, mut is_before: impl FnMut(&N, Id) -> bool) -> Option<Id> {
        let mut found = None;
        let mut next = self.root;
        while let Some(at) = next {
            let links = nodes.links(at);
            if is_before(nodes, at) {
                next = links.right;
            } else {
                found = Some(at);
                next = links.left;
            }
        }
        found
    }

    /// Returns the last node for which `is_before` holds; these must be the first ones in order.
    #[inline]
    pub fn last_before<N: View>(&self, nodes: &N, mut is_before: impl FnMut(&N, Id) -> bool) -> Option<Id> {
        let mut found = None;
        let mut next = self.root;
        while let Some(at) = next {
            let links = nodes.links(at);
            if is_before(nodes, at) {
                found = Some(at);
                next = links.right;
            } else {
                next = links.left;
            }
        }
        found
    }

    /// Returns the last node for which `is_before` holds, and the first for which it does not: the neighbours between
    /// which a new node is inserted.
    #[inline]
    pub fn around<N: View>(&self, nodes: &N, mut is_before: impl FnMut(&N, Id) -> bool) -> (Option<Id>, Option<Id>) {
        let (mut before, mut after) = (None, None);
        let mut next = self.root;
        while let Some(at) = next {
            let links = nodes.links(at);
            if is_before(nodes, at) {
                before = Some(at);
                next = links.right;
            } else {
                after = Some(at);
                next = links.left;
            }
        }
        (before, after)
    }
}

/// Returns the first node of a subtree.
#[inline]
pub(crate) fn leftmost<N: View>(nodes: &N, mut id: Id) -> Id {
    while let Some(left) = nodes.links(id).left {
        id = left;
    }
    id
}

/// Returns the last node of a subtree.
#[inline]
pub(crate) fn rightmost<N: View>(nodes: &N, mut id: Id) -> Id {
    while let Some(right) = nodes.links(id).right {
        id = right;
    }
    id
}
