//! What the memory manager's library costs, without the kernel's retype and without a message: R0's figures 3 and 4, and
//! how the cost grows with the number of free extents.
//!
//! | key | what |
//! |---|---|
//! | `alloc_4k_…`, `free_4k_…` | 8,192 blocks of 4 KiB, allocated and then freed in the same order: mean, 90th of 100, most |
//! | `alloc_4m_…`, `free_4m_…` | 400 blocks of 4 MiB likewise |
//! | `alloc_N`, `free_N` | a block of 1 to 16 pages and its return, among `N` free extents of 1 to 64 pages: mean |
//! | `alloc_range_N` | the same within a random eighth of the addresses, aligned to its size |
//! | `…_worst_N` | the dearest of those |
//!
//! Each is from before the call of the library to behind it; what two readings cost is taken off.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use tench::println;
use tench::time::instructions;
use tench_extents::{Error, GRANULE, Manager, Node};

use crate::figure;

/// Numbers of free extents.
const SIZES: [u64; 7] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
/// Blocks that are allocated and freed among them.
const ROUNDS: u64 = 1000;
/// Pages of the largest block, and of the largest free extent among many.
const MOST_PAGES: u64 = 16;
const MOST_FREE_PAGES: u64 = 64;
/// First address of the memory that is managed. Nobody touches it.
const BASE: u64 = 1 << 36;
/// Samples of a curve that are printed: of so many operations one.
const PRINTED: usize = 16;

/// Says what failed.
fn problem(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("mm: {what}: {error}")
}

/// Generator of numbers that always gives the same ones (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}

/// Measures operations, and keeps what each cost.
struct Meter {
    /// What two readings cost.
    readings: u64,
    costs: Vec<u64>,
}

impl Meter {
    fn new(readings: u64) -> Meter {
        Meter { readings, costs: Vec::with_capacity(8192) }
    }

    fn measure<T>(&mut self, operation: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let before = instructions();
        let result = operation();
        let after = instructions();
        self.costs.push(after.wrapping_sub(before).saturating_sub(self.readings));
        result
    }

    fn mean(&self) -> u64 {
        self.costs.iter().sum::<u64>() / self.costs.len().max(1) as u64
    }

    fn worst(&self) -> u64 {
        self.costs.iter().copied().max().unwrap_or(0)
    }

    /// The cost that 90 of 100 do not exceed.
    fn usual(&self) -> u64 {
        let mut sorted = self.costs.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() * 9 / 10).copied().unwrap_or(0)
    }

    /// Prints the figures of a series, and part of its curve.
    fn print_series(&self, name: &str) {
        for (index, cost) in self.costs.iter().enumerate().step_by(PRINTED) {
            println!("sample: {name} {index} {cost}");
        }
        figure(&format!("{name}_mean"), self.mean());
        figure(&format!("{name}_p90"), self.usual());
        figure(&format!("{name}_max"), self.worst());
    }
}

/// What two readings of the counter cost.
fn readings() -> u64 {
    (0..8)
        .map(|_| {
            let before = instructions();
            instructions().wrapping_sub(before)
        })
        .min()
        .unwrap_or(0)
}

/// `count` blocks of `size` bytes, allocated and then freed in order.
fn in_order(readings: u64, name: &str, count: u64, size: u64) -> Result<(), String> {
    let mut manager = Manager::new(vec![Node::EMPTY; 2 * count as usize + 64]);
    manager.add(BASE, 2 * count * size).map_err(problem("adding memory"))?;
    let (mut alloc, mut free) = (Meter::new(readings), Meter::new(readings));
    let mut blocks = Vec::with_capacity(count as usize);
    for tag in 0..count {
        blocks.push(alloc.measure(|| manager.alloc(size, tag)).map_err(problem("allocating in order"))?);
    }
    for block in blocks {
        free.measure(|| manager.free(block, size)).map_err(problem("freeing in order"))?;
    }
    alloc.print_series(&format!("alloc_{name}"));
    free.print_series(&format!("free_{name}"));
    Ok(())
}

/// A manager with `count` free extents of 1 to 64 pages, each of them between blocks.
fn fragmented(random: &mut Random, count: u64, storage: Vec<Node>) -> Result<Manager<Vec<Node>>, String> {
    let mut manager = Manager::new(storage);
    let mut address = BASE;
    for _ in 0..count {
        // Memory of its own for each, so that making the state does not take longer than measuring in it.
        let size = GRANULE * (1 + random.below(MOST_FREE_PAGES));
        manager.add(address, size).map_err(problem("adding memory"))?;
        address += size + GRANULE * (1 + random.below(4));
    }
    Ok(manager)
}

/// Blocks among `count` free extents.
fn among(readings: u64, count: u64) -> Result<(), String> {
    let mut random = Random(count + 7);
    let mut manager = fragmented(&mut random, count, vec![Node::EMPTY; count as usize + 64])?;
    let end = manager.extents(0).last().map_or(BASE, |last| last.base + last.size);
    let (mut alloc, mut free, mut range) = (Meter::new(readings), Meter::new(readings), Meter::new(readings));
    for tag in 0..ROUNDS {
        let size = GRANULE * (1 + random.below(MOST_PAGES));
        match alloc.measure(|| manager.alloc(size, tag)) {
            Ok(block) => {
                free.measure(|| manager.free(block, size)).map_err(problem("freeing"))?;
            }
            // The only extent of a state with one may be too small.
            Err(Error::OutOfMemory) if count < 100 => {}
            Err(error) => return Err(problem("allocating")(error)),
        }
        let size = GRANULE << random.below(4);
        let span = (end - BASE) / 8;
        let low = if count < 100 { BASE } else { BASE + random.below(end - BASE - span) };
        let high = if count < 100 { end } else { low + span };
        match range.measure(|| manager.alloc_from_range_aligned(low, high, size, size, tag)) {
            Ok(block) => manager.free(block, size).map(drop).map_err(problem("freeing in a range"))?,
            Err(Error::OutOfMemory) if count < 1000 => {}
            Err(error) => return Err(problem("allocating in a range")(error)),
        }
    }
    for (name, meter) in [("alloc", &alloc), ("free", &free), ("alloc_range", &range)] {
        println!("sample: {name} {count} {}", meter.mean());
        println!("sample: {name}_worst {count} {}", meter.worst());
        figure(&format!("{name}_{count}"), meter.mean());
        figure(&format!("{name}_worst_{count}"), meter.worst());
    }
    Ok(())
}

/// Measures.
pub fn run() -> Result<(), String> {
    let readings = readings();
    in_order(readings, "4k", 8192, 4096)?;
    in_order(readings, "4m", 400, 4 << 20)?;
    SIZES.into_iter().try_for_each(|count| among(readings, count))
}
