//! What the file server knows: a tree of files, pipes, and the ends through which processes reach both. Nothing here
//! makes a system call, so all of it is tested on the host; `main.rs` adds capabilities and answers.
//!
//! ```text
//! capability ─ badge ─▶ end ──▶ open file ──▶ file of the tree ──▶ contents: blocks, or the boot archive
//!                          └──▶ pipe: buffer, those who wait to read, those who wait to write
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod contents;
pub mod ends;
pub mod owners;
pub mod pipe;
pub mod tree;
