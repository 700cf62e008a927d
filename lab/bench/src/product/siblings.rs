//! Cost of deleting one of many siblings: R1's appendix C, where the cost of one deletion grew with the number of
//! objects made of the same memory.
//!
//! `N` objects are made of one untyped, in ascending order, and deleted one by one, from the first or from the last on.
//! A figure is the mean of the first [`MEASURED`] deletions, rounded down, so that all of them have nearly `N`
//! siblings. The most expensive of them is a sample, `worst_…`. Three things are deleted:
//!
//! | key | deleted objects |
//! |---|---|
//! | `delete_first_N`, `delete_last_N` | notifications |
//! | `delete_untyped_first_N`, `delete_untyped_last_N` | untyped memory of 16 bytes: the derivation structure's most expensive kind, since each subtree knows where its memory ends |
//! | `delete_copy_N` | copies of one capability of which there are `N` |
//!
//! Each is measured from before the library call to after it; the cost of two readings is subtracted.

use alloc::string::String;

use tench::abi::object::{NODE_BITS, NODE_SLOTS};
use tench::memory::{self, Made, take_slot};
use tench::sys::{Cap, CapAddress, CapNode, Error, Kind, Placement, Untyped};
use tench::time::instructions;

use crate::support::{point, problem, reading};

/// Numbers of siblings.
const SIZES: [usize; 8] = [2, 10, 50, 100, 200, 1000, 10_000, 100_000];
/// Number of measured deletions.
const MEASURED: usize = 1000;
/// Log2 of the memory for nodes of slots: 512 nodes.
const NODES_BITS: u64 = 23;
/// Log2 of the memory for the siblings: 10⁵ notifications.
const POOL_BITS: u64 = 23;

/// Slots for the siblings: two CSpaces of their own, whose roots have 256 entries.
struct Slots {
    roots: [Made<CapNode>; 2],
    /// Memory for the nodes.
    memory: Made<Untyped>,
}

impl Slots {
    fn new() -> Result<Slots, String> {
        let memory = memory::make::<Untyped>(NODES_BITS).map_err(problem("memory for nodes"))?;
        let root = || memory::make::<CapNode>(u64::from(NODE_BITS)).map_err(problem("making a root"));
        let slots = Slots { roots: [root()?, root()?], memory };
        let slot = take_slot().map_err(problem("a slot"))?;
        let needed = SIZES.iter().max().map_or(0, |size| size.div_ceil(NODE_SLOTS)) + 2;
        for node in 0..needed {
            let (root, index) = (node / NODE_SLOTS, node % NODE_SLOTS);
            let made = slots.memory.cap().retype::<CapNode>(u64::from(NODE_BITS), slot);
            made.and_then(|made| slots.roots[root].cap().install_node(index as u32, made))
                .map_err(problem("installing a node"))?;
        }
        memory::free_slot(slot);
        Ok(slots)
    }

    /// Returns where sibling `i` lies. Slot 0 of a CSpace has no address, so the first node of either is left out.
    fn address_of(&self, i: usize) -> (Cap<CapNode>, CapAddress) {
        let i = i + NODE_SLOTS;
        let i = if i < NODE_SLOTS * NODE_SLOTS { i } else { i + NODE_SLOTS };
        let (root, slot) = (i / (NODE_SLOTS * NODE_SLOTS), i % (NODE_SLOTS * NODE_SLOTS));
        (self.roots[root].cap(), CapAddress(slot as u32))
    }
}

/// Kind of deleted objects.
#[derive(Clone, Copy, PartialEq)]
enum ObjectClass {
    Untyped,
    Notification,
    Copies,
}

/// End from which deletion begins.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    First,
    Last,
}

/// The experiment.
struct Bench {
    slots: Slots,
    pool: Made<Untyped>,
    /// Cost of two readings.
    readings: u64,
}

impl Bench {
    /// Makes `count` siblings.
    fn fill(&self, class: ObjectClass, count: usize) -> Result<(), Error> {
        if class == ObjectClass::Copies {
            let (cspace, slot) = self.slots.address_of(0);
            self.pool.cap().retype_many(Kind::Endpoint, 0, 1, Placement::Watermark, cspace, slot)?;
            for i in 1..count {
                let (to, address) = self.slots.address_of(i);
                to.copy_from(address, cspace, slot)?;
            }
            return Ok(());
        }
        let (kind, size) = if class == ObjectClass::Untyped { (Kind::Untyped, 4) } else { (Kind::Notification, 0) };
        for first in (0..count).step_by(NODE_SLOTS) {
            let (cspace, address) = self.slots.address_of(first);
            let some = (count - first).min(NODE_SLOTS) as u64;
            self.pool.cap().retype_many(kind, size, some, Placement::Watermark, cspace, address)?;
        }
        Ok(())
    }

    /// Makes siblings, deletes some, measured, and then the rest. Returns the sum, the maximum, and the number.
    fn measure(&self, class: ObjectClass, order: Order, count: usize) -> Result<(u64, u64, usize), Error> {
        self.fill(class, count)?;
        let (mut sum, mut worst) = (0, 0);
        let measured = count.min(MEASURED);
        for i in 0..measured {
            let (cspace, address) = self.slots.address_of(if order == Order::First { i } else { count - 1 - i });
            let before = instructions();
            let deleted = cspace.delete_at(address);
            let cost = instructions() - before - self.readings;
            deleted?;
            sum += cost;
            worst = worst.max(cost);
        }
        self.pool.cap().revoke()?;
        Ok((sum, worst, measured))
    }

    /// Prints the figures of a kind and an order.
    fn figures(&self, key: &str, class: ObjectClass, order: Order) -> Result<(), String> {
        for count in SIZES {
            let (sum, worst, measured) = self.measure(class, order, count).map_err(problem(key))?;
            let mean = sum / measured as u64;
            point(key, count, mean);
            tench::println!("sample: worst_{key} {count} {worst}");
        }
        Ok(())
    }
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let slots = Slots::new()?;
    let pool = memory::make::<Untyped>(POOL_BITS).map_err(problem("memory for siblings"))?;
    let bench = Bench { slots, pool, readings: reading() };
    bench.figures("delete_first", ObjectClass::Notification, Order::First)?;
    bench.figures("delete_last", ObjectClass::Notification, Order::Last)?;
    bench.figures("delete_untyped_first", ObjectClass::Untyped, Order::First)?;
    bench.figures("delete_untyped_last", ObjectClass::Untyped, Order::Last)?;
    bench.figures("delete_copy", ObjectClass::Copies, Order::Last)
}
