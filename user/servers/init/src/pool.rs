//! Slots and memory for what `init` makes.
//!
//! Memory is taken from the smallest untyped objects of RAM first, above each one's watermark, so that large ones stay
//! whole for the memory server. The rest of one that was begun is divided and given away too ([`Pool::give_away`]).

use arrayvec::ArrayVec;
use tench_abi::boot::{BootInfo, MAX_UNTYPED, MemoryKind};
use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, NODE_SLOTS};
use tench_abi::{CapAddress, Kind};
use tench_init::memory::above;
use tench_loader::{LoadError, Resources};
use tench_sys::{Cap, CapNode, Error, OWN_CSPACE, Placement, Untyped};

use crate::failure::Failure;

/// Untyped RAM that the kernel handed over.
#[derive(Clone, Copy)]
struct RamBlock {
    untyped: Cap<Untyped>,
    size_bits: u32,
}

/// Source of init's slots and memory.
pub struct Pool {
    /// The untyped objects, in increasing order of size.
    blocks: ArrayVec<RamBlock, MAX_UNTYPED>,
    /// The one in use.
    current: usize,
    /// The next slot, and one past the last of this node.
    next: u32,
    end: u32,
    /// An empty slot in which the next node is made.
    spare: CapAddress,
    /// Entry of the root for the next node.
    next_node: u32,
}

impl Pool {
    /// Returns a pool of everything that the kernel handed over.
    pub fn new(info: &BootInfo) -> Pool {
        let count = (info.untyped_count as usize).min(MAX_UNTYPED);
        let ram = info.untyped.iter().take(count).enumerate().filter(|(_, one)| one.kind == MemoryKind::Ram as u32);
        let mut blocks: ArrayVec<RamBlock, MAX_UNTYPED> =
            ram.map(|(n, one)| RamBlock { untyped: untyped_capability(n), size_bits: one.size_bits }).collect();
        blocks.sort_unstable_by_key(|block| block.size_bits);
        Pool {
            blocks,
            current: 0,
            next: slot::BOOT_UNTYPED.0 + count as u32,
            end: slot::BOOT_OBJECTS.0,
            spare: slot::FIRST_FREE,
            next_node: 1,
        }
    }

    /// Makes sure that `count` slots can be taken without allocating memory.
    pub fn reserve_slots(&mut self, count: u32) -> Result<(), LoadError> {
        if self.end - self.next < count { self.add_node() } else { Ok(()) }
    }

    /// Continues in a new node. Slots left in the old one are not used any more.
    fn add_node(&mut self) -> Result<(), LoadError> {
        let spare = self.spare;
        self.make(Kind::CapNode, u64::from(NODE_BITS), spare)?;
        while let Err(error) = OWN_CSPACE_ROOT.install_node(self.next_node, Cap::new(spare)) {
            // The kernel may have put nodes of its own into the root.
            if error != Error::SlotOccupied {
                return Err(error.into());
            }
            self.next_node += 1;
        }
        self.next = self.next_node << NODE_BITS;
        self.end = self.next + NODE_SLOTS as u32;
        self.next_node += 1;
        Ok(())
    }

    /// Gives all remaining memory to the process with this CSpace, as untyped capabilities in its node 1.
    pub fn give_away(&mut self, cspace: Cap<CapNode>) -> Result<(), Failure> {
        let failed = |error| Failure::Kernel("giving memory to the memory server", error);
        let loading = |error| Failure::Load("giving memory to the memory server", error);
        let spare = self.spare;
        self.make(Kind::CapNode, u64::from(NODE_BITS), spare).map_err(loading)?;
        cspace.install_node(1, Cap::new(spare)).map_err(failed)?;

        let mut slots = (0..NODE_SLOTS as u32).map(|n| CapAddress::new(1, n));
        let mut next = || slots.next().ok_or(Failure::TooMuch("mem"));
        // The largest goes first: if there are too many, the smallest are lost.
        for block in self.blocks.iter().rev() {
            let watermark = block.untyped.query().map_err(failed)?.watermark;
            if watermark == 0 {
                cspace.move_from(next()?, OWN_CSPACE, block.untyped.address()).map_err(failed)?;
                continue;
            }
            for part in above(watermark, block.size_bits) {
                let (bits, placement) = (u64::from(part.size_bits), Placement::At(part.offset));
                block.untyped.retype_many(Kind::Untyped, bits, 1, placement, cspace, next()?).map_err(failed)?;
            }
        }
        self.blocks.clear();
        Ok(())
    }
}

/// The root of init's CSpace, by its capability: operations on nodes of the root name it.
const OWN_CSPACE_ROOT: Cap<CapNode> = Cap::new(slot::CSPACE);

/// Returns the capability to the untyped with this number in the boot information.
pub const fn untyped_capability(number: usize) -> Cap<Untyped> {
    Cap::new(CapAddress(slot::BOOT_UNTYPED.0 + number as u32))
}

impl Resources for Pool {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        self.reserve_slots(1)?;
        self.next += 1;
        Ok(CapAddress(self.next - 1))
    }

    fn make(&mut self, kind: Kind, size: u64, slot: CapAddress) -> Result<(), LoadError> {
        while let Some(block) = self.blocks.get(self.current) {
            match block.untyped.retype_many(kind, size, 1, Placement::Watermark, OWN_CSPACE, slot) {
                Ok(_) => return Ok(()),
                Err(Error::OutOfMemory) => self.current += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Err(LoadError::OutOfMemory)
    }
}
