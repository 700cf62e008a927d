//! A slow, obvious specification of the kernel, and random tests of the kernel itself.
//!
//! ```text
//!   source   random choices: from a seed, or from a fuzzer's bytes
//!   player   every system call with every shape of argument, and a check of the whole state after each
//! ```

#![forbid(unsafe_code)]

pub mod player;
pub mod source;
