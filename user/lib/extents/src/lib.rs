//! The physical memory manager: which memory is free, and which is part of a block.
//!
//! ```text
//!            by address: every extent                      by size, then address: the free ones
//!
//!               ┌─── used ───┐                                     ┌── 8 KiB ──┐
//!           ┌ free ┐      ┌ used ┐                              4 KiB        2 MiB
//!         used    used  free    used
//!
//!   ├─used─┤free├─used─┤used│ free │─used─┤used│used├┤         each byte of a region in one extent
//! ```
//! *Best fit*: of the free extents in which a block fits, the smallest is taken, and of equal ones that with the lowest
//! address; the block lies at the lowest address in it that is allowed. A block that is freed is joined with free
//! neighbours of the same region at once. Regions that touch stay apart, because the capabilities do.
//!
//! Every operation takes O(log n) steps with n extents:
//! - Without alignment beyond [`GRANULE`] and without range, best fit is the first extent in order of size that is large
//!   enough. This is always exact.
//! - With them, the extents are tried in that order too, but [`PATIENCE`] of them at most; nearly always one fits, and is
//!   the best fit. Otherwise the smallest extent is taken in which such a block fits wherever it begins, and if there is
//!   a range, or no such extent, the lowest address where the block fits. That is found by the summaries of the tree by
//!   address: each node knows for each alignment the largest block that fits below it. So a block is found if, and only
//!   if, there is one. (Alignments above 1 GiB have no summary of their own; the extents in which a block aligned to
//!   1 GiB fits are tried one by one. There are few.)
//!
//! Nothing allocates. The nodes lie in storage that the user lets grow; an operation says what it may need
//! ([`NODES_PER_ALLOC`], [`NODES_PER_FREE`], …) and refuses before it changes anything if there is less.
//! [`Manager::wants_refill`] says so ahead of need, with enough left for the allocation that a refill itself takes.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arena;
mod manager;
mod node;
mod search;

pub use manager::{Block, Error, Extent, Freed, Manager, Totals};
pub use node::Node;

/// Addresses and sizes are multiples of this: a page, in bytes.
pub const GRANULE: u64 = 4096;
/// Free extents that are tried in order of size before another way is taken.
pub const PATIENCE: usize = 8;
/// Nodes that [`Manager::add`] may need.
pub const NODES_PER_ADD: usize = 1;
/// Nodes that an allocation may need: for the block, and for what is left behind it.
pub const NODES_PER_ALLOC: usize = 2;
/// Nodes that [`Manager::free`] may need: for the free part, and for what stays used behind it.
pub const NODES_PER_FREE: usize = 2;
/// Nodes that [`Manager::split`] needs.
pub const NODES_PER_SPLIT: usize = 1;
/// Allocations that a refill may make, each of which may need as many nodes as any.
pub const ALLOCATIONS_PER_REFILL: usize = 4;
/// When fewer nodes than this are left, it is time for a refill: the next operation and the refill find enough.
pub const RESERVE: usize = NODES_PER_ALLOC + ALLOCATIONS_PER_REFILL * NODES_PER_ALLOC;
