//! Slots and memory of one process. The memory is charged to the process's own account at the memory server.

use tench::memory;
use tench_abi::CapAddress;
use tench_loader::{LoadError, Objects, Source};
use tench_mem_interface::Mem;
use tench_mem_interface::protocol::Error as MemoryError;
use tench_protocol::Failure;
use tench_quota::Client;
use tench_sys::{Cap, Error, Untyped};

/// Slots and memory that a process takes from this server and from the memory server.
pub type ProcessMemory = Objects<Account>;

/// A process's account at the memory server.
pub struct Account {
    /// The process and its family.
    pub client: Client,
    /// The unbadged capability to the memory server.
    pub mem: Mem,
}

impl Source for Account {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        memory::take_slot().map_err(|_| LoadError::OutOfMemory)
    }

    fn free_slot(&mut self, slot: CapAddress) {
        memory::free_slot(slot);
    }

    fn block(&mut self, size_bits: u32, slot: CapAddress) -> Result<Cap<Untyped>, LoadError> {
        match self.mem.allocate_for(self.client, size_bits, slot) {
            Ok(block) => Ok(block.untyped),
            Err(Failure::Refused(
                MemoryError::OutOfMemory | MemoryError::QuotaExceeded | MemoryError::TooManyBlocks,
            )) => Err(LoadError::OutOfMemory),
            Err(Failure::Lost(error)) => Err(LoadError::Kernel(error)),
            Err(_) => Err(LoadError::Kernel(Error::InvalidArgument)),
        }
    }

    fn take_back(&mut self) -> bool {
        // Without a memory server nothing can be freed, and `init` is about to stop the machine.
        self.mem.close_account_part(self.client.process) != Err(Failure::Refused(MemoryError::Unfinished))
    }
}
