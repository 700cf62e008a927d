//! The memory server's books: which blocks exist, who has them, and what is free.
//!
//! Nothing here makes a system call, so all of it is tested on the host. `main.rs` turns entries of the books into
//! untyped capabilities.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod books;

/// Blocks that can be in use at a time.
pub const MAX_BLOCKS: usize = 4096;
/// Bytes of heap that books with so many blocks are sure to fit into.
pub const ARENA_SIZE: usize = 1 << 20;
