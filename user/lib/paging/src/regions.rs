//! Regions: reserved addresses and their purposes.
//!
//! The regions form a balanced tree by address. Each knows how many bytes before it are free, and the largest such gap
//! in its subtree:
//!
//! ```text
//!            ┌────── heap, gap 3, largest 9 ──────┐
//!      code, gap 0                          stack, gap 9, largest 9
//!                                               │
//!                                           end, gap 4
//! ```
//! A node of size 0 marks the end of the address space, so that the last gap belongs to a node too. Of a gap only the
//! part counts in which addresses may be chosen. So the lowest gap that is large enough is found in one descent: into
//! the first subtree whose largest gap is not too small.
//!
//! An operation searches a region once, and ascends from it once: adding a region in a gap, or removing one, changes
//! nothing in the nodes above except through the one gap that becomes smaller or larger.

use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_tree::{Id, Links, Nodes, Tree, View};

use crate::pool::{Node, Pool};

/// Purpose of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Memory for any purpose.
    #[default]
    Anonymous = 0,
    /// The heap.
    Heap = 1,
    /// A thread's stack.
    Stack = 2,
    /// A guard, never mapped, so that running over an edge is noticed.
    Guard = 3,
    /// A given frame: shared memory, device registers, a file.
    Frame = 4,
    /// Memory mapped by other code, which manages it: what the loader made.
    Foreign = 5,
}

/// Description of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Purpose of the region.
    pub kind: Kind,
    /// Rights and attributes of memory populated on access.
    pub flags: MapFlags,
    /// Log2 of the fault-around size in bytes, that is, of the memory populated on the first access to a part of it; 0:
    /// none is, the region has only what was mapped there.
    pub fault_around: u8,
}

impl Region {
    /// Returns one past the last address.
    pub const fn end(&self) -> u64 {
        self.start + self.size
    }

    /// Returns whether it is populated on access.
    pub const fn is_lazy(&self) -> bool {
        self.fault_around != 0
    }
}

/// A region in the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RegionNode {
    start: u64,
    size: u64,
    /// Number of free bytes before it.
    gap: u64,
    /// Number of those that may be chosen.
    usable: u64,
    /// The largest such number in its subtree.
    largest: u64,
    links: Links,
    unused: u32,
    kind: Kind,
    flags: u8,
    fault_around: u8,
}

impl RegionNode {
    pub(crate) const ZERO: RegionNode = RegionNode {
        start: 0,
        size: 0,
        gap: 0,
        usable: 0,
        largest: 0,
        links: Links::NONE,
        unused: 0,
        kind: Kind::Anonymous,
        flags: 0,
        fault_around: 0,
    };

    const fn end(&self) -> u64 {
        self.start + self.size
    }

    const fn region(&self) -> Region {
        let flags = MapFlags::from_bits_truncate(self.flags as u64);
        Region { start: self.start, size: self.size, kind: self.kind, flags, fault_around: self.fault_around }
    }
}

impl Node for RegionNode {
    fn link(&mut self) -> &mut u32 {
        &mut self.unused
    }
}

/// Number of regions that need no further memory.
pub(crate) const BUILT_IN: usize = 32;

type RegionPool = Pool<RegionNode, BUILT_IN>;

impl View for RegionPool {
    #[inline]
    fn links(&self, id: Id) -> &Links {
        &self.get(id.index()).links
    }
}

impl Nodes for RegionPool {
    #[inline]
    fn links_mut(&mut self, id: Id) -> &mut Links {
        &mut self.get_mut(id.index()).links
    }

    #[inline(always)]
    fn summarise(&mut self, id: Id, left: Option<Id>, right: Option<Id>) -> bool {
        let below = |child: Option<Id>| child.map_or(0, |child| self.get(child.index()).largest);
        let below = below(left).max(below(right));
        let node = self.get_mut(id.index());
        let largest = node.usable.max(below);
        core::mem::replace(&mut node.largest, largest) != largest
    }

    #[inline]
    fn summarise_leaf(&mut self, id: Id) -> u32 {
        let node = self.get_mut(id.index());
        node.largest = node.usable;
        if node.usable == 0 { 0 } else { u32::MAX }
    }

    #[inline]
    fn summarise_added(&mut self, id: Id, leaf: Id, which: u32) -> u32 {
        let added = self.get(leaf.index()).largest;
        let node = self.get_mut(id.index());
        if node.largest >= added {
            return 0;
        }
        node.largest = added;
        which
    }

    #[inline]
    fn inherit_summary(&mut self, to: Id, from: Id) -> bool {
        self.get_mut(to.index()).largest = self.get(from.index()).largest;
        true
    }
}

/// Number of gaps of sufficient size, but perhaps of the wrong alignment, that are tried when none is certainly large
/// enough.
const PATIENCE: usize = 32;

/// The regions of an address space.
#[derive(Debug)]
pub struct Regions {
    pool: RegionPool,
    tree: Tree,
    base: u64,
    /// Range in which addresses are chosen.
    choice: (u64, u64),
    /// The node at the end; `None` before initialisation.
    last: Option<Id>,
    /// Index of the region that [`find_again`](Self::find_again) found last. If that region has been removed, its node
    /// has no addresses, or is another region's.
    recent: usize,
}

impl Regions {
    /// Returns an empty set, for an address space without addresses.
    pub const fn new() -> Regions {
        Regions {
            pool: Pool::new([RegionNode::ZERO; BUILT_IN]),
            tree: Tree::new(),
            base: 0,
            choice: (0, 0),
            last: None,
            recent: 0,
        }
    }

    /// Sets the existing addresses, and the range in which [`search`](Self::search) chooses.
    pub fn initialise(&mut self, base: u64, end: u64, choice: (u64, u64)) {
        if self.last.is_none() && base <= end {
            (self.base, self.choice) = (base, choice);
            let gap = end - base;
            let node = RegionNode { start: end, gap, usable: self.usable(end, gap), ..RegionNode::ZERO };
            let id = Id::new(self.pool.take(node) as u32);
            self.tree.insert(&mut self.pool, id, |_, _| false);
            self.last = Some(id);
        }
    }

    /// Returns the number of bytes of the gap before `end` that may be chosen.
    #[inline]
    fn usable(&self, end: u64, gap: u64) -> u64 {
        end.min(self.choice.1).saturating_sub((end - gap).max(self.choice.0))
    }

    /// Returns the existing addresses: first, and one past the last.
    pub fn bounds(&self) -> (u64, u64) {
        (self.base, self.last.map_or(self.base, |id| self.pool.get(id.index()).start))
    }

    pub(crate) const fn pool(&mut self) -> &mut RegionPool {
        &mut self.pool
    }

    /// Returns the number of regions that can be added before the pool has to grow.
    pub const fn left(&self) -> usize {
        self.pool.left()
    }

    /// Returns the number of regions.
    pub fn count(&self) -> usize {
        self.pool.used() - usize::from(self.last.is_some())
    }

    #[inline]
    fn node(&self, id: Id) -> &RegionNode {
        self.pool.get(id.index())
    }

    /// Returns the first region, or the end node, that ends after `address`.
    #[inline]
    fn at_or_after(&self, address: u64) -> Option<Id> {
        self.tree.lower_bound(&self.pool, |pool, id| pool.get(id.index()).end() <= address).or(self.last)
    }

    /// Returns the region in which an address lies.
    #[inline]
    pub fn find(&self, address: u64) -> Option<Region> {
        self.first_from(address).filter(|region| region.start <= address)
    }

    /// As [`find`](Self::find), for successive addresses that often lie in the same region.
    #[inline]
    pub fn find_again(&mut self, address: u64) -> Option<Region> {
        let recent = self.pool.get(self.recent);
        if address.wrapping_sub(recent.start) < recent.size {
            return Some(recent.region());
        }
        let id = self.at_or_after(address)?;
        let node = self.node(id);
        // The end node has no addresses.
        if address.wrapping_sub(node.start) >= node.size {
            return None;
        }
        let region = node.region();
        self.recent = id.index();
        Some(region)
    }

    /// Returns the first region that ends after `address`.
    #[inline]
    pub fn first_from(&self, address: u64) -> Option<Region> {
        let id = self.at_or_after(address)?;
        (Some(id) != self.last).then(|| self.node(id).region())
    }

    /// Returns whether the range contains no address of a region.
    #[inline]
    pub fn is_free(&self, start: u64, size: u64) -> bool {
        self.free_at(start, size).is_some()
    }

    /// Returns the position at which [`insert_at`](Self::insert_at) inserts regions into this range, if the range is
    /// free.
    #[inline]
    pub fn free_at(&self, start: u64, size: u64) -> Option<Id> {
        let (base, end) = self.bounds();
        if start < base || start > end || size > end - start {
            return None;
        }
        self.at_or_after(start).filter(|next| self.node(*next).start >= start + size)
    }

    /// Finds the lowest free range of `size` bytes at a multiple of `alignment` (a power of two): returns its first
    /// address, and the position at which [`insert_at`](Self::insert_at) inserts regions into it.
    pub fn search(&self, size: u64, alignment: u64) -> Option<(u64, Id)> {
        let root = self.tree.root()?;
        let largest = self.node(root).largest;
        let fits = |id: Id| {
            let node = self.node(id);
            let high = node.start.min(self.choice.1);
            let address = (high - node.usable).checked_next_multiple_of(alignment)?;
            (address.checked_add(size)? <= high).then_some((address, id))
        };
        let surely = size.checked_add(alignment - (PAGE_SIZE as u64).min(alignment))?;
        if largest >= surely {
            return fits(self.first_usable_below(root, surely));
        }
        let mut next = (largest >= size).then(|| self.first_usable_below(root, size));
        for _ in 0..PATIENCE {
            let id = next?;
            if let Some(found) = fits(id) {
                return Some(found);
            }
            next = self.next_usable(id, size);
        }
        None
    }

    /// Returns the first node after `id` with room for at least `size` bytes.
    fn next_usable(&self, id: Id, size: u64) -> Option<Id> {
        let mut at = id;
        loop {
            if let Some(right) = self.node(at).links.right()
                && self.node(right).largest >= size
            {
                return Some(self.first_usable_below(right, size));
            }
            at = self.tree.next_above(&self.pool, at)?;
            if self.node(at).usable >= size {
                return Some(at);
            }
        }
    }

    /// Returns the first node of a subtree with room for `size` bytes, which must exist.
    #[inline]
    fn first_usable_below(&self, top: Id, size: u64) -> Id {
        let mut at = top;
        loop {
            let node = self.node(at);
            match (node.links.left(), node.links.right()) {
                (Some(left), _) if self.node(left).largest >= size => at = left,
                (_, Some(right)) if node.usable < size => at = right,
                _ => return at,
            }
        }
    }

    /// Inserts a region into the gap before `next`. A node must be available.
    pub fn insert_at(&mut self, next: Id, region: Region) {
        let following = self.node(next);
        let before = following.start - following.gap;
        let left = following.start - region.end();
        let id = self.add_node(region, region.start - before);
        self.set_gap(next, left);
        self.tree.insert_before(&mut self.pool, id, next);
    }

    /// Takes a node for a region with a gap before it.
    fn add_node(&mut self, region: Region, gap: u64) -> Id {
        let node = RegionNode {
            start: region.start,
            size: region.size,
            gap,
            usable: self.usable(region.start, gap),
            largest: 0,
            links: Links::NONE,
            unused: 0,
            kind: region.kind,
            flags: region.flags.bits() as u8,
            fault_around: region.fault_around,
        };
        Id::new(self.pool.take(node) as u32)
    }

    /// Sets the number of free bytes before a region, and updates the nodes above.
    #[inline]
    fn set_gap(&mut self, id: Id, gap: u64) {
        let usable = self.usable(self.node(id).start, gap);
        let node = self.pool.get_mut(id.index());
        node.gap = gap;
        let before = core::mem::replace(&mut node.usable, usable);
        if before < usable {
            self.tree.enlarged(&mut self.pool, id);
        } else if before > usable {
            self.tree.changed(&mut self.pool, id);
        }
    }

    /// Divides the region that contains `address`, unless it begins there. A node must be available.
    fn split(&mut self, address: u64) {
        let Some(id) = self.at_or_after(address) else { return };
        let region = self.node(id).region();
        if Some(id) == self.last || region.start >= address {
            return;
        }
        self.pool.get_mut(id.index()).size = address - region.start;
        let behind = self.add_node(Region { start: address, size: region.end() - address, ..region }, 0);
        self.tree.insert_after(&mut self.pool, behind, id);
    }

    /// Frees all addresses of a range; regions that lie partly in it are cut. A node for one more region must be
    /// available.
    pub fn free(&mut self, start: u64, size: u64) {
        let end = start + size;
        let Some(mut id) = self.at_or_after(start) else { return };
        // Number of bytes freed right before the current region.
        let mut freed = 0;
        let region = self.node(id).region();
        if Some(id) != self.last && region.start < start {
            self.pool.get_mut(id.index()).size = start - region.start;
            if region.end() > end {
                let behind = self.add_node(Region { start: end, size: region.end() - end, ..region }, size);
                self.tree.insert_after(&mut self.pool, behind, id);
                return;
            }
            freed = region.end() - start;
            let Some(next) = self.tree.next(&self.pool, id) else { return };
            id = next;
        }
        while Some(id) != self.last
            && self.node(id).end() <= end
            && let Some(next) = self.tree.next(&self.pool, id)
        {
            freed += self.node(id).gap + self.node(id).size;
            self.tree.remove(&mut self.pool, id);
            self.pool.give(id.index());
            id = next;
        }
        let node = self.node(id);
        if Some(id) != self.last && node.start < end {
            let cut = end - node.start;
            freed += cut;
            let node = self.pool.get_mut(id.index());
            (node.start, node.size) = (end, node.size - cut);
        }
        let gap = self.node(id).gap + freed;
        self.set_gap(id, gap);
    }

    /// Changes the rights of all regions of a range; regions that lie partly in it are divided. Two nodes must be
    /// available.
    pub fn set_flags(&mut self, start: u64, size: u64, flags: MapFlags) {
        self.split(start);
        self.split(start + size);
        let mut next = self.at_or_after(start);
        while let Some(id) = next
            && Some(id) != self.last
            && self.node(id).start < start + size
        {
            self.pool.get_mut(id.index()).flags = flags.bits() as u8;
            next = self.tree.next(&self.pool, id);
        }
    }

    /// Panics unless regions are in order, disjoint and in bounds, and every gap is right.
    pub fn check_invariants(&self) {
        self.pool.check_invariants();
        let base = self.base;
        let count = self.tree.check_invariants(&self.pool, |pool, previous, id| {
            let node = pool.get(id.index());
            let before = previous.map_or(base, |previous| pool.get(previous.index()).end());
            assert!(before <= node.start, "regions do not overlap");
            assert_eq!(node.gap, node.start - before, "a gap is what is free");
            assert_eq!(node.usable, self.usable(node.start, node.gap), "of a gap that may be chosen which may");
            let below = [node.links.left(), node.links.right()].into_iter().flatten();
            let largest = below.map(|child| pool.get(child.index()).largest).fold(node.usable, u64::max);
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
