//! Costs of operations beside many capabilities and many threads.
//!
//! | module | what there are many of | up to |
//! |---|---|---|
//! | [`capabilities`] | notifications in one CSpace | 10⁶ |
//! | [`threads`] | threads that wait at one endpoint, each with a deadline | 10⁵ |
//!
//! A figure is the mean of [`MEASURED`] operations on random ones of the many; `worst_…`, a sample, the most expensive
//! of them. The library's stub is included, the cost of reading the counter is not.

mod capabilities;
mod threads;

use alloc::string::String;

use tench::abi::object::{NODE_BITS, NODE_SLOTS, ROOT_MAX_BITS};
use tench::mem::Mem;
use tench::memory::take_slot;
use tench::sys::{Cap, CapAddress, CapNode, Error, Untyped};

use crate::support::{cost, mean, point, problem};

/// Number of measured operations of each kind.
const MEASURED: usize = 1000;
/// Maximum number of capabilities.
const MANY: usize = 1_000_000;
/// Number of empty slots beside them.
const SPARE: usize = 128;
/// Number of nodes for both.
const NODES: usize = (MANY + SPARE).div_ceil(NODE_SLOTS);
/// Distance of two nodes in the root, so that they are spread over all of it.
const STRIDE: usize = (1 << ROOT_MAX_BITS) / NODES;
/// Log2 of the memory for the largest root and the nodes.
const SPACE_BITS: u32 = 27;

/// A CSpace with room for a million capabilities. Its root has as many entries as a root can have.
struct Space {
    root: Cap<CapNode>,
}

impl Space {
    fn new() -> Result<Space, String> {
        let memory = memory(SPACE_BITS)?;
        let take = || take_slot().map_err(problem("a slot"));
        let (root, node) = (take()?, take()?);
        let space = Space { root: memory.retype(u64::from(ROOT_MAX_BITS), root).map_err(problem("the root"))? };
        for i in 0..NODES {
            let made = memory.retype::<CapNode>(u64::from(NODE_BITS), node);
            made.and_then(|made| space.root.install_node(entry(i), made)).map_err(problem("a node"))?;
        }
        Ok(space)
    }

    /// Returns the address of slot `i`.
    const fn address_of(i: usize) -> CapAddress {
        CapAddress::new(entry(i / NODE_SLOTS), (i % NODE_SLOTS) as u32)
    }
}

/// Returns the entry of the root that holds node `i`. Entry 0 holds none, since slot 0 of it would have no address.
const fn entry(i: usize) -> u32 {
    ((i + 1) * STRIDE - 1) as u32
}

/// Takes this much memory from the memory server.
fn memory(bits: u32) -> Result<Cap<Untyped>, String> {
    let slot = take_slot().map_err(problem("a slot"))?;
    Ok(Mem::STANDARD.allocate(bits, slot).map_err(problem("memory"))?.untyped)
}

/// Returns the instructions of an operation.
///
/// # Errors
/// That of the operation.
#[inline(always)]
fn cost_of<T>(operation: impl FnOnce() -> Result<T, Error>) -> Result<u64, Error> {
    let (result, instructions) = cost(operation);
    result.map(|_| instructions)
}

/// Prints the figure of an operation beside `count` of the many, and the most expensive as a sample.
fn report(key: &str, count: usize, costs: &[u64]) {
    point(key, count, mean(costs));
    tench::println!("sample: worst_{key} {count} {}", costs.iter().max().unwrap_or(&0));
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let space = Space::new()?;
    capabilities::measure(&space)?;
    threads::measure(&space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_are_spread_over_the_whole_root() {
        assert_eq!(entry(0) as usize, STRIDE - 1);
        assert!((0xf000..0x10000).contains(&entry(NODES - 1)));
        assert!(entry(NODES - 1) < 1 << ROOT_MAX_BITS);
        let addresses = [0, 255, 256, MANY, MANY + SPARE - 1].map(Space::address_of);
        assert!(addresses.is_sorted() && addresses[1].0 - addresses[0].0 == 255);
    }
}
