//! The operations of the manager.

use tench_tree::{Id, Tree};

use crate::arena::Arena;
use crate::node::{BySize, Free, Node, State, Used};
use crate::search::{Wanted, best_fit};
use crate::{NODES_PER_ADD, NODES_PER_ALLOC, NODES_PER_FREE, NODES_PER_SPLIT, PAGE, RESERVE};

/// End of addresses, low enough that rounding up never overflows.
const ADDRESS_END: u64 = 1 << 62;

/// Reason why an operation failed. It has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A size is 0 or not a multiple of the page size, an alignment not a power of two, or a range ends before it
    /// begins.
    BadSize,
    /// The memory, or part of it, is already managed.
    Overlap,
    /// No free extent can hold the block.
    OutOfMemory,
    /// The memory was not allocated, or not all of it, or not as one block.
    NotGiven,
    /// The storage has too few free nodes: grow it, and try again.
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

/// Result of a free operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// A whole block was freed.
    Whole,
    /// Part of a block was freed: the rest is still in use, as one or two blocks with the same tag.
    Part,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// The user's data about the block.
    pub tag: u64,
}

/// A contiguous range of free memory, or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// The tag of a block; free memory has none.
    pub tag: Option<u64>,
}

/// Sums over all memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of free bytes.
    pub free: u64,
    /// Number of bytes in blocks.
    pub used: u64,
    /// Size of the largest free extent in bytes.
    pub largest: u64,
    /// Number of blocks.
    pub blocks: usize,
    /// Number of free extents.
    pub extents: usize,
}

/// The manager, over storage that has room for two nodes for each block and may grow at its end.
pub struct Manager<S> {
    arena: Arena<S>,
    /// Free extents by address, with summaries.
    free: Tree,
    /// Free extents by size, then address.
    by_size: Tree,
    /// Blocks by address.
    used: Tree,
    regions: u32,
    is_refilling: bool,
    totals: Totals,
}

impl<S: AsRef<[Node]> + AsMut<[Node]>> Manager<S> {
    /// Returns a manager without memory.
    pub const fn new(storage: S) -> Manager<S> {
        Manager {
            arena: Arena::new(storage),
            free: Tree::new(),
            by_size: Tree::new(),
            used: Tree::new(),
            regions: 0,
            is_refilling: false,
            totals: Totals { free: 0, used: 0, largest: 0, blocks: 0, extents: 0 },
        }
    }

    /// Returns the storage, for growing it. New nodes must be [`Node::EMPTY`]; the others must stay as they are.
    pub const fn storage(&mut self) -> &mut S {
        &mut self.arena.storage
    }

    /// Returns the number of free nodes.
    pub fn nodes_left(&self) -> usize {
        self.arena.left()
    }

    /// Returns whether the storage should grow before the next operation; false while it is growing.
    pub fn wants_refill(&self) -> bool {
        !self.is_refilling && self.nodes_left() < RESERVE
    }

    /// Begins a refill, if it is time for one and none is in progress, so refills cannot nest. The refill's allocations
    /// use the reserve.
    #[must_use]
    pub fn begin_refill(&mut self) -> bool {
        let begins = self.wants_refill();
        self.is_refilling |= begins;
        begins
    }

    /// Ends the refill that [`begin_refill`](Self::begin_refill) began.
    pub const fn end_refill(&mut self) {
        self.is_refilling = false;
    }

    /// Returns whether there are nodes for [`split`](Self::split).
    pub fn can_split(&self) -> bool {
        self.nodes_left() >= NODES_PER_SPLIT
    }

    /// Adds memory, all of it free. It stays separate from adjacent memory.
    /// Errors: `BadSize`, `Overlap`, `NeedsNodes`.
    pub fn add(&mut self, base: u64, size: u64) -> Result<(), Error> {
        let end = base.checked_add(size).filter(|end| *end <= ADDRESS_END).ok_or(Error::BadSize)?;
        if size == 0 || !size.is_multiple_of(PAGE) || !base.is_multiple_of(PAGE) {
            return Err(Error::BadSize);
        }
        let neighbours = [self.first_used(base), self.first_free(base)];
        if neighbours.into_iter().flatten().any(|next| self.arena.node(next).base < end) {
            return Err(Error::Overlap);
        }
        self.arena.require(NODES_PER_ADD)?;
        let id = self.arena.take(base, size, State::Free, self.regions)?;
        self.regions += 1;
        let (before, after) = self.free_around(base);
        self.insert_free(id, before, after);
        self.totals.free += size;
        Ok(())
    }

    /// Allocates a block anywhere. Returns its address. Errors: `BadSize`, `OutOfMemory`, `NeedsNodes`.
    pub fn alloc(&mut self, size: u64, tag: u64) -> Result<u64, Error> {
        self.alloc_aligned(size, PAGE, tag)
    }

    /// Allocates a block at a multiple of `align`, a power of two.
    pub fn alloc_aligned(&mut self, size: u64, align: u64, tag: u64) -> Result<u64, Error> {
        self.alloc_from_range_aligned(0, u64::MAX, size, align, tag)
    }

    /// Allocates a block that lies entirely from `base` to before `limit`, at a multiple of `align`.
    pub fn alloc_from_range_aligned(
        &mut self,
        base: u64,
        limit: u64,
        size: u64,
        align: u64,
        tag: u64,
    ) -> Result<u64, Error> {
        if size == 0 || !size.is_multiple_of(PAGE) || !align.is_power_of_two() || limit <= base {
            return Err(Error::BadSize);
        }
        self.arena.require(NODES_PER_ALLOC)?;
        let last = if limit == u64::MAX { limit } else { limit - 1 };
        let wanted = Wanted { base, last, size, align: align.max(PAGE) };
        let found = best_fit(&self.free, &self.by_size, self.arena.nodes(), &wanted);
        let (id, address) = found.ok_or(Error::OutOfMemory)?;
        self.carve(id, address, size, tag)?;
        self.totals.free -= size;
        self.totals.used += size;
        Ok(address)
    }

    /// Makes part of a free extent a block. The nodes for it must be available.
    fn carve(&mut self, id: Id, address: u64, size: u64, tag: u64) -> Result<(), Error> {
        let &Node { base, region, .. } = self.arena.node(id);
        let (end, block_end) = (self.arena.node(id).end(), address + size);
        self.remove_by_size(id);
        let block = if address > base {
            self.arena.node_mut(id).size = address - base;
            self.free.changed(&mut Free(self.arena.nodes_mut()), id);
            self.insert_by_size(id);
            if block_end < end {
                let rest = self.arena.take(block_end, end - block_end, State::Free, region)?;
                self.free.insert_after(&mut Free(self.arena.nodes_mut()), rest, id);
                self.insert_by_size(rest);
            }
            self.arena.take(address, size, State::Used(tag), region)?
        } else if block_end < end {
            // The rest lies after the block.
            let node = self.arena.node_mut(id);
            (node.base, node.size) = (block_end, end - block_end);
            self.free.changed(&mut Free(self.arena.nodes_mut()), id);
            self.insert_by_size(id);
            self.arena.take(address, size, State::Used(tag), region)?
        } else {
            self.free.remove(&mut Free(self.arena.nodes_mut()), id);
            self.arena.node_mut(id).state = State::Used(tag);
            id
        };
        self.used.insert(&mut Used(self.arena.nodes_mut()), block, |view, other| view.0[other.index()].base < address);
        self.totals.blocks += 1;
        Ok(())
    }

    /// Frees a block, or part of one, and joins it with free neighbours. Errors: `BadSize`, `NotGiven`, and for a part
    /// `NeedsNodes`: a whole block can always be freed.
    pub fn free(&mut self, base: u64, size: u64) -> Result<Freed, Error> {
        if size == 0 || !size.is_multiple_of(PAGE) || !base.is_multiple_of(PAGE) {
            return Err(Error::BadSize);
        }
        let id = self.last_used(base).ok_or(Error::NotGiven)?;
        let block = self.arena.node(id);
        let (start, end, region) = (block.base, block.end(), block.region);
        if end < base || end - base < size {
            return Err(Error::NotGiven);
        }
        let whole = base == start && base + size == end;
        if whole {
            self.used.remove(&mut Used(self.arena.nodes_mut()), id);
            self.arena.node_mut(id).state = State::Free;
            self.totals.blocks -= 1;
        } else {
            self.arena.require(NODES_PER_FREE)?;
            self.cut_out(id, base, base + size)?;
        }
        self.totals.free += size;
        self.totals.used -= size;
        self.release(base, size, region, whole.then_some(id))?;
        Ok(if whole { Freed::Whole } else { Freed::Part })
    }

    /// Removes part of a block. The rests before and after it are blocks with the same tag.
    fn cut_out(&mut self, id: Id, from: u64, to: u64) -> Result<(), Error> {
        let end = self.arena.node(id).end();
        if from == self.arena.node(id).base {
            let node = self.arena.node_mut(id);
            (node.base, node.size) = (to, end - to);
            return Ok(());
        }
        if to < end {
            self.divide(id, to)?;
        }
        let node = self.arena.node_mut(id);
        node.size = from - node.base;
        Ok(())
    }

    /// Makes memory that is in no tree free, and joins it with free neighbours of its region. If it was a whole block,
    /// `own` is its node.
    fn release(&mut self, base: u64, size: u64, region: u32, own: Option<Id>) -> Result<(), Error> {
        let (before, after) = self.free_around(base);
        let node = |id: &Id| self.arena.node(*id);
        let below = before.filter(|id| node(id).end() == base && node(id).region == region);
        let above = after.filter(|id| node(id).base == base + size && node(id).region == region);
        let Some(kept) = below.or(above) else {
            let id = match own {
                Some(id) => id,
                None => self.arena.take(base, size, State::Free, region)?,
            };
            self.insert_free(id, before, after);
            return Ok(());
        };
        if let Some(id) = own {
            self.arena.give_back(id);
        }
        let mut size = size;
        if let (Some(_), Some(above)) = (below, above) {
            size += self.arena.node(above).size;
            self.remove_by_size(above);
            self.free.remove(&mut Free(self.arena.nodes_mut()), above);
            self.arena.give_back(above);
        }
        let start = base.min(self.arena.node(kept).base);
        self.enlarge(kept, start, size);
        Ok(())
    }

    /// Moves the start of a free extent to `base`, and enlarges it by `size`.
    fn enlarge(&mut self, id: Id, base: u64, size: u64) {
        self.remove_by_size(id);
        let node = self.arena.node_mut(id);
        node.base = base;
        node.size += size;
        self.free.changed(&mut Free(self.arena.nodes_mut()), id);
        self.insert_by_size(id);
    }

    /// Divides a block into one of `lower` bytes, which keeps its tag, and the rest, which gets `tag`.
    /// Errors: `BadSize` (also if nothing would be left), `NotGiven` (no block begins at `base`), `NeedsNodes`.
    pub fn split(&mut self, base: u64, lower: u64, tag: u64) -> Result<(), Error> {
        let id = self.last_used(base).filter(|id| self.arena.node(*id).base == base).ok_or(Error::NotGiven)?;
        if lower == 0 || lower >= self.arena.node(id).size || !lower.is_multiple_of(PAGE) {
            return Err(Error::BadSize);
        }
        self.arena.require(NODES_PER_SPLIT)?;
        let upper = self.divide(id, base + lower)?;
        self.arena.node_mut(upper).state = State::Used(tag);
        Ok(())
    }

    /// Divides a block at an address inside it. Returns the upper part. A node must be available.
    fn divide(&mut self, id: Id, at: u64) -> Result<Id, Error> {
        let &Node { base, size, state, region, .. } = self.arena.node(id);
        let upper = self.arena.take(at, base + size - at, state, region)?;
        self.arena.node_mut(id).size = at - base;
        self.used.insert_after(&mut Used(self.arena.nodes_mut()), upper, id);
        self.totals.blocks += 1;
        Ok(upper)
    }

    /// Returns the block in which an address lies.
    pub fn find(&self, address: u64) -> Option<Block> {
        let node = self.arena.node(self.last_used(address)?);
        match node.state {
            State::Used(tag) if address < node.end() => Some(Block { base: node.base, size: node.size, tag }),
            _ => None,
        }
    }

    /// Returns all extents that end above an address, in order of addresses.
    pub fn extents(&self, from: u64) -> impl Iterator<Item = Extent> {
        let (mut used, mut free) = (self.first_used(from), self.first_free(from));
        core::iter::from_fn(move || {
            let base = |id: Option<Id>| id.map_or(u64::MAX, |id| self.arena.node(id).base);
            let id = if base(used) < base(free) { used? } else { free? };
            if used == Some(id) {
                used = self.used.next(&Used(self.arena.nodes()), id);
            } else {
                free = self.free.next(&Free(self.arena.nodes()), id);
            }
            let node = self.arena.node(id);
            let tag = if let State::Used(tag) = node.state { Some(tag) } else { None };
            Some(Extent { base: node.base, size: node.size, tag })
        })
    }

    /// Returns sums over all memory.
    pub fn totals(&self) -> Totals {
        let largest = self.by_size.last(&BySize(self.arena.nodes()));
        Totals { largest: largest.map_or(0, |last| self.arena.node(last).size), ..self.totals }
    }

    // ── Trees ────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns the last block that begins at or below an address: if the address lies in a block, that one.
    fn last_used(&self, address: u64) -> Option<Id> {
        self.used.last_before(&Used(self.arena.nodes()), |view, id| view.0[id.index()].base <= address)
    }

    /// Returns the block in which an address lies, or the next one.
    fn first_used(&self, address: u64) -> Option<Id> {
        let view = Used(self.arena.nodes());
        self.used.lower_bound(&view, |view, id| view.0[id.index()].end() <= address)
    }

    /// Returns the free extent in which an address lies, or the next one.
    fn first_free(&self, address: u64) -> Option<Id> {
        let view = Free(self.arena.nodes());
        self.free.lower_bound(&view, |view, id| view.0[id.index()].end() <= address)
    }

    /// Returns the free extents before and after an address that lies in none.
    fn free_around(&self, address: u64) -> (Option<Id>, Option<Id>) {
        self.free.around(&Free(self.arena.nodes()), |view, id| view.0[id.index()].base < address)
    }

    /// Inserts a free extent into its trees.
    fn insert_free(&mut self, id: Id, before: Option<Id>, after: Option<Id>) {
        self.free.insert_between(&mut Free(self.arena.nodes_mut()), id, before, after);
        self.insert_by_size(id);
    }

    fn insert_by_size(&mut self, id: Id) {
        let &Node { base, size, .. } = self.arena.node(id);
        self.by_size.insert(&mut BySize(self.arena.nodes_mut()), id, |view, other| {
            let other = &view.0[other.index()];
            other.size < size || (other.size == size && other.base < base)
        });
        self.totals.extents += 1;
    }

    fn remove_by_size(&mut self, id: Id) {
        self.by_size.remove(&mut BySize(self.arena.nodes_mut()), id);
        self.totals.extents -= 1;
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut totals = Totals::default();
        let in_order = |view: &[Node], previous: Option<Id>, at: Id| {
            let node = &view[at.index()];
            assert!(node.size > 0 && node.base.is_multiple_of(PAGE) && node.size.is_multiple_of(PAGE));
            assert!(previous.is_none_or(|previous| view[previous.index()].end() <= node.base), "nothing overlaps");
            (node.size, node.is_free())
        };
        let free = self.free.check_invariants(&Free(self.arena.nodes()), |view, previous, at| {
            let (size, is_free) = in_order(view.0, previous, at);
            assert!(is_free, "this tree holds what is free");
            totals.free += size;
            view.0[at.index()].check_summary(view.0);
        });
        let used = self.used.check_invariants(&Used(self.arena.nodes()), |view, previous, at| {
            let (size, _) = in_order(view.0, previous, at);
            assert!(matches!(view.0[at.index()].state, State::Used(_)), "this tree holds the blocks");
            totals.used += size;
        });
        let by_size = self.by_size.check_invariants(&BySize(self.arena.nodes()), |view, previous, at| {
            let node = &view.0[at.index()];
            assert!(node.is_free(), "the tree by size holds what is free");
            let key = |node: &Node| (node.size, node.base);
            assert!(previous.is_none_or(|previous| key(&view.0[previous.index()]) < key(node)), "it is in order");
            totals.largest = node.size;
        });
        (totals.blocks, totals.extents) = (used, free);
        assert_eq!(by_size, free, "both trees hold the same free extents");
        assert_eq!(used + free, self.arena.used(), "every node in use is an extent");
        assert_eq!(totals, self.totals(), "the sums are right");
        self.arena.check_invariants();
        self.check_cover();
    }

    /// Panics unless the extents of each region cover it without holes or overlaps, and no two free ones in it are
    /// adjacent.
    fn check_cover(&self) {
        let view = self.arena.nodes();
        let (mut used, mut free) = (self.used.first(&Used(view)), self.free.first(&Free(view)));
        let mut previous: Option<&Node> = None;
        let mut regions = 0;
        loop {
            let base = |id: Option<Id>| id.map_or(u64::MAX, |id| view[id.index()].base);
            let tree = if base(used) < base(free) { &mut used } else { &mut free };
            let Some(id) = *tree else { break };
            let node = &view[id.index()];
            *tree = if node.is_free() { self.free.next(&Free(view), id) } else { self.used.next(&Used(view), id) };
            match previous {
                Some(previous) if previous.region == node.region => {
                    assert_eq!(previous.end(), node.base, "a region has no holes");
                    assert!(!(previous.is_free() && node.is_free()), "free neighbours are joined");
                }
                _ => {
                    assert!(previous.is_none_or(|previous| previous.end() <= node.base), "nothing overlaps");
                    regions += 1;
                }
            }
            previous = Some(node);
        }
        assert_eq!(regions, self.regions, "each region is in one piece");
    }
}
