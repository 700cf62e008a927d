//! The memory server's books: which blocks exist, who has them, and what is free.
//!
//! ```text
//! store       books, slots and capabilities together, and what lets them grow
//! books       who has what, and what is free; its parts: blocks, accounts, families
//! machine     what the store asks of the kernel
//! view        what a client may see and choose
//! ```
//! Nothing here makes a system call, so all of it is tested on the host, where the kernel is one that refuses whatever
//! the test wants.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

/// Bundles of objects that can live at a time.
pub const MAX_BUNDLES: usize = 2048;
/// Descriptors that all of them can have together.
pub const MAX_PARTS: usize = 4096;
/// Bytes of heap in which so many bundles, the slabs, a recorded trace and the table of families are sure to find room.
pub const ARENA_SIZE: usize = 1 << 20;

pub mod accounts;
pub mod blocks;
pub mod books;
pub mod families;
pub mod machine;
pub mod store;
pub mod view;
