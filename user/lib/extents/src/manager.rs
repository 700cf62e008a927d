//! The operations.

use tench_tree::{Id, Tree};

use crate::node::{ByAddress, BySize, Node, State};
use crate::search::{Wanted, best_fit};
use crate::{GRANULE, NODES_PER_ADD, NODES_PER_ALLOC, NODES_PER_FREE, NODES_PER_SPLIT, RESERVE};

/// Addresses end here, so that rounding up never overflows.
const ADDRESS_END: u64 = 1 << 62;

/// Why an operation was refused. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A size is 0 or not a multiple of the granule, an alignment not a power of two, or a range ends before it begins.
    BadSize,
    /// The memory, or part of it, is there already.
    Overlap,
    /// No free extent can hold the block.
    OutOfMemory,
    /// No such memory was given out, or not all of it, or not as one block.
    NotGiven,
    /// The storage has too few nodes left: let it grow, and try again.
    NeedsNodes,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Error::BadSize => "a size must be a multiple of 4096 and not 0, an alignment a power of two",
            Error::Overlap => "part of this memory is managed already; add each byte once",
            Error::OutOfMemory => "no free extent can hold the block; free memory, or allow other addresses",
            Error::NotGiven => "this is not memory of one block that was given out",
            Error::NeedsNodes => "the manager's storage is used up; let it grow",
        })
    }
}

impl core::error::Error for Error {}

/// What a free operation freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// A whole block.
    Whole,
    /// Part of a block: the rest is still in use, as one or two blocks with the same tag.
    Part,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// What its user wants to know of it.
    pub tag: u64,
}

/// Memory that belongs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// The tag of a block; free memory has none.
    pub tag: Option<u64>,
}

/// Sums over everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Free bytes.
    pub free: u64,
    /// Bytes in blocks.
    pub used: u64,
    /// Bytes of the largest free extent.
    pub largest: u64,
    /// Blocks.
    pub blocks: usize,
    /// Free extents.
    pub extents: usize,
}

/// The manager, over storage that has room for two nodes for each block and may grow at its end.
pub struct Manager<S> {
    storage: S,
    by_address: Tree,
    by_size: Tree,
    /// First of the nodes that were used before and are spare now.
    spare: Option<Id>,
    /// Nodes from here on were never used.
    untouched: usize,
    /// Nodes in use.
    nodes: usize,
    regions: u32,
    totals: Totals,
}

impl<S: AsRef<[Node]> + AsMut<[Node]>> Manager<S> {
    /// A manager without memory.
    pub const fn new(storage: S) -> Manager<S> {
        Manager {
            storage,
            by_address: Tree::new(),
            by_size: Tree::new(),
            spare: None,
            untouched: 0,
            nodes: 0,
            regions: 0,
            totals: Totals { free: 0, used: 0, largest: 0, blocks: 0, extents: 0 },
        }
    }

    /// The storage, to let it grow. New nodes are [`Node::EMPTY`]; the others must stay as they are.
    pub const fn storage(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Nodes that are left.
    pub fn nodes_left(&self) -> usize {
        self.storage.as_ref().len() - self.nodes
    }

    /// Whether the storage should grow before the next operation.
    pub fn wants_refill(&self) -> bool {
        self.nodes_left() < RESERVE
    }

    /// Whether there are nodes for [`split`](Self::split).
    pub fn can_split(&self) -> bool {
        self.nodes_left() >= NODES_PER_SPLIT
    }

    /// Takes memory under management, all of it free. It stays apart from other memory that it touches.
    /// Errors: `BadSize`, `Overlap`, `NeedsNodes`.
    pub fn add(&mut self, base: u64, size: u64) -> Result<(), Error> {
        let end = base.checked_add(size).filter(|end| *end <= ADDRESS_END).ok_or(Error::BadSize)?;
        if size == 0 || !size.is_multiple_of(GRANULE) || !base.is_multiple_of(GRANULE) {
            return Err(Error::BadSize);
        }
        let next = self.first_ending_above(base);
        if next.is_some_and(|next| self.node(next).base < end) {
            return Err(Error::Overlap);
        }
        self.require(NODES_PER_ADD)?;
        let id = self.take(Node::new(base, size, State::Free, self.regions))?;
        self.regions += 1;
        let nodes = &mut ByAddress::of(self.storage.as_mut());
        match next {
            Some(next) => self.by_address.insert_before(nodes, id, next),
            None => self.by_address.insert(nodes, id, |_, _| true),
        }
        self.insert_by_size(id);
        self.totals.free += size;
        Ok(())
    }

    /// A block anywhere. Answers its address. Errors: `BadSize`, `OutOfMemory`, `NeedsNodes`.
    pub fn alloc(&mut self, size: u64, tag: u64) -> Result<u64, Error> {
        self.alloc_aligned(size, GRANULE, tag)
    }

    /// A block that begins at a multiple of `align`, a power of two.
    pub fn alloc_aligned(&mut self, size: u64, align: u64, tag: u64) -> Result<u64, Error> {
        self.alloc_from_range_aligned(0, u64::MAX, size, align, tag)
    }

    /// A block whose bytes all lie from `base` to before `limit`, and that begins at a multiple of `align`.
    pub fn alloc_from_range_aligned(
        &mut self,
        base: u64,
        limit: u64,
        size: u64,
        align: u64,
        tag: u64,
    ) -> Result<u64, Error> {
        if size == 0 || !size.is_multiple_of(GRANULE) || !align.is_power_of_two() || limit <= base {
            return Err(Error::BadSize);
        }
        self.require(NODES_PER_ALLOC)?;
        let last = if limit == u64::MAX { limit } else { limit - 1 };
        let wanted = Wanted { base, last, size, align: align.max(GRANULE) };
        let found = best_fit(&self.by_address, &self.by_size, self.storage.as_ref(), &wanted);
        let (id, place) = found.ok_or(Error::OutOfMemory)?;
        self.carve(id, place, size, tag)?;
        self.totals.free -= size;
        self.totals.used += size;
        self.totals.blocks += 1;
        Ok(place)
    }

    /// Makes part of a free extent a block. The nodes for it are there.
    fn carve(&mut self, id: Id, place: u64, size: u64, tag: u64) -> Result<(), Error> {
        let Node { base, region, .. } = *self.node(id);
        let end = self.node(id).end();
        self.remove_by_size(id);
        let used = Node::new(place, size, State::Used(tag), region);
        if place == base && place + size == end {
            self.node_mut(id).state = State::Used(tag);
            self.by_address.changed(&mut ByAddress::of(self.storage.as_mut()), id);
            return Ok(());
        }
        let block = self.take(used)?;
        if place == base {
            // What is left lies behind the block.
            let node = self.node_mut(id);
            (node.base, node.size) = (place + size, end - (place + size));
            let nodes = &mut ByAddress::of(self.storage.as_mut());
            self.by_address.changed(nodes, id);
            self.by_address.insert_before(nodes, block, id);
        } else {
            self.node_mut(id).size = place - base;
            let nodes = &mut ByAddress::of(self.storage.as_mut());
            self.by_address.changed(nodes, id);
            self.by_address.insert_after(nodes, block, id);
            if place + size < end {
                let (base, size) = (place + size, end - (place + size));
                let rest = self.take(Node::new(base, size, State::Free, region))?;
                self.by_address.insert_after(&mut ByAddress::of(self.storage.as_mut()), rest, block);
                self.insert_by_size(rest);
            }
        }
        self.insert_by_size(id);
        Ok(())
    }

    /// Frees a block, or part of one, and joins it with free neighbours. Errors: `BadSize`, `NotGiven`, `NeedsNodes`.
    pub fn free(&mut self, base: u64, size: u64) -> Result<Freed, Error> {
        if size == 0 || !size.is_multiple_of(GRANULE) || !base.is_multiple_of(GRANULE) {
            return Err(Error::BadSize);
        }
        let id = self.first_ending_above(base).ok_or(Error::NotGiven)?;
        let node = *self.node(id);
        let State::Used(tag) = node.state else { return Err(Error::NotGiven) };
        if base < node.base || node.end() - base < size {
            return Err(Error::NotGiven);
        }
        self.require(NODES_PER_FREE)?;
        let whole = base == node.base && size == node.size;
        let id = if whole { id } else { self.cut_out(id, base, size, tag)? };
        self.node_mut(id).state = State::Free;
        self.totals.blocks -= 1;
        self.totals.free += size;
        self.totals.used -= size;
        self.join(id);
        Ok(if whole { Freed::Whole } else { Freed::Part })
    }

    /// Makes part of a block a block of its own, and what is left before and behind it others.
    fn cut_out(&mut self, id: Id, base: u64, size: u64, tag: u64) -> Result<Id, Error> {
        let end = self.node(id).end();
        let mut part = id;
        if base > self.node(id).base {
            part = self.split_node(id, base, tag)?;
        }
        if base + size < end {
            self.split_node(part, base + size, tag)?;
        }
        Ok(part)
    }

    /// Divides a block into one of `lower` bytes, which keeps its tag, and the rest.
    /// Errors: `BadSize` (also if nothing would be left), `NotGiven` (no block begins at `base`), `NeedsNodes`.
    pub fn split(&mut self, base: u64, lower: u64, tag: u64) -> Result<(), Error> {
        let id = self.first_ending_above(base).ok_or(Error::NotGiven)?;
        let node = *self.node(id);
        if node.base != base || node.is_free() {
            return Err(Error::NotGiven);
        }
        if lower == 0 || lower >= node.size || !lower.is_multiple_of(GRANULE) {
            return Err(Error::BadSize);
        }
        self.require(NODES_PER_SPLIT)?;
        self.split_node(id, base + lower, tag).map(drop)
    }

    /// Divides a block at an address inside it. Answers the upper part. There is a node for it.
    fn split_node(&mut self, id: Id, at: u64, tag: u64) -> Result<Id, Error> {
        let node = *self.node(id);
        let upper = Node::new(at, node.end() - at, State::Used(tag), node.region);
        let upper = self.take(upper)?;
        self.node_mut(id).size = at - node.base;
        self.by_address.insert_after(&mut ByAddress::of(self.storage.as_mut()), upper, id);
        self.totals.blocks += 1;
        Ok(upper)
    }

    /// Joins a free extent, which is not in the tree by size yet, with free neighbours of its region.
    fn join(&mut self, id: Id) {
        let view = ByAddress::of(self.storage.as_ref());
        let region = self.node(id).region;
        let is_like = |other: &Id| self.node(*other).is_free() && self.node(*other).region == region;
        let previous = self.by_address.previous(&view, id).filter(is_like);
        let next = self.by_address.next(&view, id).filter(is_like);
        let mut kept = id;
        if let Some(previous) = previous {
            self.remove_by_size(previous);
            self.absorb(previous, id);
            kept = previous;
        }
        if let Some(next) = next {
            self.remove_by_size(next);
            self.absorb(kept, next);
        }
        self.by_address.changed(&mut ByAddress::of(self.storage.as_mut()), kept);
        self.insert_by_size(kept);
    }

    /// Makes an extent longer by the one behind it, which is no more.
    fn absorb(&mut self, id: Id, behind: Id) {
        let size = self.node(behind).size;
        self.by_address.remove(&mut ByAddress::of(self.storage.as_mut()), behind);
        self.give_back(behind);
        self.node_mut(id).size += size;
    }

    /// The block in which an address lies.
    pub fn find(&self, address: u64) -> Option<Used> {
        let node = self.node(self.first_ending_above(address)?);
        match node.state {
            State::Used(tag) if node.base <= address => Some(Used { base: node.base, size: node.size, tag }),
            _ => None,
        }
    }

    /// Everything that ends above an address, in order of addresses.
    pub fn extents(&self, from: u64) -> impl Iterator<Item = Extent> {
        let mut next = self.first_ending_above(from);
        core::iter::from_fn(move || {
            let node = self.node(next?);
            next = self.by_address.next(&ByAddress::of(self.storage.as_ref()), next?);
            let tag = if let State::Used(tag) = node.state { Some(tag) } else { None };
            Some(Extent { base: node.base, size: node.size, tag })
        })
    }

    /// Sums over everything.
    pub fn totals(&self) -> Totals {
        let nodes = self.storage.as_ref();
        let largest = self.by_size.last(&BySize(nodes)).map_or(0, |last| nodes[last.place()].size);
        Totals { largest, ..self.totals }
    }

    // ── Nodes and trees ──────────────────────────────────────────────────────────────────────────────────────────────

    fn node(&self, id: Id) -> &Node {
        &self.storage.as_ref()[id.place()]
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.storage.as_mut()[id.place()]
    }

    /// The first extent that ends above an address: the one in which it lies, or the next.
    fn first_ending_above(&self, address: u64) -> Option<Id> {
        let view = ByAddress::of(self.storage.as_ref());
        self.by_address.lower_bound(&view, |view, id| view.nodes[id.place()].end() <= address)
    }

    fn require(&self, count: usize) -> Result<(), Error> {
        if self.nodes_left() < count { Err(Error::NeedsNodes) } else { Ok(()) }
    }

    /// Takes a spare node.
    fn take(&mut self, node: Node) -> Result<Id, Error> {
        let id = match self.spare {
            Some(spare) => {
                self.spare = if let State::Spare(next) = self.node(spare).state { next } else { None };
                spare
            }
            None if self.untouched < self.storage.as_ref().len() => {
                self.untouched += 1;
                Id::new(self.untouched as u32 - 1)
            }
            None => return Err(Error::NeedsNodes),
        };
        self.nodes += 1;
        *self.node_mut(id) = node;
        Ok(id)
    }

    fn give_back(&mut self, id: Id) {
        *self.node_mut(id) = Node::new(0, 0, State::Spare(self.spare), 0);
        self.spare = Some(id);
        self.nodes -= 1;
    }

    fn insert_by_size(&mut self, id: Id) {
        let Node { base, size, .. } = *self.node(id);
        self.by_size.insert(&mut BySize(self.storage.as_mut()), id, |view, other| {
            let other = &view.0[other.place()];
            (other.size, other.base) < (size, base)
        });
        self.totals.extents += 1;
    }

    fn remove_by_size(&mut self, id: Id) {
        self.by_size.remove(&mut BySize(self.storage.as_mut()), id);
        self.totals.extents -= 1;
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let nodes = self.storage.as_ref();
        let mut totals = Totals::default();
        let in_order = self.by_address.check_invariants(&ByAddress::of(nodes), |view, previous, at| {
            let node = &view.nodes[at.place()];
            assert!(node.size > 0 && node.base.is_multiple_of(GRANULE) && node.size.is_multiple_of(GRANULE));
            if let Some(previous) = previous.map(|previous| &view.nodes[previous.place()]) {
                assert!(previous.end() <= node.base, "extents do not overlap");
                let same = previous.region == node.region;
                assert!(!same || previous.end() == node.base, "a region has no holes");
                assert!(!(same && previous.is_free() && node.is_free()), "free neighbours are joined");
            }
            match node.state {
                State::Free => totals.free += node.size,
                State::Used(_) => totals.used += node.size,
                State::Spare(_) => panic!("a spare node is in no tree"),
            }
            totals.blocks += usize::from(!node.is_free());
            totals.extents += usize::from(node.is_free());
            node.check_summary(nodes);
        });
        let by_size = self.by_size.check_invariants(&BySize(nodes), |view, previous, at| {
            let node = &view.0[at.place()];
            assert!(node.is_free(), "the tree by size holds what is free");
            let key = |node: &Node| (node.size, node.base);
            assert!(previous.is_none_or(|previous| key(&view.0[previous.place()]) < key(node)), "it is in order");
            totals.largest = node.size;
        });
        assert_eq!(by_size, totals.extents, "both trees hold the same free extents");
        assert_eq!(in_order, self.nodes, "every node in use is an extent");
        assert_eq!(totals, self.totals(), "the sums are right");
        let mut spare = 0;
        let mut next = self.spare;
        while let Some(id) = next {
            let State::Spare(following) = self.node(id).state else { panic!("a spare node is nothing else") };
            next = following;
            spare += 1;
        }
        assert_eq!(self.nodes + spare, self.untouched, "no node is lost");
    }
}
