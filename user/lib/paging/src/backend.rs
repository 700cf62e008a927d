//! The backend, which executes the decisions of this library.

use tench_abi::CapAddress;
use tench_abi::memory::MapFlags;

/// An object that the backend made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Capability to the object.
    pub cap: CapAddress,
    /// Data that the backend needs when the object is destroyed, such as the origin of its memory.
    pub token: [u64; 2],
}

impl Object {
    pub(crate) const NONE: Object = Object { cap: CapAddress::NULL, token: [0; 2] };
}

/// Neighbouring entries of one table that are to map neighbouring parts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The frame.
    pub frame: CapAddress,
    /// Offset in the frame in bytes.
    pub offset: u64,
    /// The page table.
    pub table: CapAddress,
    /// First entry.
    pub first: u16,
    /// Number of entries, 1 to 512.
    pub count: u16,
    /// Rights and attributes.
    pub flags: MapFlags,
    /// Slot for the mapping's capability.
    pub slot: CapAddress,
}

/// A backend makes objects, changes page tables, and finds memory for the metadata.
///
/// A call that fails has changed nothing. No call may use the [`Paging`](crate::Paging) that makes it, so growing the
/// metadata cannot recurse.
pub trait Backend {
    /// Reason why a call failed.
    type Error;

    /// Makes a frame of `1 << bits` zeroed bytes.
    fn make_frame(&mut self, bits: u8) -> Result<Object, Self::Error>;

    /// Makes an empty page table of `level` (1 to 3).
    fn make_table(&mut self, level: u8) -> Result<Object, Self::Error>;

    /// Destroys a frame or a table that is no longer in use. If the kernel cannot delete it, the backend has to
    /// remember it.
    fn destroy(&mut self, object: Object);

    /// Installs a table in an entry of its parent.
    fn install(&mut self, table: CapAddress, parent: CapAddress, entry: u16) -> Result<(), Self::Error>;

    /// Takes a slot for a mapping.
    fn take_slot(&mut self) -> Result<CapAddress, Self::Error>;

    /// Frees an empty slot.
    fn give_slot(&mut self, slot: CapAddress);

    /// Maps a run.
    fn map(&mut self, run: &Run) -> Result<(), Self::Error>;

    /// Changes the rights of a mapping, at most to those with which it was made.
    fn protect(&mut self, mapping: CapAddress, flags: MapFlags) -> Result<(), Self::Error>;

    /// Unmaps a run by deleting its mapping. The slot stays taken, and is empty.
    fn unmap(&mut self, mapping: CapAddress) -> Result<(), Self::Error>;

    /// Returns memory for `count` more nodes of metadata, which stays for ever and never faults.
    fn grow<T: Copy + Default + 'static>(&mut self, count: usize) -> Option<&'static mut [T]>;
}
