//! Remote capabilities as one kernel sees them. For monitors: the holder of the kernel's capability is responsible for
//! what the other cores do.

use tench_abi::{CapAddress, Error, Kind, Operation, Rights};

use crate::cap::{Cap, CapNode};
use crate::device::Kernel;
use crate::memory::{Frame, Untyped};
use crate::raw;

/// References to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holders {
    /// Set if the object is referenced otherwise than by the named capability: by other capabilities (for a badged one,
    /// those with the same badge), by mappings, or by objects made from it.
    pub others: bool,
    /// Set if the named capability is exported: there are copies on other cores.
    pub exported: bool,
    /// Revoke requested: whether somebody tried to delete it and failed because of its copies on other cores.
    pub revoke_requested: bool,
    /// The object belongs to another core.
    pub borrowed: bool,
    /// Physical address of an endpoint or a notification, which identifies it; otherwise 0.
    pub physical: u64,
}

impl Cap<Kernel> {
    /// Marks the capability in a slot as exported, on behalf of its copies on other cores. Rights: `WRITE`.
    /// Errors: `WrongType`, `Lent` (there is one already), `Busy` (something was made from it), `Borrowed`,
    /// `DeviceMemory`.
    pub fn export(self, cspace: Cap<CapNode>, address: CapAddress) -> Result<(), Error> {
        // SAFETY: no memory of the program changes; the holder of this capability is responsible for what others will
        // write there.
        unsafe { raw::call1(Operation::KernelExport, self.raw(), cspace.raw(), u64::from(address.0)) }.done()
    }

    /// Makes an exported capability an ordinary one again. Rights: `WRITE`. Errors: `NotExported`, `Busy` (part of it
    /// was imported back).
    pub fn unexport(self, cspace: Cap<CapNode>, address: CapAddress) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call1(Operation::KernelUnexport, self.raw(), cspace.raw(), u64::from(address.0)) }.done()
    }

    /// Makes the capability to a frame of another core, of 2ⁿ bytes (n = `size_bits`), in an empty slot of the own
    /// CSpace. Rights: `WRITE`.
    /// Errors: `Overlap` (with memory of this kernel), `Misaligned`, `InvalidArgument`, `SlotOccupied`, `NoSuchSlot`.
    pub fn import_frame(
        self,
        physical: u64,
        size_bits: u64,
        rights: Rights,
        slot: CapAddress,
    ) -> Result<Cap<Frame>, Error> {
        self.import(Kind::Frame, physical, size_bits, rights, slot)?;
        Ok(Cap::new(slot))
    }

    /// As [`import_frame`](Self::import_frame), for untyped memory with all rights.
    pub fn import_untyped(self, physical: u64, size_bits: u64, slot: CapAddress) -> Result<Cap<Untyped>, Error> {
        self.import(Kind::Untyped, physical, size_bits, Rights::all(), slot)?;
        Ok(Cap::new(slot))
    }

    fn import(self, kind: Kind, physical: u64, bits: u64, rights: Rights, slot: CapAddress) -> Result<(), Error> {
        let (kind, rights, slot) = (kind as u64, u64::from(rights.bits()), u64::from(slot.0));
        // SAFETY: the kernel refuses memory that is in use here; the holder of this capability guarantees that the
        // memory may be used.
        unsafe { raw::call5(Operation::KernelImport, self.raw(), kind, physical, bits, rights, 0, slot) }.done()
    }

    /// Returns how the object in a slot is referenced. Rights: `WRITE`.
    pub fn holders(self, cspace: Cap<CapNode>, address: CapAddress) -> Result<Holders, Error> {
        // SAFETY: no memory of the program changes.
        let result =
            unsafe { raw::call1(Operation::KernelHolders, self.raw(), cspace.raw(), u64::from(address.0)) }.check()?;
        let [exported, borrowed, physical, ..] = result.words;
        Ok(Holders {
            others: result.first != 0,
            exported: exported != 0,
            revoke_requested: exported > 1,
            borrowed: borrowed != 0,
            physical,
        })
    }
}
