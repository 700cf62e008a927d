//! The source keeps the tree's rules: which crate may use which, how long a file may be, where unsafe code lies, and
//! which words are used for what.
//!
//! `BLESS=1 cargo test -p tench-tool --test source` writes the numbers of unsafe blocks (of which there may be fewer).

#![forbid(unsafe_code)]

mod cases;
mod conflicts;
mod kernel_layers;
mod layers;
mod lengths;
mod random;
mod sentences;
mod unsafe_code;
mod words;

#[path = "../support/source.rs"]
mod source;
