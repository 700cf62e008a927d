//! An extent, and what a tree by address knows of those below it.

use tench_tree::{Id, Links, Nodes, View};

use crate::GRANULE;

/// Alignments with a summary of their own: 4 KiB (which is the size), 8 KiB, … 1 GiB.
pub const ALIGNMENTS: usize = 19;

/// What an extent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No extent: a node that can be taken, and the next such.
    Spare(Option<Id>),
    /// Free memory.
    Free,
    /// A block, with what its user wants to know of it.
    Used(u64),
}

/// A node of the manager's storage.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// First address.
    pub(crate) base: u64,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) state: State,
    /// The region that it lies in.
    pub(crate) region: u32,
    by_address: Links,
    by_size: Links,
    /// For each alignment, the granules of the largest free block of the subtree that begins at a multiple of it. They
    /// fall from alignment to alignment, so the first zero ends the list.
    pub(crate) usable: [u32; ALIGNMENTS],
}

impl Node {
    /// A node that is nothing yet.
    pub const EMPTY: Node = Node::new(0, 0, State::Spare(None), 0);

    /// An extent that is in no tree.
    pub(crate) const fn new(base: u64, size: u64, state: State, region: u32) -> Node {
        let usable = [0; ALIGNMENTS];
        Node { base, size, state, region, by_address: Links::NONE, by_size: Links::NONE, usable }
    }

    /// One past its last address.
    #[inline(always)]
    pub(crate) const fn end(&self) -> u64 {
        self.base + self.size
    }

    /// Whether it is free memory.
    #[inline(always)]
    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Granules of the largest block in it that begins at a multiple of 2^`alignment` granules.
    #[inline(always)]
    fn usable_at(&self, alignment: usize) -> u32 {
        if !self.is_free() {
            return 0;
        }
        let mask = (GRANULE << alignment) - 1;
        // No extent ends so high that rounding up could overflow: `Manager::add` sees to that.
        let start = (self.base + mask) & !mask;
        granules(self.end().saturating_sub(start))
    }
}

impl Node {
    /// Panics if its summary is not that of its subtree.
    pub(crate) fn check_summary(&self, nodes: &[Node]) {
        let children = [self.by_address.left(), self.by_address.right()].into_iter().flatten();
        let mut expected: [u32; ALIGNMENTS] = core::array::from_fn(|alignment| self.usable_at(alignment));
        for child in children {
            for (most, below) in expected.iter_mut().zip(nodes[child.place()].usable) {
                *most = (*most).max(below);
            }
        }
        assert_eq!(self.usable, expected, "a summary is that of the subtree");
    }
}

/// Bytes in granules. What does not fit is as good as everything.
#[inline(always)]
pub fn granules(bytes: u64) -> u32 {
    let granules = bytes / GRANULE;
    if granules > u32::MAX as u64 { u32::MAX } else { granules as u32 }
}

/// The nodes as the tree by address sees them.
pub struct ByAddress<S> {
    /// The nodes.
    pub nodes: S,
    /// Alignments whose summary changed in the node that was summarised last, a bit for each.
    changed: u32,
}

impl<S> ByAddress<S> {
    /// The nodes, of which no summary has changed.
    pub const fn of(nodes: S) -> ByAddress<S> {
        ByAddress { nodes, changed: 0 }
    }
}

/// The nodes as the tree by size sees them.
pub struct BySize<S>(pub S);

impl View for ByAddress<&[Node]> {
    #[inline(always)]
    fn links(&self, id: Id) -> &Links {
        &self.nodes[id.place()].by_address
    }
}

impl View for ByAddress<&mut [Node]> {
    #[inline(always)]
    fn links(&self, id: Id) -> &Links {
        &self.nodes[id.place()].by_address
    }
}

impl View for BySize<&[Node]> {
    #[inline(always)]
    fn links(&self, id: Id) -> &Links {
        &self.0[id.place()].by_size
    }
}

impl View for BySize<&mut [Node]> {
    #[inline(always)]
    fn links(&self, id: Id) -> &Links {
        &self.0[id.place()].by_size
    }
}

impl Nodes for ByAddress<&mut [Node]> {
    #[inline(always)]
    fn links_mut(&mut self, id: Id) -> &mut Links {
        &mut self.nodes[id.place()].by_address
    }

    #[inline]
    fn summarise(&mut self, id: Id, left: Option<Id>, right: Option<Id>) -> bool {
        const NOTHING: [u32; ALIGNMENTS] = [0; ALIGNMENTS];
        let of = |child: Option<Id>| child.map_or(&NOTHING, |child| &self.nodes[child.place()].usable);
        let node = &self.nodes[id.place()];
        let below = of(left).iter().zip(of(right));
        let (mut usable, mut changed) = (NOTHING, 0);
        // The values fall from alignment to alignment: where all are 0 they stay so.
        for (alignment, ((place, old), (left, right))) in usable.iter_mut().zip(&node.usable).zip(below).enumerate() {
            let most = node.usable_at(alignment).max(*left).max(*right);
            if most == 0 && *old == 0 {
                break;
            }
            changed |= u32::from(*old != most) << alignment;
            *place = most;
        }
        if changed != 0 {
            self.nodes[id.place()].usable = usable;
        }
        self.changed = changed;
        changed != 0
    }

    #[inline]
    fn summarise_above(&mut self, id: Id, left: Option<Id>, right: Option<Id>) -> bool {
        let mut left_over = self.changed;
        while left_over != 0 {
            let alignment = left_over.trailing_zeros() as usize;
            left_over &= left_over - 1;
            let of = |child: Option<Id>| child.map_or(0, |child| self.nodes[child.place()].usable[alignment]);
            let node = &self.nodes[id.place()];
            let most = of(left).max(of(right)).max(node.usable_at(alignment));
            let place = &mut self.nodes[id.place()].usable[alignment];
            if *place == most {
                self.changed &= !(1 << alignment);
            }
            *place = most;
        }
        self.changed != 0
    }
}

impl Nodes for BySize<&mut [Node]> {
    #[inline(always)]
    fn links_mut(&mut self, id: Id) -> &mut Links {
        &mut self.0[id.place()].by_size
    }
}
