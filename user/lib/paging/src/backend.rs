//! What carries out the decisions of this library.

use tench_abi::CapAddress;
use tench_abi::memory::MapFlags;

/// An object that the backend made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Its capability.
    pub cap: CapAddress,
    /// What the backend needs to know when the object goes: where its memory came from, say.
    pub token: [u64; 2],
}

impl Object {
    pub(crate) const NONE: Object = Object { cap: CapAddress::NULL, token: [0; 2] };
}

/// Neighbouring entries of one table that are to show neighbouring parts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The frame.
    pub frame: CapAddress,
    /// Where in it, in bytes.
    pub offset: u64,
    /// The table.
    pub table: CapAddress,
    /// First entry.
    pub first: u16,
    /// Number of entries, 1 to 512.
    pub count: u16,
    /// Rights and attributes.
    pub flags: MapFlags,
    /// Where the mapping's capability goes.
    pub slot: CapAddress,
}

/// Makes objects, changes page tables, and finds memory for the books.
///
/// A call that fails has changed nothing. No call may use the [`Paging`](crate::Paging) that makes it: so a refill of
/// the books cannot begin another one.
pub trait Backend {
    /// Why a call failed.
    type Error;

    /// Makes a frame of `1 << bits` bytes, which are zero.
    fn make_frame(&mut self, bits: u8) -> Result<Object, Self::Error>;

    /// Makes an empty page table of `level` (1 to 3).
    fn make_table(&mut self, level: u8) -> Result<Object, Self::Error>;

    /// Destroys a frame or a table, which is in use nowhere any more. If the kernel does not let it go, it is the
    /// backend's to remember.
    fn destroy(&mut self, object: Object);

    /// Hangs a table into an entry of its parent.
    fn hang(&mut self, table: CapAddress, parent: CapAddress, entry: u16) -> Result<(), Self::Error>;

    /// Takes a slot for a mapping.
    fn take_slot(&mut self) -> Result<CapAddress, Self::Error>;

    /// Gives a slot back, which is empty.
    fn give_slot(&mut self, slot: CapAddress);

    /// Maps.
    fn map(&mut self, run: &Run) -> Result<(), Self::Error>;

    /// Gives a mapping other rights, at most those that it was made with.
    fn protect(&mut self, mapping: CapAddress, flags: MapFlags) -> Result<(), Self::Error>;

    /// Unmaps: deletes a mapping. Its slot stays taken, and is empty.
    fn unmap(&mut self, mapping: CapAddress) -> Result<(), Self::Error>;

    /// Memory for `count` more nodes of the books, which stays for ever and is never the cause of a fault.
    fn grow<T: Copy + Default + 'static>(&mut self, count: usize) -> Option<&'static mut [T]>;
}
