//! A program that tries everything to keep interrupts off, on a kernel that measures for how long they are.
//!
//! ```text
//!   bench adversary [INSTRUCTIONS [SEED]]     one workload after another; after each, everything must have come back
//! ```
//! A workload makes what it needs of one untyped, performs operations that take the kernel long, and leaves the objects
//! behind. Then that memory is revoked, and by the kernel's account nothing may be left in it. Meanwhile a thread of
//! high priority is woken by the timer again and again, so operations are interrupted and preempted at their preemption
//! points.
//!
//! | module | its workloads |
//! |---|---|
//! | [`trees`] | capabilities by the hundred thousand, nodes in nodes, divided memory |
//! | [`maps`] | gigabytes zeroed, mapped, protected and unmapped, page tables that go with everything in them |
//! | [`messages`] | the longest messages, queues of a thousand, faults, the floating-point unit |
//! | [`crowds`] | a thousand deadlines at one instant, accounts of a thousand threads, all interrupt lines |
//! | [`chaos`] | every system call with every kind of argument, threads that are deleted in the middle of operations |
//!
//! The figures are the longest interrupts-off interval of each path; the notes say where it began, and in which
//! workload ([`attribution`]). A kernel in which an interval exceeds the bound fails the tests.

mod attribution;
mod chaos;
mod crowds;
mod maps;
mod messages;
mod threads;
mod trees;

use alloc::format;
use alloc::string::String;

use tench::abi::layout::slot;
use tench::abi::object::{NODE_BITS, NODE_SLOTS, entry_path};
use tench::mem::Mem;
use tench::memory::{self, Pages};
use tench::println;
use tench::sys::cap::Object;
use tench::sys::{Cap, CapAddress, CapNode, Error, Kind, OWN_CSPACE, Untyped};
use tench_random::Random;

use attribution::Attribution;

use crate::product::soak::executed;
use crate::support::{KERNEL, figure, problem};

/// Log2 of the memory for the workloads.
const POOL_BITS: u32 = 31;
/// Root index of a workload's node of slots; the user library fills the root from the front.
const NODE_INDEX: u32 = 62;
/// First root index of the nodes for a crowd's slots, and their number.
const CROWD_INDEX: u32 = 40;
const CROWD_NODES: u32 = 20;
/// Number of IPC buffers that this program can write to.
const BUFFERS: usize = 4;
/// Priority of threads that run before this program.
const HIGH: u64 = 130;
/// Priority of threads that run while this program waits.
const LOW: u64 = 110;

/// Body of a workload.
type Workload = fn(&mut Arena) -> Result<(), Error>;

/// All workloads, by name.
const WORKLOADS: [(&str, Workload); 32] = [
    ("notifications by the hundred thousand", trees::wide),
    ("blocks of memory by the hundred thousand", trees::blocks),
    ("copies by the hundred thousand", trees::copies),
    ("badges", trees::badges),
    ("memory in memory", trees::deep),
    ("nodes in nodes", trees::nested_nodes),
    ("nodes in themselves", trees::cyclic_nodes),
    ("memory divided and counted", trees::divided),
    ("every kind of object in bundles", trees::bundles),
    ("a gigabyte zeroed", maps::gigabyte),
    ("pages mapped, protected and unmapped", maps::pages),
    ("scattered pages", maps::scattered),
    ("large pages", maps::large_pages),
    ("caches of much memory", maps::caches),
    ("tables full of mappings", maps::tables),
    ("mappings that move", maps::moves),
    ("the longest messages to who waits", messages::waiting),
    ("the longest messages to who comes", messages::queued),
    ("replies and messages at once", messages::replies),
    ("queues of senders", messages::senders),
    ("faults", messages::faults),
    ("the floating-point unit", messages::float),
    ("deadlines at one instant", crowds::deadlines),
    ("accounts of many threads", crowds::accounts),
    ("many receivers and waiters", crowds::receivers),
    ("servers that wait for each other", crowds::chains),
    ("callers that are called", crowds::callers),
    ("interrupt lines", crowds::interrupts),
    ("operations whose thread goes", chaos::interrupted),
    ("system calls at random", chaos::random),
    ("pages out of the middle of runs", messages::runs),
    ("the largest root", trees::largest_root),
];

/// Resources of the workloads.
pub struct Arena {
    /// All memory of a workload.
    pool: Cap<Untyped>,
    next_slot: u32,
    /// Pages with an IPC buffer each.
    buffers: [Pages; BUFFERS],
    /// Source of random decisions.
    random: Random,
}

impl Arena {
    fn new(seed: u64) -> Result<Arena, String> {
        let node = memory::make::<CapNode>(u64::from(NODE_BITS)).map_err(problem("a node"))?.leak();
        let root = Cap::<CapNode>::new(slot::CSPACE);
        root.install_node(NODE_INDEX, node).map_err(problem("installing a node"))?;
        let slot = memory::take_slot().map_err(problem("a slot"))?;
        let pool = Mem::STANDARD.allocate(POOL_BITS, slot).map_err(problem("a gigabyte"))?.untyped;
        let page = || Pages::new(4096).map_err(problem("a page"));
        Ok(Arena { pool, next_slot: 1, buffers: [page()?, page()?, page()?, page()?], random: Random::new(seed) })
    }

    /// Returns an empty slot.
    fn slot(&mut self) -> CapAddress {
        self.slots(1)
    }

    /// Returns the first of `count` adjacent empty slots.
    fn slots(&mut self, count: u32) -> CapAddress {
        let first = self.next_slot;
        self.next_slot += count;
        assert!(self.next_slot <= NODE_SLOTS as u32, "a workload has {NODE_SLOTS} slots");
        CapAddress::new(NODE_INDEX, first)
    }

    /// Makes an object.
    fn make<T: Object>(&mut self, size: u64) -> Result<Cap<T>, Error> {
        let slot = self.slot();
        self.pool.retype(size, slot)
    }

    /// Makes a CSpace of the workload's own, with this many nodes.
    fn cspace(&mut self, nodes: u32) -> Result<Cap<CapNode>, Error> {
        let root = self.make::<CapNode>(u64::from(NODE_BITS))?;
        let slot = self.slot();
        for index in 0..nodes {
            let node = self.pool.retype::<CapNode>(u64::from(NODE_BITS), slot)?;
            root.install_node(index, node)?;
        }
        Ok(root)
    }

    /// Returns slots in this program's CSpace for a crowd.
    fn crowd_slots(&mut self) -> Result<impl Iterator<Item = CapAddress> + use<>, Error> {
        let slot = self.slot();
        for index in 0..CROWD_NODES {
            let node = self.pool.retype::<CapNode>(u64::from(NODE_BITS), slot)?;
            Cap::<CapNode>::new(slot::CSPACE).install_node(CROWD_INDEX + index, node)?;
        }
        let slots = NODE_SLOTS as u32;
        Ok((0..CROWD_NODES * slots).map(move |i| CapAddress::new(CROWD_INDEX + i / slots, i % slots)))
    }

    /// Takes everything back, and checks that all of it came back.
    fn clear(&mut self) -> Result<(), String> {
        self.pool.revoke().map_err(problem("revoking everything"))?;
        let (info, children) = (self.pool.query(), self.pool.children());
        let (info, children) = (info.map_err(problem("a query"))?, children.map_err(problem("counting"))?);
        if (info.watermark, children.objects) != (0, 0) {
            return Err(format!("{} bytes and {} objects did not come back", info.watermark, children.objects));
        }
        for number in 0..NODE_SLOTS as u32 {
            let found = OWN_CSPACE.identify_at(CapAddress::new(NODE_INDEX, number)).map_err(problem("a slot"))?;
            if found.kind != Kind::Null {
                return Err(format!("a capability of kind {:?} was left in slot {number}", found.kind));
            }
        }
        self.next_slot = 1;
        Ok(())
    }
}

/// Runs every workload once.
fn round(arena: &mut Arena, attribution: &mut Attribution) -> Result<(), String> {
    for (name, workload) in WORKLOADS {
        println!("  {name}");
        let done = workload(arena).map_err(|error| format!("{name}: {error}"));
        let cleared = done.and_then(|()| arena.clear().map_err(|what| format!("{name}: {what}")));
        // The lengths may say why it failed.
        attribution.read(name)?;
        cleared?;
    }
    Ok(())
}

/// Runs the experiment.
pub fn run() -> Result<(), String> {
    let mut numbers = tench::args().skip(2).map(|text| text.parse::<u64>());
    let mut number = |otherwise: u64| numbers.next().unwrap_or(Ok(otherwise)).map_err(problem("a number"));
    let (instructions, seed) = (number(0)?, number(1)?);
    let mut arena = Arena::new(seed)?;
    KERNEL.reset_irq_off_intervals().map_err(problem("the kernel's measuring"))?;
    let ticker = threads::Ticker::start()?;
    let mut attribution = Attribution::new();
    attribution.read(attribution::BEFORE)?;
    let start = executed()?;
    let (mut rounds, mut next_note) = (0_u64, 10);
    while rounds == 0 || executed()? - start < instructions {
        if let Err(what) = round(&mut arena, &mut attribution) {
            // The measurements until then may say why.
            report(rounds + 1, &mut attribution)?;
            return Err(what);
        }
        rounds += 1;
        let billions = (executed()? - start) / 1_000_000_000;
        if billions >= next_note {
            println!("note: {billions} billion instructions, {rounds} rounds");
            next_note = billions + 10;
        }
    }
    drop(ticker);
    report(rounds, &mut attribution)?;
    if instructions > 0 {
        figure("instructions", executed()? - start);
        figure("rounds", rounds);
    }
    Ok(())
}

/// Prints the kernel's measurements.
fn report(rounds: u64, attribution: &mut Attribution) -> Result<(), String> {
    let mut worst = (0, "", "");
    for path in 0..entry_path::LIMIT {
        let Some(name) = entry_path::name(path) else { continue };
        let (s, workload) = attribution.read_path(path, attribution::AFTER)?;
        if s.count == 0 {
            continue;
        }
        worst = worst.max((s.longest, name, workload));
        let key = name.replace(' ', "_");
        figure(&format!("worst_{key}"), s.longest);
        println!("sample: longest {path} {}", s.longest);
        println!("sample: count {path} {}", s.count / rounds);
        println!("sample: mean {path} {}", s.sum / s.count);
        println!("text: workload {path} {workload}");
        println!("note: {:>6} {:>10} {:>6}  {name}", s.longest, s.count, s.sum / s.count);
        println!("  in: {workload}");
        println!("  at {:#x}", s.address);
    }
    let (longest, name, workload) = worst;
    figure("irq_off_worst", longest);
    println!("note: the longest interrupts-off interval: {longest} instructions of {name}, in: {workload}");
    Ok(())
}
