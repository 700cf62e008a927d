//! Costs of the physical memory manager: R0's figures 3 and 4, and how the costs grow with the number of free extents.
//!
//! The library alone is measured (`tench-extents`): no retype of the kernel, no message to the memory server.
//!
//! **In order.** 8192 blocks of 4 KiB, or 400 of 4 MiB, are allocated and then freed in the same order. The curves
//! `alloc_4k`, `free_4k`, `alloc_4m`, `free_4m` show the mean of every few operations in a row, and `…_worst` the most
//! expensive of them; over all operations, mean, 90th percentile and largest are figures.
//!
//! **With N free extents.** Memory with `N` holes of mixed sizes at random places, made in random order:
//! ```text
//! ├────STRIDE────┼──────────────┼──────────────┼── … ──┤
//!  used│free│used    used   │fr│ u    used    │  free …        one hole in each stride, N + 1 blocks between them
//! ```
//! A block is allocated and freed again, so that each operation meets exactly `N` free extents. The figures are the
//! mean (`alloc_N`) and the largest (`alloc_worst_N`) of many such operations.
//!
//! The counter is read before and after each call; the cost of two readings is subtracted.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::memory::Pages;
use tench::println;
use tench::time::instructions;
use tench_extents::{Error, Manager, Node, PAGE};
use tench_random::Random;

use crate::support::{figure, problem};

/// Numbers of free extents.
const EXTENTS: [u64; 7] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
/// Number of measured operations of each kind in each state.
const OPERATIONS: usize = 4000;
/// Minimum number of points of a curve.
const POINTS: usize = 100;
/// Pages from one hole's stride to the next: 4 MiB.
const STRIDE: u64 = 1024;
/// Log2 of the bound on a hole's pages; all powers of two are equally frequent.
const HOLE_BITS: u64 = 9;
/// Log2 of the bound on a block's pages. Every block fits into the largest hole.
const BLOCK_BITS: u64 = 7;
/// Bound on the exponent of alignments, which are 4 KiB times a power of two.
const ALIGN_BITS: u64 = 8;
/// Bound on the exponent of ranges, which are all memory divided by a power of two.
const RANGE_BITS: u64 = 8;
/// Nodes of the largest state, and some for the current operation.
const NODES: usize = 2 * 1_000_000 + 16;

/// Returns a number of pages below two to the power of `bits`, each power as often as another.
fn pages(random: &mut Random, bits: u64) -> u64 {
    let power = 1 << random.below(bits);
    power + random.below(power)
}

/// Returns the instructions of `action`, given the cost of two readings of the counter.
fn cost<T>(reading: u64, action: impl FnOnce() -> T) -> (u64, T) {
    let before = instructions();
    let result = action();
    (instructions() - before - reading, result)
}

/// Mean, 90th percentile and largest.
struct Summary {
    mean: u64,
    tenth: u64,
    largest: u64,
}

impl Summary {
    fn of(costs: &[u64]) -> Summary {
        let mut sorted = costs.to_vec();
        sorted.sort_unstable();
        let count = sorted.len().max(1);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(0);
        Summary {
            mean: sorted.iter().sum::<u64>() / count as u64,
            tenth: at((count * 9).div_ceil(10) - 1),
            largest: at(count - 1),
        }
    }
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let reading = (0..8).map(|_| cost(0, || ()).0).min().unwrap_or(0);
    // One frame: on the heap, each page would be populated on demand, with capabilities of its own, and these run out.
    let mut memory = Pages::new(NODES * size_of::<Node>()).map_err(|error| format!("memory for the nodes: {error}"))?;
    let nodes = nodes_in(&mut memory);
    in_order(nodes, reading, "4k", 8192, PAGE)?;
    in_order(nodes, reading, "4m", 400, 4 << 20)?;
    for extents in EXTENTS {
        with_extents(nodes, reading, extents)?;
    }
    Ok(())
}

/// Returns the nodes in memory that is large enough for them.
fn nodes_in(memory: &mut Pages) -> &mut [Node] {
    let first = core::ptr::with_exposed_provenance_mut::<Node>(memory.address());
    for number in 0..NODES {
        // SAFETY: the memory is mapped, readable and writable, begins at a page, and holds `NODES` nodes.
        unsafe { first.wrapping_add(number).write(Node::EMPTY) };
    }
    // SAFETY: all these nodes were just written, and this is the only reference into the memory, which lives longer.
    unsafe { core::slice::from_raw_parts_mut(first, NODES) }
}

/// Runs R0's program: `count` blocks of `size` bytes, allocated and then freed in the same order.
fn in_order(nodes: &mut [Node], reading: u64, name: &str, count: u64, size: u64) -> Result<(), String> {
    let mut manager = Manager::new(nodes);
    manager.add(1 << 30, 4 << 30).map_err(problem("adding memory"))?;
    let mut blocks = Vec::with_capacity(count as usize);
    let (mut allocs, mut frees) = (Vec::with_capacity(count as usize), Vec::with_capacity(count as usize));
    for number in 0..count {
        let (instructions, block) = cost(reading, || manager.alloc(size, number));
        blocks.push(block.map_err(problem("allocating"))?);
        allocs.push(instructions);
    }
    for block in blocks {
        let (instructions, freed) = cost(reading, || manager.free(block, size));
        freed.map_err(problem("freeing"))?;
        frees.push(instructions);
    }
    for (operation, costs) in [("alloc", allocs), ("free", frees)] {
        let few = costs.len() / POINTS;
        for (number, costs) in costs.chunks(few).enumerate() {
            let Summary { mean, largest, .. } = Summary::of(costs);
            println!("sample: {operation}_{name} {} {mean}", number * few + 1);
            println!("sample: {operation}_{name}_worst {} {largest}", number * few + 1);
        }
        let Summary { mean, tenth, largest } = Summary::of(&costs);
        figure(&format!("{operation}_{name}_mean"), mean);
        figure(&format!("{operation}_{name}_p90"), tenth);
        figure(&format!("{operation}_{name}_max"), largest);
    }
    Ok(())
}

/// Makes memory with `extents` holes; returns also their total size.
fn with_holes<'a>(
    nodes: &'a mut [Node],
    random: &mut Random,
    extents: u64,
) -> Result<(Manager<&'a mut [Node]>, u64), Error> {
    let mut manager = Manager::new(nodes);
    let all = extents * STRIDE * PAGE;
    manager.add(0, all)?;
    manager.alloc(all, 0)?;
    let mut strides: Vec<u32> = (0..extents as u32).collect();
    for place in (1..strides.len()).rev() {
        strides.swap(place, random.below(place as u64 + 1) as usize);
    }
    for (done, stride) in strides.into_iter().enumerate() {
        if done % 50_000 == 49_999 {
            // The host tool takes a long silence for a hang.
            println!("mm: {} of {extents} holes", done + 1);
        }
        // One hole has the maximum size, so that each block fits somewhere in every state.
        let size = if stride == 0 { (1 << HOLE_BITS) - 1 } else { pages(random, HOLE_BITS) };
        // Neither end of a stride is free, so that no two holes touch.
        let start = 1 + random.below(STRIDE - size - 1);
        manager.free((u64::from(stride) * STRIDE + start) * PAGE, size * PAGE)?;
    }
    Ok((manager, all))
}

/// Allocates and frees blocks while there are `extents` free extents.
fn with_extents(nodes: &mut [Node], reading: u64, extents: u64) -> Result<(), String> {
    let mut random = Random::from_state(42);
    let (mut manager, all) = with_holes(nodes, &mut random, extents).map_err(problem("making holes"))?;
    let before = manager.totals();
    if before.extents as u64 != extents {
        return Err(format!("there are {} free extents, and not {extents}", before.extents));
    }
    let (mut allocs, mut frees) = (Vec::with_capacity(OPERATIONS), Vec::with_capacity(OPERATIONS));
    for _ in 0..OPERATIONS {
        let size = pages(&mut random, BLOCK_BITS) * PAGE;
        let (instructions, block) = cost(reading, || manager.alloc(size, 1));
        allocs.push(instructions);
        let block = block.map_err(problem("allocating"))?;
        let (instructions, freed) = cost(reading, || manager.free(block, size));
        frees.push(instructions);
        freed.map_err(problem("freeing"))?;
    }
    let (mut ranged, mut refusals) = (Vec::with_capacity(OPERATIONS), Vec::new());
    for _ in 0..OPERATIONS {
        let size = pages(&mut random, BLOCK_BITS) * PAGE;
        let align = PAGE << random.below(ALIGN_BITS);
        let base = random.below(all);
        let limit = base + (all >> random.below(RANGE_BITS));
        let request = || manager.alloc_from_range_aligned(base, limit, size, align, 1);
        match cost(reading, request) {
            (instructions, Ok(block)) => {
                ranged.push(instructions);
                manager.free(block, size).map_err(problem("freeing"))?;
            }
            (instructions, Err(Error::OutOfMemory)) => refusals.push(instructions),
            (_, Err(error)) => return Err(problem("allocating from a range")(error)),
        }
    }
    if manager.totals() != before {
        return Err(format!("with {extents} extents, something is not as it was"));
    }
    figure(&format!("refused_range_{extents}"), refusals.len());
    ranged.append(&mut refusals);
    for (operation, costs) in [("alloc", allocs), ("free", frees), ("alloc_range", ranged)] {
        let Summary { mean, largest, .. } = Summary::of(&costs);
        println!("sample: {operation} {extents} {mean}");
        println!("sample: {operation}_worst {extents} {largest}");
        figure(&format!("{operation}_{extents}"), mean);
        figure(&format!("{operation}_worst_{extents}"), largest);
    }
    Ok(())
}
