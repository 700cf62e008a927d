//! The kernel, as the ledger's store uses it.

use tench_abi::layout::slot;
use tench_mem::machine::{Machine, Step, Use};
use tench_sys::{Cap, CapAddress, CapNode, Error, Kind, OWN_CSPACE, Placement, Untyped};

use crate::own::{Grown, Tables};

/// Root of the server's own CSpace.
const ROOT: Cap<CapNode> = Cap::new(slot::CSPACE);

/// The kernel.
pub struct Kernel {
    /// The arrays' page tables, once they exist.
    tables: Option<Tables>,
}

impl Kernel {
    /// Returns the kernel; arrays cannot grow yet.
    pub const fn new() -> Kernel {
        Kernel { tables: None }
    }
}

impl Machine for Kernel {
    type Array<T: Copy> = Grown<T>;

    fn prepare(&mut self, upper: CapAddress, middle: CapAddress) -> Result<(), Error> {
        self.tables = Some(Tables::new(Cap::new(upper), Cap::new(middle))?);
        Ok(())
    }

    fn array<T: Copy>(&mut self, purpose: Use) -> Grown<T> {
        Grown::new(purpose)
    }

    fn wants_table<T: Copy>(&self, array: &Grown<T>) -> bool {
        array.wants_table()
    }

    fn grow<T: Copy>(&mut self, array: &mut Grown<T>, step: &Step, fill: T) -> Result<(), Error> {
        array.grow(self.tables.ok_or(Error::NotMapped)?, step, fill)
    }

    fn retype(
        &mut self,
        untyped: CapAddress,
        kind: Kind,
        size: u64,
        offset: u64,
        slot: CapAddress,
    ) -> Result<(), Error> {
        Cap::<Untyped>::new(untyped).retype_many(kind, size, 1, Placement::At(offset), OWN_CSPACE, slot).map(drop)
    }

    fn split(&mut self, untyped: CapAddress, upper: CapAddress) -> Result<(), Error> {
        Cap::<Untyped>::new(untyped).split(upper).map(drop)
    }

    fn take_in(&mut self, from: CapAddress, slot: CapAddress) -> Result<(), Error> {
        OWN_CSPACE.move_from(slot, OWN_CSPACE, from)
    }

    fn revoke(&mut self, slot: CapAddress, preemption_points: u64) -> Result<u64, Error> {
        OWN_CSPACE.revoke_part_at(slot, preemption_points)
    }

    fn delete(&mut self, slot: CapAddress) -> Result<(), Error> {
        OWN_CSPACE.delete_at(slot).map(drop)
    }

    fn install_node(&mut self, index: u32, node: CapAddress) -> Result<(), Error> {
        ROOT.install_node(index, Cap::new(node))
    }

    fn remove_node(&mut self, index: u32, slot: CapAddress) -> Result<(), Error> {
        ROOT.remove_node(index, slot).map(drop)
    }
}
