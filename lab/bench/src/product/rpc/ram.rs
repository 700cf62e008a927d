//! Measurement of 7,000 capabilities to memory: R0's figure 16.
//!
//! **Remote** is `give` of the memory server. **Local** is what that method does, done in this process with a stock of
//! its own: the memory server's tables (`tench_mem::ledger`) finds a block, an untyped is made of it for the tables, to
//! be revoked one day, and of that another one for the caller. Slots for the caller's capabilities are taken
//! beforehand, in both cases.

use alloc::vec;
use alloc::vec::Vec;
use alloc::{format, string::String};

use tench::abi::Kind;
use tench::mem::Mem;
use tench::memory;
use tench::println;
use tench::sys::{Cap, CapAddress, OWN_CSPACE, Placement, Untyped};
use tench::time::instructions;
use tench_extents::Node;
use tench_mem::accounts::Account;
use tench_mem::blocks::Entry;
use tench_mem::ledger::{Ledger, Region, Request};

use super::{Costs, problem};
use crate::support::{figure, mean};

/// Number of capabilities.
const COUNT: usize = 7000;
/// Log2 of the size of a block.
const BLOCK_BITS: u64 = 12;
/// Log2 of the size of the stock, which holds all of them.
const STOCK_BITS: u32 = 25;
/// Number of capabilities for a point of the curve.
const RUN: usize = 50;
/// Start address of the stock in the tables. Its physical address is not revealed to this program.
const START: u64 = 1 << 40;
/// Number of this process in the tables.
const HOLDER: u64 = 1;

/// Tables of memory that this process has.
struct Stock {
    ledger: Ledger<Vec<Node>, Vec<Entry>, Vec<Account>>,
    untyped: Cap<Untyped>,
    /// Number of the stock's block at the memory server.
    number: u16,
    /// Slots by block number.
    slots: Vec<CapAddress>,
}

impl Stock {
    fn new() -> Result<Stock, String> {
        let slot = memory::take_slot().map_err(problem("a slot"))?;
        let block = Mem::STANDARD.allocate(STOCK_BITS, slot).map_err(problem("a stock"))?;
        let (extents, entries) = (vec![Node::EMPTY; 3 * COUNT], vec![Entry::EMPTY; COUNT + 1]);
        let mut ledger = Ledger::new(extents, entries, vec![Account::EMPTY; 8]);
        let region = Region { address: START, size_bits: STOCK_BITS, slot };
        ledger.add(region).map_err(problem("the ledger"))?;
        Ok(Stock { ledger, untyped: block.untyped, number: block.number, slots: slots(COUNT)? })
    }

    /// Allocates a block; its untyped goes to the slot.
    fn give(&mut self, number: usize, into: CapAddress) -> Result<(), String> {
        let kept = self.slots[number];
        let request = Request::anywhere(HOLDER, HOLDER, BLOCK_BITS);
        let block = self.ledger.allocate(&request, CapAddress(number as u32)).map_err(problem("a block"))?;
        let placement = Placement::At(block.address - START);
        self.untyped
            .retype_many(Kind::Untyped, BLOCK_BITS, 1, placement, OWN_CSPACE, kept)
            .and_then(|_| {
                Cap::<Untyped>::new(kept).retype_many(Kind::Untyped, BLOCK_BITS, 1, Placement::At(0), OWN_CSPACE, into)
            })
            .map(drop)
            .map_err(problem("an untyped"))
    }

    /// Gives everything back.
    fn close(self) -> Result<(), String> {
        // Everything made of the stock is deleted with it.
        OWN_CSPACE.revoke_at(self.untyped.address()).map_err(problem("revoking"))?;
        Mem::STANDARD.free(self.number).map_err(problem("freeing the stock"))?;
        self.slots.into_iter().for_each(memory::free_slot);
        memory::free_slot(self.untyped.address());
        Ok(())
    }
}

/// Returns empty slots.
fn slots(count: usize) -> Result<Vec<CapAddress>, String> {
    (0..count).map(|_| memory::take_slot().map_err(problem("a slot"))).collect()
}

/// Measures each request, and prints figures and the curve by number.
fn measure(key: &str, reading: u64, mut give: impl FnMut(usize) -> Result<(), String>) -> Result<u64, String> {
    let mut costs = Vec::with_capacity(COUNT);
    for number in 0..COUNT {
        let before = instructions();
        let given = give(number);
        costs.push(instructions() - before - reading);
        given?;
    }
    for (index, run) in costs.chunks(RUN).enumerate() {
        println!("sample: {key} {} {}", index * RUN + RUN / 2, mean(run));
    }
    let costs = Costs::new(costs);
    figure(key, costs.within(500));
    figure(&format!("{key}_99"), costs.within(990));
    figure(&format!("{key}_worst"), costs.within(1000));
    Ok(costs.within(500))
}

/// Measures both.
pub fn run(reading: u64) -> Result<(), String> {
    let wanted = slots(COUNT)?;
    let mut stock = Stock::new()?;
    let local = measure("ram_local", reading, |number| stock.give(number, wanted[number]))?;
    stock.close()?;
    let mut blocks = Vec::with_capacity(COUNT);
    let remote = measure("ram_remote", reading, |number| {
        let block = Mem::STANDARD.allocate(BLOCK_BITS as u32, wanted[number]).map_err(problem("a block"))?;
        blocks.push(block.number);
        Ok(())
    })?;
    for block in blocks {
        Mem::STANDARD.free(block).map_err(problem("freeing"))?;
    }
    wanted.into_iter().for_each(memory::free_slot);
    figure("ram_percent", remote * 100 / local.max(1));
    Ok(())
}
