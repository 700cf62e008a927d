//! Capabilities that left their core, as one kernel sees them. For monitors: who has the kernel's capability answers
//! for what the other cores do.

use tench_abi::{CapAddress, Error, Kind, Operation, Rights};

use crate::cap::{Cap, CapNode};
use crate::device::Kernel;
use crate::memory::{Frame, Untyped};
use crate::raw;

/// Who has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holders {
    /// Others than the capability asked about: capabilities (of one with a badge, those with this badge), mappings,
    /// what was made of it.
    pub others: bool,
    /// The capability stands for copies on other cores.
    pub exported: bool,
    /// Somebody wanted to delete it, and was told that there are such copies.
    pub wanted: bool,
    /// The object belongs to another core.
    pub borrowed: bool,
    /// Physical address of an endpoint or a notification, by which it is told from others; otherwise 0.
    pub place: u64,
}

impl Cap<Kernel> {
    /// Makes the capability in a slot the stand-in of copies on other cores. Rights: `WRITE`.
    /// Errors: `WrongType`, `Lent` (there is one), `Busy` (something was made of it), `Borrowed`, `DeviceMemory`.
    pub fn export(self, space: Cap<CapNode>, address: CapAddress) -> Result<(), Error> {
        // SAFETY: no memory of the program changes; that others will write it is the contract of whoever has this
        // capability.
        unsafe { raw::call1(Operation::KernelExport, self.raw(), space.raw(), u64::from(address.0)) }.done()
    }

    /// Makes it an ordinary capability again. Rights: `WRITE`. Errors: `NotExported`, `Busy` (part of it was borrowed
    /// back).
    pub fn unexport(self, space: Cap<CapNode>, address: CapAddress) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call1(Operation::KernelUnexport, self.raw(), space.raw(), u64::from(address.0)) }.done()
    }

    /// Makes the capability to a frame of another core's, of 2ⁿ bytes, in an empty slot of the own space. Rights:
    /// `WRITE`.
    /// Errors: `Overlap` (with memory of this kernel's), `Misaligned`, `InvalidArgument`, `SlotOccupied`, `NoSuchSlot`.
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

    /// The same for untyped memory.
    pub fn import_untyped(self, physical: u64, size_bits: u64, slot: CapAddress) -> Result<Cap<Untyped>, Error> {
        self.import(Kind::Untyped, physical, size_bits, Rights::all(), slot)?;
        Ok(Cap::new(slot))
    }

    fn import(self, kind: Kind, physical: u64, bits: u64, rights: Rights, slot: CapAddress) -> Result<(), Error> {
        let (kind, rights, slot) = (kind as u64, u64::from(rights.bits()), u64::from(slot.0));
        // SAFETY: the kernel refuses memory that anybody has here; that it may be used is the contract of whoever has
        // this capability.
        unsafe { raw::call5(Operation::KernelImport, self.raw(), kind, physical, bits, rights, 0, slot) }.done()
    }

    /// Whether anybody else has what lies in a slot. Rights: `WRITE`.
    pub fn holders(self, space: Cap<CapNode>, address: CapAddress) -> Result<Holders, Error> {
        // SAFETY: no memory of the program changes.
        let answer =
            unsafe { raw::call1(Operation::KernelHolders, self.raw(), space.raw(), u64::from(address.0)) }.check()?;
        let [exported, borrowed, place, ..] = answer.words;
        Ok(Holders {
            others: answer.first != 0,
            exported: exported != 0,
            wanted: exported > 1,
            borrowed: borrowed != 0,
            place,
        })
    }
}
