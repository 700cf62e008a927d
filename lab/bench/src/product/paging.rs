//! Costs of the paging library: R0's figures 7 to 10, and how the costs grow.
//!
//! | key | what |
//! |---|---|
//! | `alloc_4k`, `free_4k` | reserving 8,000 times 4 KiB, and freeing them in order; `…_at_K` is the mean of the hundred up to the K-th |
//! | `map_4k`, `unmap_4k` | these with a frame mapped at each address: figures 7 and 8 |
//! | `alloc_4m`, `free_4m`, `map_4m`, `unmap_4m` | 400 times 4 MiB: figures 9 and 10 |
//! | `map_4m_once` | mapping a frame of 4 MiB in existing tables |
//! | `map_1024_pages` | mapping its pages one by one |
//! | `map_4m_percent` | the first in per cent of the second |
//! | `alloc_N`, `find_N`, `free_N` | reserving a page, finding a region, and freeing one, among N regions |
//!
//! Samples `alloc_4k` and so on: means over the number of the operation, and the most expensive (`…_worst`). Samples
//! `alloc`, `find`, `free`: the mean over the number of regions; `…_worst` the most expensive.
//!
//! Instructions, the kernel's included, without the locks of the user library; the cost of two readings is subtracted.
//! All operations are on another address space than the program's own, whose page tables are real.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Debug, Display};

use tench::abi::memory::MapFlags;
use tench::memory::{self, Carrier, Made, make};
use tench::paging::{FrameCap, Kind, Paging, Request};
use tench::sync::Mutex;
use tench::sys::{Frame, PageTable};

use crate::support::{self, curve, decimal, figure, percent};

const PAGE: u64 = 4096;
const SMALL: (&str, u64, usize) = ("4k", PAGE, 8000);
const LARGE: (&str, u64, usize) = ("4m", 4 << 20, 400);
/// Numbers of regions, from one to a million.
const SIZES: [usize; 7] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
/// Number of operations at each size.
const ROUNDS: usize = 64;
/// Number of operations that an intermediate figure is the mean of.
const SAMPLE: usize = 100;
/// Number of points of a curve over the operations.
const POINTS: usize = 80;
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);
/// Start of the address range.
const LOW: u64 = 0x1000_0000_0000;
const HIGH: u64 = 0x5000_0000_0000;

/// Address spaces: one for the samples, one for the regions.
static SPACES: [Mutex<Paging>; 2] = [Mutex::new(Paging::new()), Mutex::new(Paging::new())];

/// Returns a function that says what failed, for errors without words of their own.
fn problem<E: Debug>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error:?}")
}

/// Returns the instructions of an operation that must succeed.
fn cost<T, E: Debug>(what: &str, operation: impl FnOnce() -> Result<T, E>) -> Result<(T, u64), String> {
    let (result, cost) = support::cost(operation);
    Ok((result.map_err(problem(what))?, cost))
}

/// Prints a mean with one decimal.
fn mean(key: impl Display, sum: u64, count: usize) {
    figure(&format!("{key}"), decimal(sum, count as u64));
}

/// Costs of a series of operations, with intermediate figures.
struct Series<'a> {
    name: &'a str,
    size: &'a str,
    costs: Vec<u64>,
}

impl<'a> Series<'a> {
    fn new(name: &'a str, (size, _, count): (&'a str, u64, usize)) -> Series<'a> {
        Series { name, size, costs: Vec::with_capacity(count) }
    }

    fn add(&mut self, cost: u64) {
        self.costs.push(cost);
    }

    /// Prints the mean of all, that of the last of each eighth, and the curve.
    fn end(self) {
        let (name, size) = (self.name, self.size);
        let eighth = self.costs.len() / 8;
        let last = SAMPLE.min(eighth);
        for end in (1..=8).map(|number| number * eighth) {
            let sum = self.costs[end - last..end].iter().sum();
            mean(format_args!("{name}_{size}_at_{end}"), sum, last);
        }
        mean(format_args!("{name}_{size}"), self.costs.iter().sum(), self.costs.len());
        let few = self.costs.len() / POINTS;
        for (number, costs) in self.costs.chunks(few).enumerate() {
            curve(format_args!("{name}_{size}"), number * few + 1, costs);
        }
    }
}

/// Reserves ranges, and frees them in order; with a frame, maps and unmaps it.
fn series(shape: (&str, u64, usize), frame: Option<FrameCap>) -> Result<(), String> {
    let (_, size, count) = shape;
    let mut space = SPACES[0].lock();
    let names = if frame.is_some() { ["map", "unmap"] } else { ["alloc", "free"] };
    let mut adding = Series::new(names[0], shape);
    let mut first = None;
    let mut last = 0;
    let request = Request { alignment: size, ..Request::reserved(size, Kind::Anonymous) };
    for _ in 0..count {
        let (address, cost) = memory::with_paging(|_, carrier| {
            cost(names[0], || match frame {
                Some(frame) => space.map(carrier, frame, RW),
                None => space.alloc(carrier, &request),
            })
        })?;
        adding.add(cost);
        first = first.or(Some(address));
        last = address;
    }
    adding.end();
    let first = first.unwrap_or(LOW);
    if last != first + (count as u64 - 1) * size {
        return Err(format!("{count} ranges of {size} bytes do not lie side by side"));
    }
    let mut removing = Series::new(names[1], shape);
    for index in 0..count as u64 {
        let mut remove = |carrier: &mut Carrier| cost(names[1], || space.unmap(carrier, first + index * size, size));
        removing.add(memory::with_paging(|_, carrier| remove(carrier))?.1);
    }
    removing.end();
    Ok(())
}

/// Measures large pages beside small ones.
fn ratio(frame: FrameCap) -> Result<(), String> {
    let mut space = SPACES[0].lock();
    let size = LARGE.1;
    let base = LOW + (1 << 40);
    let mut map = |address: u64, offset: u64, size: u64| {
        let flags = RW;
        memory::with_paging(|_, carrier| {
            cost("mapping", || space.map_fixed(carrier, address, frame, offset, size, flags))
        })
    };
    // This makes the tables.
    map(base, 0, size)?;
    map(base + 4 * size, PAGE, PAGE)?;
    map(base + 5 * size - PAGE, 0, PAGE)?;
    let (_, large) = map(base + size, 0, size)?;
    let mut small = 0;
    for page in 1..1023 {
        small += map(base + 4 * size + page * PAGE, page * PAGE, PAGE)?.1;
    }
    // The two operations that made the tables are counted like the others.
    let small = small * 1024 / 1022;
    figure("map_4m_once", large);
    figure("map_1024_pages", small);
    figure("map_4m_percent", percent(large, small));
    memory::with_paging(|_, carrier| space.unmap(carrier, base, 8 * size)).map_err(problem("unmapping"))
}

/// Measures how the costs grow with the number of regions.
fn growth() -> Result<(), String> {
    let mut space = SPACES[1].lock();
    let request = Request::reserved(PAGE, Kind::Anonymous);
    let mut count = 0;
    for size in SIZES {
        while count < size {
            memory::with_paging(|_, carrier| space.alloc(carrier, &request)).map_err(problem("reserving"))?;
            count += 1;
        }
        let mut costs = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            // A different address each time, all over the regions.
            let address = LOW + (round * 7919 % size) as u64 * PAGE;
            let found = cost("finding", || space.find(address).ok_or("nothing is there"))?;
            let freed = memory::with_paging(|_, carrier| cost("freeing", || space.unmap(carrier, address, PAGE)))?;
            let made = memory::with_paging(|_, carrier| cost("reserving", || space.alloc(carrier, &request)))?;
            if made.0 != address {
                return Err(format!("{:#x} was reserved, and {address:#x} was free", made.0));
            }
            for (costs, cost) in costs.iter_mut().zip([made.1, found.1, freed.1]) {
                costs.push(cost);
            }
        }
        for (name, costs) in ["alloc", "find", "free"].into_iter().zip(&costs) {
            mean(format_args!("{name}_{size}"), costs.iter().sum(), costs.len());
            curve(name, size, costs);
        }
    }
    Ok(())
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let roots: [Made<PageTable>; 2] = [make(0).map_err(problem("a table"))?, make(0).map_err(problem("a table"))?];
    for (space, root) in SPACES.iter().zip(&roots) {
        space.lock().initialise(root.cap().address(), LOW, HIGH);
    }
    let small: Made<Frame> = make(12).map_err(problem("a frame"))?;
    let large: Made<Frame> = make(22).map_err(problem("a frame"))?;
    let small = FrameCap { cap: small.leak().address(), bits: 12 };
    let large = FrameCap { cap: large.leak().address(), bits: 22 };
    series(SMALL, None)?;
    series(SMALL, Some(small))?;
    series(LARGE, None)?;
    series(LARGE, Some(large))?;
    ratio(large)?;
    growth()?;
    // The tables' memory goes with the process.
    let _ = roots.map(Made::leak);
    Ok(())
}
