//! Nodes: an extent, and the summary of the free extents below it.

use tench_tree::{Id, Links, Nodes, View};

use crate::PAGE;

/// Number of alignments with a summary of their own: 4 KiB (which is the size), 8 KiB, … 1 GiB.
pub const ALIGNMENTS: usize = 19;
/// Largest size in pages that summaries represent exactly: they count to 2³² − 1, and a larger extent counts as one
/// of that size, of which alignment may take up to 1 GiB.
pub const SUMMARISED: u64 = u32::MAX as u64 - (1 << (ALIGNMENTS - 1));

/// A number of pages for each alignment.
pub type Usable = [u32; ALIGNMENTS];
/// The summary of no memory.
const NOTHING: Usable = [0; ALIGNMENTS];
/// Mask of all parts of a summary.
const ALL: u32 = u32::MAX;

/// State of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No extent: a free node, and the next free node.
    Spare(Option<Id>),
    /// Free memory.
    Free,
    /// A block, with the user's data.
    Used(u64),
}

/// A node of the manager's storage.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// First address.
    pub(crate) base: u64,
    /// Size in bytes.
    pub(crate) size: u64,
    pub(crate) state: State,
    /// The region in which it lies.
    pub(crate) region: u32,
    /// Links in the tree of the blocks or in that of the free extents.
    by_address: Links,
    by_size: Links,
    /// In the tree of free extents by address: for each alignment, the size in pages of the largest block in the
    /// subtree that begins at a multiple of it. The sizes decrease from alignment to alignment.
    pub(crate) usable: Usable,
}

impl Node {
    /// An unused node.
    pub const EMPTY: Node = Node {
        base: 0,
        size: 0,
        state: State::Spare(None),
        region: 0,
        by_address: Links::NONE,
        by_size: Links::NONE,
        usable: [0; ALIGNMENTS],
    };

    /// Returns one past the last address.
    #[inline(always)]
    pub(crate) const fn end(&self) -> u64 {
        self.base + self.size
    }

    /// Returns whether the extent is free memory.
    #[inline(always)]
    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Returns the size in pages of the largest block in the extent that begins at a multiple of the alignment; as
    /// the tree sees it.
    fn own_usable(&self, alignment: usize) -> u32 {
        let mask = (1 << alignment) - 1;
        let start = self.base / PAGE;
        let lost = ((start + mask) & !mask) - start;
        counted(self.size).saturating_sub(lost as u32)
    }

    /// Panics if the node's summary is not that of its subtree.
    pub(crate) fn check_summary(&self, nodes: &[Node]) {
        let children = [self.by_address.left(), self.by_address.right()].into_iter().flatten();
        let mut expected: [u32; ALIGNMENTS] = core::array::from_fn(|alignment| self.own_usable(alignment));
        for child in children {
            for (most, below) in expected.iter_mut().zip(nodes[child.index()].usable) {
                *most = (*most).max(below);
            }
        }
        assert_eq!(self.usable, expected, "a summary is that of the subtree");
    }

    /// Recomputes the node's summary from its own extent and the subtrees below it: the parts in `which`, a bit for
    /// each alignment. Returns which of them have changed.
    #[inline(always)]
    fn summarise(&mut self, left: &Usable, right: &Usable, which: u32) -> u32 {
        if which == ALL { self.summarise_all(left, right) } else { self.summarise_some(left, right, which) }
    }

    #[inline(always)]
    fn summarise_all(&mut self, left: &Usable, right: &Usable) -> u32 {
        let mut start = (self.base / PAGE) as u32;
        let mut own = counted(self.size);
        let mut changed = 0;
        for alignment in 0..ALIGNMENTS {
            let most = own.max(left[alignment]).max(right[alignment]);
            let usable = &mut self.usable[alignment];
            if *usable != most {
                *usable = most;
                changed |= 1 << alignment;
            } else if most == 0 {
                // All further ones are 0, as before.
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
        let start = (self.base / PAGE) as u32;
        let size = counted(self.size);
        let mut changed = 0;
        let mut rest = which & ((1 << ALIGNMENTS) - 1);
        while rest != 0 {
            let bit = rest & rest.wrapping_neg();
            rest ^= bit;
            let alignment = bit.trailing_zeros() as usize;
            // Memory before the first multiple is lost.
            let own = size.saturating_sub(start.wrapping_neg() & (bit - 1));
            let most = own.max(left[alignment]).max(right[alignment]);
            if self.usable[alignment] != most {
                self.usable[alignment] = most;
                changed |= bit;
            }
        }
        changed
    }

    /// Raises the parts in `which` of the node's summary to those of an extent that was added to the subtree. Returns
    /// which of them have changed.
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

/// Returns bytes in pages, as summaries count them.
#[inline(always)]
fn counted(bytes: u64) -> u32 {
    (bytes / PAGE).min(u64::from(u32::MAX)) as u32
}

/// Nodes in the tree of the free extents by address.
pub struct Free<S>(pub S);
/// Nodes in the tree of the blocks by address.
pub struct Used<S>(pub S);
/// Nodes in the tree of the free extents by size.
pub struct BySize<S>(pub S);

/// A tree's view of the nodes: its links, through a shared or an exclusive slice.
macro_rules! views {
    ($($view:ident $links:ident { $($summarise:item)* })*) => {$(
        impl View for $view<&[Node]> {
            #[inline(always)]
            fn links(&self, id: Id) -> &Links {
                &self.0[id.index()].$links
            }
        }

        impl View for $view<&mut [Node]> {
            #[inline(always)]
            fn links(&self, id: Id) -> &Links {
                &self.0[id.index()].$links
            }
        }

        impl Nodes for $view<&mut [Node]> {
            #[inline(always)]
            fn links_mut(&mut self, id: Id) -> &mut Links {
                &mut self.0[id.index()].$links
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
            let Ok([node, leaf]) = self.0.get_disjoint_mut([id.index(), leaf.index()]) else { return 0 };
            node.raise(&leaf.usable, which)
        }

        #[inline(always)]
        fn inherit_summary(&mut self, to: Id, from: Id) -> bool {
            self.0[to.index()].usable = self.0[from.index()].usable;
            true
        }

        #[inline(always)]
        fn summarise_leaf(&mut self, id: Id) -> u32 {
            // An empty summary never counts, so the parts that differ from it have changed.
            self.0[id.index()].usable = NOTHING;
            summarise(self.0, id, None, None, ALL)
        }
    }
    Used by_address {}
    BySize by_size {}
}

/// Recomputes parts of a node's summary. Returns which have changed.
fn summarise(nodes: &mut [Node], id: Id, left: Option<Id>, right: Option<Id>, which: u32) -> u32 {
    let index = id.index();
    let one = match (left, right) {
        (None, None) => return nodes[index].summarise(&NOTHING, &NOTHING, which),
        (Some(left), Some(right)) => {
            let Ok([node, left, right]) = nodes.get_disjoint_mut([index, left.index(), right.index()]) else {
                // A node and its children are three.
                return 0;
            };
            return node.summarise(&left.usable, &right.usable, which);
        }
        (Some(one), None) | (None, Some(one)) => one,
    };
    let Ok([node, child]) = nodes.get_disjoint_mut([index, one.index()]) else { return 0 };
    node.summarise(&child.usable, &NOTHING, which)
}
