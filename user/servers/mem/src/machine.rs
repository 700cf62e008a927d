//! What the server asks of the kernel, so that the tests can put another one in its place: one that keeps no promise.

use tench_abi::{CapAddress, Error, Kind};

/// Log2 of the bytes by which an array grows.
pub const STEP_BITS: u32 = 16;

/// What a step of growing needs, made before.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// A frame of 2^[`STEP_BITS`] bytes.
    pub frame: CapAddress,
    /// A table of level 3, if the array [wants](Machine::wants_table) one.
    pub table: Option<CapAddress>,
    /// An empty slot for the mapping.
    pub mapping: CapAddress,
}

/// Which array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// What is free and what is not.
    Extents,
    /// What is known of blocks.
    Blocks,
    /// Who has how much.
    Accounts,
}

/// The kernel. Slots are those of the server's own space. What is refused has changed nothing, but `Unfinished`
/// something.
pub trait Machine {
    /// An array that grows in place.
    type Array<T: Copy>: AsRef<[T]> + AsMut<[T]>;

    /// Prepares addresses for all arrays, with empty tables of levels 1 and 2. Once.
    fn prepare(&mut self, upper: CapAddress, middle: CapAddress) -> Result<(), Error>;

    /// An empty array. One for each use.
    fn array<T: Copy>(&mut self, purpose: Use) -> Self::Array<T>;

    /// Whether the next step needs a table of its own.
    fn wants_table<T: Copy>(&self, array: &Self::Array<T>) -> bool;

    /// Adds one more step to an array, and fills it.
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

    /// Divides untyped memory, with the upper half in another slot.
    fn split(&mut self, untyped: CapAddress, upper: CapAddress) -> Result<(), Error>;

    /// Moves a capability that came from elsewhere to an empty slot.
    fn take_in(&mut self, from: CapAddress, slot: CapAddress) -> Result<(), Error>;

    /// Deletes everything that was made of what lies in a slot, or as much as takes so many windows; then `Unfinished`
    /// asks for the next part. Answers how many windows it took.
    fn revoke(&mut self, slot: CapAddress, windows: u64) -> Result<u64, Error>;

    /// Deletes what lies in a slot.
    fn delete(&mut self, slot: CapAddress) -> Result<(), Error>;

    /// Moves a node of slots into an entry of the root.
    fn install_node(&mut self, index: u32, node: CapAddress) -> Result<(), Error>;

    /// Moves the node in an entry of the root, whose slots are empty, to a slot.
    fn remove_node(&mut self, index: u32, slot: CapAddress) -> Result<(), Error>;
}
