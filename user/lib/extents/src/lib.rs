//! The physical memory manager: which memory is free, and which is part of a block.
//!
//! ```text
//!     region 1                          region 2
//!   ├─used─┬free┬─used─┬used┬── free ──┤├used┬free┬─used─┤     each byte of a region in one extent
//!
//!   three balanced trees over the same nodes:
//!       used, by address      which block is it? what may be freed?
//!       free, by address      neighbours; where does a block of this alignment fit, from this address on?
//!       free, by size         best fit (of equal sizes, the lower address first)
//! ```
//! *Best fit*: of the free extents in which a block fits, the smallest is taken, and of equal ones that with the lowest
//! address; the block lies at the lowest address in it that is allowed. A block that is freed is joined with free
//! neighbours of the same region at once. Regions that touch stay apart, because the capabilities do.
//!
//! Every operation takes O(log n) steps with n extents:
//! - Without alignment beyond [`GRANULE`] and without range, best fit is the first extent in order of size that is
//!   large enough. This is always exact.
//! - With them, the first [`PATIENCE`] extents that are large enough are tried in order of size; the first in which the
//!   block fits is the best fit. If it fits in none of them, then without a range the smallest extent is taken in which
//!   such a block fits wherever the extent begins (`size + align` − 4 KiB); and with a range, or if there is no such
//!   extent, the lowest address where the block fits. The summaries of the free tree find that: each node knows for
//!   each alignment the largest block that fits somewhere below it. So a block is found if, and only if, there is one.
//!
//! Two requests are beyond the summaries, and exact all the same. An alignment above 1 GiB: the extents in which a
//! block aligned to 1 GiB fits are tried one by one, of which there is at most one for each GiB of memory. A block of
//! nearly 16 TiB or more: all extents that are large enough are tried, at most one for each 16 TiB.
//!
//! Nothing allocates. The nodes lie in storage that the user lets grow; an operation says what it may need
//! ([`NODES_PER_ALLOC`], [`NODES_PER_FREE`], …) and refuses before it changes anything if there is less.
//! [`Manager::wants_refill`] says so ahead of need, with enough left for the allocations that a refill itself makes.

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
/// Nodes that [`Manager::free`] may need for part of a block: for the free part, and for what stays used behind it. For
/// a whole block it needs none.
pub const NODES_PER_FREE: usize = 2;
/// Nodes that [`Manager::split`] needs.
pub const NODES_PER_SPLIT: usize = 1;
/// Allocations that a refill may make, each of which may need as many nodes as any.
pub const ALLOCATIONS_PER_REFILL: usize = 4;
/// When fewer nodes than this are left, it is time for a refill: the next operation and the refill find enough.
pub const RESERVE: usize = MOST_NODES + ALLOCATIONS_PER_REFILL * NODES_PER_ALLOC;
/// Nodes that any one operation may need.
const MOST_NODES: usize = {
    let needs = [NODES_PER_ADD, NODES_PER_ALLOC, NODES_PER_FREE, NODES_PER_SPLIT];
    let (mut most, mut index) = (0, 0);
    while index < needs.len() {
        if needs[index] > most {
            most = needs[index];
        }
        index += 1;
    }
    most
};
