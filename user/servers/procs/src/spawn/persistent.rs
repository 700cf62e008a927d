//! Persistent state: memory and slots that outlive a server and are given to its successor.

use alloc::vec::Vec;

use tench::memory::{self, Made};
use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_abi::object::NODE_BITS;
use tench_loader::Process;
use tench_sys::{CapNode, Error as KernelError, Frame};

/// A server's persistent state.
pub struct PersistentState {
    memory: Made<Frame>,
    /// Capability nodes.
    nodes: Vec<Made<CapNode>>,
}

impl PersistentState {
    /// Allocates this many bytes of memory and nodes of slots; without memory there are no slots either.
    pub fn allocate(bytes: u64, nodes: u32) -> Result<Option<PersistentState>, memory::Error> {
        if bytes == 0 {
            return Ok(None);
        }
        let memory = memory::make::<Frame>(u64::from(bytes.ilog2()))?;
        let make = |_| memory::make::<CapNode>(u64::from(NODE_BITS));
        Ok(Some(PersistentState { memory, nodes: (0..nodes).map(make).collect::<Result<_, _>>()? }))
    }

    /// Gives a process the state.
    pub(super) fn give_to(&self, process: &Process) -> Result<(), KernelError> {
        process.give(slot::KEPT_MEMORY, self.memory.cap())?;
        for (number, node) in (0..).zip(&self.nodes) {
            process.give(CapAddress(slot::KEPT_CAPABILITIES.0 + number), node.cap())?;
        }
        Ok(())
    }
}
