//! Slots and memory of one process. The memory is on the process's own account at the memory server.

use alloc::vec::Vec;

use tench::memory;
use tench_abi::{CapAddress, Kind};
use tench_loader::{LoadError, Resources};
use tench_mem_client::Mem;
use tench_mem_client::protocol::Error as MemoryError;
use tench_protocol::Failure;
use tench_sys::{Cap, Error, OWN_SPACE, Place, Untyped};

/// Log2 of the pieces of which small objects are made: enough for those of a usual process.
const CHUNK_BITS: u32 = 17;
/// Objects of at least this size (log2) get a block of their own, so that none of it is lost.
const LARGE_BITS: u32 = 15;

/// What a process takes from this server and from the memory server.
pub struct ProcessMemory {
    pid: u64,
    mem: Mem,
    /// The piece from which small objects are made.
    chunk: Option<Cap<Untyped>>,
    /// Slots of this server with capabilities to the process's objects.
    slots: Vec<CapAddress>,
}

impl ProcessMemory {
    /// Nothing yet. `mem` must be the capability without a badge.
    pub const fn new(pid: u64, mem: Mem) -> ProcessMemory {
        ProcessMemory { pid, mem, chunk: None, slots: Vec::new() }
    }

    /// A block of memory of the process.
    fn block(&mut self, size_bits: u32) -> Result<Cap<Untyped>, LoadError> {
        let slot = self.slot()?;
        match self.mem.allocate_for(self.pid, size_bits, slot) {
            Ok(block) => Ok(block.untyped),
            Err(Failure::Refused(
                MemoryError::OutOfMemory | MemoryError::QuotaExceeded | MemoryError::TooManyBlocks,
            )) => Err(LoadError::OutOfMemory),
            Err(Failure::Lost(error)) => Err(LoadError::Kernel(error)),
            Err(_) => Err(LoadError::Kernel(Error::InvalidArgument)),
        }
    }

    /// Takes everything back: all memory of the process, and all objects made of it, are gone afterwards.
    pub fn close(self) {
        // Without a memory server nothing can be taken back, and `init` is about to stop the machine.
        let _ = self.mem.close_account(self.pid);
        for slot in self.slots {
            // Everything in them was made of the memory that is gone; deleting what is not there is an error to ignore.
            let _ = OWN_SPACE.delete_at(slot);
            memory::free_slot(slot);
        }
    }
}

impl Resources for ProcessMemory {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        self.slots.try_reserve(1).map_err(|_| LoadError::OutOfMemory)?;
        let slot = memory::take_slot().map_err(|_| LoadError::OutOfMemory)?;
        self.slots.push(slot);
        Ok(slot)
    }

    fn make(&mut self, kind: Kind, size: u64, slot: CapAddress) -> Result<(), LoadError> {
        let bits = kind.object_bits(size).ok_or(Error::InvalidArgument)?;
        let retype =
            |untyped: Cap<Untyped>| untyped.retype_many(kind, size, 1, Place::Watermark, OWN_SPACE, slot).map(drop);
        if bits >= LARGE_BITS {
            return Ok(retype(self.block(bits)?)?);
        }
        if let Some(chunk) = self.chunk {
            match retype(chunk) {
                Err(Error::OutOfMemory) => {}
                done => return Ok(done?),
            }
        }
        let chunk = self.block(CHUNK_BITS)?;
        self.chunk = Some(chunk);
        Ok(retype(chunk)?)
    }
}
