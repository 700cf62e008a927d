//! The memory server's ledger: the blocks, their holders, and the free memory.
//!
//! ```text
//! store       ledger, slots and capabilities together, and their growth
//! ledger      the ledger of free and used memory; its parts: blocks, accounts, families
//! machine     the kernel as the store uses it
//! view        what a client may see and choose
//! ```
//! This library makes no system call, so all of it is tested on the host, with a kernel that fails whichever call the
//! test chooses.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

/// Maximum number of bundles of objects.
pub const MAX_BUNDLES: usize = 2048;
/// Maximum number of descriptors of all bundles together.
pub const MAX_PARTS: usize = 4096;
/// Bytes of heap, sufficient for that many bundles, the slabs, a recorded trace and the table of families.
pub const ARENA_SIZE: usize = 1 << 20;

pub mod accounts;
pub mod blocks;
pub mod families;
pub mod ledger;
pub mod machine;
pub mod store;
pub mod view;
