//! Where capabilities to blocks lie: empty slots of the own space, and nodes with more of them.

use alloc::vec::Vec;

use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, NODE_SLOTS};
use tench_sys::{Cap, CapAddress, CapNode, Error};

/// Empty slots.
pub struct Slots {
    free: Vec<u32>,
    /// Entry of the root for the next node.
    next_node: u32,
}

/// The root of the own space.
const ROOT: Cap<CapNode> = Cap::new(slot::CSPACE);
/// Entries of the root.
const ROOT_ENTRIES: u32 = 64;
/// The node with the regions, which `init` fills.
pub const REGIONS_NODE: u32 = 1;
/// When fewer slots than this are left, it is time for another node.
const RESERVE: usize = 4;

impl Slots {
    /// The slots of node 0 that are free from the beginning.
    pub fn new() -> Slots {
        // The lowest are taken first.
        Slots { free: (slot::FIRST_FREE.0..NODE_SLOTS as u32).rev().collect(), next_node: REGIONS_NODE + 1 }
    }

    /// Whether another node should be added now, while there are slots left to do it with.
    pub const fn wants_node(&self) -> bool {
        self.free.len() < RESERVE && self.next_node < ROOT_ENTRIES
    }

    /// Adds the slots of a node, whose capability lies in `node` and goes into the root.
    pub fn add_node(&mut self, node: CapAddress) -> Result<(), Error> {
        ROOT.install_node(self.next_node, Cap::new(node))?;
        let first = self.next_node << NODE_BITS;
        self.next_node += 1;
        self.free.push(node.0);
        self.free.extend((first..first + NODE_SLOTS as u32).rev());
        Ok(())
    }

    /// Takes an empty slot.
    pub fn take(&mut self) -> Option<CapAddress> {
        self.free.pop().map(CapAddress)
    }

    /// Gives a slot back, which is empty again.
    pub fn give_back(&mut self, slot: CapAddress) {
        self.free.push(slot.0);
    }
}
