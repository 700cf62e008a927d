//! The kernel as the server uses it, behind a trait: the tests replace it by one that may refuse any call.

use tench_abi::{CapAddress, Error, Kind};

/// Log2 of the bytes by which an array grows.
pub const STEP_BITS: u32 = 16;

/// Objects for growing an array by one step, made beforehand.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// A frame of 2^[`STEP_BITS`] bytes.
    pub frame: CapAddress,
    /// A page table of level 3, if the array [needs](Machine::wants_table) one.
    pub table: Option<CapAddress>,
    /// An empty slot for the mapping.
    pub mapping: CapAddress,
}

/// Purpose of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The extents, free and used.
    Extents,
    /// The table of blocks.
    Blocks,
    /// The accounts.
    Accounts,
}

/// The kernel. Slots are those of the server's own CSpace. A call that fails has changed nothing, except with
/// `Unfinished`.
pub trait Machine {
    /// An array that grows in place.
    type Array<T: Copy>: AsRef<[T]> + AsMut<[T]>;

    /// Prepares the address ranges of all arrays, with empty page tables of levels 1 and 2. Called once.
    fn prepare(&mut self, upper: CapAddress, middle: CapAddress) -> Result<(), Error>;

    /// Returns an empty array. Called once for each use.
    fn array<T: Copy>(&mut self, purpose: Use) -> Self::Array<T>;

    /// Returns whether the next step needs a page table of its own.
    fn wants_table<T: Copy>(&self, array: &Self::Array<T>) -> bool;

    /// Grows an array by one step, and fills the new part.
    fn grow<T: Copy>(&mut self, array: &mut Self::Array<T>, step: &Step, fill: T) -> Result<(), Error>;

    /// Makes an object at an offset of untyped memory.
    fn retype(
        &mut self,
        untyped: CapAddress,
        kind: Kind,
        size: u64,
        offset: u64,
        slot: CapAddress,
    ) -> Result<(), Error>;

    /// Splits untyped memory; the upper half goes to another slot.
    fn split(&mut self, untyped: CapAddress, upper: CapAddress) -> Result<(), Error>;

    /// Moves a capability that came from a client to an empty slot.
    fn take_in(&mut self, from: CapAddress, slot: CapAddress) -> Result<(), Error>;

    /// Deletes everything derived from a slot's capability, or the part that takes at most `preemption_points`
    /// preemption points; then it fails with `Unfinished`, and has to be called again. Returns how many preemption
    /// points it took.
    fn revoke(&mut self, slot: CapAddress, preemption_points: u64) -> Result<u64, Error>;

    /// Deletes a slot's capability.
    fn delete(&mut self, slot: CapAddress) -> Result<(), Error>;

    /// Moves a capability node into an entry of the root.
    fn install_node(&mut self, index: u32, node: CapAddress) -> Result<(), Error>;

    /// Moves the node in an entry of the root, whose slots are empty, to a slot.
    fn remove_node(&mut self, index: u32, slot: CapAddress) -> Result<(), Error>;
}
