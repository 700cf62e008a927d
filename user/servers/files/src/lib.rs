//! The file server's state: a tree of files, pipes, and the ends through which processes reach both. This library makes
//! no system call, so all of it is tested on the host; `main.rs` adds capabilities and replies.
//!
//! ```text
//! capability ─ badge ─▶ end ──▶ open file ──▶ file of the tree ──▶ contents: blocks, or the boot archive
//!                          └──▶ pipe: buffer, threads that wait to read, threads that wait to write
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
