//! The memory server's books: which blocks exist, who has them, and what is free.
//!
//! Nothing here makes a system call, so all of it is tested on the host. `main.rs` turns entries of the books into
//! untyped capabilities.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod accounts;
pub mod blocks;
pub mod books;
