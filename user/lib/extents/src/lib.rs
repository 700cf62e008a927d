//! The physical memory manager: free memory, and memory in blocks.
//!
//! ```text
//!     region 1                          region 2
//!   ├─used─┬free┬─used─┬used┬── free ──┤├used┬free┬─used─┤     each byte of a region in one extent
//!
//!   three balanced trees over the same nodes:
//!       used, by address      finding a block; what may be freed
//!       free, by address      neighbours; where a block of an alignment fits, from an address on
//!       free, by size         best fit (of equal sizes, the lower address first)
//! ```
//! *Best fit*: of the free extents in which a block fits, the smallest is taken, and of equal ones that with the lowest
//! address; the block lies at the lowest permitted address in it. A freed block is joined with free neighbours of the
//! same region at once. Adjacent regions stay separate, because their capabilities are.
//!
//! Every operation takes O(log n) steps with n extents:
//! - Without alignment beyond [`PAGE`] and without range, best fit is the first extent in order of size that is
//!   large enough. This is always exact.
//! - With them, the first [`PATIENCE`] extents that are large enough are tried in order of size; the first in which the
//!   block fits is the best fit. If it fits in none of them, then without a range the smallest extent is taken in which
//!   such a block fits wherever the extent begins (`size + align` − 4 KiB); and with a range, or if there is no such
//!   extent, the lowest address where the block fits. The summaries of the free tree find that: each node has for each
//!   alignment the size of the largest block that fits somewhere in its subtree. So a block is found if, and only if,
//!   there is one.
//!
//! Two kinds of requests are beyond the summaries, and still exact. An alignment above 1 GiB: the extents in which a
//! block aligned to 1 GiB fits are tried one by one, of which there is at most one for each GiB of memory. A block of
//! nearly 16 TiB or more: all extents that are large enough are tried, at most one for each 16 TiB.
//!
//! Nothing allocates. The nodes lie in storage that the user grows; an operation states its maximum need
//! ([`NODES_PER_ALLOC`], [`NODES_PER_FREE`], …) and fails before it changes anything if there are fewer.
//! [`Manager::wants_refill`] warns ahead of need, with enough nodes left for the allocations that a refill itself
//! makes.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arena;
mod manager;
mod node;
mod search;

pub use manager::{Block, Error, Extent, Freed, Manager, Totals};
pub use node::Node;

/// Unit of addresses and sizes: a page, in bytes.
pub const PAGE: u64 = 4096;
/// Number of free extents that are tried in order of size before another method is used.
pub const PATIENCE: usize = 8;
/// Maximum number of nodes that [`Manager::add`] needs.
pub const NODES_PER_ADD: usize = 1;
/// Maximum number of nodes that an allocation needs: for the block, and for the rest after it.
pub const NODES_PER_ALLOC: usize = 2;
/// Maximum number of nodes that [`Manager::free`] needs for part of a block: for the free part, and for the used part
/// after it. For a whole block it needs none.
pub const NODES_PER_FREE: usize = 2;
/// Number of nodes that [`Manager::split`] needs.
pub const NODES_PER_SPLIT: usize = 1;
/// Maximum number of allocations of a refill, each of which may need as many nodes as any.
pub const ALLOCATIONS_PER_REFILL: usize = 4;
/// Number of free nodes below which it is time for a refill, such that the next operation and the refill have enough.
pub const RESERVE: usize = MOST_NODES + ALLOCATIONS_PER_REFILL * NODES_PER_ALLOC;
/// Maximum number of nodes that any one operation needs.
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
