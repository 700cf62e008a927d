//! Typed capability addresses, and the operations on CSpaces.

use core::fmt;
use core::marker::PhantomData;

use tench_abi::{CapAddress, Error, Kind, Operation, Rights};

use crate::device::Kernel;
use crate::raw;

/// A kind of object that a [`Cap`] can name.
pub trait Object {
    /// The kind's number in the interface.
    const KIND: Kind;
}

/// Defines the types that name the kinds of capabilities.
macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {}

        impl $crate::cap::Object for $name {
            const KIND: tench_abi::Kind = tench_abi::Kind::$name;
        })*
    };
}
pub(crate) use objects;

objects! {
    /// The content of any slot, when the kind does not matter.
    Null;
    /// A capability node: the root of a CSpace, or a second-level node of 256 slots.
    CapNode;
}

/// The address of a capability to a `T` in the caller's own CSpace. See the crate's documentation.
pub struct Cap<T> {
    address: CapAddress,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Cap<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Cap<T> {}

impl<T> PartialEq for Cap<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for Cap<T> {}

impl<T> fmt::Debug for Cap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cap({})", self.address.0)
    }
}

impl<T> From<Cap<T>> for CapAddress {
    fn from(cap: Cap<T>) -> CapAddress {
        cap.address
    }
}

/// The caller's own CSpace, wherever the kernel takes a CSpace.
pub const OWN_CSPACE: Cap<CapNode> = Cap::new(CapAddress::NULL);

impl<T> Cap<T> {
    /// Returns the typed form of an address.
    pub const fn new(address: CapAddress) -> Cap<T> {
        Cap { address, kind: PhantomData }
    }

    /// Returns the address.
    pub const fn address(self) -> CapAddress {
        self.address
    }

    /// Returns the address as system calls take it.
    #[inline(always)]
    pub(crate) const fn raw(self) -> u64 {
        self.address.0 as u64
    }

    /// Copies the capability to an empty slot of the own CSpace.
    /// Errors: `NotCopyable`, `SlotOccupied`, `NoSuchSlot`.
    pub fn copy_to(self, destination: CapAddress) -> Result<Cap<T>, Error> {
        OWN_CSPACE.copy_from(destination, OWN_CSPACE, self.address)?;
        Ok(Cap::new(destination))
    }

    /// Copies the capability to an empty slot of the own CSpace, with fewer rights and, if its badge is 0, a badge.
    /// Errors: as [`copy_to`](Self::copy_to), and `InvalidArgument` for a badge on a badged capability.
    pub fn mint_to(self, destination: CapAddress, rights: Rights, badge: u64) -> Result<Cap<T>, Error> {
        OWN_CSPACE.mint_from(destination, OWN_CSPACE, self.address, rights, badge)?;
        Ok(Cap::new(destination))
    }

    /// Moves the capability to an empty slot of the own CSpace.
    /// Errors: `SlotOccupied`, `NoSuchSlot`.
    pub fn move_to(self, destination: CapAddress) -> Result<Cap<T>, Error> {
        OWN_CSPACE.move_from(destination, OWN_CSPACE, self.address)?;
        Ok(Cap::new(destination))
    }

    /// Deletes the capability; the last capability to an object deletes the object.
    pub fn delete(self) -> Result<Deleted, Error> {
        OWN_CSPACE.delete_at(self.address)
    }

    /// Deletes everything derived from the capability, and returns the number of capabilities deleted.
    pub fn revoke(self) -> Result<u64, Error> {
        OWN_CSPACE.revoke_at(self.address)
    }

    /// Returns a description of the capability in the slot.
    pub fn identify(self) -> Result<Identity, Error> {
        OWN_CSPACE.identify_at(self.address)
    }

    /// As [`identify`](Self::identify), with the physical address of memory. `kernel` needs the power `memory`.
    /// Errors: `MissingRights`.
    pub fn locate(self, kernel: Cap<Kernel>) -> Result<Identity, Error> {
        OWN_CSPACE.locate_at(kernel, self.address)
    }
}

/// Memory that became free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Physical address, if the caller may learn it; otherwise 0.
    pub address: u64,
    /// Log2 of the memory's size in bytes; 0 if the object had no memory of its own.
    pub size_bits: u32,
}

/// Effect of deleting a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The object's memory, if this was the last capability to it.
    pub freed: Option<Freed>,
}

/// Description of the capability in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Kind of the capability; `Null` for an empty slot.
    pub kind: Kind,
    /// Rights of the capability.
    pub rights: Rights,
    /// Log2 of the object's size in bytes.
    pub size_bits: u32,
    /// Badge of the capability.
    pub badge: u64,
    /// Physical address of memory, if the caller may learn it; number of an interrupt; otherwise 0.
    pub address: u64,
}

/// Operations on a CSpace, named by its root node ([`OWN_CSPACE`]: the caller's own). Addresses are in this CSpace.
impl Cap<CapNode> {
    /// Copies a capability of the CSpace `source` to an empty slot of this one.
    /// Rights: none on `source`, `WRITE` on the nodes. Errors: `NotCopyable`, `SlotOccupied`, `NoSuchSlot`.
    pub fn copy_from(self, to: CapAddress, source: Cap<CapNode>, from: CapAddress) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call2(Operation::Copy, source.raw(), u64::from(from.0), self.raw(), u64::from(to.0)) }.done()
    }

    /// As [`copy_from`](Self::copy_from), with fewer rights and, if the badge is 0, a badge.
    /// Errors: as there, and `InvalidArgument` for a badge on a badged capability or on a kind other than endpoint and
    /// notification.
    pub fn mint_from(
        self,
        to: CapAddress,
        source: Cap<CapNode>,
        from: CapAddress,
        rights: Rights,
        badge: u64,
    ) -> Result<(), Error> {
        let (from, to, rights) = (u64::from(from.0), u64::from(to.0), u64::from(rights.bits()));
        // SAFETY: no memory of the program changes.
        unsafe { raw::call4(Operation::Mint, source.raw(), from, self.raw(), to, rights, badge) }.done()
    }

    /// Moves a capability of the CSpace `source` to an empty slot of this one.
    /// Errors: `SlotOccupied`, `NoSuchSlot`.
    pub fn move_from(self, to: CapAddress, source: Cap<CapNode>, from: CapAddress) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call2(Operation::Move, source.raw(), u64::from(from.0), self.raw(), u64::from(to.0)) }.done()
    }

    /// Deletes the capability in a slot; the last capability to an object deletes the object.
    pub fn delete_at(self, address: CapAddress) -> Result<Deleted, Error> {
        self.delete_located_at(Cap::new(CapAddress::NULL), address)
    }

    /// As [`delete_at`](Self::delete_at), and also returns the address of the memory that became free. `kernel` needs
    /// the power `memory`.
    /// Errors: `MissingRights`.
    #[inline(always)]
    pub fn delete_located_at(self, kernel: Cap<Kernel>, address: CapAddress) -> Result<Deleted, Error> {
        // SAFETY: memory that this unmaps can no longer be accessed; an access ends the program.
        let result =
            unsafe { raw::call1(Operation::Delete, self.raw(), u64::from(address.0), kernel.raw()) }.check()?;
        let freed = Freed { address: result.words[0], size_bits: result.words[1] as u32 };
        Ok(Deleted { freed: (result.first != 0).then_some(freed) })
    }

    /// Deletes everything derived from the capability in a slot, and returns the number of capabilities deleted.
    pub fn revoke_at(self, address: CapAddress) -> Result<u64, Error> {
        // SAFETY: as for `delete_at`.
        Ok(unsafe { raw::call0(Operation::Revoke, self.raw(), u64::from(address.0)) }.check()?.first)
    }

    /// Deletes the capability in a slot, or as much of it as is possible within `preemption_points` preemption points.
    /// Fails with `Unfinished` if there is more to delete; then call again.
    pub fn delete_part_at(self, address: CapAddress, preemption_points: u64) -> Result<(), Error> {
        // SAFETY: as for `delete_at`.
        unsafe { raw::call1(Operation::DeletePart, self.raw(), u64::from(address.0), preemption_points) }.done()
    }

    /// Revokes the capability in a slot, or deletes as much of what is derived from it as is possible within
    /// `preemption_points` preemption points, and returns how many were passed. Fails with `Unfinished` if there is
    /// more to delete; then call again.
    pub fn revoke_part_at(self, address: CapAddress, preemption_points: u64) -> Result<u64, Error> {
        // SAFETY: as for `delete_at`.
        Ok(unsafe { raw::call1(Operation::RevokePart, self.raw(), u64::from(address.0), preemption_points) }
            .check()?
            .words[0])
    }

    /// Returns a description of the capability in a slot.
    pub fn identify_at(self, address: CapAddress) -> Result<Identity, Error> {
        self.locate_at(Cap::new(CapAddress::NULL), address)
    }

    /// As [`identify_at`](Self::identify_at), with the physical address of memory. `kernel` needs the power `memory`.
    /// Errors: `MissingRights`.
    #[inline(always)]
    pub fn locate_at(self, kernel: Cap<Kernel>, address: CapAddress) -> Result<Identity, Error> {
        // SAFETY: no memory of the program changes.
        let result =
            unsafe { raw::call1(Operation::Identify, self.raw(), u64::from(address.0), kernel.raw()) }.check()?;
        let [rights, size_bits, badge, address, ..] = result.words;
        Ok(Identity {
            kind: Kind::from_code(result.first).ok_or(Error::UnknownOperation)?,
            rights: Rights::from_bits_truncate(rights as u8),
            size_bits: size_bits as u32,
            badge,
            address,
        })
    }

    /// Moves the capability to a node of 256 slots into entry `index` of this root.
    /// Errors: `SlotOccupied`, `WrongType`.
    pub fn install_node(self, index: u32, node: Cap<CapNode>) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call1(Operation::NodeInstall, self.raw(), u64::from(index), node.raw()) }.done()
    }

    /// Moves the second-level node out of entry `index` of this root, to an empty slot of the own CSpace.
    /// Errors: `SlotOccupied`, `NoSuchSlot`.
    pub fn remove_node(self, index: u32, destination: CapAddress) -> Result<Cap<CapNode>, Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call1(Operation::NodeRemove, self.raw(), u64::from(index), u64::from(destination.0)) }.done()?;
        Ok(Cap::new(destination))
    }
}
