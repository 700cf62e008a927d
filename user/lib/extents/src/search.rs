//! Searches for free extents in which a block fits.

use tench_tree::{Id, Tree, View};

use crate::node::{ALIGNMENTS, BySize, Free, Node, SUMMARISED};
use crate::{PAGE, PATIENCE};

/// A requested block.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Lowest address.
    pub base: u64,
    /// Highest address that the block may include.
    pub last: u64,
    /// Size in bytes, a multiple of the page size and not 0.
    pub size: u64,
    /// Alignment: a power of two, at least the page size.
    pub align: u64,
}

impl Wanted {
    /// Returns whether the block may lie anywhere.
    const fn is_anywhere(&self) -> bool {
        self.base == 0 && self.last == u64::MAX
    }

    /// Returns the lowest address in a free extent where the block fits.
    pub fn address_in(&self, extent: &Node) -> Option<u64> {
        let mask = self.align - 1;
        let start = extent.base.max(self.base).checked_add(mask)? & !mask;
        let last = start.checked_add(self.size - 1)?;
        (last < extent.end() && last <= self.last).then_some(start)
    }
}

/// A free extent and the address in it where the block fits.
pub type Found = (Id, u64);

/// Returns the best fit; see the crate's documentation.
pub fn best_fit(free: &Tree, by_size: &Tree, nodes: &[Node], wanted: &Wanted) -> Option<Found> {
    let view = BySize(nodes);
    let at_least = |size: u64| by_size.lower_bound(&view, |view, id| view.0[id.index()].size < size);
    let mut candidate = at_least(wanted.size);
    let is_summarised = wanted.size / PAGE <= SUMMARISED;
    for _ in 0..if is_summarised { PATIENCE } else { usize::MAX } {
        let id = candidate?;
        if let Some(address) = wanted.address_in(&nodes[id.index()]) {
            return Some((id, address));
        }
        candidate = by_size.next(&view, id);
    }
    // So large that the block fits wherever the extent begins.
    if wanted.is_anywhere()
        && let Some(id) = at_least(wanted.size.saturating_add(wanted.align - PAGE))
    {
        return Some((id, wanted.address_in(&nodes[id.index()])?));
    }
    lowest_fit(free, nodes, wanted)
}

/// Returns the lowest address where the block fits.
pub fn lowest_fit(free: &Tree, nodes: &[Node], wanted: &Wanted) -> Option<Found> {
    let view = Free(nodes);
    let size = (wanted.size / PAGE) as u32;
    let alignment = ((wanted.align / PAGE).trailing_zeros() as usize).min(ALIGNMENTS - 1);
    let fits_below = |id: Id| nodes[id.index()].usable[alignment] >= size;
    // The extent in which the range begins can be too short from there on; for all others the summaries are right.
    let mut from = free.lower_bound(&view, |view, id| view.0[id.index()].end() <= wanted.base)?;
    loop {
        if nodes[from.index()].base > wanted.last {
            return None;
        }
        if let Some(address) = wanted.address_in(&nodes[from.index()]) {
            return Some((from, address));
        }
        from = next_with(free, &view, from, fits_below, |id| {
            // In terms of the summaries: exact except for an alignment without one of its own, which is checked above.
            let seen = Wanted { base: 0, last: u64::MAX, size: wanted.size, align: PAGE << alignment };
            seen.address_in(&nodes[id.index()]).is_some()
        })?;
    }
}

/// Returns the first node after `from` for which `is_good` holds. If `has_below` does not hold for a node, no node of
/// its subtree is good.
fn next_with(
    tree: &Tree,
    view: &Free<&[Node]>,
    from: Id,
    has_below: impl Fn(Id) -> bool,
    is_good: impl Fn(Id) -> bool,
) -> Option<Id> {
    let mut at = from;
    loop {
        // Everything after `at` in its own subtree, then the next node above.
        if let Some(right) = view.links(at).right().filter(|right| has_below(*right))
            && let Some(found) = first_with(view, right, &has_below, &is_good)
        {
            return Some(found);
        }
        at = tree.next_above(view, at)?;
        if is_good(at) {
            return Some(at);
        }
    }
}

/// Returns the first good node of a subtree.
fn first_with(
    view: &Free<&[Node]>,
    top: Id,
    has_below: impl Fn(Id) -> bool,
    is_good: impl Fn(Id) -> bool,
) -> Option<Id> {
    let mut at = top;
    loop {
        let links = view.links(at);
        if let Some(left) = links.left().filter(|left| has_below(*left)) {
            at = left;
        } else if is_good(at) {
            return Some(at);
        } else {
            at = links.right().filter(|right| has_below(*right))?;
        }
    }
}
