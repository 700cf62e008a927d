//! An extent, and what the tree of the free ones knows of those below it.

use tench_tree::{Id, Links, Nodes, View};

use crate::GRANULE;

/// Alignments with a summary of their own: 4 KiB (which is the size), 8 KiB, … 1 GiB.
pub const ALIGNMENTS: usize = 19;
/// The largest size in granules that summaries can tell from others: they count to 2³² − 1, and an extent that is
/// larger counts as one of that size, of which alignment may take up to 1 GiB.
pub const SUMMARISED: u64 = u32::MAX as u64 - (1 << (ALIGNMENTS - 1));

/// A number of granules for each alignment.
pub type Usable = [u32; ALIGNMENTS];
/// The summary of no memory.
const NOTHING: Usable = [0; ALIGNMENTS];
/// All parts of a summary.
const ALL: u32 = u32::MAX;

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
    /// In the tree of the blocks or in that of the free extents.
    by_address: Links,
    by_size: Links,
    /// In the tree of free extents by address: for each alignment, the granules of the largest block in the subtree
    /// that begins at a multiple of it. They fall from alignment to alignment.
    pub(crate) usable: Usable,
}

impl Node {
    /// A node that is nothing yet.
    pub const EMPTY: Node = Node {
        base: 0,
        size: 0,
        state: State::Spare(None),
        region: 0,
        by_address: Links::NONE,
        by_size: Links::NONE,
        usable: [0; ALIGNMENTS],
    };

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

    /// The largest blocks in it that begin at multiples of the alignments, in granules; as the tree sees it.
    fn own_usable(&self, alignment: usize) -> u32 {
        let mask = (1 << alignment) - 1;
        let start = self.base / GRANULE;
        let lost = ((start + mask) & !mask) - start;
        counted(self.size).saturating_sub(lost as u32)
    }

    /// Panics if its summary is not that of its subtree.
    pub(crate) fn check_summary(&self, nodes: &[Node]) {
        let children = [self.by_address.left(), self.by_address.right()].into_iter().flatten();
        let mut expected: [u32; ALIGNMENTS] = core::array::from_fn(|alignment| self.own_usable(alignment));
        for child in children {
            for (most, below) in expected.iter_mut().zip(nodes[child.place()].usable) {
                *most = (*most).max(below);
            }
        }
        assert_eq!(self.usable, expected, "a summary is that of the subtree");
    }

    /// Makes its summary anew from its own extent and those of the subtrees below it: the parts in `which`, a bit for
    /// each alignment. Answers which of them have changed.
    #[inline(always)]
    fn summarise(&mut self, left: &Usable, right: &Usable, which: u32) -> u32 {
        if which == ALL { self.summarise_all(left, right) } else { self.summarise_some(left, right, which) }
    }

    #[inline(always)]
    fn summarise_all(&mut self, left: &Usable, right: &Usable) -> u32 {
        let mut start = (self.base / GRANULE) as u32;
        let mut own = counted(self.size);
        let mut changed = 0;
        for alignment in 0..ALIGNMENTS {
            let most = own.max(left[alignment]).max(right[alignment]);
            let place = &mut self.usable[alignment];
            if *place != most {
                *place = most;
                changed |= 1 << alignment;
            } else if most == 0 {
                // All further ones are 0, and were before.
                break;
            }
            // The start is a multiple of this alignment, and becomes one of the next.
            let odd = start & (1 << alignment);
            start = start.wrapping_add(odd);
            own = own.saturating_sub(odd);
        }
        changed
    }

    #[inline(always)]
    fn summarise_some(&mut self, left: &Usable, right: &Usable, which: u32) -> u32 {
        let start = (self.base / GRANULE) as u32;
        let size = counted(self.size);
        let mut changed = 0;
        let mut rest = which & ((1 << ALIGNMENTS) - 1);
        while rest != 0 {
            let bit = rest & rest.wrapping_neg();
            rest ^= bit;
            let alignment = bit.trailing_zeros() as usize;
            // What lies before the first multiple is lost.
            let own = size.saturating_sub(start.wrapping_neg() & (bit - 1));
            let most = own.max(left[alignment]).max(right[alignment]);
            if self.usable[alignment] != most {
                self.usable[alignment] = most;
                changed |= bit;
            }
        }
        changed
    }

    /// Raises the parts in `which` of its summary to those of an extent that has come into the subtree. Answers which
    /// of them have changed.
    #[inline(always)]
    fn raise(&mut self, added: &Usable, which: u32) -> u32 {
        let mut changed = 0;
        let mut rest = which & ((1 << ALIGNMENTS) - 1);
        while rest != 0 {
            let alignment = rest.trailing_zeros() as usize;
            let bit = 1 << alignment;
            rest ^= bit;
            if added[alignment] > self.usable[alignment] {
                self.usable[alignment] = added[alignment];
                changed |= bit;
            }
        }
        changed
    }
}

/// Bytes in granules, as summaries count them.
#[inline(always)]
fn counted(bytes: u64) -> u32 {
    (bytes / GRANULE).min(u64::from(u32::MAX)) as u32
}

/// The nodes as the tree of the free extents by address sees them.
pub struct Free<S>(pub S);
/// The nodes as the tree of the blocks by address sees them.
pub struct Used<S>(pub S);
/// The nodes as the tree of the free extents by size sees them.
pub struct BySize<S>(pub S);

/// What a tree sees of the nodes: which links, through a slice that it may change or not.
macro_rules! views {
    ($($view:ident $links:ident { $($summarise:item)* })*) => {$(
        impl View for $view<&[Node]> {
            #[inline(always)]
            fn links(&self, id: Id) -> &Links {
                &self.0[id.place()].$links
            }
        }

        impl View for $view<&mut [Node]> {
            #[inline(always)]
            fn links(&self, id: Id) -> &Links {
                &self.0[id.place()].$links
            }
        }

        impl Nodes for $view<&mut [Node]> {
            #[inline(always)]
            fn links_mut(&mut self, id: Id) -> &mut Links {
                &mut self.0[id.place()].$links
            }

            $($summarise)*
        }
    )*};
}

views! {
    Free by_address {
        #[inline(always)]
        fn summarise_parts(&mut self, id: Id, left: Option<Id>, right: Option<Id>, which: u32) -> u32 {
            summarise(self.0, id, left, right, which)
        }

        #[inline(always)]
        fn summarise_added(&mut self, id: Id, leaf: Id, which: u32) -> u32 {
            let Ok([node, leaf]) = self.0.get_disjoint_mut([id.place(), leaf.place()]) else { return 0 };
            node.raise(&leaf.usable, which)
        }

        #[inline(always)]
        fn inherit_summary(&mut self, to: Id, from: Id) -> bool {
            self.0[to.place()].usable = self.0[from.place()].usable;
            true
        }

        #[inline(always)]
        fn summarise_leaf(&mut self, id: Id) -> u32 {
            // A summary of nothing counts nowhere, so those parts count that differ from it.
            self.0[id.place()].usable = NOTHING;
            summarise(self.0, id, None, None, ALL)
        }
    }
    Used by_address {}
    BySize by_size {}
}

/// Makes parts of a node's summary anew. Answers which have changed.
fn summarise(nodes: &mut [Node], id: Id, left: Option<Id>, right: Option<Id>, which: u32) -> u32 {
    let place = id.place();
    let one = match (left, right) {
        (None, None) => return nodes[place].summarise(&NOTHING, &NOTHING, which),
        (Some(left), Some(right)) => {
            let Ok([node, left, right]) = nodes.get_disjoint_mut([place, left.place(), right.place()]) else {
                // A node and its children are three.
                return 0;
            };
            return node.summarise(&left.usable, &right.usable, which);
        }
        (Some(one), None) | (None, Some(one)) => one,
    };
    let Ok([node, child]) = nodes.get_disjoint_mut([place, one.place()]) else { return 0 };
    node.summarise(&child.usable, &NOTHING, which)
}
