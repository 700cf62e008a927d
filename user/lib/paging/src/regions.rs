//! Which addresses are taken, and for what.
//!
//! The regions lie in a balanced tree by address. Each knows how many bytes before it are free, and the largest such gap
//! in the subtree below it:
//!
//! ```text
//!            ┌────── heap, gap 3, largest 9 ──────┐
//!      code, gap 0                          stack, gap 9, largest 9
//!                                               │
//!                                           end, gap 4
//! ```
//! A node of no size stands at the end of the address space, so that the last gap belongs to a node too. The lowest gap
//! that is large enough, from an address on, is found in O(log n): up from the first region behind the address, past
//! subtrees whose largest gap is too small, then down into the first whose is not.

use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_tree::{Id, Links, Nodes, Tree, View};

use crate::pool::{Node, Pool};

/// What a region is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Memory for whatever.
    #[default]
    Anonymous = 0,
    /// The heap.
    Heap = 1,
    /// A thread's stack.
    Stack = 2,
    /// Never mapped, so that running over an edge is noticed.
    Guard = 3,
    /// A frame that somebody gave: shared memory, device registers, a file.
    Frame = 4,
    /// Made by somebody else, who answers for it: what the loader made.
    Foreign = 5,
}

/// A region as the outside sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// What it is for.
    pub kind: Kind,
    /// Rights and attributes of what is mapped there on access.
    pub flags: MapFlags,
    /// Log2 of the bytes for which memory is found on the first access to one of them; 0: none is, the region has what
    /// was mapped there.
    pub granule: u8,
}

impl Region {
    /// One past the last address.
    pub const fn end(&self) -> u64 {
        self.start + self.size
    }

    /// Whether memory is found for it on access.
    pub const fn is_lazy(&self) -> bool {
        self.granule != 0
    }
}

/// A region in the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RegionNode {
    start: u64,
    size: u64,
    /// Free bytes before it.
    gap: u64,
    /// The largest gap in its subtree.
    largest: u64,
    links: Links,
    unused: u32,
    kind: Kind,
    flags: u8,
    granule: u8,
}

impl RegionNode {
    pub(crate) const ZERO: RegionNode = RegionNode {
        start: 0,
        size: 0,
        gap: 0,
        largest: 0,
        links: Links::NONE,
        unused: 0,
        kind: Kind::Anonymous,
        flags: 0,
        granule: 0,
    };

    const fn end(&self) -> u64 {
        self.start + self.size
    }

    const fn region(&self) -> Region {
        let flags = MapFlags::from_bits_truncate(self.flags as u64);
        Region { start: self.start, size: self.size, kind: self.kind, flags, granule: self.granule }
    }
}

impl Node for RegionNode {
    fn link(&mut self) -> &mut u32 {
        &mut self.unused
    }
}

/// Regions that need no further memory.
pub(crate) const BUILT_IN: usize = 32;

type RegionPool = Pool<RegionNode, BUILT_IN>;

impl View for RegionPool {
    #[inline]
    fn links(&self, id: Id) -> &Links {
        &self.get(id.place()).links
    }
}

impl Nodes for RegionPool {
    #[inline]
    fn links_mut(&mut self, id: Id) -> &mut Links {
        &mut self.get_mut(id.place()).links
    }

    #[inline]
    fn summarise(&mut self, id: Id, left: Option<Id>, right: Option<Id>) -> bool {
        let below = |child: Option<Id>| child.map_or(0, |child| self.get(child.place()).largest);
        let largest = below(left).max(below(right)).max(self.get(id.place()).gap);
        let node = self.get_mut(id.place());
        core::mem::replace(&mut node.largest, largest) != largest
    }
}

/// Gaps of the right size, but perhaps of the wrong alignment, that are tried when none is surely large enough.
const PATIENCE: usize = 32;

/// The regions of an address space.
#[derive(Debug)]
pub struct Regions {
    pool: RegionPool,
    tree: Tree,
    base: u64,
    /// The node at the end; none before the beginning.
    last: Option<Id>,
    /// Place of the region that was found last by [`find_again`](Self::find_again). If it has gone, its node has no
    /// addresses, or is another region's.
    recent: usize,
}

impl Regions {
    /// None, of an address space without addresses.
    pub const fn new() -> Regions {
        Regions { pool: Pool::new([RegionNode::ZERO; BUILT_IN]), tree: Tree::new(), base: 0, last: None, recent: 0 }
    }

    /// Says which addresses there are.
    pub fn initialise(&mut self, base: u64, end: u64) {
        if self.last.is_none() && base <= end {
            self.base = base;
            let node = RegionNode { start: end, gap: end - base, ..RegionNode::ZERO };
            let id = Id::new(self.pool.take(node) as u32);
            self.tree.insert(&mut self.pool, id, |_, _| false);
            self.last = Some(id);
        }
    }

    /// The addresses there are: first, and one past the last.
    pub fn bounds(&self) -> (u64, u64) {
        (self.base, self.last.map_or(self.base, |id| self.pool.get(id.place()).start))
    }

    pub(crate) const fn pool(&mut self) -> &mut RegionPool {
        &mut self.pool
    }

    /// Regions that can be added before the pool has to grow.
    pub const fn left(&self) -> usize {
        self.pool.left()
    }

    /// Number of regions.
    pub fn count(&self) -> usize {
        self.pool.used() - usize::from(self.last.is_some())
    }

    #[inline]
    fn node(&self, id: Id) -> &RegionNode {
        self.pool.get(id.place())
    }

    /// The first region, or the end, that ends behind `address`.
    #[inline]
    fn at_or_after(&self, address: u64) -> Option<Id> {
        self.tree.lower_bound(&self.pool, |pool, id| pool.get(id.place()).end() <= address).or(self.last)
    }

    /// The region in which an address lies.
    #[inline]
    pub fn find(&self, address: u64) -> Option<Region> {
        self.first_from(address).filter(|region| region.start <= address)
    }

    /// The same for addresses that often lie in the same region.
    #[inline]
    pub fn find_again(&mut self, address: u64) -> Option<Region> {
        let recent = self.pool.get(self.recent);
        if address.wrapping_sub(recent.start) < recent.size {
            return Some(recent.region());
        }
        let id = self.at_or_after(address)?;
        let node = self.node(id);
        // The node at the end has no addresses.
        if address.wrapping_sub(node.start) >= node.size {
            return None;
        }
        let region = node.region();
        self.recent = id.place();
        Some(region)
    }

    /// The first region that ends behind `address`.
    #[inline]
    pub fn first_from(&self, address: u64) -> Option<Region> {
        let id = self.at_or_after(address)?;
        (Some(id) != self.last).then(|| self.node(id).region())
    }

    /// Whether no region has an address of this range.
    #[inline]
    pub fn is_free(&self, start: u64, size: u64) -> bool {
        let (base, end) = self.bounds();
        let inside = start >= base && start <= end && size <= end - start;
        inside && self.first_from(start).is_none_or(|region| region.start >= start + size)
    }

    /// The lowest free range of `size` bytes at a multiple of `alignment` (a power of two) between `from` and `to`.
    pub fn search(&self, size: u64, alignment: u64, from: u64, to: u64) -> Option<u64> {
        let (base, end) = self.bounds();
        let (from, to) = (from.max(base), to.min(end));
        let first = self.at_or_after(from)?;
        let fits = |low: u64, high: u64| {
            let address = low.checked_next_multiple_of(alignment)?;
            (address.checked_add(size)? <= high.min(to)).then_some(address)
        };
        // Of the gap in which `from` lies, only a part may count.
        let node = self.node(first);
        if let Some(address) = fits(from.max(node.start - node.gap), node.start) {
            return Some(address);
        }
        let gap = |id: Id| (self.node(id).start - self.node(id).gap, self.node(id).start);
        let surely = size.checked_add(alignment - (PAGE_SIZE as u64).min(alignment))?;
        if let Some(id) = self.next_gap(first, surely)
            && let Some(address) = fits(gap(id).0, gap(id).1)
        {
            return Some(address);
        }
        let mut next = first;
        for _ in 0..PATIENCE {
            next = self.next_gap(next, size)?;
            let (low, high) = gap(next);
            if low >= to {
                return None;
            }
            if let Some(address) = fits(low, high) {
                return Some(address);
            }
        }
        None
    }

    /// The first node behind `id` with a gap of at least `size` bytes.
    fn next_gap(&self, id: Id, size: u64) -> Option<Id> {
        let mut at = id;
        loop {
            if let Some(right) = self.node(at).links.right()
                && self.node(right).largest >= size
            {
                return Some(self.first_gap_below(right, size));
            }
            at = self.tree.next_above(&self.pool, at)?;
            if self.node(at).gap >= size {
                return Some(at);
            }
        }
    }

    /// The first node of a subtree, whose largest gap is at least `size` bytes, that has such a gap.
    fn first_gap_below(&self, top: Id, size: u64) -> Id {
        let mut at = top;
        loop {
            let node = self.node(at);
            match (node.links.left(), node.links.right()) {
                (Some(left), _) if self.node(left).largest >= size => at = left,
                (_, Some(right)) if node.gap < size => at = right,
                _ => return at,
            }
        }
    }

    /// Adds a region where all is free. There is a node for it.
    pub fn insert(&mut self, region: Region) {
        let Some(next) = self.at_or_after(region.start) else { return };
        let before = self.node(next).start - self.node(next).gap;
        let node = RegionNode {
            start: region.start,
            size: region.size,
            gap: region.start - before,
            largest: 0,
            links: Links::NONE,
            unused: 0,
            kind: region.kind,
            flags: region.flags.bits() as u8,
            granule: region.granule,
        };
        let id = Id::new(self.pool.take(node) as u32);
        let gap = self.node(next).start - region.end();
        self.pool.get_mut(next.place()).gap = gap;
        self.tree.insert_before(&mut self.pool, id, next);
        self.tree.changed(&mut self.pool, next);
    }

    /// Removes the region that begins at `start`.
    fn remove(&mut self, id: Id) {
        let Some(next) = self.tree.next(&self.pool, id) else { return };
        let (size, gap) = (self.node(id).size, self.node(id).gap);
        self.tree.remove(&mut self.pool, id);
        self.pool.give(id.place());
        self.pool.get_mut(next.place()).gap += size + gap;
        self.tree.changed(&mut self.pool, next);
    }

    /// Divides the region in which `address` lies, if it does not begin there. There is a node for it.
    pub fn split(&mut self, address: u64) {
        let Some(region) = self.find(address).filter(|region| region.start < address) else { return };
        let Some(id) = self.at_or_after(address) else { return };
        let cut = region.end() - address;
        self.pool.get_mut(id.place()).size -= cut;
        if let Some(next) = self.tree.next(&self.pool, id) {
            self.pool.get_mut(next.place()).gap += cut;
            self.tree.changed(&mut self.pool, next);
        }
        self.insert(Region { start: address, size: cut, ..region });
    }

    /// Frees all addresses of a range; regions that lie in it in part are cut. There are nodes for two more regions, one of which
    /// is free again afterwards.
    pub fn free(&mut self, start: u64, size: u64) {
        self.split(start);
        self.split(start + size);
        while let Some(id) = self.at_or_after(start)
            && Some(id) != self.last
            && self.node(id).start < start + size
        {
            self.remove(id);
        }
    }

    /// Gives all regions of a range other rights; regions that lie in it in part are divided. There are two nodes.
    pub fn set_flags(&mut self, start: u64, size: u64, flags: MapFlags) {
        self.split(start);
        self.split(start + size);
        let mut next = self.at_or_after(start);
        while let Some(id) = next
            && Some(id) != self.last
            && self.node(id).start < start + size
        {
            self.pool.get_mut(id.place()).flags = flags.bits() as u8;
            next = self.tree.next(&self.pool, id);
        }
    }

    /// Panics unless regions are in order, apart, inside, and every gap is right.
    pub fn check_invariants(&self) {
        self.pool.check_invariants();
        let base = self.base;
        let count = self.tree.check_invariants(&self.pool, |pool, previous, id| {
            let node = pool.get(id.place());
            let before = previous.map_or(base, |previous| pool.get(previous.place()).end());
            assert!(before <= node.start, "regions do not overlap");
            assert_eq!(node.gap, node.start - before, "a gap is what is free");
            let below = [node.links.left(), node.links.right()].into_iter().flatten();
            let largest = below.map(|child| pool.get(child.place()).largest).fold(node.gap, u64::max);
            assert_eq!(node.largest, largest, "the largest gap is known");
            assert!(self.last == Some(id) || node.size > 0, "a region has addresses");
        });
        assert_eq!(count, self.pool.used(), "every used node is in the tree");
        assert_eq!(self.tree.last(&self.pool), self.last, "nothing lies behind the end");
    }
}

impl Default for Regions {
    fn default() -> Self {
        Regions::new()
    }
}
